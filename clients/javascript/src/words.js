const AT_ONCE = 256;

/** A source of 64-bit words from the platform's secure generator. */
export function secureWords() {
  const words = new BigUint64Array(AT_ONCE);
  let left = 0;
  return () => {
    if (left === 0) {
      crypto.getRandomValues(words);
      left = AT_ONCE;
    }
    left -= 1;
    const word = words[left];
    words[left] = 0n; // a word that was used cannot be read again
    return word;
  };
}
