import { UldpError, require } from "./errors.js";
import { checked } from "./form.js";
import { reporter } from "./report.js";
import { rounding } from "./windows.js";
import { secureWords } from "./words.js";

export { UldpError };

/** Makes the reports of one collection. */
export class Client {
  #fingerprint;
  #make;
  #rounded;
  #draw = secureWords();

  constructor(form, timeUnit, cachedValues) {
    this.#fingerprint = form.fingerprint;
    this.#make = reporter(form, cachedValues);
    this.#rounded = rounding(form, timeUnit);
  }

  /** Options and their types are in index.d.ts. */
  static async open(form, { timeUnit, cachedValues = 0, ...pinned } = {}) {
    const known = await checked(form, pinned);
    require(known.sampler.sampler !== "memo", "Client must be MemoClient for a collection with epsilon_inf, got Client");
    require(Number.isSafeInteger(cachedValues) && cachedValues >= 0, `cachedValues must be whole and at least 0, got ${cachedValues}`);
    return new Client(known, timeUnit, cachedValues);
  }

  get fingerprint() {
    return this.#fingerprint;
  }

  /** One report, as bytes to be stored, and sent until one attempt succeeds. Each call costs epsilon anew. */
  report(value, eventTime = Date.now(), dimensions) {
    return this.#make(value, this.#rounded(eventTime), this.#draw, dimensions);
  }
}
