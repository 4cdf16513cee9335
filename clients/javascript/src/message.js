/** The bytes of a report: docs/wire.md. */
import { require } from "./errors.js";

const FIRST_TIME = Date.UTC(1900, 0, 1);
const END_OF_TIME = Date.UTC(9999, 0, 1);
const [START, ID_BYTES, MOST] = [9, 16, 10]; // bytes before the id, of the id, and of an integer at most
const [SINGLE, BATCH] = [2, 4]; // first bytes of messages

/** Builds the messages of a collection, each with a fresh id: (cohort, eventTime, payload, draw) -> bytes. */
export function encoder({ fingerprint, payload: { bytes: size } }) {
  const bytes = new Uint8Array(START + ID_BYTES + 3 * MOST + size); // of one message after the other
  bytes.set([SINGLE, ...fromHex(fingerprint.slice(0, 16))]);
  const view = new DataView(bytes.buffer);
  return (cohort, eventTime, payload, draw) => {
    const isTime = Number.isInteger(eventTime) && FIRST_TIME <= eventTime && eventTime < END_OF_TIME;
    require(isTime, `eventTime must be whole milliseconds of the years 1900 to 9998, got ${eventTime}`);
    view.setBigUint64(START, draw(), true);
    view.setBigUint64(START + 8, draw(), true);
    let at = START + ID_BYTES;
    for (const number of [eventTime, cohort, size]) at = writeLong(bytes, at, number);
    bytes.set(payload, at);
    return bytes.slice(0, at + size);
  };
}

/** Writes Avro's variable-length integer, at most 2^52 in size, and returns where it ends. */
function writeLong(bytes, at, number) {
  let rest = number < 0 ? -2 * number - 1 : 2 * number;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes[at++] = (rest % 128) | 128;
  bytes[at++] = rest;
  return at;
}

/** One message with the reports of several, which are single ones of one collection; the message itself if it is alone. */
export function packed(messages) {
  if (messages.length === 1) return messages[0];
  const columns = [[], [], [], []]; // cohorts, event times, ids, payloads
  for (const bytes of messages) {
    const rest = { bytes, at: START + ID_BYTES };
    const [eventTime, cohort] = [readLong(rest), readLong(rest)];
    readLong(rest);
    const time = new DataView(new ArrayBuffer(8));
    time.setBigInt64(0, BigInt(eventTime), true);
    columns[0].push(cohort & 255, cohort >> 8);
    columns[1].push(...new Uint8Array(time.buffer));
    columns[2].push(...bytes.subarray(START, START + ID_BYTES));
    columns[3].push(...bytes.subarray(rest.at));
  }
  const out = [BATCH, ...messages[0].subarray(1, START)];
  for (const column of columns) {
    writeLong(out, out.length, column.length);
    out.push(...column);
  }
  return Uint8Array.from(out);
}

function readLong(rest) {
  let [number, factor, byte] = [0, 1, 0];
  do {
    byte = rest.bytes[rest.at++];
    number += (byte & 127) * factor;
    factor *= 128;
  } while (byte > 127);
  return number % 2 ? -(number + 1) / 2 : number / 2;
}

export function fromHex(text) {
  return Uint8Array.from(text.match(/../g) ?? [], (digits) => parseInt(digits, 16));
}

export function toHex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
