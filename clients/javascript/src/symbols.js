/** From a value to its symbols in a cohort: docs/client.md. */
import { require } from "./errors.js";
import { canonical, hashWord, scaled } from "./hashing.js";

/** @type {Record<string, (rule: any, value: string, cohort: number) => number[]>} */
export const RULES = {
  list({ symbols }, value) {
    return [indexIn(symbols, value)];
  },

  hash({ num_buckets, seed, num_hashes, listed, num_clear_buckets }, value, cohort) {
    const word = (index) => hashWord(value, BigInt(seed), index);
    const place = listed.indexOf(value);
    if (place >= 0) {
      return [num_buckets + (num_clear_buckets === null ? place : scaled(word(cohort), num_clear_buckets))];
    }
    return Array.from({ length: num_hashes }, (_, j) => scaled(word(cohort * num_hashes + j), num_buckets));
  },

  permutation({ values, num_buckets, seed }, value, cohort) {
    const own = indexIn(values, value);
    const words = values.map((other) => hashWord(other, BigInt(seed), cohort));
    const rank = words.filter((word, i) => word < words[own] || (word === words[own] && i < own)).length;
    return [rank % num_buckets];
  },
};

/**
 * @param {any} form a client's form
 * @param {string} value
 * @param {number} cohort
 * @returns {number[]} one symbol, or num_hashes of them
 */
export function symbolsOf(form, value, cohort) {
  return RULES[form.symbols.rule](form.symbols, canonical(value), cohort);
}

function indexIn(texts, value) {
  const index = texts.indexOf(value);
  require(index >= 0, `a value must be one of the ${texts.length} of the collection, got another one`);
  return index;
}
