import assert from "node:assert/strict";
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
