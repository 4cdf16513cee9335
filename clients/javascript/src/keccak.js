/*! noble-hashes 1.8.0 - MIT License (c) 2022 Paul Miller (paulmillr.com), see LICENSE.noble-hashes. Changed: this is the
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
  let s0 = s[0], s1 = s[1], s2 = s[2], s3 = s[3], s4 = s[4], s5 = s[5], s6 = s[6], s7 = s[7], s8 = s[8], s9 = s[9], s10 = s[10], s11 = s[11], s12 = s[12], s13 = s[13], s14 = s[14], s15 = s[15], s16 = s[16], s17 = s[17], s18 = s[18], s19 = s[19], s20 = s[20], s21 = s[21], s22 = s[22], s23 = s[23], s24 = s[24], s25 = s[25], s26 = s[26], s27 = s[27], s28 = s[28], s29 = s[29], s30 = s[30], s31 = s[31], s32 = s[32], s33 = s[33], s34 = s[34], s35 = s[35], s36 = s[36], s37 = s[37], s38 = s[38], s39 = s[39], s40 = s[40], s41 = s[41], s42 = s[42], s43 = s[43], s44 = s[44], s45 = s[45], s46 = s[46], s47 = s[47], s48 = s[48], s49 = s[49];
  for (let round = 0; round < 48; round += 2) {
    // Theta
    const c0 = s0 ^ s10 ^ s20 ^ s30 ^ s40;
    const c1 = s1 ^ s11 ^ s21 ^ s31 ^ s41;
    const c2 = s2 ^ s12 ^ s22 ^ s32 ^ s42;
    const c3 = s3 ^ s13 ^ s23 ^ s33 ^ s43;
    const c4 = s4 ^ s14 ^ s24 ^ s34 ^ s44;
    const c5 = s5 ^ s15 ^ s25 ^ s35 ^ s45;
    const c6 = s6 ^ s16 ^ s26 ^ s36 ^ s46;
    const c7 = s7 ^ s17 ^ s27 ^ s37 ^ s47;
    const c8 = s8 ^ s18 ^ s28 ^ s38 ^ s48;
    const c9 = s9 ^ s19 ^ s29 ^ s39 ^ s49;
    const d0 = c8 ^ turned(c3, 1);
    const d1 = c9 ^ c2;
    const d2 = c0 ^ turned(c5, 1);
    const d3 = c1 ^ c4;
    const d4 = c2 ^ turned(c7, 1);
    const d5 = c3 ^ c6;
    const d6 = c4 ^ turned(c9, 1);
    const d7 = c5 ^ c8;
    const d8 = c6 ^ turned(c1, 1);
    const d9 = c7 ^ c0;
    // Rho and Pi, of what Theta gives
    const b0 = s0 ^ d0;
    const b1 = s1 ^ d1;
    const b2 = turned(s12 ^ d2, 22);
    const b3 = turned(s13 ^ d3, 22);
    const b4 = turned(s25 ^ d5, 22);
    const b5 = turned(s24 ^ d4, 21);
    const b6 = turned(s37 ^ d7, 11);
    const b7 = turned(s36 ^ d6, 10);
    const b8 = turned(s48 ^ d8, 7);
    const b9 = turned(s49 ^ d9, 7);
    const b10 = turned(s6 ^ d6, 14);
    const b11 = turned(s7 ^ d7, 14);
    const b12 = turned(s18 ^ d8, 10);
    const b13 = turned(s19 ^ d9, 10);
    const b14 = turned(s21 ^ d1, 2);
    const b15 = turned(s20 ^ d0, 1);
    const b16 = turned(s33 ^ d3, 23);
    const b17 = turned(s32 ^ d2, 22);
    const b18 = turned(s45 ^ d5, 31);
    const b19 = turned(s44 ^ d4, 30);
    const b20 = turned(s3 ^ d3, 1);
    const b21 = s2 ^ d2;
    const b22 = turned(s14 ^ d4, 3);
    const b23 = turned(s15 ^ d5, 3);
    const b24 = turned(s27 ^ d7, 13);
    const b25 = turned(s26 ^ d6, 12);
    const b26 = turned(s38 ^ d8, 4);
    const b27 = turned(s39 ^ d9, 4);
    const b28 = turned(s40 ^ d0, 9);
    const b29 = turned(s41 ^ d1, 9);
    const b30 = turned(s9 ^ d9, 14);
    const b31 = turned(s8 ^ d8, 13);
    const b32 = turned(s10 ^ d0, 18);
    const b33 = turned(s11 ^ d1, 18);
    const b34 = turned(s22 ^ d2, 5);
    const b35 = turned(s23 ^ d3, 5);
    const b36 = turned(s35 ^ d5, 8);
    const b37 = turned(s34 ^ d4, 7);
    const b38 = turned(s46 ^ d6, 28);
    const b39 = turned(s47 ^ d7, 28);
    const b40 = turned(s4 ^ d4, 31);
    const b41 = turned(s5 ^ d5, 31);
    const b42 = turned(s17 ^ d7, 28);
    const b43 = turned(s16 ^ d6, 27);
    const b44 = turned(s29 ^ d9, 20);
    const b45 = turned(s28 ^ d8, 19);
    const b46 = turned(s31 ^ d1, 21);
    const b47 = turned(s30 ^ d0, 20);
    const b48 = turned(s42 ^ d2, 1);
    const b49 = turned(s43 ^ d3, 1);
    // Chi
    s0 = b0 ^ (~b2 & b4);
    s1 = b1 ^ (~b3 & b5);
    s2 = b2 ^ (~b4 & b6);
    s3 = b3 ^ (~b5 & b7);
    s4 = b4 ^ (~b6 & b8);
    s5 = b5 ^ (~b7 & b9);
    s6 = b6 ^ (~b8 & b0);
    s7 = b7 ^ (~b9 & b1);
    s8 = b8 ^ (~b0 & b2);
    s9 = b9 ^ (~b1 & b3);
    s10 = b10 ^ (~b12 & b14);
    s11 = b11 ^ (~b13 & b15);
    s12 = b12 ^ (~b14 & b16);
    s13 = b13 ^ (~b15 & b17);
    s14 = b14 ^ (~b16 & b18);
    s15 = b15 ^ (~b17 & b19);
    s16 = b16 ^ (~b18 & b10);
    s17 = b17 ^ (~b19 & b11);
    s18 = b18 ^ (~b10 & b12);
    s19 = b19 ^ (~b11 & b13);
    s20 = b20 ^ (~b22 & b24);
    s21 = b21 ^ (~b23 & b25);
    s22 = b22 ^ (~b24 & b26);
    s23 = b23 ^ (~b25 & b27);
    s24 = b24 ^ (~b26 & b28);
    s25 = b25 ^ (~b27 & b29);
    s26 = b26 ^ (~b28 & b20);
    s27 = b27 ^ (~b29 & b21);
    s28 = b28 ^ (~b20 & b22);
    s29 = b29 ^ (~b21 & b23);
    s30 = b30 ^ (~b32 & b34);
    s31 = b31 ^ (~b33 & b35);
    s32 = b32 ^ (~b34 & b36);
    s33 = b33 ^ (~b35 & b37);
    s34 = b34 ^ (~b36 & b38);
    s35 = b35 ^ (~b37 & b39);
    s36 = b36 ^ (~b38 & b30);
    s37 = b37 ^ (~b39 & b31);
    s38 = b38 ^ (~b30 & b32);
    s39 = b39 ^ (~b31 & b33);
    s40 = b40 ^ (~b42 & b44);
    s41 = b41 ^ (~b43 & b45);
    s42 = b42 ^ (~b44 & b46);
    s43 = b43 ^ (~b45 & b47);
    s44 = b44 ^ (~b46 & b48);
    s45 = b45 ^ (~b47 & b49);
    s46 = b46 ^ (~b48 & b40);
    s47 = b47 ^ (~b49 & b41);
    s48 = b48 ^ (~b40 & b42);
    s49 = b49 ^ (~b41 & b43);
    // Iota
    s0 ^= IOTA[round];
    s1 ^= IOTA[round + 1];
  }
  s[0] = s0;
  s[1] = s1;
  s[2] = s2;
  s[3] = s3;
  s[4] = s4;
  s[5] = s5;
  s[6] = s6;
  s[7] = s7;
  s[8] = s8;
  s[9] = s9;
  s[10] = s10;
  s[11] = s11;
  s[12] = s12;
  s[13] = s13;
  s[14] = s14;
  s[15] = s15;
  s[16] = s16;
  s[17] = s17;
  s[18] = s18;
  s[19] = s19;
  s[20] = s20;
  s[21] = s21;
  s[22] = s22;
  s[23] = s23;
  s[24] = s24;
  s[25] = s25;
  s[26] = s26;
  s[27] = s27;
  s[28] = s28;
  s[29] = s29;
  s[30] = s30;
  s[31] = s31;
  s[32] = s32;
  s[33] = s33;
  s[34] = s34;
  s[35] = s35;
  s[36] = s36;
  s[37] = s37;
  s[38] = s38;
  s[39] = s39;
  s[40] = s40;
  s[41] = s41;
  s[42] = s42;
  s[43] = s43;
  s[44] = s44;
  s[45] = s45;
  s[46] = s46;
  s[47] = s47;
  s[48] = s48;
  s[49] = s49;
}
