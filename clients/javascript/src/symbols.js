/** From a value to its symbols in a cohort: docs/client.md. */
import { require } from "./errors.js";
import { canonical, hashWord, prefixWord, scaled } from "./hashing.js";

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

  prefixes({ num_buckets, seed, tokens, lengths, listed }, value, cohort) {
    const place = listed.indexOf(value);
    if (place >= 0) return [num_buckets + place];
    const length = lengths[cohort % lengths.length] ?? Infinity;
    const words = tokenNumbers(tokens, value)
      .slice(0, length)
      .map((number, position) => prefixWord(BigInt(seed), position, number, cohort));
    const sum = words.reduce((total, word) => (total + word) % 65536, 0);
    return [Math.floor((sum * num_buckets) / 65536)];
  },

  bins({ edges, others, sensitive }, value) {
    const symbol = (place) => [sensitive === undefined ? place : symbolOf(place, sensitive)];
    const other = others.indexOf(value);
    if (other >= 0) return symbol(edges.length - 1 + other);
    require(/^-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?$/i.test(value), "a value must be a number, or one of `others`, got another one");
    return symbol(edges.slice(1, -1).filter((edge) => Number(edge) <= Number(value)).length);
  },

  permutation({ values, num_buckets, seed }, value, cohort) {
    const own = indexIn(values, value);
    const words = values.map((other) => hashWord(other, BigInt(seed), cohort));
    const rank = words.filter((word, i) => word < words[own] || (word === words[own] && i < own)).length;
    return [rank % num_buckets];
  },
};

/** One symbol, or num_hashes of them. */
export function symbolsOf(form, value, cohort) {
  const text = form.symbols.edges && typeof value === "number" ? String(value) : value;
  return RULES[form.symbols.rule](form.symbols, canonical(text), cohort);
}

/** The longest token that fits, again and again; a character where none begins has a number of its own; then the end, 0. */
function tokenNumbers(tokens, value) {
  const numbers = new Map(tokens.map((token, i) => [token, i + 1]));
  const lengths = [...new Set(tokens.map((token) => token.length))].sort((a, b) => b - a);
  const found = [];
  for (let at = 0; at < value.length; ) {
    const length = lengths.find((size) => numbers.has(value.slice(at, at + size)) && at + size <= value.length);
    const character = value.codePointAt(at);
    found.push(length === undefined ? tokens.length + 1 + character : numbers.get(value.slice(at, at + length)));
    at += length ?? String.fromCodePoint(character).length;
  }
  return [...found, 0];
}

/** The sensitive places have the first symbols, in their order, and then all others. */
function symbolOf(place, sensitive) {
  const before = sensitive.filter((other) => other < place).length;
  return sensitive.includes(place) ? before : sensitive.length + place - before;
}

function indexIn(texts, value) {
  const index = texts.indexOf(value);
  require(index >= 0, `a value must be one of the ${texts.length} of the collection, got another one`);
  return index;
}
