/** From a value to a message. */
import { scaled } from "./hashing.js";
import { encode } from "./message.js";
import { SAMPLERS } from "./samplers.js";
import { symbolsOf } from "./symbols.js";

/**
 * @param {any} form a checked client's form
 * @param {string} value
 * @param {number} eventTime milliseconds since 1970 UTC
 * @param {() => bigint} draw gives uniform 64-bit words
 */
export function makeReport(form, value, eventTime, draw) {
  const cohort = scaled(draw(), form.num_cohorts);
  const payload = SAMPLERS[form.sampler.sampler](form, symbolsOf(form, value, cohort), draw);
  const reportId = new DataView(new ArrayBuffer(16));
  reportId.setBigUint64(0, draw(), true);
  reportId.setBigUint64(8, draw(), true);
  return encode({ fingerprint: form.fingerprint, cohort, eventTime, reportId: new Uint8Array(reportId.buffer), payload });
}
