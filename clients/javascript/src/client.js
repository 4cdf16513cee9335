import { UldpError, require } from "./errors.js";
import { checked } from "./form.js";
import { makeReport } from "./report.js";
import { secureWords } from "./words.js";

export { UldpError };

/** Makes the reports of one collection. */
export class Client {
  #form;
  #timeUnit;
  #draw = secureWords();

  /** Use `Client.open`, which checks the form. */
  constructor(form, timeUnit) {
    this.#form = form;
    this.#timeUnit = timeUnit;
  }

  /**
   * @param {object} form what `uldp export` wrote
   * @param {{fingerprint?: string, timeUnit?: number}} [options] `fingerprint`: the one that the collection must have;
   *   `timeUnit`: milliseconds, to whose multiples event times are rounded down
   * @returns {Promise<Client>}
   */
  static async open(form, { fingerprint, timeUnit = 1 } = {}) {
    require(Number.isInteger(timeUnit) && timeUnit > 0, `timeUnit must be whole milliseconds above 0, got ${timeUnit}`);
    return new Client(await checked(form, fingerprint), timeUnit);
  }

  /** 64 hexadecimal digits. */
  get fingerprint() {
    return this.#form.fingerprint;
  }

  /**
   * One report, as bytes to be stored, and sent until one attempt succeeds. Each call costs epsilon anew.
   * @param {string} value
   * @param {number} [eventTime] milliseconds since 1970 UTC
   * @returns {Uint8Array}
   */
  report(value, eventTime = Date.now()) {
    return makeReport(this.#form, value, Math.floor(eventTime / this.#timeUnit) * this.#timeUnit, this.#draw);
  }
}
