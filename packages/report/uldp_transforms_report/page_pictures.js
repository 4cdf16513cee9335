// Draws charts, and tables with drawn rows, as pictures: the browser lays out a copy in light colours, with its title,
// caption, key and source, and every text and shape of that layout becomes part of one SVG.
"use strict";

(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const RATIO = 16 / 9; // of a slide
  const SCALES = { slide: 1920, paper: (3.3 * 300) }; // width of a PNG in pixels
  const LOOK = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "opacity"];
  const TYPE = ["font-family", "font-size", "font-weight", "text-anchor"];
  const SHAPES = "path, line, circle, rect, text";
  const LENGTHS = ["x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height"];

  const isAfter = (other, element) => Boolean(element?.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING);
  const before = (selector, element) => [...document.querySelectorAll(selector)].filter((other) => isAfter(element, other));
  const made = (name, attributes, text = "") => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return element;
  };

  // ------------------------------------------------------------------------------------------------- what is laid out

  // The headings that a table is labelled with, or those above a chart, but for that of its collection.
  function titleOf(object) {
    const region = object.closest("[role=region]");
    const names = region?.getAttribute("aria-labelledby")?.split(" ").map((id) => document.getElementById(id));
    if (region && !names) return region.getAttribute("aria-label");
    const [top] = before("h3", object).slice(-1);
    const heads = names ?? [top, ...before("h4", object).filter((head) => isAfter(head, top)).slice(-1)];
    const texts = [...heads, object.querySelector("figcaption > strong")].filter((head) => head && !head.matches("h2, caption"));
    return texts.map((head) => head.textContent).join(": ");
  }

  function layout(object, size) {
    const add = (name, text, kind = "") => {
      const element = document.createElement(name);
      element.className = kind;
      element.textContent = text;
      return element;
    };
    const [top] = before("h3", object).slice(-1);
    const key = before(".key", object).filter((other) => isAfter(other, top)).at(-1);
    const section = add("section", "", `picture light ${size}`);
    section.setAttribute("aria-hidden", "true");
    section.append(add("h3", titleOf(object)));
    if (key) section.append(key.cloneNode(true));
    const copy = object.cloneNode(true);
    for (const part of [copy, ...copy.querySelectorAll("[id]")]) part.removeAttribute("id");
    for (const part of copy.querySelectorAll(".take, details")) part.remove();
    const alike = document.querySelectorAll(`[data-rows-of="${object.id}"]`); // what all rows have in common
    section.append(copy, ...[...alike].map((note) => note.cloneNode(true)), add("p", object.closest("[data-source]").dataset.source, "source"));
    document.body.append(section);
    const needed = () => Math.ceil(section.offsetHeight * RATIO);
    for (let at = 0; size === "slide" && at < 3 && needed() > section.offsetWidth; at++) {
      section.style.setProperty("--wide", `${needed()}px`); // a long table becomes as wide as it is high
    }
    return section;
  }

  // ------------------------------------------------------------------------------------------- from a layout to an SVG

  // Texts of the lines of a text node, with their places.
  function linesOf(node) {
    const range = document.createRange();
    const lines = [];
    let at = 0;
    for (const letter of node.data) {
      range.setStart(node, at);
      range.setEnd(node, (at += letter.length));
      const box = range.getClientRects()[0];
      const line = lines.at(-1);
      if (!box?.width || (!letter.trim() && (!line || Math.abs(line.top - box.top) >= 2))) continue;
      if (line && Math.abs(line.top - box.top) < 2) {
        [line.left, line.right] = [Math.min(line.left, box.left), Math.max(line.right, box.right)];
        line.text += letter;
      } else lines.push({ text: letter, top: box.top, left: box.left, right: box.right });
    }
    return lines;
  }

  const pen = document.createElement("canvas").getContext?.("2d");

  function drawText(node, out, origin) {
    const style = getComputedStyle(node.parentNode);
    pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
    const rise = pen.measureText("x").fontBoundingBoxAscent;
    const isBackward = style.direction === "rtl";
    for (const line of linesOf(node)) {
      const text = line.text.replace(/\s+/g, " ").trim();
      if (!text) continue;
      const look = { "font-family": style.fontFamily, "font-size": style.fontSize, "font-weight": style.fontWeight, fill: style.color };
      const place = { x: (isBackward ? line.right : line.left) - origin.left, y: line.top + rise - origin.top };
      out.append(made("text", { ...place, ...look, ...(isBackward ? { direction: "rtl" } : {}) }, text));
    }
  }

  // Shapes are moved to where they are seen, and get the attributes that the style sheet gave them.
  function drawShapes(svg, out, origin) {
    for (const shape of svg.querySelectorAll(SHAPES)) {
      const style = getComputedStyle(shape);
      if (style.display === "none" || style.visibility === "hidden") continue;
      const copy = made(shape.localName, {}, shape.localName === "text" ? shape.textContent : "");
      const at = shape.getScreenCTM();
      const [x, y] = [at.e - origin.left, at.f - origin.top];
      if (style.vectorEffect === "non-scaling-stroke") {
        const lines = shape.getAttribute("d").matchAll(/M([\d.]+) 0V1/g);
        copy.setAttribute("d", [...lines].map(([, place]) => `M${x + at.a * Number(place)} ${y}v${at.d}`).join(""));
      } else {
        if (shape.hasAttribute("d")) copy.setAttribute("d", shape.getAttribute("d"));
        for (const name of LENGTHS) {
          const length = shape[name]?.baseVal;
          if (length && shape.hasAttribute(name)) copy.setAttribute(name, length.value ?? length[0]?.value ?? 0);
        }
        copy.setAttribute("transform", `matrix(${[at.a, at.b, at.c, at.d, x, y].join(" ")})`);
      }
      for (const name of shape.localName === "text" ? [...LOOK, ...TYPE] : LOOK) {
        copy.setAttribute(name, style.getPropertyValue(name));
      }
      out.append(copy);
    }
  }

  function draw(element, out, origin) {
    const style = getComputedStyle(element);
    if (style.display === "none" || style.visibility === "hidden") return;
    if (element.localName === "svg") return drawShapes(element, out, origin);
    if (element.matches("th, td")) {
      const box = element.getBoundingClientRect();
      const y = box.bottom - origin.top;
      const ends = { x1: box.left - origin.left, x2: box.right - origin.left, y1: y, y2: y };
      out.append(made("line", { ...ends, stroke: style.borderBottomColor, "stroke-width": style.borderBottomWidth }));
    }
    for (const child of element.childNodes) {
      if (child.nodeType === Node.TEXT_NODE) drawText(child, out, origin);
      else if (child.nodeType === Node.ELEMENT_NODE) draw(child, out, origin);
    }
  }

  // The picture of a chart or a table, with its width and height in pixels of the page.
  function picture(object, size) {
    const section = layout(object, size);
    const origin = section.getBoundingClientRect();
    const [width, own] = [origin.width, origin.height];
    const height = size === "slide" ? Math.max(width / RATIO, own) : own;
    const top = (own - height) / 2;
    const [wide, high] = size === "slide" ? [960, 960 * (height / width)] : [width, height];
    const svg = made("svg", { xmlns: SVG, width: wide, height: high, viewBox: `0 ${top} ${width} ${height}` });
    svg.append(made("title", {}, titleOf(object)));
    svg.append(made("desc", {}, object.querySelector("[role=img]")?.getAttribute("aria-label") ?? ""));
    svg.append(made("rect", { x: 0, y: top, width, height, fill: "#ffffff" }));
    draw(section, svg, origin);
    section.remove();
    return { text: new XMLSerializer().serializeToString(svg), ratio: height / width };
  }

  // ------------------------------------------------------------------------------------------------------------ save

  async function pixels({ text, ratio }, size) {
    const image = new Image();
    image.src = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [SCALES[size], Math.round(SCALES[size] * ratio)];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(image.src);
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  }

  async function save(button) {
    const { size, form } = button.dataset;
    const id = button.closest("[data-picture]").dataset.picture;
    const drawn = picture(document.getElementById(id), size);
    const blob = form === "png" ? await pixels(drawn, size) : new Blob([drawn.text], { type: "image/svg+xml" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `${id}-${size}.${form}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  document.addEventListener("click", ({ target }) => {
    if (target.matches("button[data-size]")) save(target);
  });
})();
