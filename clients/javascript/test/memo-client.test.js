import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { BrowserState, BudgetSpentError, Client, MemoClient, MemoryState, UldpError } from "../index.js";
import { checked } from "../src/form.js";
import { epsilonAfter, memoOf, nameOf, purposeBytes } from "../src/memos.js";
import { symbolsOf } from "../src/symbols.js";

const read = (name) => JSON.parse(readFileSync(new URL(`../../../schemas/vectors/${name}.json`, import.meta.url), "utf8"));
const forms = Object.fromEntries(read("memos").map(({ client }) => [client.id, client]));
const [plain, direct] = ["order-krr", "direct"].map((name) => read("collections").find((record) => record.name === name).client);
const DAY = 86_400_000;
const budget = { epsilon: 1, lifetime: 10 };
const opened = (options = {}, form = forms["memo-krr"]) => MemoClient.open(form, { storage: new MemoryState(), budget, ...options });
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const payload = (message) => message.at(-1);

/** As much of localStorage as is used, and what it holds. */
function fakeLocal() {
  const texts = new Map();
  return [{ getItem: (key) => texts.get(key) ?? null, setItem: (key, text) => texts.set(key, text) }, texts];
}

test("one page at a time changes the state, under a lock of its name", async () => {
  const [local, texts] = fakeLocal();
  const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  const request = async (name, work) => {
    texts.set(name, "of the page before");
    return [name, work()];
  };
  Object.defineProperty(globalThis, "navigator", { configurable: true, value: { locks: { request } } });
  try {
    const answer = await new BrowserState(local, "n").update((text) => [`${text}, and mine`, text]);
    assert.deepEqual(answer, ["n", "of the page before"]);
    assert.equal(texts.get("n"), "of the page before, and mine");
  } finally {
    delete globalThis.navigator;
    if (before) Object.defineProperty(globalThis, "navigator", before);
  }
});

test("in one window there is one answer, also after a restart and for another value", async () => {
  const storage = new MemoryState();
  const client = await opened({ storage });
  const first = hex(await client.report("flu", 5));
  assert.equal(hex(await client.report("flu", DAY - 1)), first);
  assert.equal(hex(await client.report("hiv", 7)), first);
  assert.equal(hex(await (await opened({ storage })).report("cold", 7)), first);
  assert.notEqual(hex(await client.report("flu", DAY)), first);
});

test("days of a place have one answer each, and are forgotten when they are over", async () => {
  const storage = new MemoryState();
  const form = read("windows").find(({ client }) => client.sampler.sampler === "memo" && client.client_window.timezone).client;
  const client = await opened({ storage, budget: { epsilon: 100 } }, form);
  const spring = Date.UTC(2024, 2, 30);
  const answers = [];
  for (let hour = 0; hour < 72; hour++) answers.push(hex(await client.report("flu", spring + hour * 3_600_000)));
  const days = [...new Set(answers)].map((day) => answers.filter((answer) => answer === day).length);
  assert.deepEqual(days, [23, 23, 24, 2]);
  let text;
  storage.update((stored) => [(text = stored), null]);
  assert.equal(Object.keys(Object.values(JSON.parse(text).answers)[0]).length, 2);
  await client.report("flu", spring + 9 * DAY);
  storage.update((stored) => [(text = stored), null]);
  assert.equal(Object.keys(Object.values(JSON.parse(text).answers)[0]).length, 1);
  const message = `windowMs must be absent where the form has client_window, got ${DAY}`;
  await assert.rejects(opened({ windowMs: DAY }, form), { name: "UldpError", message });
});

test("event times are rounded down to the window, or to the hour where it is whole hours", async () => {
  const said = (message) => hex(message).slice(50, -6);
  const day = await opened({ budget: { epsilon: 100 } });
  const [rounded, plainHour] = [await day.report("flu", DAY + 3_599_999), await day.report("flu", DAY)];
  assert.equal(hex(rounded), hex(plainHour));
  const often = { windowMs: DAY / 96, budget: { epsilon: 100 } };
  const [quarter, exact] = [await opened(often), await opened({ ...often, timeUnit: 1 })];
  assert.equal(said(await quarter.report("flu", 900_001)), said(await exact.report("flu", 900_000)));
  assert.notEqual(said(await quarter.report("flu", 900_001)), said(await exact.report("flu", 1_800_001)));
});

