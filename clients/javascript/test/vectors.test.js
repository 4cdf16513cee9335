import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { FILES, compare } from "./vectors.js";

const FOLDER = new URL("../../../schemas/vectors/", import.meta.url);
const read = () =>
  Object.fromEntries(FILES.map((name) => [name, JSON.parse(readFileSync(new URL(`${name}.json`, FOLDER), "utf8"))]));

test("the client makes what the vectors say", async () => {
  const compared = await compare(read());
  console.log(`${compared} vectors`);
  assert.ok(compared > 1000);
});

const SPOILED = {
  collections: (record) => (record.client.fingerprint = "0".repeat(64)),
  hashes: (record) => (record.word = "0".repeat(16)),
  symbols: (record) => (record.symbols[0] += 1),
  payloads: (record) => (record.payload = `f${record.payload}`),
  reports: (record) => record.words.push("0".repeat(16)),
  costs: (record) => (record.costs[0][2] += 1e-6),
  budgets: (record) => (record.answered[0] = false),
  form_fingerprints: (record) => (record.form_fingerprint = "0".repeat(64)),
  refusals: (_, all) => (all.find(({ refused_by }) => refused_by === "pin").refused_by = "checks"),
  windows: (record) => (record.times[0].end += 1),
  dimensions: (record) => (record.client.dimensions[0].values[0] = "old"),
  batches: (record) => (record.packed = record.packed.replace(/..$/, "ff")),
  memos: (record) => (record.derived[0].memo = "00".repeat(record.derived[0].memo.length / 2)),
};

for (const [name, spoil] of Object.entries(SPOILED)) {
  test(`a difference in ${name} would be found`, async () => {
    const records = read();
    spoil(records[name].at(-1), records[name]);
    await assert.rejects(compare(records));
  });
}
