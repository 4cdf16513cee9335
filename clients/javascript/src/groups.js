/** The group of a report, from texts for the dimensions of the form: docs/client.md, "Dimensions". */
import { require } from "./errors.js";
import { canonical } from "./hashing.js";

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
