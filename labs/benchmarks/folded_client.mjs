/**
 * CPU seconds of a report in Node, nearly each in a cohort of its own.
 * node folded_client.mjs CLIENT < JSON list of {name, form, values, reports}; to standard output {name: seconds}.
 */
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { Client } = await import(pathToFileURL(`${process.argv[2]}/index.js`));
const found = {};
for (const { name, form, values, reports } of JSON.parse(readFileSync(0, "utf8"))) {
  const client = await Client.open(form);
  for (const value of values.slice(0, reports / 10)) client.report(value);
  const begin = process.cpuUsage();
  for (let number = 0; number < reports; number++) client.report(values[number % values.length]);
  const { user, system } = process.cpuUsage(begin);
  found[name] = (user + system) / 1e6 / reports;
}
console.log(JSON.stringify(found));
