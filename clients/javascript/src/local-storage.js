import { UldpError } from "./errors.js";

/** Works with `localStorage`, or what is given for it. Browsers block it (an exception, or null), and it may be full. */
export function inLocal(given, work) {
  try {
    return work(given ?? globalThis.localStorage);
  } catch (error) {
    throw new UldpError(`localStorage must be readable and have space, got ${error.name}`);
  }
}
