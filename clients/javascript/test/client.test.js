import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { Client, UldpError } from "../index.js";
import { formOf } from "../src/form.js";
import { keptStreams } from "../src/hashing.js";
import { SAMPLERS } from "../src/samplers.js";
import { symbolsOf } from "../src/symbols.js";
import { windowsOf } from "../src/windows.js";
import { secureWords } from "../src/words.js";

const VECTORS = new URL("../../../schemas/vectors/collections.json", import.meta.url);
const forms = Object.fromEntries(JSON.parse(readFileSync(VECTORS, "utf8")).map(({ name, client }) => [name, client]));
const windows = JSON.parse(readFileSync(new URL("windows.json", VECTORS), "utf8"));
const SOURCES = new URL("../src/", import.meta.url);
const sources = () => readdirSync(SOURCES).map((name) => readFileSync(new URL(name, SOURCES)));
const NOON = 1_000_000_000_000;

/** A copy of a form with another value in one place, such as "sampler.keep_weight". */
function changed(form, path, value) {
  const copy = structuredClone(form);
  const keys = path.split(".");
  const last = keys.pop();
  keys.reduce((object, key) => object[key], copy)[last] = value;
  return copy;
}

test("words come from the secure generator, 256 at a time, and cannot be read again", (context) => {
  const filled = [];
  const generator = context.mock.method(crypto, "getRandomValues", (words) => {
    filled.push(words);
    return words.forEach((_, at) => { words[at] = BigInt(1000 * filled.length + at); });
  });
  const draw = secureWords();
  const words = Array.from({ length: 520 }, () => {
    const word = draw();
    assert.ok(!filled.some((held) => held.includes(word)));
    return Number(word);
  });
  generator.mock.restore();
  assert.equal(new Set(words).size, 520);
  assert.deepEqual(words.map((word) => Math.floor(word / 1000)), words.map((_, at) => 1 + Math.floor(at / 256)));
  assert.ok(words.every((word) => word % 1000 < 256));
});

test("a report is a message", async () => {
  const client = await Client.open(forms["order-krr"]);
  const message = client.report("flu", NOON);
  assert.equal(message.length, 34);
  assert.equal(message[0], 2);
  assert.deepEqual(Buffer.from(message.subarray(1, 9)).toString("hex"), client.fingerprint.slice(0, 16));
});

test("numbers are taken as such, and as decimal texts", async () => {
  const client = await Client.open(forms["bins-log"]);
  for (const value of [12, -1.5, 1e21, 1e-7, "12", ""]) assert.ok(client.report(value, NOON).length > 0);
  const message = "a value must be a number, or one of `others`, got another one";
  for (const value of [NaN, Infinity, " 1", "0x10", "none"]) {
    assert.throws(() => client.report(value, NOON), { name: "UldpError", message });
  }
  for (const value of [true, null, 3n]) assert.throws(() => client.report(value, NOON), { name: "UldpError" });
});

test("hashes that stay in memory are those of the vectors, and of the latest values only", () => {
  for (const [name, { symbols, num_cohorts }] of Object.entries(forms).filter(([, form]) => form.symbols.rule === "hash")) {
    const [fresh, kept] = [symbolsOf({ symbols, num_cohorts }), symbolsOf({ symbols, num_cohorts }, 2)];
    for (const value of ["a", "b", "a", "flu", "b", "a"]) {
      for (const cohort of [0, num_cohorts - 1]) assert.deepEqual(kept(value, cohort), fresh(value, cohort), name);
    }
  }
  const encoded = [];
  const encode = TextEncoder.prototype.encode;
  TextEncoder.prototype.encode = function (text) {
    encoded.push(text);
    return encode.call(this, text);
  };
  try {
    const streamOf = keptStreams(2, 30, 1n);
    for (const value of ["a", "b", "a", "c", "a", "b"]) streamOf(value)(29);
  } finally {
    TextEncoder.prototype.encode = encode;
  }
  assert.deepEqual(encoded, ["a", "b", "c", "b"]); // c took the place of b, the oldest
});

test("the number of values whose hashes stay is checked", async () => {
  for (const cachedValues of [-1, 0.5, "1"]) {
    const message = `cachedValues must be whole and at least 0, got ${cachedValues}`;
    await assert.rejects(Client.open(forms["seed-odd"], { cachedValues }), { name: "UldpError", message });
  }
  assert.equal((await Client.open(forms["seed-odd"], { cachedValues: 1 })).report("flu", NOON)[0], 2);
});