test("the cohort stays, and payloads repeat one memo", async () => {
  const client = await opened({ budget: { epsilon: 0.5 } }, forms["memo-cohorts"]);
  const messages = await Promise.all(Array.from({ length: 400 }, (_, day) => client.report("a", day * DAY)));
  assert.equal(new Set(messages.map((message) => message.at(-3))).size, 1);
  const seen = new Map();
  for (const message of messages) seen.set(payload(message), (seen.get(payload(message)) ?? 0) + 1);
  const most = Math.max(...seen.values()); // the memo is repeated with probability .126, beside a share of noise
  assert.ok(most > 50, `${most}`);
});

test("a memo that is not the value's symbol is repeated as often as the form says", async () => {
  const form = forms["memo-krr"];
  const [symbol] = symbolsOf(form)("flu", 0);
  let client, memo;
  do {
    const storage = new MemoryState();
    client = await opened({ storage, budget: { epsilon: 100 } });
    const secret = storage.update((text) => [text, JSON.parse(text).secret]);
    [memo] = memoOf(secret, form, symbol);
  } while (memo === symbol);
  let repeats = 0;
  for (let day = 0; day < 300; day++) repeats += payload(await client.report("flu", day * DAY)) === memo;
  // of 300 reports .565 have the memo, 169 (standard deviation 8.6); with a fresh memo each time .149, 45 (6.2)
  assert.ok(repeats > 100, `${repeats}`);
});

test("a device answers one window of several", async () => {
  const client = await opened({ reportEvery: 7 });
  const answered = [];
  for (let day = -21; day < 21; day++) if (await client.report("flu", day * DAY)) answered.push(day);
  assert.equal(answered.length, 6);
  assert.ok(answered.every((day, i) => i === 0 || day - answered[i - 1] === 7));
});

test("what is stored is how many reports there were, and refusals are for all values", async () => {
  const storage = new MemoryState();
  const client = await opened({ storage, budget: { epsilon: 1, lifetime: 3.9 }, distinctValues: 2 });
  const values = ["flu", "hiv", "flu", "flu", "cold", "gout"];
  for (const [day, value] of values.entries()) await client.report(value, day * DAY);
  const before = storage.update((text) => [text, text]);
  const { ever, spent } = JSON.parse(before);
  assert.deepEqual([Object.keys(ever), Object.keys(spent)], [[client.fingerprint], [client.fingerprint]]);
  assert.equal(ever[client.fingerprint][0], 6);
  assert.deepEqual(spent[client.fingerprint][0], 1);
  for (const value of ["hiv", "flu"]) {
    await assert.rejects(client.report(value, 6 * DAY), {
      name: "BudgetSpentError",
      message: "budget.lifetime must not be exceeded, got 3.864 of 3.9 spent and a report that adds 0.05435",
    });
  }
  const after = { ...JSON.parse(before), period: 6, spent: {}, answers: {} };
  assert.deepEqual(JSON.parse(storage.update((text) => [text, text])), after);
});

test("the value is looked at where a report is drawn only", async () => {
  for (const form of [forms["memo-krr"], plain]) {
    const storage = new MemoryState();
    const client = await opened({ storage, reportEvery: 2, budget: { epsilon: 100, lifetime: 2 } }, form);
    const kind = (day, value) => client.report(value, day * DAY).then((report) => report && hex(report), (error) => error.name);
    const first = (await kind(0, "flu")) === null ? 1 : 0;
    const report = await kind(first, "flu");
    assert.equal(await kind(first, "wrong"), report);
    assert.equal(await kind(first + 1, "wrong"), null);
    assert.equal(await kind(first + 2, "wrong"), "UldpError");
    for (let day = first + 2; day < first + 200; day += 2) await kind(day, "flu");
    if (form === plain) assert.equal(await kind(first + 200, "wrong"), "BudgetSpentError");
  }
});

