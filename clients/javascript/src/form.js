/** The client's form, as it follows from the text that is hashed: docs/client.md. */
import { UldpError, require } from "./errors.js";
import { toHex } from "./message.js";
import { symbolsOf } from "./symbols.js";
import { DAY } from "./windows.js";

const CLIENT_FORM = 1;
const WIRE_VERSION = 1;
const [ALL, SENSITIVE] = [true, false]; // which symbols a mechanism protects

/** Mechanism -> sampler, symbols that it protects. `make golden` writes these lines. */
const MECHANISMS = {
  krr: ["symbol", ALL],
  urr: ["symbol", SENSITIVE],
  rappor: ["bits", ALL],
  urap: ["bits", SENSITIVE],
  ss: ["subset", ALL],
  uss: ["subset", SENSITIVE],
  agrr: ["symbol", ALL],
  aoue: ["bits", ALL],
  tsp: ["two_stages", ALL],
  up: ["symbol", ALL],
  hr: ["column", ALL],
  uhr: ["column", SENSITIVE],
  channel: ["table", ALL],
  sw: ["wave", ALL],
  usw: ["wave", SENSITIVE],
  levels: ["nested", SENSITIVE],
};

/** Alphabet -> rule, K, v. */
const ALPHABETS = {
  closed: (alphabet) => list(alphabet),
  tagged: (alphabet) => list(alphabet),
  hashed({ num_buckets, seed, num_hashes, non_sensitive: listed = [], num_clear_buckets = null }) {
    const rule = { rule: "hash", num_buckets, seed, num_hashes, listed, num_clear_buckets };
    return [rule, num_buckets + (num_clear_buckets ?? listed.length), num_buckets];
  },
  prefixes({ num_buckets, seed, tokens, lengths, non_sensitive: listed = [] }) {
    const rule = { rule: "prefixes", num_buckets, seed, tokens, lengths, listed };
    return [rule, num_buckets + listed.length, num_buckets];
  },
  ordered({ edges, others, sensitive }) {
    const size = edges.length - 1 + others.length;
    return [{ rule: "bins", edges, others, ...(sensitive && { sensitive }) }, size, sensitive?.length ?? size];
  },
  permuted({ values, num_buckets, seed, sensitive = values, num_hashes }) {
    const listed = without(values, sensitive);
    const rule = { rule: "permutation", values: without(values, listed), num_buckets, seed, ...(num_hashes && { num_hashes }) };
    return [{ ...rule, ...(listed.length && { listed }) }, num_buckets + listed.length, num_buckets];
  },
  blocks({ blocks, sensitive, members }) {
    const [rule, sizes] = members ? hashedBlocks(blocks, members) : closedBlocks(blocks, sensitive);
    return [rule, sum(sizes.map(([size]) => size)), sum(sizes.map(([, own]) => own)), sizes];
  },
};

/** Rule, and for each block K and v; sensitive symbols of all blocks come first. */
function closedBlocks(blocks, sensitive) {
  const chosen = new Set(sensitive ?? blocks.flatMap(([, values]) => values));
  const protect = (values) => values.filter((value) => chosen.has(value));
  const values = blocks.flatMap(([, own]) => own);
  const symbols = [...protect(values), ...values.filter((value) => !chosen.has(value))];
  return [{ rule: "list", symbols }, blocks.map(([, own]) => [own.length, protect(own).length])];
}

function hashedBlocks(blocks, { num_buckets, seed, num_hashes, non_sensitive = [], num_clear_buckets = null }) {
  const listed = blocks.map((block) => non_sensitive.filter((value) => value.split("/", 1)[0] === block));
  const rule = { rule: "hash_within_blocks", blocks, listed, num_buckets, seed, num_hashes, num_clear_buckets };
  const clear = (own) => (own.length ? (num_clear_buckets ?? own.length) : 0);
  return [rule, listed.map((own) => [num_buckets + clear(own), num_buckets])];
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}

/** Number of sensitive symbols without a place in the order. */
function numOthers({ edges, others = [], sensitive }) {
  return edges && sensitive ? sensitive.filter((place) => place >= edges.length - 1).length : others.length;
}

function without(values, others) {
  const left = new Set(others);
  return values.filter((value) => !left.has(value));
}

function list({ values, sensitive, tags = [] }) {
  const first = [...(sensitive ?? []), ...tags];
  const symbols = [...first, ...without(values, first)];
  return [{ rule: "list", symbols }, symbols.length, sensitive === null ? symbols.length : first.length];
}

