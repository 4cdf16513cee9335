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

/** `localStorage`, or another object with its methods. */
export class BrowserStorage {
  #storage;
  #prefix;

  constructor(storage = globalThis.localStorage, prefix = "uldp:") {
    this.#storage = storage;
    this.#prefix = prefix;
  }

  set(key, text) {
    this.#storage.setItem(this.#prefix + key, text);
  }

  delete(key) {
    this.#storage.removeItem(this.#prefix + key);
  }

  entries() {
    const keys = Array.from({ length: this.#storage.length }, (_, i) => this.#storage.key(i));
    const own = keys.filter((key) => key.startsWith(this.#prefix));
    return own.map((key) => [key.slice(this.#prefix.length), this.#storage.getItem(key)]);
  }
}
