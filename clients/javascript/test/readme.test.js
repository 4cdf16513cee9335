import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const read = (path) => readFileSync(new URL(path, import.meta.url), "utf8");

test("the example of the README sends a report", async () => {
  const [, example] = read("../README.md").match(/```js\n(.*?)```/s);
  const forms = JSON.parse(read("../../../schemas/vectors/collections.json"));
  const form = forms.find(({ name }) => name === "order-krr").client;
  const texts = new Map();
  globalThis.localStorage = {
    get length() {
      return texts.size;
    },
    key: (i) => [...texts.keys()][i],
    getItem: (key) => texts.get(key),
    setItem: (key, text) => texts.set(key, text),
    removeItem: (key) => texts.delete(key),
  };
  const bodies = [];
  globalThis.fetch = async (path, { body } = {}) => {
    if (body) bodies.push(body);
    return { ok: true, json: async () => form };
  };
  const source = example.replace('"uldp-client"', JSON.stringify(new URL("../index.js", import.meta.url).href));
  await import(`data:text/javascript,${encodeURIComponent(source)}`);
  assert.equal(bodies.length, 1);
  assert.equal(Buffer.from(bodies[0].subarray(1, 9)).toString("hex"), form.fingerprint.slice(0, 16));
  assert.equal(texts.size, 0);
});