/** Sampler -> its integers. */
const INTEGERS = {
  symbol: ({ keep_weight }, v) => ({ keep_weight, noise_weight: String((2n ** 64n - BigInt(keep_weight)) / BigInt(v)) }),
  bits: ({ keep_weight, noise_rate, inversion }) => ({
    keep_weight,
    noise_numerator: String(times(noise_rate, 2n ** 32n)),
    noise_in_clear: inversion === "marginal",
  }),
  subset({ keep_weight, noise_rate }, v) {
    const [mean, word] = [times(noise_rate, BigInt(v) << 64n), 1n << 64n]; // of the size, times 2^64
    const [d, larger] = [mean / word, mean % word];
    const one = { keep_weight, subset_size: Number(d) };
    return larger ? { ...one, larger_weight: String(larger), larger_own_weight: String(((d + 1n) * larger * word) / mean) } : one;
  },
  column: ({ keep_weight }, v) => ({ keep_weight, half: 2 ** (32 - Math.clz32(v - 1)) }),
  two_stages: ({ noise_weight, answer_noise_weight }) => ({ noise_weight, answer_noise_weight }),
  table: ({ weights }) => ({ weights }),
  nested: ({ members }) => ({ members }),
  wave: ({ half_width, near_weight, noise_weight }, v, num_others) => ({ half_width, near_weight, noise_weight, num_others }),
};

/** The sampler of repeated memos. */
function memoOf(memo, repeat_weight, v) {
  const two = { sampler: "memo", repeat_weight, memo };
  return memo.sampler === "symbol" ? { ...two, noise_weight: String((2n ** 64n - BigInt(repeat_weight)) / BigInt(v)) } : two;
}

/** Sampler and payload of values in blocks of these sizes: a part for each different size. */
function withinBlocks({ parts: weights, ...mechanism }, sizes) {
  const different = [...new Set(sizes.map(String))];
  const parts = different.map((size, i) => {
    const [num_symbols, v] = size.split(",").map(Number);
    const part = drawn({ ...mechanism, ...weights[i] }, num_symbols, v);
    const in_clear = { num_sensitive: 0, sampler: { sampler: "in_clear" }, payload: payloadOf({}, num_symbols, 0) };
    return { num_first: v, ...part, ...(v === 0 && in_clear) };
  });
  const block_bytes = sizes.length <= 256 ? 1 : 2;
  const bytes = block_bytes + Math.max(...parts.map(({ payload }) => payload.bytes));
  const sampler = { sampler: "within_blocks", part_of: sizes.map((size) => different.indexOf(String(size))), parts };
  return { num_sensitive: sum(sizes.map((size, i) => parts[sampler.part_of[i]].num_sensitive)), sampler, payload: { layout: "block", bytes, block_bytes } };
}

/** How the reports of K symbols are drawn, v of them sensitive. */
function drawn(mechanism, num_symbols, v, others = 0) {
  const [name, protects] = MECHANISMS[mechanism.id];
  const num_sensitive = protects === ALL ? num_symbols : (mechanism.num_sensitive ?? v);
  if (!num_sensitive) return { num_symbols };
  const once = { sampler: name, ...INTEGERS[name](mechanism, num_sensitive, others) };
  const sampler = mechanism.epsilon_inf === undefined ? once : memoOf(once, mechanism.repeat_weight, num_sensitive);
  return { num_symbols, num_sensitive, sampler, payload: payloadOf(once, num_symbols, num_sensitive) };
}

/** The client's window from a text such as "1d". */
function windowOf(text, timezone = null) {
  return { milliseconds: parseInt(text) * { m: 60_000, h: DAY / 24, d: DAY, w: 7 * DAY }[text.at(-1)], timezone };
}

/** A fraction such as "1/3" times an integer. */
function times(fraction, factor) {
  const [numerator, denominator = "1"] = fraction.split("/");
  return (BigInt(numerator) * factor) / BigInt(denominator);
}

function payloadOf({ sampler, half, weights, half_width: b = 0, members }, numSymbols, v) {
  if (/bits|subset/.test(members?.[0].sampler ?? sampler)) {
    const sizes = members?.map(({ symbols }) => symbols.length) ?? [v];
    const [bits, last] = [Math.max(...sizes), numSymbols - v + sizes.length - 1];
    const [bit_bytes, clear_bytes] = [bits, Math.log2(last + 1)].map((number) => Math.ceil(number / 8));
    return { layout: "bits", bytes: bit_bytes + clear_bytes, bit_bytes, clear_bytes };
  }
  const num_outputs = half ? 2 * half + numSymbols - v : (weights?.[0].length ?? numSymbols + 2 * b);
  return { layout: "integer", bytes: num_outputs <= 256 ? 1 : num_outputs <= 65536 ? 2 : 4, num_outputs };
}

