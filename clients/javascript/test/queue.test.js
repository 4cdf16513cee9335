import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { BrowserState, BrowserStorage, MemoryStorage, Queue } from "../index.js";

const message = (name) => Uint8Array.from({ length: 35 }, (_, i) => (i === 9 ? name : i));

/** As much of localStorage as is used. */
class FakeLocalStorage {
  texts = new Map([["unrelated", "text"]]);
  get length() {
    return this.texts.size;
  }
  key(i) {
    return [...this.texts.keys()][i];
  }
  getItem(key) {
    return this.texts.get(key);
  }
  setItem(key, text) {
    this.texts.set(key, String(text));
  }
  removeItem(key) {
    this.texts.delete(key);
  }
}

const storages = { memory: () => new MemoryStorage(), browser: () => new BrowserStorage(new FakeLocalStorage()) };

for (const [name, storage] of Object.entries(storages)) {
  test(`what fails is sent again, the same bytes (${name})`, async () => {
    const seen = [];
    let broken = true;
    const send = async (bytes) => {
      seen.push(bytes);
      if (broken) throw new Error("no network");
    };
    const queue = new Queue({ send, storage: storage() });
    await queue.add(message(1));
    await queue.add(message(2));
    await assert.rejects(queue.flush(), { message: "no network" });
    await assert.rejects(queue.flush(), { message: "no network" });
    broken = false;
    assert.equal(await queue.flush(), 2);
    assert.equal(await queue.flush(), 0);
    assert.deepEqual(seen, [message(1), message(1), message(1), message(2)]);
  });
}

const BATCHES = JSON.parse(readFileSync(new URL("../../../schemas/vectors/batches.json", import.meta.url), "utf8"));
const bytesOf = (text) => Uint8Array.from(Buffer.from(text, "hex"));

/** What a queue with the messages of both collections, one of each in turn, sends at once. */
async function sentOf(packSize, storage = new MemoryStorage()) {
  const seen = [];
  const queue = new Queue({ send: async (bytes) => void seen.push(bytes), storage, packSize });
  const [one, other] = BATCHES;
  for (const [i, message] of one.messages.entries()) {
    await queue.add(bytesOf(message));
    await queue.add(bytesOf(other.messages[i]));
  }
  assert.equal(await queue.flush(), 10);
  assert.equal(await queue.flush(), 0);
  return seen;
}

test("reports of one collection are sent as one message, and those of another as another", async () => {
  const [one, other] = BATCHES;
  assert.deepEqual(await sentOf(undefined), [one, other].map(({ packed }) => bytesOf(packed)));
  const local = new FakeLocalStorage();
  assert.equal((await sentOf(undefined, new BrowserStorage(local))).length, 2);
  assert.deepEqual([...local.texts], [["unrelated", "text"]]);
  const pairs = await sentOf(2);
  assert.deepEqual(pairs.map(([form]) => form), [4, 4, 4, 4, 2, 2]);
  assert.deepEqual(pairs.slice(4), [one, other].map(({ messages }) => bytesOf(messages[4])));
  const alone = await sentOf(1);
  assert.deepEqual(alone, one.messages.flatMap((message, i) => [message, other.messages[i]]).map(bytesOf));
});

test("ten reports are a pack, unless the queue is told otherwise", async () => {
  const seen = [];
  const queue = new Queue({ send: async (bytes) => void seen.push(bytes) });
  for (let id = 0; id < 25; id++) {
    const report = bytesOf(BATCHES[0].messages[0]);
    report[9] = id;
    await queue.add(report);
  }
  assert.equal(await queue.flush(), 25);
  assert.equal(seen.length, 3);
  assert.deepEqual(seen.map((bytes) => bytes[9] / 4), [10, 10, 5]); // cohorts have 2 bytes
  for (const packSize of [0, -1, 1.5, "10"]) {
    const message = `packSize must be whole and above 0, got ${packSize}`;
    assert.throws(() => new Queue({ send: async () => {}, packSize }), { name: "UldpError", message });
  }
});

test("a pack that failed is sent again as it was, before what came later; none is deleted before it is sent", async () => {
  const seen = [];
  let broken = true;
  const storage = new MemoryStorage();
  const send = async (bytes) => {
    seen.push(bytes);
    assert.ok(storage.entries().length > 0);
    if (broken) throw new Error("no network");
  };
  const queue = new Queue({ send, storage });
  const [first, second, third] = BATCHES[0].messages.map(bytesOf);
  await queue.add(first);
  await queue.add(second);
  await assert.rejects(queue.flush(), { message: "no network" });
  await queue.add(third);
  await assert.rejects(queue.flush(), { message: "no network" });
  assert.equal(storage.entries().length, 3);
  broken = false;
  assert.equal(await queue.flush(), 3);
  assert.deepEqual(seen[1], seen[0]);
  assert.deepEqual(seen.slice(2), [seen[0], third]);
});

