/** What is wrong, in one sentence that never repeats a value of a person. */
export class UldpError extends Error {}

/** What `uldp export` wrote; schemas/client.schema.json. */
export type ClientForm = object;

export interface ClientOptions {
  /** The fingerprint that the collection must have, 64 hexadecimal digits; none: any. */
  fingerprint?: string;
  /** Milliseconds to whose multiples event times are rounded down; 1 if absent. */
  timeUnit?: number;
}

/** Makes the reports of one collection. */
export class Client {
  private constructor();
  /** Checks the form; rejects with UldpError if it does not agree with itself. */
  static open(form: ClientForm, options?: ClientOptions): Promise<Client>;
  /** 64 hexadecimal digits. */
  readonly fingerprint: string;
  /**
   * One report, as bytes to be stored, and sent until one attempt succeeds. Each call costs epsilon anew.
   * Throws UldpError for a value that the collection does not have.
   * @param eventTime milliseconds since 1970 UTC; now if absent
   */
  report(value: string, eventTime?: number): Uint8Array;
}

/** Where a queue keeps messages; methods may return promises. */
export interface MessageStorage {
  set(key: string, text: string): void | Promise<void>;
  delete(key: string): void | Promise<void>;
  entries(): Iterable<[string, string]> | Promise<Iterable<[string, string]>>;
}

export interface QueueOptions {
  /** Resolves when the message was received (or will never be), rejects if it has to be sent again. */
  send(message: Uint8Array): Promise<void>;
  /** Memory if absent. */
  storage?: MessageStorage;
}

/** Keeps messages until they were sent. A message that is sent again is the same bytes. */
export class Queue {
  constructor(options: QueueOptions);
  /** Stores a message. */
  add(message: Uint8Array): Promise<void>;
  /** Sends what is stored, up to the first that fails; resolves to how many were sent. */
  flush(): Promise<number>;
}

/** Forgets everything when the program ends. */
export class MemoryStorage implements MessageStorage {
  set(key: string, text: string): void;
  delete(key: string): void;
  entries(): [string, string][];
}

/** `localStorage`, or another object with its methods. */
export class BrowserStorage implements MessageStorage {
  constructor(storage?: Pick<Storage, "length" | "key" | "getItem" | "setItem" | "removeItem">, prefix?: string);
  set(key: string, text: string): void;
  delete(key: string): void;
  entries(): [string, string][];
}
