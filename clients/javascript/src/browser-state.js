import { inLocal } from "./queue.js";

/** One entry of `localStorage`, which one page at a time may change; and a key in IndexedDB that no script can copy. */
export class BrowserState {
  #storage;
  #name;
  #key;

  constructor(storage, name = "uldp-client") {
    [this.#storage, this.#name] = [storage, name];
  }

  async update(change) {
    const now = () => {
      const [text, result] = change(inLocal(this.#storage, (local) => local.getItem(this.#name)));
      inLocal(this.#storage, (local) => local.setItem(this.#name, text)); // memory would forget the budget
      return result;
    };
    const locks = inLocal(this.#storage, (local) => local && globalThis.navigator?.locks);
    return locks ? locks.request(this.#name, now) : now();
  }

  /** HMAC-SHA-256 by the key; undefined where the platform keeps none. */
  async derive(bytes) {
    this.#key ??= keyOf(this.#name).catch(() => undefined);
    const key = await this.#key;
    return key && new Uint8Array(await crypto.subtle.sign("HMAC", key, bytes));
  }
}

/** The key in the database of this name, which is made at the first call. */
async function keyOf(name) {
  if (!globalThis.indexedDB) return undefined; // throws where it is blocked
  const made = await crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const opening = indexedDB.open(name);
  opening.onupgradeneeded = () => opening.result.createObjectStore("keys");
  const database = await done(opening, "onsuccess");
  const transaction = database.transaction("keys", "readwrite");
  const store = transaction.objectStore("keys");
  const request = store.get(name);
  request.onsuccess = () => request.result ?? store.put(made, name);
  await done(transaction, "oncomplete");
  database.close();
  return request.result ?? made;
}

const done = (one, event) =>
  new Promise((resolve, reject) => {
    one[event] = () => resolve(one.result);
    one.onerror = one.onabort = () => reject(one.error);
  });
