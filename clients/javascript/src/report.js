/** From a value to a message. */
import { scaled } from "./hashing.js";
import { encode } from "./message.js";
import { SAMPLERS } from "./samplers.js";
import { symbolsOf } from "./symbols.js";

/** A message about a value, from a checked form and a source of uniform 64-bit words. */
export function makeReport(form, value, eventTime, draw) {
  const cohort = scaled(draw(), form.num_cohorts);
  return message(form, cohort, eventTime, SAMPLERS[form.sampler.sampler](form, symbolsOf(form, value, cohort), draw), draw);
}

/** The bytes of a report, with a fresh id. */
export function message({ fingerprint }, cohort, eventTime, payload, draw) {
  const reportId = new DataView(new ArrayBuffer(16));
  reportId.setBigUint64(0, draw(), true);
  reportId.setBigUint64(8, draw(), true);
  return encode({ fingerprint, cohort, eventTime, reportId: new Uint8Array(reportId.buffer), payload });
}
