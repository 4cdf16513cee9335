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

/** One 64-bit word of the stream of a canonical value. */
export function hashWord(value, seed, index) {
  const text = new TextEncoder().encode(value);
  const message = new Uint8Array(DOMAIN.length + 8 + text.length);
  message.set(DOMAIN);
  new DataView(message.buffer).setBigUint64(DOMAIN.length, seed, true);
  message.set(text, DOMAIN.length + 8);
  return shakeWord(message, index);
}

/** The 16-bit word of a token, by its number, at a position, in a cohort. */
export function prefixWord(seed, position, number, cohort) {
  const message = new Uint8Array(PREFIX_DOMAIN.length + 16);
  message.set(PREFIX_DOMAIN);
  const view = new DataView(message.buffer, PREFIX_DOMAIN.length);
  view.setBigUint64(0, seed, true);
  view.setUint32(8, position, true);
  view.setUint32(12, number, true);
  return Number((shakeWord(message, Math.floor(cohort / 4)) >> BigInt(16 * (cohort % 4))) & 0xffffn);
}

/** Bytes 8 index to 8 index + 7 of SHAKE-128 (FIPS 202), little-endian. */
function shakeWord(message, index) {
  const state = absorbed(message, RATE);
  for (let block = 0; block < Math.floor(index / WORDS); block++) keccakP(state);
  return lane(state, index % WORDS);
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
  const state = new Uint32Array(50);
  for (let at = 0; at < padded.length; at += rate) {
    for (let i = 0; i < rate / 4; i++) state[i] ^= view.getUint32(at + 4 * i, true);
    keccakP(state);
  }
  return state;
}

function lane(state, at) {
  return (BigInt(state[2 * at + 1]) << 32n) | BigInt(state[2 * at]);
}

/** floor(word bound / 2^64). */
export function scaled(word, bound) {
  return Number((word * BigInt(bound)) >> 64n);
}
