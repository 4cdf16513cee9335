// Search, sort, filter, compare, shorten and save the tables of this page. Without it, the page reads completely.
"use strict";

(() => {
  const DASH = "\u2013";
  const collator = new Intl.Collator(undefined, { numeric: true });

  function panelOf(table) {
    const island = table.dataset.values && document.getElementById(table.dataset.values);
    return island ? JSON.parse(island.textContent) : { values: [] };
  }

  const rowsOf = (table) => [...table.tBodies[0].rows];
  const textOf = (cell) => cell.dataset.full ?? cell.textContent;
  const numbersOf = (cell) => (cell.dataset.n ?? "").trim().split(" ").filter(Boolean).map((n) => (n === "open" ? null : Number(n)));

  // ------------------------------------------------------------------------------------------------------------ sort

  function keyOf(row, column) {
    const cell = row.cells[column];
    return "n" in cell.dataset ? numbersOf(cell)[0] ?? -Infinity : cell.textContent;
  }

  function sort(head) {
    const table = head.closest("table");
    const order = head.getAttribute("aria-sort");
    const first = head.classList.contains("number") ? "descending" : "ascending";
    const next = order === null ? first : order === first ? (first === "ascending" ? "descending" : "ascending") : null;
    for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
    if (next) head.setAttribute("aria-sort", next);
    arrange(table);
  }

  function arrange(table) {
    const head = table.tHead.querySelector("[aria-sort]");
    const rows = rowsOf(table).sort((a, b) => a.dataset.at - b.dataset.at);
    if (head) {
      const isUp = head.getAttribute("aria-sort") === "ascending";
      const keys = new Map(rows.map((row) => [row, keyOf(row, head.cellIndex)]));
      rows.sort((a, b) => {
        const [x, y] = (isUp ? [a, b] : [b, a]).map((row) => keys.get(row));
        return typeof x === "number" && typeof y === "number" ? (x > y) - (x < y) : collator.compare(x, y);
      });
    }
    table.tBodies[0].append(...rows);
    shorten(table);
  }

  // --------------------------------------------------------------------------------------------------- the first rows

  const FIRST = 15; // rows of a table that are seen at first
  const whole = new WeakSet(); // tables with all of their rows

  // Of the rows that a search left, the first ones, unless a reader asked for all.
  function shorten(table) {
    const tools = document.querySelector(`[data-rows="${table.id}"]`);
    if (!tools) return;
    const rows = rowsOf(table).filter((row) => !row.hidden);
    const last = whole.has(table) ? rows.length : Math.min(FIRST, rows.length);
    rows.forEach((row, at) => row.classList.toggle("beyond", at >= last));
    const [status, button] = tools.children;
    status.textContent = rows.length ? `Rows 1 to ${last} of ${rows.length}` : "No rows";
    button.textContent = whole.has(table) ? `Show the first ${FIRST}` : `Show all ${rows.length}`;
    button.hidden = rows.length <= FIRST;
  }

  function lengthen(button) {
    const table = document.getElementById(button.parentNode.dataset.rows);
    whole[whole.has(table) ? "delete" : "add"](table);
    shorten(table);
  }

  // ---------------------------------------------------------------------------------------------------------- search

  function find(tools) {
    const table = document.getElementById(tools.dataset.find);
    if (!table) return;
    const text = tools.querySelector("input[type=search]").value.toLocaleLowerCase();
    const flags = [...tools.querySelectorAll("input:checked")].map((box) => box.value);
    let number = 0;
    for (const row of rowsOf(table)) {
      const has = (row.dataset.flags ?? "").split(" ");
      const names = [row.cells[0], ...row.querySelectorAll(".side")].map((cell) => textOf(cell).toLocaleLowerCase());
      const fits = names.some((name) => name.includes(text)) && flags.every((flag) => has.includes(flag));
      row.hidden = !fits;
      number += fits;
    }
    const status = tools.querySelector("[role=status]");
    status.textContent = text || flags.length ? `${number} of ${rowsOf(table).length} rows` : "";
    shorten(table);
  }

  // --------------------------------------------------------------------------------------------------------- compare

  function decimals(halves) {
    const least = Math.min(...halves.filter((half) => half > 0));
    return Number.isFinite(least) ? Math.min(Math.max(1 - Math.floor(Math.log10(100 * least)), 1), 4) : 1;
  }

  // Decimals of a number, such that half the length of its interval shows two digits.
  const decimalsOf = (half) => (half > 0 ? Math.min(Math.max(1 - Math.floor(Math.log10(half)), 0), 6) : 3);

  const signed = (number, digits, signDisplay = "exceptZero") =>
    number.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits, signDisplay });

  // An end beside 0 keeps its sign: it says on which side of 0 the interval is.
  const endText = (end, digits) => signed(end, digits, end ? "always" : "exceptZero");

  function spanText(ends, digits) {
    const [low, high] = ends.map((end) => (end === null ? null : endText(end, digits)));
    if (low === null) return high === null ? DASH : `below ${high}`;
    return high === null ? `from ${low}` : `${low} to ${high}`;
  }

  // Ends of the interval of a difference, from two figures with their ends; null where an end is open.
  function differenceEnds([a, lowA, highA], [b, lowB, highB]) {
    const low = lowA === null || highB === null ? null : a - b - Math.hypot(a - lowA, highB - b);
    const high = highA === null || lowB === null ? null : a - b + Math.hypot(highA - a, b - lowB);
    return [low, high];
  }

  // A share outside [0, 1] says no more than one at the edge.
  function moved([share, low, high, inner]) {
    if (share < 0) return [0, low === null ? null : low - share, inner];
    return share > 1 ? [1, inner, high === null ? null : high + 1 - share] : [share, low, high];
  }

  // A share or figure of one side minus that of another one: null without one of them; ends may be open, and then null.
  function differenceOf(panel, first, second, at) {
    const sides = [first, second].map((side) => ["value", "low", "high", "inner"].map((name) => panel[name][side][at]));
    const [a, b] = sides.map(([value]) => value);
    if (a === null || b === null || first === second) return null;
    const isShare = panel.shares[at];
    let [low, high] = differenceEnds(...sides);
    if (isShare) {
      const [lowest, highest] = differenceEnds(...sides.map(moved));
      if (low !== null && lowest !== null) low = Math.min(low, lowest);
      if (high !== null && highest !== null) high = Math.max(high, highest);
    }
    return { difference: a - b, low, high, isShare };
  }

  // Half the length of an interval; of one with an open end, the distance of the other one.
  function halfOf(of) {
    if (of === null || (of.low === null && of.high === null)) return 0;
    return of.low === null ? of.high - of.difference : of.high === null ? of.difference - of.low : (of.high - of.low) / 2;
  }

  // Ticks of an axis from -most to most, as those of tables/axis.py.
  function ticksOf(most) {
    const power = 10 ** Math.floor(Math.log10((2 * most) / 5));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((length) => length >= ((2 * most) / 5) * (1 - 1e-9));
    const [last, digits] = [Math.floor(most / step + 1e-9), Math.max(0, -Math.floor(Math.log10(step) + 1e-9))];
    return Array.from({ length: 2 * last + 1 }, (_, at) => [step * (at - last), signed(step * (at - last), digits)]);
  }

  // Draws differences around 0, those of one scale as far as the one that is farthest; an open end is at the edge.
  function redraw(table, panel, found, apart) {
    const drawn = rowsOf(table).map((row) => [row.querySelector("td.drawn svg"), row.dataset.at]).filter(([svg]) => svg);
    const scaleOf = ([, at]) => panel.scales?.[at];
    for (const scale of new Set(drawn.map(scaleOf))) redrawScale(table, drawn.filter((row) => scaleOf(row) === scale), found, apart);
  }

  function redrawScale(table, drawn, found, apart) {
    const factor = drawn.some(([, at]) => found[at]?.isShare) ? 100 : 1;
    const ends = drawn.flatMap(([, at]) => (found[at] ? [found[at].difference, found[at].low, found[at].high] : []));
    const most = Math.max(0, ...ends.map((end) => Math.abs(end ?? 0))) || 1;
    const place = (number) => Math.min(Math.max(50 + (50 * number) / most, 0), 100).toFixed(2);
    const ticks = ticksOf(factor * most).map(([number, text]) => [place(number / factor), text]);
    const axis = table.querySelector("svg.axis");
    if (axis) label(axis, ticks, (_, at) => (at % 2 ? "odd" : ""));
    for (const [svg, at] of drawn) {
      const of = found[at];
      const [line, dot] = [svg.querySelector("line.told, line.untold"), svg.querySelector("circle")];
      svg.querySelector(".grid").setAttribute("d", ticks.map(([x]) => `M${x} 0V1`).join(""));
      if (!axis) label(svg, [ticks[0], ticks.at(-1)], (x) => (x < 12 ? "start" : x > 88 ? "end" : ""));
      for (const shape of [line, dot]) {
        shape.setAttribute("class", apart[at] ? "told" : "untold");
        shape.setAttribute("visibility", of ? "visible" : "hidden");
      }
      if (!of) continue;
      line.setAttribute("x1", `${place(of.low ?? -most)}%`);
      line.setAttribute("x2", `${place(of.high ?? most)}%`);
      dot.setAttribute("cx", `${place(of.difference)}%`);
    }
  }

  function label(axis, ticks, kindOf) {
    const old = [...axis.children].filter((child) => child.localName === "text");
    axis.append(...ticks.map(([x, text], at) => {
      const made = old[0].cloneNode(true);
      made.setAttribute("x", `${x}%`);
      made.setAttribute("class", kindOf(x, at));
      made.textContent = text;
      return made;
    }));
    for (const text of old) text.remove();
  }

  function compare(tools) {
    const table = document.getElementById(tools.dataset.compare);
    if (!table) return;
    const panel = panelOf(table);
    const selects = [...tools.querySelectorAll("select")];
    const [first, second] = selects.map((select) => Number(select.value));
    const found = panel.values.map((_, at) => differenceOf(panel, first, second, at));
    const common = decimals(found.map(halfOf));
    const apart = found.map((of) => of !== null && ((of.low !== null && of.low > 0) || (of.high !== null && of.high < 0)));
    redraw(table, panel, found, apart);
    for (const row of rowsOf(table)) {
      const of = found[row.dataset.at];
      const [, difference, interval, differs] = [...row.cells].filter((cell) => !cell.matches(".drawn"));
      const isApart = apart[row.dataset.at];
      const ends = of && [of.low, of.high];
      const factor = of?.isShare ? 100 : 1;
      const digits = panel.joint ? common : of?.isShare ? decimals([halfOf(of)]) : decimalsOf(halfOf(of));
      difference.textContent = of ? signed(factor * of.difference, digits) : DASH;
      difference.dataset.n = of ? of.difference.toPrecision(6) : "";
      interval.textContent = of ? spanText(ends.map((end) => end && factor * end), digits) : DASH;
      interval.dataset.n = of ? ends.map((end) => end?.toPrecision(6) ?? "open").join(" ") : "";
      differs.textContent = isApart ? "yes" : "no";
      row.dataset.flags = isApart ? "differs" : "";
    }
    table.caption.textContent = `Differences: ${selects.map((select) => select.selectedOptions[0].textContent).join(" minus ")}`;
    arrange(table);
    for (const other of document.querySelectorAll(`[data-find="${table.id}"]`)) find(other);
  }

  // ------------------------------------------------------------------------------------------------------------ save

  function records(table) {
    const { values } = panelOf(table);
    const names = [...table.tHead.rows[0].cells].map((cell) => (cell.dataset.name ?? cell.textContent).split(" "));
    const all = names.map((name, at) => (table.tHead.rows[0].cells[at].dataset.name ? name : [name.join("_")]));
    const same = Object.entries(JSON.parse(table.dataset.same ?? "{}")); // columns that are not shown
    return rowsOf(table).filter((row) => !row.hidden).map((row) =>
      Object.fromEntries(all.flatMap((own, at) => {
        if (own[0] === "-") return []; // a picture
        const cell = row.cells[at];
        if (!("n" in cell.dataset)) return [[own[0], at === 0 ? values[row.dataset.at] ?? textOf(cell) : textOf(cell)]];
        const numbers = numbersOf(cell);
        return own.map((name, place) => [name, numbers[place] ?? null]);
      }).concat(same)));
  }

  // A spreadsheet would compute a text that begins like a formula, after blanks too and in full width, so such a text gets
  // an apostrophe. Where fields end with semicolons or tabs, only the quotes of the first field of a line count.
  const FORMULA = /^(?=[\t\r\n]|[\s\p{Cc}\p{Cf}]*[=+\-@\uff1d\uff0b\uff0d\uff20])/u;
  const AFTER = /([;\t\r\n])(?=[\s\p{Cc}\p{Cf}"]*[=+\-@\uff1d\uff0b\uff0d\uff20])/gu;

  function field(content, at) {
    if (content === null || typeof content === "number") return content ?? "";
    const safe = content.replace(FORMULA, "'");
    return `"${(at ? safe.replace(AFTER, "$1'") : safe).replaceAll('"', '""')}"`;
  }

  function csv(rows) {
    const names = Object.keys(rows[0] ?? {});
    return [names, ...rows.map((row) => names.map((name) => row[name]))].map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
  }

  // Fields that end with tabs, as spreadsheets take them from the clipboard: neither of both is in a field.
  function tsv(rows) {
    const names = Object.keys(rows[0] ?? {});
    const text = (content) => (typeof content === "string" ? content.replace(FORMULA, "'").replace(/[\t\r\n]+/g, " ") : content ?? "");
    return [names, ...rows.map((row) => names.map((name) => row[name]))].map((row) => row.map(text).join("\t")).join("\n") + "\n";
  }

  // Where a page may not write to the clipboard by itself, it answers a copy that it asks for.
  async function copy(text) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const put = (event) => {
      event.clipboardData.setData("text/plain", text);
      event.preventDefault();
    };
    document.addEventListener("copy", put, { once: true });
    if (!document.execCommand("copy")) throw new Error("the browser does not copy");
  }

  async function save(button) {
    const tools = button.closest("[data-table]");
    const { table: id } = tools.dataset;
    const { form } = button.dataset;
    const rows = records(document.getElementById(id));
    if (form === "tsv") {
      const number = `${rows.length} ${rows.length === 1 ? "row" : "rows"}`;
      const said = await copy(tsv(rows)).then(() => `Copied: ${number}.`, () => "The browser does not copy: save as CSV.");
      tools.querySelector("[role=status]").textContent = said;
      return;
    }
    const [type, content] = form === "csv" ? ["text/csv", csv(rows)] : ["application/json", JSON.stringify(rows, null, 1) + "\n"];
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type }));
    link.download = `${id}.${form}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  // One menu is open at a time, until a click elsewhere or the Escape key.
  function closeMenus(but) {
    for (const menu of document.querySelectorAll(".take[open]")) if (menu !== but) menu.removeAttribute("open");
  }

  // ------------------------------------------------------------------------------------------------- events, updates

  document.addEventListener("click", ({ target }) => {
    if (target.matches("button.sort")) sort(target.closest("th"));
    if (target.matches("[data-table] button[data-form]") && !target.dataset.size) save(target);
    closeMenus(target.closest(".take"));
    if (target.matches("[data-rows] button")) lengthen(target);
  });
  document.addEventListener("keydown", ({ key, target }) => {
    const menu = key === "Escape" && target.closest(".take[open]");
    if (!menu) return;
    closeMenus();
    menu.querySelector("summary").focus();
  });
  document.addEventListener("input", ({ target }) => {
    const finding = target.closest("[data-find]");
    const choosing = target.closest("[data-compare]");
    if (finding) find(finding);
    if (choosing) compare(choosing);
  });

  // A page that follows a stream is changed node by node: in the order of the new page, then arranged again.
  let sorted = [];
  let chosen = [];
  document.addEventListener("uldp:before", () => {
    sorted = [...document.querySelectorAll("[aria-sort]")].map((head) => [head, head.getAttribute("aria-sort")]);
    chosen = [...document.querySelectorAll("[data-compare] select")].map((select) => [select, select.selectedOptions[0]?.textContent, select.value]);
    chosen = chosen.filter(([select, , value]) => !select.querySelector("option[selected]") || select.querySelector("option[selected]").value !== value);
    for (const [head] of sorted) {
      head.removeAttribute("aria-sort");
      arrange(head.closest("table"));
    }
  });
  document.addEventListener("uldp:after", () => {
    for (const [head, order] of sorted) {
      head.setAttribute("aria-sort", order);
      arrange(head.closest("table"));
    }
    for (const [select, name] of chosen) {
      const option = [...select.options].find((of) => of.textContent === name);
      if (option) option.selected = true;
      compare(select.closest("[data-compare]"));
    }
    for (const tools of document.querySelectorAll("[data-find]")) find(tools);
    shortenAll();
  });

  function shortenAll() {
    for (const tools of document.querySelectorAll("[data-rows]")) shorten(document.getElementById(tools.dataset.rows));
  }

  shortenAll();
  document.documentElement.classList.add("scripted");
})();
