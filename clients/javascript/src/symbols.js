/** From a value to its symbols in a cohort: docs/client.md. */
import { require } from "./errors.js";
import { canonical, hashStream, keptStreams, prefixWord, scaled } from "./hashing.js";

/** Each takes the parameters of a rule and gives (canonical value, cohort) -> symbols. */
export const RULES = {
  list({ symbols }) {
    const index = indexIn(symbols);
    return (value) => [index(value)];
  },

  hash({ num_buckets, seed, num_hashes, listed, num_clear_buckets }, numCohorts, cachedValues) {
    const places = placesOf(listed);
    const streamOf = cachedValues ? keptStreams(cachedValues, numCohorts * num_hashes, BigInt(seed)) : (value) => hashStream(value, BigInt(seed));
    return (value, cohort) => {
      const word = streamOf(value);
      if (places.has(value)) return [num_buckets + scaled(word(cohort), num_clear_buckets)];
      return Array.from({ length: num_hashes }, (_, j) => scaled(word(cohort * num_hashes + j), num_buckets));
    };
  },

  hash_within_blocks({ blocks, listed, num_clear_buckets, ...rule }, numCohorts, cachedValues) {
    const clear = (own) => (own.length ? (num_clear_buckets ?? own.length) : 0);
    const [places, ends] = [placesOf(blocks), [0]]; // clear symbols before each block
    for (const own of listed) ends.push(ends.at(-1) + clear(own));
    const member = (own) => ({ ...rule, rule: "hash", listed: own, num_clear_buckets: own.length ? num_clear_buckets : null });
    const members = listed.map((own) => symbolsOf({ symbols: member(own), num_cohorts: numCohorts }, cachedValues));
    return (value, cohort) => {
      const [block, k] = [places.get(value.split("/", 1)[0]), rule.num_buckets];
      require(block !== undefined, `a value must begin with one of the ${blocks.length} blocks of the collection and "/", got another one`);
      return members[block](value, cohort).map((x) => (x < k ? block * k + x : blocks.length * k + ends[block] + x - k));
    };
  },

  prefixes({ num_buckets, seed, tokens, lengths }) {
    const [salt, numbers] = [BigInt(seed), tokenNumbers(tokens)];
    return (value, cohort) => {
      const length = lengths[cohort % lengths.length] ?? Infinity;
      const words = numbers(value)
        .slice(0, length)
        .map((number, position) => prefixWord(salt, position, number, cohort));
      const sum = words.reduce((total, word) => (total + word) % 65536, 0);
      return [Math.floor((sum * num_buckets) / 65536)];
    };
  },

  bins({ edges, others, sensitive }) {
    const symbol = (place) => [sensitive === undefined ? place : symbolOf(place, sensitive)];
    const [inner, places] = [edges.slice(1, -1).map(Number), placesOf(others)];
    return (value) => {
      const other = places.get(value);
      if (other !== undefined) return symbol(edges.length - 1 + other);
      require(/^-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?$/i.test(value), "a value must be a number, or one of `others`, got another one");
      const number = Number(value);
      return symbol(inner.filter((edge) => edge <= number).length);
    };
  },

  permutation({ values, num_buckets, seed, num_hashes = 1, listed = [] }) {
    const [index, salt, words] = [indexIn(values, listed.length), BigInt(seed), new Map()]; // words of all values, by number
    return (value, cohort) => {
      const own = index(value);
      return Array.from({ length: num_hashes }, (_, j) => {
        const at = cohort * num_hashes + j;
        if (!words.has(at)) words.set(at, BigUint64Array.from(values, (other) => hashStream(other, salt)(at)));
        const all = words.get(at);
        return all.filter((word, i) => word < all[own] || (word === all[own] && i < own)).length % num_buckets;
      });
    };
  },
};

/** From a value and a cohort to one symbol, or num_hashes of them. */
export function symbolsOf({ symbols, num_cohorts }, cachedValues) {
  const rule = RULES[symbols.rule](symbols, num_cohorts, cachedValues);
  const text = (value) => (symbols.edges && typeof value === "number" ? String(value) : value);
  const places = placesOf(symbols.num_clear_buckets ? [] : symbols.listed);
  return (value, cohort) => {
    const own = canonical(text(value));
    return places.has(own) ? [symbols.num_buckets + places.get(own)] : rule(own, cohort);
  };
}

/** The longest token, again and again, or a character where none begins; then 0, the end. */
function tokenNumbers(tokens) {
  const numbers = new Map(tokens.map((token, i) => [token, i + 1]));
  const lengths = [...new Set(tokens.map((token) => token.length))].sort((a, b) => b - a);
  return (value) => {
    const found = [];
    for (let at = 0; at < value.length; ) {
      const length = lengths.find((size) => numbers.has(value.slice(at, at + size)) && at + size <= value.length);
      const character = value.codePointAt(at);
      found.push(length === undefined ? tokens.length + 1 + character : numbers.get(value.slice(at, at + length)));
      at += length ?? String.fromCodePoint(character).length;
    }
    return [...found, 0];
  };
}

/** Sensitive places have the first symbols. */
function symbolOf(place, sensitive) {
  const before = sensitive.filter((other) => other < place).length;
  return sensitive.includes(place) ? before : sensitive.length + place - before;
}

/** The first place of each text. */
function placesOf(texts = []) {
  return new Map(texts.map((text, i) => [text, i]).reverse());
}

function indexIn(texts, further = 0) {
  const places = placesOf(texts);
  return (value) => {
    const index = places.get(value);
    require(index !== undefined, `a value must be one of the ${texts.length + further} of the collection, got another one`);
    return index;
  };
}
