/**
 * Reports per second of CPU time of the JavaScript client, beside k-RR that is written out for one collection.
 * node javascript_rates.mjs CLIENT < JSON list of {name, form, values, options}; to standard output {name: rate}.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const { Client } = await import(pathToFileURL(`${process.argv[2]}/index.js`));
const [SECONDS, ROUNDS] = [0.3, 5];

/** k-RR of a list of values without cohorts, as an app would write it: the same bytes from the same words. */
function handWritten({ canonical, fingerprint, num_symbols, symbols: { symbols }, sampler, payload }) {
  assert.equal(JSON.parse(canonical).mechanism.id, "krr");
  const places = new Map(symbols.map((value, place) => [value, place]));
  const [keep, noise] = [BigInt(sampler.keep_weight), BigInt(sampler.noise_weight)];
  const head = Uint8Array.from([2, ...Buffer.from(fingerprint.slice(0, 16), "hex")]);
  const words = new BigUint64Array(64);
  let left = 0;
  const draw = () => {
    if (left === 0) {
      crypto.getRandomValues(words);
      left = words.length;
    }
    const word = words[--left];
    words[left] = 0n;
    return word;
  };
  return (value) => {
    const place = places.get(value.normalize("NFC"));
    if (place === undefined) throw new Error("another value");
    draw(); // the cohort
    const word = draw();
    const symbol = word < keep ? place : Number((word - keep) / noise);
    assert.ok(symbol < num_symbols);
    const bytes = new Uint8Array(33 + payload.bytes);
    bytes.set(head);
    const view = new DataView(bytes.buffer);
    view.setBigUint64(9, draw(), true);
    view.setBigUint64(17, draw(), true);
    let at = 25;
    let time = 2 * (Math.floor(Date.now() / 3_600_000) * 3_600_000);
    for (; time > 127; time = Math.floor(time / 128)) bytes[at++] = (time % 128) | 128;
    bytes[at++] = time;
    bytes[at++] = 0;
    bytes[at++] = 2 * payload.bytes;
    for (let i = 0; i < payload.bytes; i++) bytes[at++] = symbol >> (8 * i);
    assert.equal(at, bytes.length);
    return bytes;
  };
}

function rate(report, values) {
  const begin = process.cpuUsage();
  for (let number = 1; ; number++) {
    report(values[number % values.length]);
    if (number % 100) continue;
    const { user, system } = process.cpuUsage(begin);
    if (user + system > SECONDS * 1e6) return number / ((user + system) / 1e6);
  }
}

const kinds = [];
for (const { name, form, values, options } of JSON.parse(readFileSync(0, "utf8"))) {
  const client = await Client.open(form, options);
  kinds.push([name, (value) => client.report(value), values]);
  if (name.startsWith("k-RR")) kinds.push([`${name}, written by hand`, handWritten(form), values]);
}
const best = {};
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, report, values] of kinds) best[name] = Math.max(best[name] ?? 0, rate(report, values));
}
console.log(JSON.stringify(best));