test("answers of periods that are over are erased, whatever comes of the call", async () => {
  const storage = new MemoryState();
  const left = () => JSON.parse(storage.update((text) => [text, text])).answers;
  const some = await opened({ storage, reportEvery: 7, budget: { epsilon: 1, lifetime: 1 } });
  let day = 0;
  while (!(await some.report("flu", day * DAY))) day += 1;
  assert.equal(Object.keys(left()).length, 1);
  assert.equal(await some.report("flu", (day + 1) * DAY), null);
  assert.deepEqual(left(), {});
  const spent = await opened({ storage: new MemoryState(), budget: { epsilon: 1, lifetime: 1 } });
  await spent.report("flu", 0);
  await assert.rejects(spent.report("flu", DAY), BudgetSpentError);
  await assert.rejects(spent.report("flu", 0), UldpError);
  const wrong = await opened({ storage, reportEvery: 1, budget: { epsilon: 9 } });
  await wrong.report("flu", (day + 1) * DAY);
  const spentOnce = JSON.parse(storage.update((text) => [text, text])).ever;
  await assert.rejects(wrong.report("wrong", (day + 2) * DAY), UldpError);
  assert.deepEqual([left(), JSON.parse(storage.update((text) => [text, text])).ever], [{}, spentOnce]);
});

test("for as many values as there are, the cost of memos has an end", async () => {
  const client = await opened({ budget: { epsilon: 1, lifetime: 10 } });
  for (let day = 0; day < 100; day++) await client.report("flu", day * DAY);
});

test("fresh reports cost epsilon each", async () => {
  const client = await opened({ budget: { epsilon: 2 }, windowMs: DAY / 4 }, plain);
  await client.report("flu", 0);
  await client.report("flu", DAY / 4);
  await assert.rejects(client.report("flu", DAY / 2), BudgetSpentError);
  await client.report("flu", DAY);
  await assert.rejects(client.report("flu", 0), {
    name: "UldpError",
    message: "eventTime must not be before the period of an earlier call, got 1 before it",
  });
});

test("no budget has room for a report that rules values out", async () => {
  const client = await opened({ budget: { epsilon: 1e6 } }, direct);
  await assert.rejects(client.report("0", 0), {
    name: "BudgetSpentError",
    message: "budget.epsilon must not be exceeded, got 0.000 of 1000000 spent and a report that adds Infinity",
  });
});

test("a browser keeps the state in one entry", async () => {
  const [local, texts] = fakeLocal();
  const first = await (await opened({ storage: new BrowserState(local) })).report("flu", 0);
  assert.deepEqual([...texts.keys()], ["uldp-client"]);
  assert.equal(hex(await (await opened({ storage: new BrowserState(local) })).report("hiv", 0)), hex(first));
});

test("what is wrong is refused", async () => {
  const whole = "must be whole and above 0, got";
  for (const [options, message] of [
    [{ storage: undefined }, "storage must have a method update, got undefined"],
    [{ budget: undefined }, "budget.epsilon must be above 0, got undefined"],
    [{ budget: { epsilon: 1, lifetime: 0 } }, "budget.lifetime must be above 0, got 0"],
    [{ budget: { epsilon: 1, periodMs: 0.5 } }, `budget.periodMs ${whole} 0.5`],
    [{ timeUnit: 0 }, `timeUnit ${whole} 0`],
    [{ timeUnit: 2 * DAY }, `timeUnit must divide the client's window of ${DAY}, got ${2 * DAY}`],
    [{ timeUnit: 3_600_000, windowMs: DAY / 96 }, `timeUnit must divide the client's window of ${DAY / 96}, got 3600000`],
    [{ windowMs: -1 }, `windowMs ${whole} -1`],
    [{ windowMs: 7 * DAY }, `windowMs must divide budget.periodMs, ${DAY}, got ${7 * DAY}`],
    [{ reportEvery: 0 }, `reportEvery ${whole} 0`],
    [{ distinctValues: 0.5 }, `distinctValues ${whole} 0.5`],
  ]) {
    await assert.rejects(opened(options), { name: "UldpError", message });
  }
  const message = "Client must be MemoClient for a collection with epsilon_inf, got Client";
  await assert.rejects(Client.open(forms["memo-krr"]), { name: "UldpError", message });
  const client = await opened();
  await assert.rejects(client.report("secret", 0), { message: "a value must be one of the 5 of the collection, got another one" });
  await assert.rejects(client.report("flu", NaN), { message: "eventTime must be whole milliseconds, got NaN" });
});

