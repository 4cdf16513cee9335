// Chooses among the charts over time, and moves what they draw onto logarithmic axes, or onto one axis for all of them.
(() => {
  "use strict";
  const HEIGHT = 150; // of the drawn area, in the pixels of charts.py
  const DECADES = 3; // of a logarithmic axis; smaller shares lie on its lower edge
  const LABEL = 3; // pixels from a line of the grid to the base line of its label
  const drawn = new Map(); // figure -> its chart as the page brought it

  const LABELS = ".role-axis-label text[transform^='translate(-']"; // left of the drawn area
  const labelsOf = (svg) => [...svg.querySelectorAll(LABELS)];
  const heightOf = (shape) => Number(/translate\(([^,]*),([^)]*)\)/.exec(shape.getAttribute("transform"))[2]);

  function topOf(svg) {
    const label = labelsOf(svg).at(-1);
    return (parseFloat(label.textContent) / 100) * (HEIGHT / (HEIGHT - heightOf(label) + LABEL));
  }

  function place(share, top, isLog) {
    if (!isLog) return HEIGHT * (1 - share / top);
    return HEIGHT * (1 - Math.min(Math.max(1 + Math.log10(Math.max(share, 0) / top) / DECADES, 0), 1));
  }

  function ticks(top, isLog) {
    if (isLog) {
      const least = Math.ceil(Math.log10(top) - DECADES - 1e-9);
      return Array.from({ length: Math.floor(Math.log10(top) + 1e-9) - least + 1 }, (_, at) => 10 ** (least + at));
    }
    const power = 10 ** Math.floor(Math.log10(top / 4));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= top / 4 - 1e-12);
    return Array.from({ length: Math.floor(top / step + 1e-9) + 1 }, (_, at) => at * step);
  }

  function redraw(svg, top, isLog) {
    const own = topOf(svg);
    const moved = (y) => place(own * (1 - y / HEIGHT), top, isLog).toFixed(2);
    for (const path of svg.querySelectorAll(".role-mark path")) {
      const [name, pairs] = path.hasAttribute("transform") ? ["transform", /(\()([^,]+),([^)]+)/g] : ["d", /([ML])([^,]+),([^MLZ]+)/g];
      path.setAttribute(name, path.getAttribute(name).replace(pairs, (_, before, x, y) => `${before}${x},${moved(Number(y))}`));
    }
    const at = ticks(top, isLog);
    for (const shapes of [".role-axis-grid line", ".role-axis-tick line[x2='-5']", LABELS]) {
      const old = [...svg.querySelectorAll(shapes)];
      if (!old.length) continue;
      old[0].parentNode.replaceChildren(...at.map((share) => {
        const shape = old[0].cloneNode();
        const x = /\(([^,]*),/.exec(shape.getAttribute("transform"))[1];
        const isText = shape.localName === "text";
        shape.setAttribute("transform", `translate(${x},${(place(share, top, isLog) + (isText ? LABEL : 0)).toFixed(2)})`);
        if (isText) shape.textContent = `${Number((100 * share).toPrecision(2))}%`;
        return shape;
      }));
    }
  }

  const chartOf = (figure) => figure.querySelector(".chart svg");

  function choose(tools) {
    const figures = [...document.getElementById(tools.dataset.trends).querySelectorAll("figure")];
    const names = tools.querySelector("input[type=search]").value.toLocaleLowerCase().split(",").map((name) => name.trim()).filter(Boolean);
    const checked = (name) => [...tools.querySelectorAll(`[name=${name}]:checked`)].map((box) => box.value);
    const [flags, scales] = [checked("flag"), checked("scale")];
    for (const figure of figures) {
      const [value, has] = [figure.dataset.value.toLocaleLowerCase(), figure.dataset.flags.split(" ")];
      figure.hidden = !((!names.length || names.some((name) => value.includes(name))) && flags.every((flag) => has.includes(flag)));
      if (!drawn.has(figure)) drawn.set(figure, chartOf(figure));
    }
    const seen = figures.filter((figure) => !figure.hidden);
    const most = scales.includes("same") ? Math.max(...seen.map((figure) => topOf(drawn.get(figure)))) : 0;
    for (const figure of figures) {
      const original = drawn.get(figure);
      const next = scales.length ? original.cloneNode(true) : original;
      if (scales.length) redraw(next, most && !figure.hidden ? most : topOf(original), scales.includes("log"));
      chartOf(figure).replaceWith(next);
    }
    const said = names.length || flags.length ? `${seen.length} of ${figures.length} charts` : "";
    const edge = scales.includes("log") ? "Shares below a thousandth of the top of an axis lie on its lower edge." : "";
    tools.querySelector("[role=status]").textContent = [said, edge].filter(Boolean).join(". ");
  }

  document.addEventListener("input", ({ target }) => {
    const tools = target.closest("[data-trends]");
    if (tools) choose(tools);
  });

  // A page that follows a stream gets its charts back before it changes.
  document.addEventListener("uldp:before", () => {
    for (const [figure, original] of drawn) chartOf(figure)?.replaceWith(original);
    drawn.clear();
  });
  document.addEventListener("uldp:after", () => {
    for (const tools of document.querySelectorAll("[data-trends]")) choose(tools);
  });
})();
