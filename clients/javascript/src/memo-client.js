/** For people who are asked again and again: one answer a window, memos, and a budget that outlives restarts. */
import { UldpError, require } from "./errors.js";
import { checked } from "./form.js";
import { cohortOf, epsilonAfter, memoOf, nameOf, repeated, turnOf } from "./memos.js";
import { fromHex, toHex } from "./message.js";
import { makeReport, message } from "./report.js";
import { symbolsOf } from "./symbols.js";
import { DAY, rounding, windowsOf } from "./windows.js";
import { secureWords } from "./words.js";

const STATE = 1; // version of the stored text
const ROUNDING = 1e-9; // of sums that should be the budget

/** What a report would cost is not there any more. Nothing was sent. */
export class BudgetSpentError extends UldpError {
  name = "BudgetSpentError";
}

/** Answers one question about one person, at most once a window. */
export class MemoClient {
  #form;
  #options;
  #secret;
  #cohort;
  #turn;
  #draw = secureWords();

  constructor(form, options) {
    [this.#form, this.#options] = [form, options];
  }

  /** Options and their types are in index.d.ts. */
  static async open(form, { storage, budget, fingerprint, timeUnit, windowMs, reportEvery = 1 } = {}) {
    const { epsilon, periodMs = DAY, lifetime = Infinity } = budget ?? {};
    require(typeof storage?.update === "function", `storage must have a method update, got ${typeof storage?.update}`);
    for (const [name, number] of Object.entries({ "budget.epsilon": epsilon, "budget.lifetime": lifetime })) {
      require(typeof number === "number" && number > 0, `${name} must be above 0, got ${number}`);
    }
    const known = await checked(form, fingerprint);
    const named = known.client_window;
    require(!named || !windowMs, `windowMs must be absent where the form has client_window, got ${windowMs}`);
    const asked = named ?? { milliseconds: windowMs ?? DAY };
    const length = asked.milliseconds;
    for (const [name, number] of Object.entries({ "budget.periodMs": periodMs, windowMs: length, reportEvery })) {
      require(Number.isSafeInteger(number) && number > 0, `${name} must be whole and above 0, got ${number}`);
    }
    require(periodMs % length === 0, `windowMs must divide budget.periodMs, ${periodMs}, got ${length}`);
    const windows = { ...windowsOf(asked), rounded: rounding(known, timeUnit, length) };
    const client = new MemoClient(known, { storage, windows, reportEvery, periodMs, limits: { spent: epsilon, ever: lifetime } });
    await client.#begin();
    return client;
  }

  get fingerprint() {
    return this.#form.fingerprint;
  }

  /** The answer for the window of an event, always the same bytes; null if it is not this device's turn. */
  async report(value, eventTime = Date.now()) {
    const { storage, windows, reportEvery } = this.#options;
    const time = Math.floor(eventTime);
    require(Number.isSafeInteger(time), `eventTime must be whole milliseconds, got ${eventTime}`);
    const [symbol] = symbolsOf(this.#form, value, this.#cohort);
    const window = windows.number(time);
    if (window - Math.floor(window / reportEvery) * reportEvery !== this.#turn) return null;
    return fromHex(await storage.update((text) => this.#answer(text, value, symbol, time)));
  }

  async #begin() {
    const { storage, periodMs, reportEvery } = this.#options;
    this.#secret = await storage.update((text) => {
      if (text !== null) return [text, this.#read(text).secret];
      const secret = toHex(crypto.getRandomValues(new Uint8Array(32)));
      const ledgers = { period: null, spent: {}, ever: {}, answers: {} };
      return [JSON.stringify({ client_state: STATE, secret, period_ms: periodMs, ...ledgers }), secret];
    });
    this.#cohort = cohortOf(this.#secret, this.#form);
    this.#turn = turnOf(this.#secret, this.#form, reportEvery);
  }

  #read(text) {
    const state = parsed(text ?? "{}");
    const { periodMs } = this.#options;
    require(state.client_state === STATE, `client_state in the storage must be ${STATE}, got ${state.client_state}`);
    require(/^[0-9a-f]{64}$/.test(state.secret), "the secret in the storage must be 64 hexadecimal digits, got another one");
    require(state.period_ms === periodMs, `budget.periodMs must stay as it was, ${state.period_ms}, got ${periodMs}`);
    require(!this.#secret || state.secret === this.#secret, "the secret in the storage must stay, got another one");
    return state;
  }

  /** The text to be stored and the message: that of the window if there is one already. */
  #answer(text, value, symbol, time) {
    const { windows, periodMs } = this.#options;
    const state = this.#read(text);
    const period = Math.floor(time / periodMs);
    const latest = state.period ?? period;
    require(period >= latest, `eventTime must not be before the period of an earlier report, got ${latest - period} before it`);
    if (period > latest) {
      state.spent = {};
      for (const answers of Object.values(state.answers)) {
        for (const name in answers) if (name[0] !== "/" || name.slice(1) <= period * periodMs) delete answers[name];
      }
    }
    state.period = period;
    // days of a place, which a period may begin in, go by their end
    const window = this.#form.client_window?.timezone ? `/${windows.end(time)}` : windows.number(time);
    const answers = (state.answers[this.fingerprint] ??= {});
    if (answers[window] === undefined) {
      this.#charge(state, symbol);
      answers[window] = toHex(this.#make(value, symbol, windows.rounded(time)));
    }
    return [JSON.stringify(state), answers[window]];
  }

  #charge(state, symbol) {
    const memos = this.#form.sampler.sampler === "memo";
    const name = nameOf(this.#secret, this.#form, memos ? symbol : 0);
    for (const [ledger, limit] of Object.entries(this.#options.limits)) {
      const entries = state[ledger];
      const [number, cost] = entries[name] ?? [0, 0];
      const before = Object.values(entries).reduce((sum, [, spent]) => sum + spent, 0);
      const added = epsilonAfter(this.#form, number + 1) - cost;
      if (before + added > limit * (1 + ROUNDING)) {
        const field = ledger === "ever" ? "lifetime" : "epsilon";
        const seen = `${before.toPrecision(4)} of ${limit} spent and a report that adds ${added.toPrecision(4)}`;
        throw new BudgetSpentError(`budget.${field} must not be exceeded, got ${seen}`);
      }
      entries[name] = [number + 1, cost + added];
    }
  }

  #make(value, symbol, time) {
    if (this.#form.sampler.sampler !== "memo") return makeReport(this.#form, value, time, this.#draw);
    const payload = repeated(this.#form, memoOf(this.#secret, this.#form, symbol), this.#draw);
    return message(this.#form, this.#cohort, time, payload, this.#draw);
  }
}

/** The stored text. The engine's own error would quote the secret. */
function parsed(text) {
  try {
    return Object(JSON.parse(text));
  } catch {
    throw new UldpError("the text in the storage must be that of a client, got another one");
  }
}

/** Forgets everything when the program ends: for tests. */
export class MemoryState {
  #text = null;

  update(change) {
    const [text, result] = change(this.#text);
    this.#text = text;
    return result;
  }
}

/** One entry of `localStorage`, which one page at a time may change. */
export class BrowserState {
  #storage;
  #key;

  constructor(storage = globalThis.localStorage, key = "uldp-client") {
    [this.#storage, this.#key] = [storage, key];
  }

  async update(change) {
    const now = () => {
      const [text, result] = change(this.#storage.getItem(this.#key));
      this.#storage.setItem(this.#key, text);
      return result;
    };
    return globalThis.navigator?.locks ? navigator.locks.request(this.#key, now) : now();
  }
}
