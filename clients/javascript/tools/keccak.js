/** Writes out a round of Keccak-p[1600, 24] for src/keccak.js: `node tools/keccak.js > src/keccak.js`. */

/** Where the lane at 0 to 24 comes from, and by how much it is rotated (rho and pi). */
const sources = [[0, 0]];
for (let step = 0, from = 1, x = 1, y = 0; step < 24; step++) {
  [x, y] = [y, (2 * x + 3 * y) % 5];
  sources[5 * y + x] = [from, (((step + 1) * (step + 2)) / 2) % 64];
  from = 5 * y + x;
}

const list = (number, of) => Array.from({ length: number }, (_, i) => of(i));
const lines = (number, of) => list(number, of).join("\n");
const turned = (half, by) => (by % 32 ? `turned(${half}, ${by % 32})` : half);

/** The even or odd bits of a lane that is rotated. */
function rotated(lane, by, odd, half) {
  return turned(half(2 * lane + ((odd + by) % 2)), (by + (by % 2) * (odd ? -1 : 1)) / 2);
}

const parity = (i) => `    const c${i} = ${list(5, (y) => `s${i + 10 * y}`).join(" ^ ")};`;
const between = (i) => `    const d${i} = c${(i + 8) % 10} ^ ${rotated(((i >> 1) + 1) % 5, 1, i % 2, (half) => `c${half}`)};`;
const rho = (i) => `    const b${i} = ${rotated(...sources[i >> 1], i % 2, (half) => `s${half} ^ d${half % 10}`)};`;
const chi = (i) => {
  const [row, at] = [i - (i % 10), i % 10];
  return `    s${i} = b${i} ^ (~b${row + ((at + 2) % 10)} & b${row + ((at + 4) % 10)});`;
};

console.log(`/*! noble-hashes 1.8.0 - MIT License (c) 2022 Paul Miller (paulmillr.com), see LICENSE.noble-hashes. Changed: this is the
 * permutation Keccak-p[1600, 24] of sha3.js, with a round written out by tools/keccak.js. */

/** Of each round, the even and the odd bits of its constant. */
const IOTA = new Int32Array(48);
for (let round = 0, R = 1; round < 24; round++) {
  for (let j = 0; j < 7; j++) {
    const bit = 2 ** j - 1;
    R = ((R << 1) ^ ((R >> 7) * 0x71)) % 256;
    if (R & 2) IOTA[2 * round + (bit % 2)] ^= 1 << (bit >> 1);
  }
}

const turned = (half, by) => (half << by) | (half >>> (32 - by));

/** The permutation, in place. @param {Int32Array} s 25 lanes: of each its even bits, then its odd ones */
export function keccakP(s) {
  let ${list(50, (i) => `s${i} = s[${i}]`).join(", ")};
  for (let round = 0; round < 48; round += 2) {
    // Theta
${lines(10, parity)}
${lines(10, between)}
    // Rho and Pi, of what Theta gives
${lines(50, rho)}
    // Chi
${lines(50, chi)}
    // Iota
    s0 ^= IOTA[round];
    s1 ^= IOTA[round + 1];
  }
${lines(50, (i) => `  s[${i}] = s${i};`)}
}`);