test("the round of the hash is that of its program", () => {
  const written = execFileSync(process.execPath, [fileURLToPath(new URL("../tools/keccak.js", SOURCES))]);
  assert.equal(readFileSync(new URL("keccak.js", SOURCES), "utf8"), written.toString());
});

test("two reports of one value have different ids", async () => {
  const client = await Client.open(forms["order-krr"]);
  const ids = new Set(Array.from({ length: 1000 }, () => Buffer.from(client.report("flu").subarray(9, 25)).toString("hex")));
  assert.equal(ids.size, 1000);
});

test("bits after the first 64 are in the next words", () => {
  const largest = 2n ** 64n - 1n;
  for (const v of [64, 65, 128, 129]) {
    const form = { num_sensitive: v, payload: { bytes: Math.ceil(v / 8), bit_bytes: Math.ceil(v / 8) } };
    let words = 0;
    const noise = { keep_weight: "0", noise_numerator: "1", noise_in_clear: false };
    const last = SAMPLERS.bits({ ...form, sampler: noise })([0], () => (words++, largest)).at(-1);
    assert.deepEqual([last, words], [v % 8 ? 1 : 255, 1 + 32 * Math.ceil(v / 64)], `${v} bits`);
    const heads = [0n];
    const set = { ...form, sampler: { keep_weight: "1", subset_size: 1 } };
    assert.equal(SAMPLERS.subset(set)([v - 1], () => heads.pop() ?? largest).at(-1), v % 8 ? 1 : 128, `${v} values`);
  }
});

test("event times are rounded down", async () => {
  const client = await Client.open(forms["order-krr"], { timeUnit: 3_600_000 });
  const time = (eventTime) => Buffer.from(client.report("flu", eventTime).subarray(25, -3)).toString("hex");
  assert.equal(time(1), "00");
  assert.equal(time(3_599_999.5), "00");
  assert.equal(time(-1), "ffb9b703"); // -3,600,000 as zigzag 7,199,999
  const exact = await Client.open(forms["order-krr"], { timeUnit: 1 });
  assert.equal(Buffer.from(exact.report("flu", -0.5).subarray(25, -3)).toString("hex"), "01");
  const asked = await Client.open(forms["order-krr"]); // the hour, where the form names no window
  assert.equal(Buffer.from(asked.report("flu", -0.5).subarray(25, -3)).toString("hex"), "ffb9b703");
});

test("event times are the beginning of the client's window", async () => {
  const said = (message) => Number(Buffer.from(message.subarray(25, -3)).reduceRight((sum, byte) => (sum << 7n) | BigInt(byte & 127), 0n) >> 1n);
  for (const { client: form, times } of windows) {
    const memos = form.sampler.sampler === "memo";
    const client = memos ? null : await Client.open(form);
    for (const { event_time, start } of times.filter(({ event_time }) => event_time >= 0 && !memos)) {
      if (start >= 0) assert.equal(said(client.report("flu", event_time)), start, form.canonical);
    }
    if (!memos) {
      const exact = await Client.open(form, { timeUnit: 1 });
      assert.equal(said(exact.report("flu", NOON + 1)), NOON + 1);
      const whole = await Client.open(form, { timeUnit: form.client_window.milliseconds }); // no day of a place begins with one
      for (const { event_time, start } of times) if (start >= 0) assert.ok(said(whole.report("flu", event_time)) >= start);
      for (const timeUnit of [7_000_000, 2 * form.client_window.milliseconds]) {
        const message = `timeUnit must divide the client's window of ${form.client_window.milliseconds}, got ${timeUnit}`;
        await assert.rejects(Client.open(form, { timeUnit }), { name: "UldpError", message });
      }
      assert.throws(() => client.report("flu", NaN), { name: "UldpError", message: /^eventTime must be .*, got NaN$/ });
    }
  }
});

test("a client whose window is of a time zone rounds each time to the window of its own", async () => {
  for (const { client: form, times } of windows.filter(({ client }) => client.client_window.timezone)) {
    if (form.sampler.sampler === "memo") continue;
    const inOrder = times.filter(({ start }) => start >= 0);
    assert.ok(inOrder.length > 1);
    const { start } = windowsOf(form.client_window);
    for (const { event_time, start: expected } of [...inOrder, ...inOrder.toReversed(), ...inOrder]) {
      for (let call = 0; call < 2; call++) assert.equal(start(event_time), expected, form.canonical);
    }
  }
});

