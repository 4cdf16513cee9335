// Folds all but the first part of the page where there is little room, and opens parts that are asked for or printed.
(() => {
  "use strict";
  const NARROW = "(max-width: 480px)";
  const parts = () => [...document.querySelectorAll("details.part")];

  function open(part, is) {
    if (is) part.setAttribute("open", "");
    else part.removeAttribute("open");
  }

  function openTarget() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const part = target && (target.closest("details.part") ?? target.querySelector("details.part"));
    if (part && !part.hasAttribute("open")) {
      open(part, true);
      target.scrollIntoView();
    }
  }

  // Parts that are closed, to be closed again after printing, and after an update, which opens them all.
  let closed = [];
  const remember = () => { closed = parts().filter((part) => !part.hasAttribute("open")); };
  const restore = () => { for (const part of closed) open(part, false); };

  if (matchMedia(NARROW).matches) for (const part of parts().slice(1)) open(part, false);
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
