import { UldpError, require } from "./errors.js";
import { checked } from "./form.js";
import { makeReport } from "./report.js";
import { rounding } from "./windows.js";
import { secureWords } from "./words.js";

export { UldpError };

/** Makes the reports of one collection. */
export class Client {
  #form;
  #rounded;
  #draw = secureWords();

  constructor(form, timeUnit) {
    this.#form = form;
    this.#rounded = rounding(form, timeUnit);
  }

  /** Options and their types are in index.d.ts. */
  static async open(form, { timeUnit, ...pinned } = {}) {
    const known = await checked(form, pinned);
    require(known.sampler.sampler !== "memo", "Client must be MemoClient for a collection with epsilon_inf, got Client");
    return new Client(known, timeUnit);
  }

  get fingerprint() {
    return this.#form.fingerprint;
  }

  /** One report, as bytes to be stored, and sent until one attempt succeeds. Each call costs epsilon anew. */
  report(value, eventTime = Date.now(), dimensions) {
    return makeReport(this.#form, value, this.#rounded(eventTime), this.#draw, dimensions);
  }
}
