/** From a value to a message. */
import { groupOf } from "./groups.js";
import { scaled } from "./hashing.js";
import { encode } from "./message.js";
import { SAMPLERS } from "./samplers.js";
import { symbolsOf } from "./symbols.js";

/** A message about a value, from a checked form and a source of uniform 64-bit words. */
export function makeReport(form, value, eventTime, draw, dimensions) {
  const group = groupOf(form, dimensions);
  const cohort = scaled(draw(), form.num_cohorts);
  return message(form, group, cohort, eventTime, SAMPLERS[form.sampler.sampler](form, symbolsOf(form, value, cohort), draw), draw);
}

/** The bytes of a report, with a fresh id. */
export function message({ fingerprint, num_cohorts }, group, cohort, eventTime, payload, draw) {
  const reportId = new DataView(new ArrayBuffer(16));
  reportId.setBigUint64(0, draw(), true);
  reportId.setBigUint64(8, draw(), true);
  return encode({ fingerprint, cohort: group * num_cohorts + cohort, eventTime, reportId: new Uint8Array(reportId.buffer), payload });
}