const WRONG = [
  ["client_form", 2, "client_form must be 1, got 2"],
  ["canonical", 7, "canonical must be a text, got number"],
  ["canonical", "{}", /^fingerprint must be that of canonical, 44136fa355b3.*, got [0-9a-f]{64}$/],
  ["fingerprint", "00", /^fingerprint must be that of canonical, [0-9a-f]{64}, got 00$/],
  ["id", "other", "id must be what follows from canonical (the value is not shown)"],
  ["version", 2, "version must be what follows from canonical (the value is not shown)"],
  ["num_cohorts", 2, "num_cohorts must be what follows from canonical (the value is not shown)"],
  ["num_symbols", 4, "num_symbols must be what follows from canonical (the value is not shown)"],
  ["num_sensitive", 5, "num_sensitive must be what follows from canonical (the value is not shown)"],
  ["symbols.symbols", ["flu", "gout", "hiv", "cold", "asthma"], /^symbols must be what follows from canonical/],
  ["sampler.keep_weight", "18446744073709551615", /^sampler must be what follows from canonical/],
  ["sampler.noise_numerator", "1", /^sampler must be what follows from canonical/],
  ["sampler.sampler", "symbol", /^sampler must be what follows from canonical/],
  ["client_window", { milliseconds: 1, timezone: null }, "the form must have its own keys only, got more"],
  ["payload.bytes", 3, /^payload must be what follows from canonical/],
  ["examples.0.symbols", [0], "examples must have the symbols of their values, got others"],
  ["examples", [], "examples must be a list of at least one, got none"],
  ["examples", [null], "the form must be as client.schema.json says, got another one"],
  ["further", 1, "the form must have its own keys only, got more"],
];

for (const [path, value, message] of WRONG) {
  test(`a form with another ${path} is refused`, async () => {
    await assert.rejects(Client.open(changed(forms["order-urap"], path, value)), { name: "UldpError", message });
  });
}

test("what is no form is refused", async () => {
  for (const form of [undefined, null, 7, {}]) await assert.rejects(Client.open(form), UldpError);
});

/** The form with another canonical text, whose fingerprint is right. */
async function rewritten(form, old, replacement) {
  const canonical = form.canonical.replace(old, replacement);
  assert.notEqual(canonical, form.canonical);
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(canonical));
  return { ...form, canonical, fingerprint: Buffer.from(digest).toString("hex") };
}

test("what this client does not know is refused", async () => {
  for (const [old, replacement, message] of [
    ['"wire_version":1', '"wire_version":2', "wire_version must be 1, got 2"],
    ['"id":"closed"', '"id":"open"', /^the alphabet must be one of closed,.*, got open$/],
    ['"id":"urap"', '"id":"toString"', /^the mechanism must be one of krr,.*, got toString$/],
  ]) {
    await assert.rejects(Client.open(await rewritten(forms["order-urap"], old, replacement)), { name: "UldpError", message });
  }
});

test("a collection can be pinned", async () => {
  const { fingerprint } = forms["order-krr"];
  await Client.open(forms["order-krr"], { fingerprint });
  const message = `the collection must have the fingerprint ${fingerprint}, got ${forms["order-urap"].fingerprint}`;
  await assert.rejects(Client.open(forms["order-urap"], { fingerprint }), { name: "UldpError", message });
});

test("a form can be pinned", async () => {
  const [pins, refusals] = ["form_fingerprints", "refusals"].map((name) => JSON.parse(readFileSync(new URL(`./${name}.json`, VECTORS), "utf8")));
  const { form_fingerprint: formFingerprint } = pins.find(({ collection }) => collection === "order-krr");
  await Client.open(forms["order-krr"], { formFingerprint });
  const { form } = refusals.find(({ change }) => change === "order-krr: epsilon 8");
  await Client.open(form);
  const message = new RegExp(`^the form must have the form_fingerprint ${formFingerprint}, got [0-9a-f]{64}$`);
  await assert.rejects(Client.open(form, { formFingerprint }), { name: "UldpError", message });
});

test("a form that is changed later changes nothing", async () => {
  const form = structuredClone(forms["order-krr"]);
  const client = await Client.open(form);
  form.symbols.symbols[0] = "another";
  client.report("gout");
});

