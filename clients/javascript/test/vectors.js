/** Compares the client with the vectors of schemas/vectors; in Node and in browsers. */
import { checked, formOf } from "../src/form.js";
import { canonical, hashWord } from "../src/hashing.js";
import { cohortOf, memoOf, repeated, turnOf } from "../src/memos.js";
import { fromHex, toHex } from "../src/message.js";
import { makeReport } from "../src/report.js";
import { SAMPLERS } from "../src/samplers.js";
import { symbolsOf } from "../src/symbols.js";
import { windowsOf } from "../src/windows.js";

export const FILES = ["collections", "hashes", "symbols", "payloads", "reports", "memos", "windows"];

/**
 * @param {Record<string, any[]>} records by file
 * @returns {Promise<number>} how many vectors were compared; rejects at the first difference
 */
export async function compare({ collections, hashes, symbols, payloads, reports, memos, windows }) {
  const forms = Object.fromEntries(collections.map(({ name, client }) => [name, client]));
  for (const { name, client } of collections) {
    const { client_form: _, fingerprint, canonical: text, examples: __, ...follows } = client;
    equal(sorted(formOf(text)), sorted(follows), name);
    equal((await checked(client)).fingerprint, fingerprint, name);
  }
  for (const { value, seed, index, word } of hashes) {
    equal(hashWord(canonical(value), BigInt(seed), index).toString(16).padStart(16, "0"), word, `word ${index}`);
  }
  for (const { collection, value, cohort, symbols: expected } of symbols) {
    equal(symbolsOf(forms[collection], value, cohort), expected, `symbols of ${collection}`);
  }
  for (const { collection, symbols: held, words, payload } of payloads) {
    const form = forms[collection];
    const draw = drawing(words);
    equal(toHex(SAMPLERS[form.sampler.sampler](form, held, draw)), payload, `payload of ${collection}`);
    equal(draw.left(), 0, `words of ${collection}`);
  }
  for (const { collection, value, event_time, words, message } of reports) {
    const draw = drawing(words);
    equal(toHex(makeReport(forms[collection], value, event_time, draw)), message, `report of ${collection}`);
    equal(draw.left(), 0, `words of ${collection}`);
  }
  for (const { client, derived, reports: repeats } of memos) {
    const { client_form: _, fingerprint, canonical: text, examples: __, ...follows } = client;
    equal(sorted(formOf(text)), sorted(follows), client.id);
    const form = await checked(client);
    equal(form.fingerprint, fingerprint, client.id);
    for (const { secret, value, cohort, symbol, memo, report_every, turn } of derived) {
      equal(cohortOf(secret, form), cohort, `cohort of ${client.id}`);
      equal(symbolsOf(form, canonical(value), cohort), [symbol], `symbol of ${client.id}`);
      equal(toHex(memoOf(secret, form, symbol)), memo, `memo of ${client.id}`);
      equal(turnOf(secret, form, report_every), turn, `turn of ${client.id}`);
    }
    for (const { memo, words, payload } of repeats) {
      const draw = drawing(words);
      equal(toHex(repeated(form, fromHex(memo), draw)), payload, `report of ${client.id}`);
      equal(draw.left(), 0, `words of ${client.id}`);
    }
  }
  for (const { client, times } of windows) {
    const { start, end } = windowsOf((await checked(client)).client_window);
    for (const time of times) equal({ event_time: time.event_time, start: start(time.event_time), end: end(time.event_time) }, time, client.canonical);
  }
  return [collections, hashes, symbols, payloads, reports, memos, windows].reduce((sum, { length }) => sum + length, 0);
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
