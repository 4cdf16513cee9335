/** What is wrong, in one sentence that never repeats a value of a person. */
export class UldpError extends Error {}

/** What `uldp export` wrote; schemas/client.schema.json. */
export type ClientForm = object;

export interface ClientOptions {
  /** The fingerprint that the collection must have, 64 hexadecimal digits; none: any. */
  fingerprint?: string;
  /** The form_fingerprint that the form must have, which `uldp export` prints; none: any form that agrees with itself. */
  formFingerprint?: string;
  /**
   * Milliseconds to whose multiples event times are rounded down; they must divide the client's window, if the form or
   * `windowMs` names one. If absent: to the beginning of the client's window, where the form names one, or to the full
   * hour (of `windowMs` that hours do not divide: to the window).
   */
  timeUnit?: number;
}

export interface SingleReportOptions extends ClientOptions {
  /**
   * Number of latest values of hashed alphabets whose hashes stay in memory (default: 0). For servers and simulations,
   * where values repeat: a page should forget a value once its report is made.
   */
  cachedValues?: number;
}

/**
 * A text for each dimension of the collection, which the report states in the clear: `{ country: "DE", arm: "new" }`.
 * Dimensions with `set_by` are left out: the gateway or the reader of a queue sets them.
 */
export type Dimensions = Record<string, string>;

/** Makes the reports of one collection. */
export class Client {
  private constructor();
  /** Checks the form; rejects with UldpError if it does not agree with itself. */
  static open(form: ClientForm, options?: SingleReportOptions): Promise<Client>;
  /** 64 hexadecimal digits. */
  readonly fingerprint: string;
  /**
   * One report, as bytes to be stored, and sent until one attempt succeeds. Each call costs epsilon anew.
   * Throws UldpError for a value that the collection does not have. Numbers are for alphabets `ordered`.
   * @param eventTime milliseconds since 1970 UTC; now if undefined
   * @param dimensions for collections with dimensions only; a text that is not listed counts as "other"
   */
  report(value: string | number, eventTime?: number, dimensions?: Dimensions): Uint8Array;
}

/** Where a queue keeps messages; methods may return promises. */
export interface MessageStorage {
  set(key: string, text: string): void | Promise<void>;
  delete(key: string): void | Promise<void>;
  entries(): Iterable<[string, string]> | Promise<Iterable<[string, string]>>;
}

export interface QueueOptions {
  /**
   * Resolves when the message was received, to `false` if it will never be, and rejects if it has to be sent again. The
   * reports of a pack that was refused are sent one by one.
   */
  send(message: Uint8Array): Promise<boolean | void>;
  /** Memory if absent. */
  storage?: MessageStorage;
  /**
   * Largest number of reports of a collection that are sent as one message (default: 10). With a gateway that takes
   * signed tokens: at most its `--token_reports`, whose default is 1.
   */
  packSize?: number;
}

/** Keeps messages until they were sent. What is sent again is the same bytes, as long as the queue lives. */
export class Queue {
  constructor(options: QueueOptions);
  /** Stores a message; rejects with what the storage throws. */
  add(message: Uint8Array): Promise<void>;
  /** Sends what is stored, up to what fails; resolves to the number of reports that were sent. */
  flush(): Promise<number>;
}

/** Forgets everything when the program ends. */
export class MemoryStorage implements MessageStorage {
  set(key: string, text: string): void;
  delete(key: string): void;
  entries(): [string, string][];
}

/**
 * `localStorage`, or another object with its methods. Where it is blocked or full, messages stay in memory until the page
 * is left, and nothing throws.
 */
export class BrowserStorage implements MessageStorage {
  constructor(storage?: Pick<Storage, "length" | "key" | "getItem" | "setItem" | "removeItem">, prefix?: string);
  set(key: string, text: string): void;
  delete(key: string): void;
  entries(): [string, string][];
}

/** One report more, of whatever value, could cost what is not there any more. Nothing was sent. */
export class BudgetSpentError extends UldpError {}

/** Where a `MemoClient` keeps one text. */
export interface StateStorage {
  /**
   * Replaces the text, all or nothing: `change` is called with the text (null: there is none yet) and returns the new
   * one, and a result, which is returned when the new text is stored. Nobody reads or replaces it in between.
   */
  update<T>(change: (text: string | null) => [string, T]): T | Promise<T>;
  /**
   * HMAC-SHA-256 of the bytes, 32 bytes, under a key of this device that stays; undefined where there is none. With it,
   * the text has no secret.
   */
  derive?(bytes: Uint8Array): Promise<Uint8Array | undefined>;
}

/** Forgets everything when the program ends: for tests. */
export class MemoryState implements StateStorage {
  update<T>(change: (text: string | null) => [string, T]): T;
}

/**
 * One entry of `localStorage`; pages take turns by `navigator.locks`, where that is there. Memos follow from a key in
 * IndexedDB that scripts of the origin can use and cannot copy; without IndexedDB from a secret in the entry. Where
 * `localStorage` is blocked or full, calls reject with UldpError: memory would forget the budget.
 */
export class BrowserState implements StateStorage {
  constructor(storage?: Pick<Storage, "getItem" | "setItem">, name?: string);
  update<T>(change: (text: string | null) => [string, T]): Promise<T>;
  derive(bytes: Uint8Array): Promise<Uint8Array | undefined>;
}

/**
 * What a device may spend, over all collections whose clients share a storage. Reports are charged by their number,
 * never by their values: as much as the dearest values could cost.
 */
export interface Budget {
  /** What the reports of one period may cost together. */
  epsilon: number;
  /** Length of a period in milliseconds; a day if absent. */
  periodMs?: number;
  /** What all reports ever made may cost together; no limit if absent. */
  lifetime?: number;
}

export interface MemoClientOptions extends ClientOptions {
  storage: StateStorage;
  budget: Budget;
  /** Answers are for windows of this length, which divides the period; those of the form, or a day, if absent. */
  windowMs?: number;
  /** Of so many windows in a row one is answered, the device's own choice; 1 if absent. */
  reportEvery?: number;
  /** The number of different values that a person is assumed to have at most; as many as there are symbols if absent. */
  distinctValues?: number;
}

/** Answers one question about one person, at most once a window, with memos if the collection has `epsilon_inf`. */
export class MemoClient {
  private constructor();
  /** Checks the form, and reads the storage or begins it; rejects with UldpError if they do not go together. */
  static open(form: ClientForm, options: MemoClientOptions): Promise<MemoClient>;
  /** 64 hexadecimal digits. */
  readonly fingerprint: string;
  /**
   * The answer for the window of an event: in one window always the same bytes, whatever the value is now. Null if it is
   * not this device's turn. Rejects with BudgetSpentError, or with UldpError for a value that the collection does not have.
   * @param eventTime milliseconds since 1970 UTC; now if undefined
   * @param dimensions for collections with dimensions only; a text that is not listed counts as "other"
   */
  report(value: string | number, eventTime?: number, dimensions?: Dimensions): Promise<Uint8Array | null>;
}
