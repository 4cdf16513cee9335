/** Compares the client with the vectors of schemas/vectors; in Node and in browsers. */
import { BudgetSpentError, MemoClient, MemoryState, UldpError } from "../index.js";
import { checked, formOf } from "../src/form.js";
import { canonical, hashStream } from "../src/hashing.js";
import { cohortOf, costOf, memoOf, repeated, turnOf } from "../src/memos.js";
import { fromHex, packed, toHex } from "../src/message.js";
import { reporter } from "../src/report.js";
import { SAMPLERS } from "../src/samplers.js";
import { symbolsOf } from "../src/symbols.js";
import { windowsOf } from "../src/windows.js";

export const FILES = ["collections", "hashes", "symbols", "payloads", "reports", "memos", "costs", "budgets", "form_fingerprints", "refusals", "windows", "dimensions", "batches"];

/**
 * @param {Record<string, any[]>} records by file
 * @returns {Promise<number>} how many vectors were compared; rejects at the first difference
 */
export async function compare(records) {
  const { collections, hashes, symbols, payloads, reports, memos, costs, budgets, form_fingerprints, refusals, windows, dimensions, batches } = records;
  const forms = Object.fromEntries(collections.map(({ name, client }) => [name, client]));
  for (const { name, client } of collections) {
    const { client_form: _, fingerprint, canonical: text, examples: __, ...follows } = client;
    equal(sorted(formOf(text)), sorted(follows), name);
    equal((await checked(client)).fingerprint, fingerprint, name);
  }
  for (const { value, seed, index, word } of hashes) {
    equal(hashStream(canonical(value), BigInt(seed))(index).toString(16).padStart(16, "0"), word, `word ${index}`);
  }
  for (const { collection, value, cohort, symbols: expected } of symbols) {
    equal(symbolsOf(forms[collection])(value, cohort), expected, `symbols of ${collection}`);
  }
  for (const { collection, symbols: held, words, payload } of payloads) {
    const form = forms[collection];
    const draw = drawing(words);
    equal(toHex(SAMPLERS[form.sampler.sampler](form)(held, draw)), payload, `payload of ${collection}`);
    equal(draw.left(), 0, `words of ${collection}`);
  }
  for (const { collection, value, event_time, words, message } of reports) {
    const draw = drawing(words);
    equal(toHex(reporter(forms[collection])(value, event_time, draw)), message, `report of ${collection}`);
    equal(draw.left(), 0, `words of ${collection}`);
  }
  for (const { client, derived, reports: repeats } of memos) {
    const { client_form: _, fingerprint, canonical: text, examples: __, ...follows } = client;
    equal(sorted(formOf(text)), sorted(follows), client.id);
    const form = await checked(client);
    equal(form.fingerprint, fingerprint, client.id);
    for (const { secret, value, cohort, symbol, memo, report_every, turn } of derived) {
      equal(cohortOf(secret, form), cohort, `cohort of ${client.id}`);
      equal(symbolsOf(form)(canonical(value), cohort), [symbol], `symbol of ${client.id}`);
      equal(toHex(memoOf(secret, form, symbol)), memo, `memo of ${client.id}`);
      equal(turnOf(secret, form, report_every), turn, `turn of ${client.id}`);
    }
    for (const { memo, words, payload } of repeats) {
      const draw = drawing(words);
      equal(toHex(repeated(form, fromHex(memo), draw)), payload, `report of ${client.id}`);
      equal(draw.left(), 0, `words of ${client.id}`);
    }
  }
  for (const { client } of [...memos, ...windows, ...dimensions]) forms[client.id] = client;
  for (const { collection, costs: expected } of costs) {
    const form = await checked(forms[collection]);
    for (const [number, distinct, cost] of expected) {
      const found = costOf(form, number, distinct);
      if (!(Math.abs(found - cost) <= 1e-9 * cost)) throw new Error(`cost of ${number} in ${collection}: ${found} is not ${cost}`);
    }
  }
  for (const { name, asked, histories, answered, ...options } of budgets) {
    for (const values of histories) equal(await answersOf(forms, asked, values, options), answered, `answers of ${name}`);
  }
  for (const { collection, form_fingerprint: formFingerprint } of form_fingerprints) {
    equal((await checked(forms[collection], { formFingerprint })).id, forms[collection].id, collection);
  }
  for (const { change, refused_by, form_fingerprint, form } of refusals) {
    await refused(checked(form, { formFingerprint: form_fingerprint }), change);
    if (refused_by === "checks") await refused(checked(form), change);
  }
  for (const { client, times } of windows) {
    const { start, end } = windowsOf((await checked(client)).client_window);
    for (const time of times) equal({ event_time: time.event_time, start: start(time.event_time), end: end(time.event_time) }, time, client.canonical);
  }
  for (const { client, reports: told } of dimensions) {
    const form = await checked(client);
    for (const { value, event_time, dimensions: texts, words, message } of told) {
      const draw = drawing(words);
      equal(toHex(reporter(form)(value, event_time, draw, texts)), message, `report of ${client.id}`);
      equal(draw.left(), 0, `words of ${client.id}`);
    }
  }
  for (const { collection, messages, packed: expected } of batches) {
    equal(toHex(packed(messages.map(fromHex))), expected, `batch of ${collection}`);
  }
  return FILES.reduce((sum, name) => sum + records[name].length, 0);
}

/** Which windows a device answers. */
async function answersOf(forms, asked, values, { epsilon, lifetime, period_ms, window_ms, distinct_values }) {
  const budget = { epsilon, lifetime: lifetime ?? undefined, periodMs: period_ms };
  const options = { storage: new MemoryState(), budget, windowMs: window_ms, distinctValues: distinct_values ?? undefined };
  const answered = [];
  for (const [i, [name, eventTime]] of asked.entries()) {
    const client = await MemoClient.open(forms[name], options);
    const report = await client.report(values[i], eventTime).catch((error) => error);
    if (report instanceof Error && !(report instanceof BudgetSpentError)) throw report;
    answered.push(!(report instanceof Error));
  }
  return answered;
}

/** That a form is refused, by an error of this package. */
async function refused(opening, change) {
  const error = await opening.catch((error) => error);
  if (!(error instanceof UldpError)) throw new Error(`${change} must be refused: ${error}`);
}

/** Draws these words; one more is an error. */
function drawing(words) {
  const rest = words.map((word) => BigInt(`0x${word}`));
  return Object.assign(
    () => {
      if (rest.length === 0) throw new Error("more words were drawn than the vector has");
      return rest.shift();
    },
    { left: () => rest.length },
  );
}

function sorted(value) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

function equal(found, expected, what) {
  const [one, other] = [found, expected].map((value) => JSON.stringify(value));
  if (one !== other) throw new Error(`${what}: ${one} is not ${other}`);
}
