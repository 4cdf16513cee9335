import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { checked, formOf } from "../src/form.js";
import { canonical, hashWord } from "../src/hashing.js";
import { toHex } from "../src/message.js";
import { makeReport } from "../src/report.js";
import { SAMPLERS } from "../src/samplers.js";
import { symbolsOf } from "../src/symbols.js";

const FOLDER = new URL("../../../schemas/vectors/", import.meta.url);
const records = (name) => JSON.parse(readFileSync(new URL(`${name}.json`, FOLDER), "utf8"));
const forms = Object.fromEntries(records("collections").map(({ name, client }) => [name, client]));

/** Draws these words, and no others. */
function drawing(words) {
  const rest = words.map((word) => BigInt(`0x${word}`));
  const draw = () => {
    assert.ok(rest.length, "more words than the vector has");
    return rest.shift();
  };
  return { draw, rest };
}

test("forms follow from the text that is hashed", async () => {
  for (const [name, form] of Object.entries(forms)) {
    const { client_form, fingerprint, canonical: text, examples, ...follows } = form;
    assert.deepEqual(formOf(text), follows, name);
    assert.equal((await checked(form)).fingerprint, fingerprint, name);
  }
});

test("hashes", () => {
  for (const { value, seed, index, word } of records("hashes")) {
    assert.equal(hashWord(canonical(value), BigInt(seed), index), BigInt(`0x${word}`));
  }
});

test("symbols", () => {
  for (const { collection, value, cohort, symbols } of records("symbols")) {
    assert.deepEqual(symbolsOf(forms[collection], value, cohort), symbols, collection);
  }
});

test("payloads", () => {
  for (const { collection, symbols, words, payload } of records("payloads")) {
    const { draw, rest } = drawing(words);
    const form = forms[collection];
    assert.equal(toHex(SAMPLERS[form.sampler.sampler](form, symbols, draw)), payload, collection);
    assert.equal(rest.length, 0);
  }
});

test("reports", () => {
  for (const { collection, value, event_time, words, message } of records("reports")) {
    const { draw, rest } = drawing(words);
    assert.equal(toHex(makeReport(forms[collection], value, event_time, draw)), message, collection);
    assert.equal(rest.length, 0);
  }
});
