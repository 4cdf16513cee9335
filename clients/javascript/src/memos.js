/** Memos: what a device derives from its secret, reports that repeat a memo, and what these cost. docs/client.md, "Memos". */
import { scaled, shake256Words } from "./hashing.js";
import { fromHex, toHex } from "./message.js";
import { SAMPLERS, integer } from "./samplers.js";

const DOMAIN = new TextEncoder().encode("uldp-client-1\0");
export const [COHORT, MEMO, TURN, NAME] = [0, 1, 2, 3];
const TAILS = 2n ** 64n - 1n; // no weight is larger

/** What the words of a purpose follow from, around the secret, which is none where a key takes its place. */
export function purposeBytes({ fingerprint }, purpose, number, secret = "") {
  const end = new DataView(new ArrayBuffer(9));
  end.setUint8(0, purpose);
  end.setBigUint64(1, BigInt(number), true);
  return Uint8Array.of(...DOMAIN, ...fromHex(secret + fingerprint), ...new Uint8Array(end.buffer));
}

/** The words of a purpose. */
const keyed = (secret, form, purpose, number) => shake256Words(purposeBytes(form, purpose, number, secret));

export const cohortOf = (secret, form) => scaled(keyed(secret, form, COHORT, 0)(), form.num_cohorts);

/** The windows that a device answers are those of this number, of each `every` in a row. */
export const turnOf = (secret, form, every) => scaled(keyed(secret, form, TURN, every)(), every);

/** Of a symbol in the ledgers of state 1. */
export function nameOf(secret, form, symbol) {
  const draw = keyed(secret, form, NAME, symbol);
  const view = new DataView(new ArrayBuffer(16));
  for (const at of [0, 8]) view.setBigUint64(at, draw(), true);
  return toHex(new Uint8Array(view.buffer));
}

/** The payload that a device repeats for a symbol. */
export function memoOf(secret, form, symbol) {
  const { memo } = form.sampler;
  return SAMPLERS[memo.sampler]({ ...form, sampler: memo })([symbol], keyed(secret, form, MEMO, symbol));
}

/** The memo or noise. */
export function repeated(form, memo, draw) {
  const { repeat_weight, noise_weight, memo: inner } = form.sampler;
  const [repeat, word] = [BigInt(repeat_weight), draw()];
  if (inner.sampler === "symbol") {
    return word < repeat ? memo : integer(form, Number((word - repeat) / BigInt(noise_weight)));
  }
  let drawn = 0;
  const noise = SAMPLERS[inner.sampler]({ ...form, sampler: inner })([0], () => (drawn++ ? draw() : TAILS));
  return word < repeat ? memo : noise;
}

/** What so many reports of one symbol say together, at most. */
export function epsilonAfter(form, reports) {
  if (form.sampler.sampler !== "memo") return reports * form.epsilon;
  const odds = (weight) => Number(BigInt(weight)) / Number(2n ** 64n - BigInt(weight));
  const { repeat_weight, memo } = form.sampler;
  const first = odds(memo.keep_weight);
  const found = rarest(memo, form).map(([logNoise, factor]) => {
    const log = Math.log(odds(repeat_weight)) - logNoise;
    const growth = reports * (Math.max(log, 0) + Math.log1p(Math.exp(-Math.abs(log))));
    const weight = logNoise - Math.log1p(first) + growth + Math.log(-Math.expm1(-growth));
    return Math.log1p((first * factor) / (1 + Math.exp(-weight)));
  });
  return Math.max(...found);
}

/** What so many reports cost, whatever they say, of a person who has had at most so many symbols. */
export function costOf(form, reports, symbols) {
  const more = reports % symbols;
  const each = (reports - more) / symbols;
  const part = (number, size) => number && number * concave(form, size, reports); // 0 of an infinite cost is 0
  return part(symbols - more, each) + part(more, each + 1);
}

function concave(form, size, reports) {
  const rate = (number) => epsilonAfter(form, number) / number;
  let at = size;
  while (at && at < reports && rate(at + 1) > rate(at)) at++;
  return at && size * rate(at);
}

/** Of the reports whose support differs, the rarest: ln of its probability as noise, and by what support multiplies it. */
function rarest({ sampler, noise_numerator, subset_size: d, larger_weight, larger_own_weight, half }, form) {
  const { num_sensitive: v, num_symbols } = form;
  if (sampler === "symbol") return [[-Math.log(v), v]];
  if (sampler === "column") return [[-Math.log(2 * half), 2]];
  if (sampler === "bits") {
    const psi = Number(noise_numerator) / 2 ** 32;
    const log = (ones) => ones * Math.log(psi) + (v - ones) * Math.log1p(-psi);
    return [[Math.min(log(1), log(v === num_symbols ? v - 1 : v)), 1 / psi]];
  }
  const [larger, own] = [larger_weight ?? 0, larger_own_weight ?? 0].map((weight) => Number(weight) / 2 ** 64);
  const one = [[d, 1 - larger, 1 - own]];
  const sizes = larger ? [...one, [d + 1, larger, own]] : one;
  return sizes.map(([size, share, ofOwn]) => [Math.log(share) - logChoose(v, size), ((ofOwn / share) * v) / size]);
}

function logChoose(n, k) {
  let sum = 0;
  for (let i = 1; i <= k; i++) sum += Math.log((n - k + i) / i);
  return sum;
}
