import assert from "node:assert/strict";
import { test } from "node:test";

import { BrowserStorage, MemoryStorage, Queue } from "../index.js";

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
