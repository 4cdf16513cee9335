// Chooses among the charts over time, and moves what they draw onto logarithmic axes, or onto an axis for each of them.
(() => {
  "use strict";
  const HEIGHT = 150; // of the drawn area, in the pixels of charts.py
  const DECADES = 3; // of a logarithmic axis; smaller shares lie on its lower edge
  const LABEL = 3; // pixels from a line of the grid to the base line of its label
  const drawn = new Map(); // figure -> its chart as the page brought it

  const LABELS = ".role-axis-label text[transform^='translate(-']"; // left of the drawn area
  const topOf = (element) => Number(element.dataset.scale.split(" ")[1]); // of an axis that begins at 0

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

  // Moves what is drawn, but for the dotted lines of changes, which span the whole height.
  function redraw(svg, before, top, isLog) {
    const moved = (y) => place(before * (1 - y / HEIGHT), top, isLog);
    for (const path of svg.querySelectorAll(".role-mark path")) {
      const [name, pairs] = path.hasAttribute("transform") ? ["transform", /(\()([^,]+),([^)]+)/g] : ["d", /([ML])([^,]+),([^MLZ]+)/g];
      path.setAttribute(name, path.getAttribute(name).replace(pairs, (_, start, x, y) => `${start}${x},${moved(Number(y)).toFixed(2)}`));
    }
    for (const line of svg.querySelectorAll(".role-mark line")) {
      if (line.hasAttribute("stroke-dasharray")) continue;
      const [, x, y] = /\(([^,]*),([^)]*)/.exec(line.getAttribute("transform"));
      const ends = [0, Number(line.getAttribute("y2"))].map((end) => moved(Number(y) + end));
      line.setAttribute("transform", `translate(${x},${ends[0].toFixed(2)})`);
      line.setAttribute("y2", (ends[1] - ends[0]).toFixed(2));
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
    const charts = document.getElementById(tools.dataset.trends);
    const figures = [...charts.querySelectorAll("figure")];
    const names = tools.querySelector("input[type=search]").value.toLocaleLowerCase().split(",").map((name) => name.trim()).filter(Boolean);
    const checked = (name) => [...tools.querySelectorAll(`[name=${name}]:checked`)].map((box) => box.value);
    const [flags, scales] = [checked("flag"), checked("scale")];
    for (const figure of figures) {
      const [value, has] = [figure.dataset.value.toLocaleLowerCase(), figure.dataset.flags.split(" ")];
      figure.hidden = !((!names.length || names.some((name) => value.includes(name))) && flags.every((flag) => has.includes(flag)));
      if (!drawn.has(figure)) drawn.set(figure, chartOf(figure));
    }
    const seen = figures.filter((figure) => !figure.hidden);
    if (names.length || flags.length) for (const it of charts.querySelectorAll("details.further")) it.setAttribute("open", "");
    const isScaled = charts.dataset.scale !== undefined && seen.length > 0;
    const isLog = scales.includes("log");
    const common = isScaled ? Math.max(...seen.map(topOf)) : 0;
    for (const figure of isScaled ? figures : []) {
      const top = scales.includes("own") ? topOf(figure) : common;
      const original = drawn.get(figure);
      const isDrawn = figure.hidden || (!isLog && top === topOf(charts));
      const next = isDrawn ? original : original.cloneNode(true);
      if (!isDrawn) redraw(next, topOf(charts), top, isLog);
      chartOf(figure).replaceWith(next);
    }
    const said = names.length || flags.length ? `${seen.length} of ${figures.length} charts` : "";
    const edge = isLog ? "Shares below a thousandth of the top of an axis lie on its lower edge." : "";
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