test("a storage of something else is refused", async () => {
  const storage = new MemoryState();
  const client = await opened({ storage });
  const state = JSON.parse(storage.update((text) => [text, text]));
  const message = `budget.periodMs must stay as it was, ${DAY}, got ${2 * DAY}`;
  await assert.rejects(opened({ storage, budget: { epsilon: 1, periodMs: 2 * DAY } }), { message });
  for (const [field, sentence] of [
    [{ client_state: 3 }, "client_state in the storage must be 1 or 2, got 3"],
    [{ secret: "00".repeat(32) }, "the secret in the storage must stay, got another one"],
  ]) {
    storage.update(() => [JSON.stringify({ ...state, ...field }), null]);
    await assert.rejects(client.report("flu", 0), { name: "UldpError", message: sentence });
  }
  for (const secret of [undefined, null, "", "00", "zz".repeat(32), { length: 64 }]) {
    storage.update(() => [JSON.stringify({ ...state, secret }), null]);
    const message = "the secret in the storage must be 64 hexadecimal digits, got another one";
    await assert.rejects(opened({ storage }), { name: "UldpError", message });
  }
});

test("no error quotes the storage, which has the secret", async () => {
  const storage = new MemoryState();
  const client = await opened({ storage });
  const whole = storage.update((text) => [text, text]);
  const message = "the text in the storage must be that of a client, got another one";
  for (const text of [whole.slice(0, 60), whole.slice(1), `x${whole}`, ""]) {
    storage.update(() => [text, null]);
    await assert.rejects(client.report("flu", 0), { name: "UldpError", message });
  }
});

const STORED = ["secret", "period_ms", "period", "spent", "ever", "answers"];

test("all damage is one kind of error, or none", async () => {
  const storage = new MemoryState();
  await (await opened({ storage })).report("flu", 0);
  const whole = storage.update((text) => [text, text]);
  const state = JSON.parse(whole);
  const [own] = Object.keys(state.ever);
  const wrong = [null, true, 7.5, -1, 2 ** 70, "", "00", [], [1], {}, { a: 1 }, { [own]: null }, { [own]: [1, "1"] }, { [own]: [0, 1] }];
  const texts = STORED.flatMap((key) => wrong.map((value) => JSON.stringify({ ...state, [key]: value })));
  texts.push(...STORED.map((key) => JSON.stringify({ ...state, [key]: undefined })));
  texts.push(JSON.stringify({ ...state, answers: { [own]: { 0: "zz" } } }), whole.replace(/\[1,[^\]]*\]/, "[1,1e999]"), "[", "NaN");
  let refused = 0;
  for (const text of texts) {
    storage.update(() => [text, null]);
    const error = await opened({ storage }).then((client) => client.report("flu", 0)).catch((error) => error);
    if (error instanceof Uint8Array) continue; // such as a ledger that is empty
    assert.ok(error instanceof UldpError, `${text}: ${error.stack}`);
    assert.ok(!error.message.includes(state.secret));
    refused += 1;
  }
  assert.ok(refused >= texts.length - 9, `${texts.length - refused} are taken`);
});

/** As version 1 wrote it, after so many reports of each symbol. */
const old = (secret, form, numbers, answers = {}) => {
  const ever = Object.fromEntries(numbers.map((number, x) => [nameOf(secret, form, x), [number, epsilonAfter(form, number)]]));
  return JSON.stringify({ client_state: 1, secret, period_ms: DAY, period: 0, spent: {}, ever, answers });
};

