import { UldpError, require } from "./errors.js";
import { fromHex, packed, toHex } from "./message.js";

const [START, ID_END] = [9, 25]; // bytes of a message: before them its collection, between them its id
const SINGLE = "02"; // how the text of a single report begins

/** Keeps messages until they were sent. What is sent again is the same bytes. */
export class Queue {
  #send;
  #storage;
  #packSize;
  #sending;
  #failed = []; // keys of the pack that has to be sent again
  #alone = new Set(); // keys of a pack that was refused, which says nothing of each of its reports

  /**
   * `send` resolves when the message was received, to `false` if it will never be, and rejects if it has to be sent again.
   * The reports of a pack that was refused are sent one by one.
   */
  constructor({ send, storage = new MemoryStorage(), packSize = 10 }) {
    require(Number.isSafeInteger(packSize) && packSize > 0, `packSize must be whole and above 0, got ${packSize}`);
    [this.#send, this.#storage, this.#packSize] = [send, storage, packSize];
  }

  /** Stores a message; await this before the value is forgotten. */
  async add(message) {
    await this.#storage.set(toHex(message.subarray(START, ID_END)), toHex(message));
  }

  /** Sends what is stored, several reports of a collection at once, up to what fails; resolves to how many were sent. */
  flush() {
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  async #sendAll() {
    const texts = new Map(await this.#storage.entries());
    const stored = texts.size;
    while (texts.size) {
      const keys = this.#pack(texts);
      this.#failed = keys;
      const message = packed(keys.map((key) => fromHex(texts.get(key))));
      const isRefused = (await this.#send(message)) === false;
      if (isRefused && keys.length > 1) keys.forEach((key) => this.#alone.add(key));
      else await this.#forget(keys, texts);
      this.#failed = [];
    }
    return stored;
  }

  async #forget(keys, texts) {
    for (const key of keys) {
      await this.#storage.delete(key);
      texts.delete(key);
      this.#alone.delete(key);
    }
  }

  /** The keys that failed together, or those of the oldest message and of others of its collection. */
  #pack(texts) {
    if (this.#failed.length && this.#failed.every((key) => texts.has(key))) return this.#failed;
    const [[key, oldest]] = texts;
    if (!oldest.startsWith(SINGLE) || this.#alone.has(key)) return [key];
    const start = oldest.slice(0, 2 * START);
    const alike = [...texts].filter(([other, text]) => text.startsWith(start) && !this.#alone.has(other));
    return alike.slice(0, this.#packSize).map(([key]) => key);
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

/** Works with `localStorage`, or what is given for it. Browsers block it (an exception, or null), and it may be full. */
export function inLocal(given, work) {
  try {
    return work(given ?? globalThis.localStorage);
  } catch (error) {
    throw new UldpError(`localStorage must be readable and have space, got ${error.name}`);
  }
}
