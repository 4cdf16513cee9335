import { inLocal } from "./local-storage.js";
import { fromHex, toHex } from "./message.js";

const [ID_START, ID_END] = [9, 25]; // bytes of a message

/** Keeps messages until they were sent. A message that is sent again is the same bytes. */
export class Queue {
  #send;
  #storage;
  #sending;

  /** `send` resolves when the message was received (or will never be), and rejects if it has to be sent again. */
  constructor({ send, storage = new MemoryStorage() }) {
    this.#send = send;
    this.#storage = storage;
  }

  /** Stores a message; await this before the value is forgotten. */
  async add(message) {
    await this.#storage.set(toHex(message.subarray(ID_START, ID_END)), toHex(message));
  }

  /** Sends what is stored, up to the first that fails; resolves to how many were sent. */
  flush() {
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  async #sendAll() {
    let sent = 0;
    for (const [key, text] of await this.#storage.entries()) {
      await this.#send(fromHex(text));
      await this.#storage.delete(key);
      sent += 1;
    }
    return sent;
  }
}

/** Forgets everything when the program ends. */
export class MemoryStorage {
  #texts = new Map();

  set(key, text) {
    this.#texts.set(key, text);
  }

  delete(key) {
    this.#texts.delete(key);
  }

  entries() {
    return [...this.#texts];
  }
}

const page = new Map(); // what no `localStorage` took, until the page is left

/** `localStorage`, or another object with its methods; memory of this page view where it is blocked or full. */
export class BrowserStorage {
  #storage;
  #prefix;

  constructor(storage, prefix = "uldp:") {
    [this.#storage, this.#prefix] = [storage, prefix];
  }

  set(key, text) {
    if (!this.#try((local) => local.setItem(this.#prefix + key, text) ?? true)) page.set(this.#prefix + key, text);
  }

  delete(key) {
    page.delete(this.#prefix + key);
    this.#try((local) => local.removeItem(this.#prefix + key));
  }

  entries() {
    const keys = this.#try((local) => Array.from({ length: local.length }, (_, i) => local.key(i))) ?? [];
    const stored = keys.map((key) => [key, key?.startsWith(this.#prefix) && this.#try((local) => local.getItem(key))]);
    const own = [...stored, ...page].filter(([key, text]) => text && key.startsWith(this.#prefix));
    return own.map(([key, text]) => [key.slice(this.#prefix.length), text]);
  }

  #try(work) {
    try {
      return inLocal(this.#storage, work);
    } catch {
      return undefined;
    }
  }
}
