/**
 * Makes reports for tests of the collector. From standard input a JSON list of {form, values: [[value, how many]],
 * eventTime}, with memos each report of a device of its own; to standard output all messages in order, each after its length in 4 bytes, little-endian.
 */
import { readFileSync, writeSync } from "node:fs";

import { Client, MemoClient, MemoryState } from "../index.js";

const AT_ONCE = 1 << 20; // bytes

let chunk = new Uint8Array(AT_ONCE);
let used = 0;

function flush() {
  for (let at = 0; at < used; ) at += writeSync(1, chunk, at, used - at);
  used = 0;
}

for (const { form, values, eventTime } of JSON.parse(readFileSync(0, "utf8"))) {
  const memos = form.sampler.sampler === "memo";
  const device = () => MemoClient.open(form, { storage: new MemoryState(), budget: { epsilon: 100 } });
  const client = memos ? null : await Client.open(form);
  for (const [value, howMany] of values) {
    for (let i = 0; i < howMany; i++) {
      const message = await (client ?? (await device())).report(value, eventTime);
      if (used + 4 + message.length > AT_ONCE) flush();
      new DataView(chunk.buffer).setUint32(used, message.length, true);
      chunk.set(message, used + 4);
      used += 4 + message.length;
    }
  }
}
flush();
