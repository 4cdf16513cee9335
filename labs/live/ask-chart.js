/** The right half of the survey page: the estimates of the stream beside the truth of the simulated people. */

const at = (id) => document.getElementById(id);
const SPACE = "http://www.w3.org/2000/svg";
const [LEFT, RIGHT, TOP, BOTTOM] = [48, 550, 30, 262];
const PLACES = 12; // of windows; one more is for all of them together
export const percent = (share) => `${(100 * share).toFixed(1)} %`;
const whole = (number) => number.toLocaleString("en");

function draw(name, attributes, text = "") {
  const made = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

/** Elements of the chart: a scale; an interval, a dot and a step for the truth per window, and for all windows. */
export function marks(windows, total) {
  const most = Math.max(0.1, ...windows.map(({ high, truth }) => Math.max(high, truth ?? 0)));
  const tenths = Math.ceil(10 * most);
  const y = (share) => BOTTOM - (BOTTOM - TOP) * ((10 * share) / tenths);
  const step = (RIGHT - LEFT) / (PLACES + 1);
  const made = [];
  for (let tenth = 0; tenth <= tenths; tenth += tenths > 5 ? 2 : 1) {
    const at = y(tenth / 10);
    made.push(draw("line", { class: "grid", x1: LEFT, x2: RIGHT, y1: at, y2: at }));
    made.push(draw("text", { x: LEFT - 6, y: at + 4, "text-anchor": "end" }, `${10 * tenth} %`));
  }
  const mark = ({ reports, frequency, low, high, truth }, place, kind) => {
    const [x, middle] = [LEFT + place * step, LEFT + (place + 0.5) * step];
    if (truth !== null) made.push(draw("line", { class: "truth", x1: x, x2: x + step, y1: y(truth), y2: y(truth) }));
    const group = draw("g", { class: kind });
    group.append(draw("title", {}, `${percent(frequency)}, ${percent(low)} to ${percent(high)}, ${whole(reports)} reports`));
    group.append(draw("line", { x1: middle, x2: middle, y1: y(low), y2: y(high) }));
    group.append(draw("circle", { cx: middle, cy: y(frequency), r: 5 }));
    made.push(group);
    return middle;
  };
  windows.forEach((window, place) => {
    const middle = mark(window, place, window.early ? "window early" : "window");
    if (place % 3 === 0) {
      const clock = new Date(1000 * window.start).toLocaleTimeString("en-GB");
      made.push(draw("text", { x: middle, y: BOTTOM + 18, "text-anchor": "middle" }, clock));
    }
  });
  if (total) {
    const edge = RIGHT - step;
    made.push(draw("line", { class: "grid", x1: edge, x2: edge, y1: TOP, y2: BOTTOM }));
    mark({ ...total, frequency: total.mean }, PLACES, "window all");
    made.push(draw("text", { x: RIGHT + 8, y: BOTTOM + 18, "text-anchor": "end" }, "all windows"));
  }
  const key = draw("g", { class: "key" });
  key.append(draw("line", { class: "truth", x1: LEFT, x2: LEFT + 22, y1: 14, y2: 14 }));
  key.append(draw("text", { x: LEFT + 28, y: 18 }, "truth of the simulation"));
  key.append(draw("circle", { cx: 282, cy: 14, r: 5 }), draw("text", { x: 292, y: 18 }, "estimate"));
  key.append(draw("circle", { class: "open", cx: 390, cy: 14, r: 5 }), draw("text", { x: 400, y: 18 }, "unfinished window"));
  made.push(key);
  return made;
}

/** The sentence about all windows together. */
export function sentence(value, total) {
  if (!total) return "Waiting for the first window …";
  const held = total.truth === null ? "" : ` Among the simulated people it was ${percent(total.truth)}.`;
  return `${percent(total.mean)} answered “${value}”; between ${percent(total.low)} and ${percent(total.high)} ` +
    `with ${+(100 * total.confidence).toPrecision(10)} % confidence, from ${whole(total.reports)} reports since the start.${held}`;
}

/** The sentences about what was sent, what the chart counts, and the ledger of the stream. */
export function accounts({ received, accepted, duplicates, rejected, age, acknowledged }, total) {
  const sent = `Simulated people have sent ${whole(acknowledged)} answers; the chart counts ` +
    `${whole(total?.reports ?? 0)} reports so far, with those of this page. `;
  if (age === undefined || age === null) {
    return `${sent}The ledger has no line yet: it waits a minute for reports that are on their way, so its first line ` +
      "comes about a minute and a half after the start.";
  }
  const sum = received === accepted + duplicates + rejected ? "" : " These do not add up.";
  return `${sent}The ledger, which is a minute or more behind, was written ${Math.round(age)} s ago: ` +
    `${whole(received)} received = ${whole(accepted)} accepted + ${whole(duplicates)} duplicates + ` +
    `${whole(rejected)} rejected.${sum}`;
}

function show({ value, share, windows, total, books }, moving) {
  at("value").textContent = at("value2").textContent = value;
  at("sum").textContent = sentence(value, total);
  at("chart").replaceChildren(...marks(windows, total));
  at("books").textContent = accounts(books, total);
  at("slide").hidden = share === null;
  if (share !== null && !moving()) {
    at("slider").value = Math.round(1000 * share);
    at("number").textContent = at("slider").value;
  }
}

/** Look every second; the slider changes the crowd from then on. */
export function follow() {
  let changed = -Infinity;
  let value = "";
  const moving = () => performance.now() - changed < 2000;
  at("slider").addEventListener("input", () => {
    changed = performance.now();
    at("number").textContent = at("slider").value;
    fetch("/crowd", { method: "POST", body: JSON.stringify({ value, share: at("slider").value / 1000 }) }).catch(() => {});
  });
  const look = async () => {
    try {
      const now = await (await fetch("/now.json")).json();
      value = now.value ?? value;
      if (now.windows) show(now, moving);
    } catch {
      at("books").textContent = "The demonstration has ended, or does not answer.";
    }
    setTimeout(look, 1000);
  };
  look();
}
