/** Windows of clients, and event times: docs/client.md. */
import { require } from "./errors.js";

export const DAY = 86_400_000;
const HOUR = DAY / 24;
const MONDAY = 4 * DAY; // 1970-01-05

/** Numbers, starts and ends of windows of one length, or of days of a place. */
export function windowsOf({ milliseconds, timezone }) {
  const dates = timezone && new Intl.DateTimeFormat("sv", { timeZone: timezone }); // Swedish dates are those of ISO 8601
  const number = (time) => Math.floor((dates ? Date.parse(dates.format(time || 0)) - MONDAY : time) / milliseconds);
  const first = (wanted, high) => {
    if (!dates) return wanted * milliseconds;
    for (let low = high - milliseconds - 2 * DAY; low < high; ) {
      const middle = Math.floor((low + high) / 2);
      if (number(middle) < wanted) low = middle + 1;
      else high = middle;
    }
    return high;
  };
  let [known, begin] = [NaN, NaN]; // the window of the call before: in a time zone, a search is slow
  const start = (time) => {
    const wanted = number(time);
    if (wanted !== known) [known, begin] = [wanted, first(wanted, Math.floor(time))];
    return begin;
  };
  const end = (time) => first(number(time) + 1, time + milliseconds + 2 * DAY);
  return { number, start, end };
}

/**
 * Rounds event times down: to units, to the beginning of the window, or to the hour where the form names none. Never to
 * an earlier window, also where the clocks of a place differ from UTC by a part of the unit.
 */
export function rounding({ client_window }, timeUnit, length = client_window?.milliseconds) {
  const milliseconds = timeUnit ?? (length % HOUR ? length : HOUR);
  require(Number.isSafeInteger(milliseconds) && milliseconds > 0, `timeUnit must be whole and above 0, got ${milliseconds}`);
  require(!(length % milliseconds), `timeUnit must divide the client's window of ${length}, got ${milliseconds}`);
  const [unit, window] = [windowsOf({ milliseconds }), client_window && windowsOf(client_window)];
  if (timeUnit && window) return (time) => Math.max(unit.start(time), window.start(time));
  return (window ?? unit).start;
}