test("a state of version 1 is taken over, with its answers and without its names", async () => {
  const secret = "0f".repeat(32);
  const form = await checked(forms["memo-krr"]);
  const first = "02".repeat(20);
  const states = [];
  for (const numbers of [[12], [3, 3, 3, 3], [1, 2, 3, 4, 2]]) {
    const storage = new MemoryState();
    storage.update(() => [old(secret, form, numbers, { [form.fingerprint]: { 0: first } }), null]);
    const client = await opened({ storage, budget: { epsilon: 1, lifetime: 9 } });
    assert.equal(hex(await client.report("flu", 5)), first);
    states.push(storage.update((text) => [text, text]));
  }
  assert.equal(new Set(states).size, 1);
  const { client_state, secret: kept, ever } = JSON.parse(states[0]);
  assert.deepEqual([client_state, kept], [2, secret]);
  assert.deepEqual(Object.keys(ever), [form.fingerprint]);
  const [number, cost] = ever[form.fingerprint];
  assert.equal(number, 12);
  assert.ok(cost > 8.9 && cost < 9, `${cost}`);
});

test("what another collection had spent under version 1 stays until its client opens", async () => {
  const secret = "0f".repeat(32);
  const form = await checked(forms["memo-krr"]);
  const storage = new MemoryState();
  storage.update(() => [old(secret, form, [2, 2]), null]);
  await assert.rejects((await opened({ storage, budget: { epsilon: 9, lifetime: 4 } }, plain)).report("flu", DAY), BudgetSpentError);
  const names = () => Object.keys(JSON.parse(storage.update((text) => [text, text])).ever);
  assert.deepEqual(names().map((name) => name.length), [32, 32]);
  await opened({ storage, budget: { epsilon: 9, lifetime: 4 } });
  assert.deepEqual(names(), [form.fingerprint]);
});

/** As much of IndexedDB as is used: it keeps copies, as a browser does. */
class FakeDatabases {
  kept = new Map();
  open() {
    const opening = {};
    queueMicrotask(() => {
      opening.result = { createObjectStore() {}, close() {}, transaction: () => this.#transaction() };
      opening.onupgradeneeded();
      opening.onsuccess();
    });
    return opening;
  }
  #transaction() {
    const transaction = {};
    const get = (name) => {
      const request = {};
      setImmediate(() => {
        request.result = this.kept.get(name);
        request.onsuccess();
        setImmediate(() => transaction.oncomplete());
      });
      return request;
    };
    const put = (value, name) => void this.kept.set(name, structuredClone(value));
    return Object.assign(transaction, { objectStore: () => ({ get, put }) });
  }
}

test("a browser keeps a key that scripts can use and cannot copy", async (t) => {
  globalThis.indexedDB = new FakeDatabases();
  t.after(() => delete globalThis.indexedDB);
  const [local, texts] = fakeLocal();
  const open = (options) => opened({ storage: new BrowserState(local), budget: { epsilon: 1 }, ...options }, forms["memo-rappor"]);
  const client = await open();
  const payloads = [];
  for (let day = 0; day < 60; day++) payloads.push(payload(await (day % 2 ? client : await open()).report("flu", day * DAY)));
  const repeated = payloads.filter((one) => one === mostFrequent(payloads)).length;
  assert.ok(repeated > 20, `${repeated}`); // one memo, of all clients: it is repeated with probability .56, beside noise
  const state = JSON.parse(texts.get("uldp-client"));
  assert.deepEqual([state.secret, state.key.length], [undefined, 64]);
  const key = globalThis.indexedDB.kept.get("uldp-client");
  assert.equal(key.extractable, false);
  await assert.rejects(crypto.subtle.exportKey("raw", key));
  globalThis.indexedDB = new FakeDatabases();
  await assert.rejects(open(), { name: "UldpError", message: "the key of the storage must stay, got another one" });
  delete globalThis.indexedDB;
  await assert.rejects(open(), { name: "UldpError", message: "the key of the storage must stay, got another one" });
});

const mostFrequent = (items) => items.reduce((best, item) => (count(items, item) > count(items, best) ? item : best));
const count = (items, item) => items.filter((one) => one === item).length;

