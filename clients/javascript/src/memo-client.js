/** For people who are asked again and again: one answer a window, memos, and a budget that outlives restarts. */
import { UldpError, require } from "./errors.js";
import { checked } from "./form.js";
import { COHORT, MEMO, NAME, TURN, cohortOf, costOf, memoOf, nameOf, purposeBytes, repeated, turnOf } from "./memos.js";
import { encoder, fromHex, toHex } from "./message.js";
import { groupsOf, reporter } from "./report.js";
import { symbolsOf } from "./symbols.js";
import { DAY, rounding, windowsOf } from "./windows.js";
import { secureWords } from "./words.js";

const STATE = 2; // version of the stored text
const DIGITS = /^[0-9a-f]{64}$/;
const ROUNDING = 1e-9; // of sums that should be the budget

/** One report more could cost what is not there any more. Nothing was sent. */
export class BudgetSpentError extends UldpError {
  name = "BudgetSpentError";
}

/** Answers one question about one person, at most once a window. */
export class MemoClient {
  #form;
  #options;
  #groupOf;
  #symbols;
  #encode;
  #make; // of reports without memos
  #secret; // of the text, or undefined
  #cohort;
  #turn;
  #draw = secureWords();

  constructor(form, options) {
    [this.#form, this.#options] = [form, options];
    [this.#groupOf, this.#symbols, this.#encode] = [groupsOf(form), symbolsOf(form), encoder(form)];
    if (!this.#hasMemos) this.#make = reporter(form);
  }

  /** Options and their types are in index.d.ts. */
  static async open(form, options = {}) {
    const { storage, budget, timeUnit, windowMs, reportEvery = 1, distinctValues = Infinity } = options;
    const { epsilon, periodMs = DAY, lifetime = Infinity } = budget ?? {};
    require(typeof storage?.update === "function", `storage must have a method update, got ${typeof storage?.update}`);
    for (const [name, number] of Object.entries({ "budget.epsilon": epsilon, "budget.lifetime": lifetime })) {
      require(typeof number === "number" && number > 0, `${name} must be above 0, got ${number}`);
    }
    const known = await checked(form, options);
    const named = known.client_window;
    require(!named || !windowMs, `windowMs must be absent where the form has client_window, got ${windowMs}`);
    const asked = named ?? { milliseconds: windowMs ?? DAY };
    const length = asked.milliseconds;
    for (const [name, number] of Object.entries({ "budget.periodMs": periodMs, windowMs: length, reportEvery, distinctValues })) {
      const whole = Number.isSafeInteger(number) || (name === "distinctValues" && number === Infinity);
      require(whole && number > 0, `${name} must be whole and above 0, got ${number}`);
    }
    require(periodMs % length === 0, `windowMs must divide budget.periodMs, ${periodMs}, got ${length}`);
    const windows = { ...windowsOf(asked), rounded: rounding(known, timeUnit, length) };
    const client = new MemoClient(known, {
      storage, windows, reportEvery, periodMs, limits: { spent: epsilon, ever: lifetime },
      distinct: Math.min(distinctValues, known.num_symbols),
    });
    await client.#begin();
    return client;
  }

  get fingerprint() {
    return this.#form.fingerprint;
  }

  /** The answer for the window of an event, always the same bytes; null if it is not this device's turn. */
  async report(value, eventTime = Date.now(), dimensions) {
    const time = Math.floor(eventTime);
    require(Number.isSafeInteger(time), `eventTime must be whole milliseconds, got ${eventTime}`);
    const group = this.#groupOf(dimensions);
    const make = await this.#maker(value, dimensions, group);
    const answer = await this.#options.storage.update((text) => this.#answer(text, make, time));
    if (answer instanceof Error) throw answer;
    return answer && fromHex(answer);
  }

  /** What makes the message of a time. It throws for a wrong value, and is called where a report is drawn only. */
  async #maker(value, dimensions, group) {
    if (!this.#hasMemos) return (time) => this.#make(value, time, this.#draw, dimensions);
    let symbol;
    try {
      [symbol] = this.#symbols(value, this.#cohort);
    } catch (error) {
      return () => {
        throw error;
      };
    }
    const memo = memoOf(await this.#secretOf(MEMO, symbol), this.#form, symbol);
    const cohort = group * this.#form.num_cohorts + this.#cohort;
    return (time) => this.#encode(cohort, time, repeated(this.#form, memo, this.#draw), this.#draw);
  }

  get #hasMemos() {
    return this.#form.sampler.sampler === "memo";
  }

  /** That of the text, or what the storage's key makes in its place. */
  async #secretOf(purpose, number) {
    return this.#secret ?? toHex(await this.#options.storage.derive(purposeBytes(this.#form, purpose, number)));
  }

  async #begin() {
    const { storage, periodMs, reportEvery } = this.#options;
    const mark = await storage.derive?.(new TextEncoder().encode("uldp-client-key"));
    const key = mark && toHex(mark);
    this.#secret = await storage.update((text) => {
      const own = key ? { key } : { secret: toHex(crypto.getRandomValues(new Uint8Array(32))) };
      const ledgers = { period: null, spent: {}, ever: {}, answers: {} };
      const state = text === null ? { client_state: STATE, ...own, period_ms: periodMs, ...ledgers } : this.#read(text);
      require(state.key === undefined || state.key === key, "the key of the storage must stay, got another one");
      this.#adopt(state);
      return [JSON.stringify(state), state.secret];
    });
    this.#cohort = cohortOf(await this.#secretOf(COHORT, 0), this.#form);
    this.#turn = turnOf(await this.#secretOf(TURN, reportEvery), this.#form, reportEvery);
  }

  #read(text) {
    const state = parsed(text ?? "{}");
    const { periodMs } = this.#options;
    const version = state.client_state;
    require(version === 1 || version === STATE, `client_state in the storage must be 1 or ${STATE}, got ${version}`);
    require(state.key === undefined ? isHex(state.secret) : isHex(state.key) && state.secret === undefined,
      "the secret in the storage must be 64 hexadecimal digits, got another one");
    require(state.period_ms === periodMs, `budget.periodMs must stay as it was, ${state.period_ms}, got ${periodMs}`);
    require(!this.#secret || state.secret === this.#secret, "the secret in the storage must stay, got another one");
    require(isState(state), "the text in the storage must be that of a client, got another one");
    return { ...state, client_state: STATE };
  }

  /** State 1 had an entry for each symbol, under a name: those of this collection become one. */
  #adopt({ spent, ever, secret }) {
    const old = [spent, ever].some((entries) => Object.keys(entries).some((key) => key.length === 32));
    const names = Array.from({ length: old ? (this.#hasMemos ? this.#form.num_symbols : 1) : 0 }, (_, x) => nameOf(secret, this.#form, x));
    for (const entries of [spent, ever]) {
      for (const name of names) {
        if (!Object.hasOwn(entries, name)) continue;
        const [number, cost] = entries[this.fingerprint] ?? [0, 0];
        entries[this.fingerprint] = [number + entries[name][0], cost + entries[name][1]];
        delete entries[name];
      }
      if (names.length && entries[this.fingerprint]) this.#count(entries, 0);
    }
  }

  /** The text to be stored and the message: that of the window if there is one already; or why there is none. */
  #answer(text, make, time) {
    const { windows, periodMs, reportEvery } = this.#options;
    const state = this.#read(text);
    this.#beginPeriod(state, Math.floor(time / periodMs));
    const without = JSON.stringify(state);
    const number = windows.number(time);
    if (number - Math.floor(number / reportEvery) * reportEvery !== this.#turn) return [without, null];
    // days of a place, which a period may begin in, go by their end
    const window = this.#form.client_window?.timezone ? `/${windows.end(time)}` : number;
    const answers = (state.answers[this.fingerprint] ??= {});
    if (answers[window] === undefined) {
      try {
        this.#charge(state);
        answers[window] = toHex(make(windows.rounded(time)));
      } catch (refusal) {
        return [without, refusal];
      }
    }
    return [JSON.stringify(state), answers[window]];
  }

  /** Forgets what was spent and answered in the period before. */
  #beginPeriod(state, period) {
    const latest = state.period ?? period;
    require(period >= latest, `eventTime must not be before the period of an earlier call, got ${latest - period} before it`);
    if (period > latest) {
      state.spent = {};
      for (const [form, answers] of Object.entries(state.answers)) {
        for (const name in answers) if (name[0] !== "/" || name.slice(1) <= period * this.#options.periodMs) delete answers[name];
        if (!Object.keys(answers).length) delete state.answers[form];
      }
    }
    state.period = period;
  }

  /** One report more, in both ledgers. What was reported is not asked for: silence would tell it. */
  #charge(state) {
    for (const [ledger, limit] of Object.entries(this.#options.limits)) {
      const before = total(state[ledger]);
      this.#count(state[ledger], 1);
      const after = total(state[ledger]);
      if (!(after <= limit * (1 + ROUNDING))) {
        const field = ledger === "ever" ? "lifetime" : "epsilon";
        const seen = `${before.toPrecision(4)} of ${limit} spent and a report that adds ${(after - before).toPrecision(4)}`;
        throw new BudgetSpentError(`budget.${field} must not be exceeded, got ${seen}`);
      }
    }
  }

  #count(entries, more) {
    const [number, cost] = entries[this.fingerprint] ?? [0, 0];
    entries[this.fingerprint] = [number + more, Math.max(cost, costOf(this.#form, number + more, this.#options.distinct))];
  }
}

const total = (entries) => Object.values(entries).reduce((sum, [, cost]) => sum + cost, 0);
const isHex = (value) => typeof value === "string" && DIGITS.test(value);

/** Whether the ledgers and answers are what a client has written. */
function isState({ period, spent, ever, answers }) {
  const all = (object, keys, holds) =>
    Object(object) === object && Object.entries(object).every(([key, value]) => keys.test(key) && holds(value));
  const isEntry = (entry) =>
    Array.isArray(entry) && entry.length === 2 && Number.isSafeInteger(entry[0]) && entry[0] > 0 && entry[1] >= 0 && isFinite(entry[1]) && typeof entry[1] === "number";
  const isMessage = (text) => typeof text === "string" && /^02([0-9a-f]{2})+$/.test(text);
  return (
    (period === null || Number.isSafeInteger(period)) &&
    [spent, ever].every((entries) => all(entries, /^([0-9a-f]{32}){1,2}$/, isEntry)) &&
    all(answers, DIGITS, (of) => all(of, /^\/?-?[0-9]+$/, isMessage))
  );
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
