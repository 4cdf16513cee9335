/** From a value to a message. */
import { require } from "./errors.js";
import { canonical, scaled } from "./hashing.js";
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

/** The group: docs/client.md, "Dimensions". */
export function groupsOf({ dimensions = [] }) {
  const names = dimensions.filter(({ set_by }) => !set_by).map(({ name }) => name);
  const sorted = [...names].sort().join();
  return (given) => {
    const right = Object.keys(given ?? {}).sort().join() === sorted;
    require(right, `dimensions must give a text for ${names.join(", ") || "no dimension"}, got ${given ? "others" : "none"}`);
    let group = 0;
    for (const { name, values, set_by } of dimensions) {
      const text = set_by ? "other" : given[name]; // what is set on the way is not known here
      require(typeof text === "string", `dimension ${name} must have a text, got ${typeof text}`);
      const place = values.indexOf(canonical(text));
      group = group * (values.length + 1) + (place < 0 ? values.length : place);
    }
    return group;
  };
}