test("the reports of a refused pack are sent one by one, and each refusal is of one report", async () => {
  const seen = [];
  const storage = new MemoryStorage();
  const messages = BATCHES[0].messages.map(bytesOf);
  let broken = false;
  const send = async (bytes) => {
    seen.push(bytes);
    if (broken) throw new Error("no network");
    if (seen.length === 2) broken = true;
    return bytes[0] === 2 && bytes[9] !== messages[1][9]; // single, and another one than the second
  };
  const queue = new Queue({ send, storage, packSize: 3 });
  for (const message of messages.slice(0, 3)) await queue.add(message);
  await assert.rejects(queue.flush(), { message: "no network" });
  broken = false;
  for (const message of messages.slice(3)) await queue.add(message);
  assert.equal(await queue.flush(), 4);
  assert.deepEqual(seen.map(([form]) => form), [4, 2, 2, 2, 2, 4, 2, 2]);
  assert.deepEqual([1, 2, 3, 4, 6, 7].map((i) => seen[i]), [0, 1, 1, 2, 3, 4].map((i) => messages[i]));
  assert.equal(await queue.flush(), 0);
});

test("a pack of which another page has sent a part is made anew", async () => {
  const seen = [];
  const storage = new MemoryStorage();
  const messages = BATCHES[0].messages.map(bytesOf);
  const send = async (bytes) => {
    seen.push(bytes);
    if (seen.length === 1) throw new Error("no network");
  };
  const queue = new Queue({ send, storage });
  for (const message of messages.slice(0, 2)) await queue.add(message);
  await assert.rejects(queue.flush(), { message: "no network" });
  storage.delete(storage.entries()[0][0]);
  assert.equal(await queue.flush(), 1);
  assert.deepEqual(seen[1], messages[1]);
});

test("a message outlives the program", async () => {
  const local = new FakeLocalStorage();
  await new Queue({ send: async () => {}, storage: new BrowserStorage(local) }).add(message(7));
  const seen = [];
  const send = async (bytes) => void seen.push(bytes);
  assert.equal(await new Queue({ send, storage: new BrowserStorage(local) }).flush(), 1);
  assert.deepEqual(seen, [message(7)]);
  assert.deepEqual([...local.texts], [["unrelated", "text"]]);
});

test("one message is stored once, and sent by one of two calls", async () => {
  const seen = [];
  const queue = new Queue({ send: async (bytes) => void seen.push(bytes) });
  await queue.add(message(1));
  await queue.add(message(1));
  assert.deepEqual(await Promise.all([queue.flush(), queue.flush()]), [1, 1]);
  assert.equal(seen.length, 1);
});

/** Ways in which a browser fails to store: blocked (an exception, or null), or full. */
const blocked = () => {
  throw new DOMException("The operation is insecure.", "SecurityError");
};
const failing = {
  "reading it throws": { get: blocked },
  "it is null": { value: null },
  "it is not there": { value: undefined },
  "each call throws": {
    value: { getItem: blocked, setItem: blocked, removeItem: blocked, key: blocked, get length() { return blocked(); } },
  },
  "it is full": {
    value: Object.assign(new FakeLocalStorage(), {
      setItem: () => {
        throw new DOMException("exceeded the quota", "QuotaExceededError");
      },
    }),
  },
};

/** Runs with this `globalThis.localStorage`. */
async function withLocal(property, work) {
  const before = Object.getOwnPropertyDescriptor(globalThis, "localStorage");
  Object.defineProperty(globalThis, "localStorage", { configurable: true, ...property });
  try {
    await work();
  } finally {
    delete globalThis.localStorage;
    if (before) Object.defineProperty(globalThis, "localStorage", before);
  }
}

for (const [name, property] of Object.entries(failing)) {
  test(`reports are sent where nothing can be stored: ${name}`, () =>
    withLocal(property, async () => {
      const seen = [];
      let broken = true;
      const send = async (bytes) => {
        if (broken) throw new Error("no network");
        seen.push(bytes);
      };
      const queue = new Queue({ send, storage: new BrowserStorage() });
      await queue.add(message(1));
      await new Queue({ send, storage: new BrowserStorage() }).add(message(2)); // another one of the page
      await assert.rejects(queue.flush(), { message: "no network" });
      broken = false;
      assert.equal(await queue.flush(), 2);
      assert.equal(await queue.flush(), 0);
      assert.deepEqual(seen, [message(1), message(2)]);
    }));

  test(`a client with a budget says so in one error: ${name}`, () =>
    withLocal(property, async () => {
      const state = new BrowserState();
      await assert.rejects(state.update(() => ["text", "result"]), { name: "UldpError", message: /^localStorage must / });
    }));
}

test("what was stored before the storage was full is sent, and what came later too", async () => {
  const local = new FakeLocalStorage();
  const seen = [];
  const queue = new Queue({ send: async (bytes) => void seen.push(bytes), storage: new BrowserStorage(local) });
  await queue.add(message(1));
  local.setItem = () => {
    throw new DOMException("exceeded the quota", "QuotaExceededError");
  };
  await queue.add(message(2));
  assert.equal(await queue.flush(), 2);
  assert.deepEqual(seen, [message(1), message(2)]);
  assert.deepEqual([...local.texts], [["unrelated", "text"]]);
  assert.equal(await queue.flush(), 0);
});

test("a text that another page has removed meanwhile is not sent", async () => {
  const local = new FakeLocalStorage();
  local.key = (i) => [...local.texts.keys(), "uldp:gone"][i];
  Object.defineProperty(local, "length", { get: () => local.texts.size + 1 });
  const seen = [];
  const queue = new Queue({ send: async (bytes) => void seen.push(bytes), storage: new BrowserStorage(local) });
  await queue.add(message(3));
  assert.equal(await queue.flush(), 1);
  assert.deepEqual(seen, [message(3)]);
});
