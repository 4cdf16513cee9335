/** What reports do not tell, and what very many of them would. Nothing of this leaves the device. */

const at = (id) => document.getElementById(id);
const TIMES = [1, 2, 5, 10, 1000];

/** Probability of each symbol's being reported as itself, and as a given other one: k-ary randomized response. */
export function channel({ sampler, num_symbols: k }) {
  const keep = Number(BigInt(sampler.keep_weight)) / 2 ** 64;
  return { same: keep + (1 - keep) / k, other: (1 - keep) / k };
}

/** Probability of a value after reports, if all values were equally likely before. */
export function belief(reported, symbol, k, { same, other }) {
  const counts = Array.from({ length: k }, (_, i) => reported.filter((each) => each === i).length);
  const weights = counts.map((count) => count * Math.log(same / other));
  const most = Math.max(...weights);
  return Math.exp(weights[symbol] - most) / weights.reduce((sum, weight) => sum + Math.exp(weight - most), 0);
}

/** As a person would say it: never 0 % or 100 % of what is merely improbable. */
export function inWords(chance) {
  if (chance > 0.999) return "above 99.9 %";
  return chance < 0.001 ? "below 0.1 %" : `${(100 * chance).toFixed(1)} %`;
}

const symbolOf = (message) => message[message.length - 1];

function row(...texts) {
  const line = document.createElement("tr");
  line.append(...texts.map((text) => Object.assign(document.createElement("td"), { textContent: text })));
  return line;
}

/** Fill both parts for a person with this answer. `draw(value)` makes a report that is not sent. */
export function doubt(form, value, draw) {
  const names = form.symbols.symbols;
  const [symbol, odds] = [names.indexOf(value), channel(form)];
  const reported = Array.from({ length: TIMES.at(-1) }, () => symbolOf(draw(value)));
  at("many-value").textContent = value;
  at("many-rows").replaceChildren(...TIMES.map((times) =>
    row(times.toLocaleString("en"), inWords(belief(reported.slice(0, times), symbol, names.length, odds)))));
  const other = names[(symbol + 1) % names.length];
  const [mine, theirs] = twins(() => draw(value), () => draw(other));
  const pair = Math.random() < 0.5 ? [mine, theirs] : [theirs, mine]; // the order on the page, not privacy
  at("twins-text").textContent = `One of these reports is of a person who answers “${value}”, the other of one who ` +
    `answers “${other}”; neither was sent. Whoever sees only reports cannot tell which is which: no report makes any ` +
    `answer more than ${(odds.same / odds.other).toFixed(1)} times as likely, against any other, as it was before.`;
  at("twins-rows").replaceChildren(...pair.map((report) =>
    row(Array.from(report.slice(9), (byte) => byte.toString(16).padStart(2, "0")).join(" "), `“${names[symbolOf(report)]}”`)));
}

/** Two reports with the same symbol. */
function twins(first, second) {
  for (;;) {
    const [one, two] = [first(), second()];
    if (symbolOf(one) === symbolOf(two)) return [one, two];
  }
}
