/** From a value to a message. */
import { groupsOf } from "./groups.js";
import { scaled } from "./hashing.js";
import { encoder } from "./message.js";
import { SAMPLERS } from "./samplers.js";
import { symbolsOf } from "./symbols.js";

/** Makes messages about values, from a checked form and a source of uniform 64-bit words. */
export function reporter(form, cachedValues) {
  const { num_cohorts, sampler } = form;
  const [groupOf, symbols, payload, encode] = [groupsOf(form), symbolsOf(form, cachedValues), SAMPLERS[sampler.sampler](form), encoder(form)];
  return (value, eventTime, draw, dimensions) => {
    const group = groupOf(dimensions);
    const cohort = scaled(draw(), num_cohorts);
    return encode(group * num_cohorts + cohort, eventTime, payload(symbols(value, cohort), draw), draw);
  };
}