/** The form without its examples, as it follows from the text that is hashed. */
export function formOf(canonical) {
  // integers that may exceed 2^53 are read as texts; such a key cannot stand in a text, whose quotes are escaped
  const quoted = canonical.replace(/("(?:seed|(?:keep|noise|answer_noise|near|repeat)_weight)":)(\d+)/g, '$1"$2"');
  const { alphabet, id, mechanism, num_cohorts, version, wire_version, client_window: length, client_timezone, dimensions } = JSON.parse(quoted);
  require(wire_version === WIRE_VERSION, `wire_version must be ${WIRE_VERSION}, got ${wire_version}`);
  require(Object.hasOwn(ALPHABETS, alphabet.id), `the alphabet must be one of ${Object.keys(ALPHABETS)}, got ${alphabet.id}`);
  require(
    Object.hasOwn(MECHANISMS, mechanism.id),
    `the mechanism must be one of ${Object.keys(MECHANISMS)}, got ${mechanism.id}`,
  );
  const [symbols, num_symbols, v, sizes] = ALPHABETS[alphabet.id](alphabet);
  const report = sizes ? withinBlocks(mechanism, sizes) : drawn(mechanism, num_symbols, v, numOthers(alphabet));
  const own = { ...(length && { client_window: windowOf(length, client_timezone) }), ...(dimensions && { dimensions }) };
  return { id, version, num_cohorts, num_symbols, symbols, ...report, ...own };
}

/** A copy of the form, if it agrees with itself and is the one that is pinned. */
export async function checked(form, pinned = {}) {
  require(form?.client_form === CLIENT_FORM, `client_form must be ${CLIENT_FORM}, got ${form?.client_form}`);
  require(typeof form.canonical === "string", `canonical must be a text, got ${typeof form.canonical}`);
  require(crypto?.subtle !== undefined, "crypto.subtle must be there (https, or localhost), got none");
  const fingerprint = await sha256(form.canonical);
  const { fingerprint: expected = fingerprint, formFingerprint } = pinned;
  if (formFingerprint !== undefined) {
    const found = await sha256(canonicalJson(form));
    require(formFingerprint === found, `the form must have the form_fingerprint ${formFingerprint}, got ${found}`);
  }
  require(form.fingerprint === fingerprint, `fingerprint must be that of canonical, ${fingerprint}, got ${form.fingerprint}`);
  require(expected === fingerprint, `the collection must have the fingerprint ${expected}, got ${fingerprint}`);
  try {
    return agreeing(form, fingerprint);
  } catch (error) {
    throw error instanceof UldpError ? error : new UldpError("the form must be as client.schema.json says, got another one");
  }
}

function agreeing(form, fingerprint) {
  const follows = formOf(form.canonical);
  for (const [key, value] of Object.entries(follows)) {
    require(same(value, form[key]), `${key} must be what follows from canonical (the value is not shown)`);
  }
  const { client_form, canonical, examples } = form;
  require(same({ ...follows, client_form, fingerprint, canonical, examples }, form), "the form must have its own keys only, got more");
  require(Array.isArray(examples) && examples.length > 0, "examples must be a list of at least one, got none");
  const symbolsIn = symbolsOf(form);
  for (const { value, cohort, symbols } of examples) {
    const known = Number.isInteger(cohort) && cohort >= 0 && cohort < follows.num_cohorts;
    require(known && same(symbolsIn(value, cohort), symbols), "examples must have the symbols of their values, got others");
  }
  const { weights } = follows.sampler;
  return { ...follows, epsilon: weights ? epsilonOf(weights) : Number(JSON.parse(canonical).mechanism.epsilon), fingerprint };
}

/** The epsilon of a declared channel; infinite if an output rules a symbol out. */
function epsilonOf(weights) {
  const rows = weights[0].map((_, y) => weights.map((column) => Number(column[y])));
  return Math.log(Math.max(...rows.map((row) => Math.max(...row) / Math.min(...row))));
}

/** JSON without spaces, with sorted keys: what form_fingerprint is the SHA-256 of. */
export function canonicalJson(value) {
  const ordered = (_, item) =>
    Object(item) !== item || Array.isArray(item) ? item : Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)));
  return JSON.stringify(value, ordered);
}

async function sha256(text) {
  return toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))));
}

/** Whether two JSON values are equal. */
function same(one, other) {
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return one === other;
  const keys = Object.keys(one);
  return keys.length === Object.keys(other).length && keys.every((key) => Object.hasOwn(other, key) && same(one[key], other[key]));
}
