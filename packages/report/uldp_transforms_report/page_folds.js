// Folds all but the first part of the page and of its charts where there is little room, and opens what is asked for or
// printed.
(() => {
  "use strict";
  const NARROW = "(max-width: 480px)";
  const parts = () => [...document.querySelectorAll("details.part")];
  const further = () => [...document.querySelectorAll("details.further")]; // charts

  function open(part, is) {
    if (is) part.setAttribute("open", "");
    else part.removeAttribute("open");
  }

  function openTarget() {
    const target = location.hash ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
    const part = target && (target.closest("details.part") ?? target.querySelector("details.part"));
    const folded = [part, target?.closest("details.further")].filter((it) => it && !it.hasAttribute("open"));
    for (const it of folded) open(it, true);
    if (folded.length) target.scrollIntoView();
  }

  // Parts that are closed, to be closed again after printing, and after an update, which opens them all.
  let closed = [];
  const remember = () => { closed = [...parts(), ...further()].filter((part) => !part.hasAttribute("open")); };
  const restore = () => { for (const part of closed) open(part, false); };

  if (matchMedia(NARROW).matches) for (const part of [...parts().slice(1), ...further()]) open(part, false);
  openTarget();
  addEventListener("hashchange", openTarget);
  document.addEventListener("click", ({ target }) => {
    if (target.matches("a[href^='#']") && target.hash === location.hash) openTarget();
  });
  addEventListener("beforeprint", () => {
    remember();
    for (const part of closed) open(part, true);
  });
  addEventListener("afterprint", restore);
  document.addEventListener("uldp:before", remember);
  document.addEventListener("uldp:after", restore);
})();