test("a key gives other devices other memos, and every purpose words of its own", async () => {
  const form = await checked(forms["memo-cohorts"]);
  const keys = await Promise.all([0, 1].map(() => crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, false, ["sign"])));
  const made = new Set();
  for (const key of keys) {
    for (const [purpose, number] of [[0, 0], [1, 0], [1, 1], [2, 7]]) {
      const bytes = purposeBytes(form, purpose, number);
      assert.equal(bytes.length, 14 + 32 + 9);
      made.add(hex(new Uint8Array(await crypto.subtle.sign("HMAC", key, bytes))));
    }
  }
  assert.equal(made.size, 8);
});

test("with a key, its HMAC takes the place of the secret", async (t) => {
  const raw = Uint8Array.from({ length: 64 }, (_, i) => i);
  globalThis.indexedDB = new FakeDatabases();
  t.after(() => delete globalThis.indexedDB);
  const hmac = { name: "HMAC", hash: "SHA-256" };
  globalThis.indexedDB.kept.set("uldp-client", await crypto.subtle.importKey("raw", raw, hmac, false, ["sign"]));
  const form = await checked(forms["memo-rappor"]);
  const symbol = form.symbols.symbols.indexOf("gout");
  const number = Buffer.alloc(9);
  number[0] = 1;
  number.writeUInt32LE(symbol, 1);
  const bytes = Buffer.concat([Buffer.from("uldp-client-1\0"), Buffer.from(form.fingerprint, "hex"), number]);
  const memo = memoOf(createHmac("sha256", raw).update(bytes).digest("hex"), form, symbol);
  const [local] = fakeLocal();
  const client = await opened({ storage: new BrowserState(local) }, forms["memo-rappor"]);
  const payloads = [];
  for (let day = 0; day < 60; day++) payloads.push(payload(await client.report("gout", day * DAY)));
  assert.equal(mostFrequent(payloads), memo.at(-1));
});

test("where the key cannot be kept, the secret is in the text", async (t) => {
  const failing = { open: () => { throw new Error("not in this window"); } };
  globalThis.indexedDB = failing;
  t.after(() => delete globalThis.indexedDB);
  const [local, texts] = fakeLocal();
  await (await opened({ storage: new BrowserState(local) })).report("flu", 0);
  assert.match(JSON.parse(texts.get("uldp-client")).secret, /^[0-9a-f]{64}$/);
});

test("a state that began with a secret keeps it where a key is there later", async (t) => {
  const [local, texts] = fakeLocal();
  const first = hex(await (await opened({ storage: new BrowserState(local) })).report("flu", 0));
  const { secret } = JSON.parse(texts.get("uldp-client"));
  globalThis.indexedDB = new FakeDatabases();
  t.after(() => delete globalThis.indexedDB);
  assert.equal(hex(await (await opened({ storage: new BrowserState(local) })).report("hiv", 0)), first);
  assert.equal(JSON.parse(texts.get("uldp-client")).secret, secret);
});

test("a device's reports state the group of the day beside its own cohort", async () => {
  const { client: form } = read("dimensions").find(({ client }) => client.id === "groups-memo");
  const client = await opened({ budget: { epsilon: 100 } }, form);
  const cohorts = [];
  for (const [day, arm] of ["control", "new", "never listed"].entries()) {
    cohorts.push((await client.report("flu", day * DAY, { arm })).at(-3) / 2);
  }
  assert.deepEqual(cohorts.map((cohort) => Math.floor(cohort / form.num_cohorts)), [0, 1, 2]);
  assert.equal(new Set(cohorts.map((cohort) => cohort % form.num_cohorts)).size, 1);
  const again = hex(await client.report("hiv", 0 + 2 * DAY, { arm: "new" }));
  assert.equal(again.slice(-6, -4), (2 * cohorts[2]).toString(16).padStart(2, "0")); // the answer of the window stays
  const message = "dimensions must give a text for arm, got none";
  await assert.rejects(client.report("flu", 3 * DAY), { name: "UldpError", message });
});
