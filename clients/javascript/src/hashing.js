/** The public hash family: docs/hashing.md. */
import { require } from "./errors.js";
import { keccakP } from "./keccak.js";

const RATE = 168; // bytes of a block of SHAKE-128
const LONG_RATE = 136; // of SHAKE-256
const WORDS = RATE / 8;
const DOMAIN = new TextEncoder().encode("uldp-hash-1\0");
const PREFIX_DOMAIN = new TextEncoder().encode("uldp-prefix-1\0");

/** The form in which values are compared and hashed: NFC, nothing else. @param {string} value */
export function canonical(value) {
  require(typeof value === "string", `a value must be a text, got ${typeof value}`);
  require(!/\p{Surrogate}/u.test(value), "a value must be Unicode text, got one with a lone surrogate");
  return value.normalize("NFC");
}

/** The stream of a canonical value, forwards: (index) -> 64-bit word. */
export function hashStream(value, seed) {
  const text = new TextEncoder().encode(value);
  const message = new Uint8Array(DOMAIN.length + 8 + text.length);
  message.set(DOMAIN);
  new DataView(message.buffer).setBigUint64(DOMAIN.length, seed, true);
  message.set(text, DOMAIN.length + 8);
  return shakeWords(message);
}

/** Streams of which the first words stay in memory, for the latest so many values. */
export function keptStreams(numValues, numWords, seed) {
  const known = new Map();
  return (value) => {
    const stream = known.has(value) ? undefined : hashStream(value, seed);
    const words = known.get(value) ?? BigUint64Array.from({ length: numWords }, (_, index) => stream(index));
    known.delete(value);
    known.set(value, words); // as the latest
    if (known.size > numValues) known.delete(known.keys().next().value);
    return (index) => words[index];
  };
}

/** The 16-bit word of a token, by its number, at a position, in a cohort. */
export function prefixWord(seed, position, number, cohort) {
  const message = new Uint8Array(PREFIX_DOMAIN.length + 16);
  message.set(PREFIX_DOMAIN);
  const view = new DataView(message.buffer, PREFIX_DOMAIN.length);
  view.setBigUint64(0, seed, true);
  view.setUint32(8, position, true);
  view.setUint32(12, number, true);
  return Number((shakeWords(message)(Math.floor(cohort / 4)) >> BigInt(16 * (cohort % 4))) & 0xffffn);
}

/** Words of SHAKE-128 (FIPS 202), bytes 8 index to 8 index + 7, little-endian; no index is below that of the call before. */
function shakeWords(message) {
  const state = absorbed(message, RATE);
  let block = 0;
  return (index) => {
    for (; block < Math.floor(index / WORDS); block++) keccakP(state);
    return lane(state, index % WORDS);
  };
}

/** All words of SHAKE-256, one after the other. */
export function shake256Words(message) {
  const state = absorbed(message, LONG_RATE);
  let at = 0;
  return () => {
    if (at === LONG_RATE / 8) {
      keccakP(state);
      at = 0;
    }
    return lane(state, at++);
  };
}

/** The state after a message, padded for SHAKE, in blocks of so many bytes. */
function absorbed(message, rate) {
  const padded = new Uint8Array(rate * Math.ceil((message.length + 1) / rate));
  padded.set(message);
  padded[message.length] = 0x1f;
  padded[padded.length - 1] |= 0x80;
  const view = new DataView(padded.buffer);
  const state = new Int32Array(50);
  for (let at = 0; at < padded.length; at += rate) {
    for (let i = 0; i < rate / 4; i += 2) {
      const [low, high] = [view.getUint32(at + 4 * i, true), view.getUint32(at + 4 * i + 4, true)];
      for (const odd of [0, 1]) state[i + odd] ^= gathered(low >>> odd) | (gathered(high >>> odd) << 16);
    }
    keccakP(state);
  }
  return state;
}

/** The even bits of 32, together in the low 16. */
function gathered(bits) {
  let even = bits & 0x55555555;
  even = (even | (even >>> 1)) & 0x33333333;
  even = (even | (even >>> 2)) & 0x0f0f0f0f;
  even = (even | (even >>> 4)) & 0x00ff00ff;
  return (even | (even >>> 8)) & 0x0000ffff;
}

/** The low 16 bits, at the even places of 32. */
function spread(bits) {
  let even = bits & 0x0000ffff;
  even = (even | (even << 8)) & 0x00ff00ff;
  even = (even | (even << 4)) & 0x0f0f0f0f;
  even = (even | (even << 2)) & 0x33333333;
  return (even | (even << 1)) & 0x55555555;
}

function lane(state, at) {
  const [even, odd] = [state[2 * at], state[2 * at + 1]];
  const [low, high] = [0, 16].map((half) => (spread(even >>> half) | (spread(odd >>> half) << 1)) >>> 0);
  return (BigInt(high) << 32n) | BigInt(low);
}

/** floor(word bound / 2^64). */
export function scaled(word, bound) {
  return Number((word * BigInt(bound)) >> 64n);
}
