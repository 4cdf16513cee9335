/** What is wrong, in one sentence that never repeats a value of a person. */
export class UldpError extends Error {
  name = "UldpError";
}

export function require(holds, sentence) {
  if (!holds) throw new UldpError(sentence);
}