test("wrong values make no report, and are not repeated", async () => {
  const client = await Client.open(forms["order-krr"]);
  const hashed = await Client.open(forms["seed-odd"]);
  const sentences = [
    [() => client.report("secret"), "a value must be one of the 5 of the collection, got another one"],
    [() => hashed.report(7), "a value must be a text, got number"],
    [() => hashed.report("\ud83e"), "a value must be Unicode text, got one with a lone surrogate"],
    [() => client.report("flu", NaN), "eventTime must be whole milliseconds of the years 1900 to 9998, got NaN"],
    [() => client.report("flu", 253370764800000), /^eventTime must be .*, got 253370764800000$/],
    [() => client.report("flu", -2208988800001), /^eventTime must be .*, got -2208992400000$/],
  ];
  for (const [call, message] of sentences) assert.throws(call, { name: "UldpError", message });
  for (const timeUnit of [0, -1, 0.5, "1"]) {
    const message = `timeUnit must be whole and above 0, got ${timeUnit}`;
    await assert.rejects(Client.open(forms["order-krr"], { timeUnit }), { name: "UldpError", message });
  }
});

test("all randomness is the platform's secure source", async (t) => {
  t.mock.method(Math, "random", () => assert.fail("Math.random was called"));
  const values = t.mock.method(crypto, "getRandomValues", (words) => words.fill(0n));
  const client = await Client.open(forms["order-krr"]);
  assert.equal(Buffer.from(client.report("hiv", 0)).toString("hex").slice(18), `${"00".repeat(16)}00000201`);
  assert.ok(values.mock.callCount() > 0);
  assert.ok(!sources().some((text) => text.includes("Math.random")));
});

/** The files that a page loads which imports this one. */
function loaded(name, files = new Map()) {
  if (files.has(name)) return files;
  const text = readFileSync(new URL(name, new URL("../", import.meta.url)), "utf8");
  files.set(name, text);
  for (const [, other] of text.matchAll(/ from "\.\/(?:src\/)?([a-z-]+\.js)";/g)) loaded(`src/${other}`, files);
  return files;
}

// of both, the written-out round of the hash takes 1.1 kB, numbers (the rule bins and the sampler wave) 0.7 kB, public
// blocks (their rule and sampler) 1.4 kB
for (const [entry, most] of [["client.js", 18_400], ["index.js", 25_200]]) {
  test(`it is small: all files that ${entry} loads, each compressed as it is fetched, including the hash`, () => {
    const files = [...loaded(entry).values()];
    const size = files.reduce((sum, text) => sum + gzipSync(text, { level: 9 }).length, 0);
    console.log(`${entry}: ${size} bytes`);
    assert.ok(size < most);
  });
}

test("index.js loads every file", () => {
  assert.deepEqual([...loaded("index.js").keys()].sort(), ["index.js", ...readdirSync(SOURCES).map((name) => `src/${name}`)]);
});

const { client: grouped } = JSON.parse(readFileSync(new URL("dimensions.json", VECTORS), "utf8")).find(({ client }) => client.id === "groups-krr");

test("dimensions that no report can state are refused, without their texts", async () => {
  const client = await Client.open(grouped);
  const asked = (got) => `dimensions must give a text for country, arm, got ${got}`;
  for (const [dimensions, message] of [
    [undefined, asked("none")],
    [{}, asked("others")],
    [{ country: "DE" }, asked("others")],
    [{ country: "DE", arm: "new", version: "7" }, asked("others")],
    [{ country: "DE", arm: 7 }, "dimension arm must have a text, got number"],
    [{ country: null, arm: "new" }, "dimension country must have a text, got object"],
    [{ country: "\ud83e", arm: "new" }, "a value must be Unicode text, got one with a lone surrogate"],
  ]) {
    assert.throws(() => client.report("flu", NOON, dimensions), { name: "UldpError", message });
  }
  const without = await Client.open(forms["order-krr"]);
  const message = "dimensions must give a text for no dimension, got others";
  assert.throws(() => without.report("flu", NOON, { arm: "new" }), { name: "UldpError", message });
  without.report("flu", NOON, {});
});

test("a sender cannot open groups", async () => {
  const client = await Client.open(grouped);
  const cohorts = new Set();
  for (const text of ["other", "", "DE ", "de", "constructor", "__proto__", "0"]) {
    const message = client.report("flu", 0, { country: text, arm: "new" });
    cohorts.add(Math.floor(message.at(-3) / 2 / grouped.num_cohorts)); // the cohort is below 64: one byte, a zigzag integer
  }
  assert.deepEqual([...cohorts], [2 * 3 + 1]);
});

test("a form whose dimensions are not those of its text is refused", async () => {
  const { dimensions, ...without } = grouped;
  const message = "dimensions must be what follows from canonical (the value is not shown)";
  const reordered = changed(grouped, "dimensions", dimensions.toReversed());
  for (const form of [without, reordered]) await assert.rejects(Client.open(form), { name: "UldpError", message });
  await assert.rejects(Client.open({ ...forms["order-krr"], dimensions }), { name: "UldpError" });
});
