import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { BrowserState, BudgetSpentError, Client, MemoClient, MemoryState } from "../index.js";

const read = (name) => JSON.parse(readFileSync(new URL(`../../../schemas/vectors/${name}.json`, import.meta.url), "utf8"));
const forms = Object.fromEntries(read("memos").map(({ client }) => [client.id, client]));
const plain = read("collections").find(({ name }) => name === "order-krr").client;
const DAY = 86_400_000;
const budget = { epsilon: 1, lifetime: 10 };
const opened = (options = {}, form = forms["memo-krr"]) => MemoClient.open(form, { storage: new MemoryState(), budget, ...options });
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const payload = (message) => message.at(-1);

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
  const client = await opened({ budget: { epsilon: 0.5, lifetime: 4.1 } }, forms["memo-cohorts"]);
  const messages = await Promise.all(Array.from({ length: 400 }, (_, day) => client.report("a", day * DAY)));
  assert.equal(new Set(messages.map((message) => message.at(-3))).size, 1);
  const seen = new Map();
  for (const message of messages) seen.set(payload(message), (seen.get(payload(message)) ?? 0) + 1);
  const most = Math.max(...seen.values()); // the memo is repeated with probability .126, beside a share of noise
  assert.ok(most > 50, `${most}`);
});

test("a device answers one window of several", async () => {
  const client = await opened({ reportEvery: 7 });
  const answered = [];
  for (let day = -21; day < 21; day++) if (await client.report("flu", day * DAY)) answered.push(day);
  assert.equal(answered.length, 6);
  assert.ok(answered.every((day, i) => i === 0 || day - answered[i - 1] === 7));
});

test("what was spent is counted, and refused before anything is stored", async () => {
  const storage = new MemoryState();
  const client = await opened({ storage, budget: { epsilon: 1, lifetime: 2.5 } });
  for (let day = 0; day < 50; day++) await client.report("flu", day * DAY);
  const before = storage.update((text) => [text, text]);
  const { ever } = JSON.parse(before);
  const [[number, cost]] = Object.values(ever);
  assert.equal(number, 50);
  assert.ok(cost > 1.9 && cost <= 2, `${cost}`);
  await assert.rejects(client.report("hiv", 50 * DAY), {
    name: "BudgetSpentError",
    message: "budget.lifetime must not be exceeded, got 2.000 of 2.5 spent and a report that adds 1.000",
  });
  assert.equal(storage.update((text) => [text, text]), before);
  assert.ok(await client.report("flu", 50 * DAY));
});

test("fresh reports cost epsilon each", async () => {
  const client = await opened({ budget: { epsilon: 2 }, windowMs: DAY / 4 }, plain);
  await client.report("flu", 0);
  await client.report("flu", DAY / 4);
  await assert.rejects(client.report("flu", DAY / 2), BudgetSpentError);
  await client.report("flu", DAY);
  await assert.rejects(client.report("flu", 0), {
    name: "UldpError",
    message: "eventTime must not be before the period of an earlier report, got 1 before it",
  });
});

test("a browser keeps the state in one entry", async () => {
  const texts = new Map();
  const local = { getItem: (key) => texts.get(key) ?? null, setItem: (key, text) => texts.set(key, text) };
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
    [{ windowMs: -1 }, `windowMs ${whole} -1`],
    [{ windowMs: 7 * DAY }, `windowMs must divide budget.periodMs, ${DAY}, got ${7 * DAY}`],
    [{ reportEvery: 0 }, `reportEvery ${whole} 0`],
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
    [{ client_state: 2 }, "client_state in the storage must be 1, got 2"],
    [{ secret: "00".repeat(32) }, "the secret in the storage must stay, got another one"],
  ]) {
    storage.update(() => [JSON.stringify({ ...state, ...field }), null]);
    await assert.rejects(client.report("flu", 0), { name: "UldpError", message: sentence });
  }
  for (const secret of [undefined, null, "", "zz".repeat(32), { length: 64 }]) {
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
