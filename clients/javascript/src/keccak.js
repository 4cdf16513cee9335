/*! Keccak-p[1600, 24] of noble-hashes - MIT License (c) 2022 Paul Miller (paulmillr.com), LICENSE-noble-hashes says more */
const PI = [];
const ROTL = [];
const IOTA = new Uint32Array(48); // halves of lanes, low ones first
for (let round = 0, R = 1n, x = 1, y = 0; round < 24; round++) {
  // Pi
  [x, y] = [y, (2 * x + 3 * y) % 5];
  PI.push(2 * (5 * y + x));
  // Rotational
  ROTL.push((((round + 1) * (round + 2)) / 2) % 64);
  // Iota
  let t = 0n;
  for (let j = 0; j < 7; j++) {
    R = ((R << 1n) ^ ((R >> 7n) * 0x71n)) % 256n;
    if (R & 2n) t ^= 1n << ((1n << BigInt(j)) - 1n);
  }
  IOTA.set([Number(t & 0xffffffffn), Number(t >> 32n)], 2 * round);
}

// the high half of a lane rotated to the left; beyond 32 bits halves are swapped, and shifts are modulo 32
const rotated = (h, l, s) => (h << s) | (l >>> (32 - s));

/** The permutation, in place. @param {Uint32Array} s 25 lanes as 50 halves, low ones first */
export function keccakP(s) {
  const B = new Uint32Array(5 * 2);
  for (let round = 0; round < 24; round++) {
    // Theta
    for (let x = 0; x < 10; x++) B[x] = s[x] ^ s[x + 10] ^ s[x + 20] ^ s[x + 30] ^ s[x + 40];
    for (let x = 0; x < 10; x += 2) {
      const h = B[(x + 2) % 10];
      const l = B[(x + 3) % 10];
      const Th = rotated(h, l, 1) ^ B[(x + 8) % 10];
      const Tl = rotated(l, h, 1) ^ B[(x + 9) % 10];
      for (let y = 0; y < 50; y += 10) {
        s[x + y] ^= Th;
        s[x + y + 1] ^= Tl;
      }
    }
    // Rho and Pi
    let curH = s[2];
    let curL = s[3];
    for (let t = 0; t < 24; t++) {
      const shift = ROTL[t];
      const h = shift > 32 ? curL : curH;
      const l = shift > 32 ? curH : curL;
      const Th = rotated(h, l, shift);
      const Tl = rotated(l, h, shift);
      const at = PI[t];
      curH = s[at];
      curL = s[at + 1];
      s[at] = Th;
      s[at + 1] = Tl;
    }
    // Chi
    for (let y = 0; y < 50; y += 10) {
      for (let x = 0; x < 10; x++) B[x] = s[y + x];
      for (let x = 0; x < 10; x++) s[y + x] ^= ~B[(x + 2) % 10] & B[(x + 4) % 10];
    }
    // Iota
    s[0] ^= IOTA[2 * round];
    s[1] ^= IOTA[2 * round + 1];
  }
}
