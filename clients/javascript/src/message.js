/** The bytes of a report: docs/wire.md. */
import { require } from "./errors.js";

const FIRST_TIME = Date.UTC(1900, 0, 1);
const END_OF_TIME = Date.UTC(9999, 0, 1);

export function encode({ fingerprint, cohort, eventTime, reportId, payload }) {
  const isTime = Number.isInteger(eventTime) && FIRST_TIME <= eventTime && eventTime < END_OF_TIME;
  require(isTime, `eventTime must be whole milliseconds of the years 1900 to 9998, got ${eventTime}`);
  const prefix = fromHex(fingerprint.slice(0, 16));
  return Uint8Array.of(2, ...prefix, ...reportId, ...long(eventTime), ...long(cohort), ...long(payload.length), ...payload);
}

/** Avro's variable-length integer. */
function long(number) {
  const bytes = [];
  let rest = BigInt.asUintN(64, (BigInt(number) << 1n) ^ (BigInt(number) >> 63n));
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  return [...bytes, Number(rest)];
}

export function fromHex(text) {
  return Uint8Array.from(text.match(/../g) ?? [], (digits) => parseInt(digits, 16));
}

export function toHex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
