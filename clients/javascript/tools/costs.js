/** For tests of the collector: from a JSON list of [form, reports], a JSON list of what so many reports say. */
import { readFileSync } from "node:fs";

import { checked } from "../src/form.js";
import { epsilonAfter } from "../src/memos.js";

const costs = [];
for (const [form, reports] of JSON.parse(readFileSync(0, "utf8"))) costs.push(epsilonAfter(await checked(form), reports));
console.log(JSON.stringify(costs));
