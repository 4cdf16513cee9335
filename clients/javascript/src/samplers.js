/** From symbols to a payload, with integers only: docs/client.md. Words are drawn in the order of that page. */

export const SAMPLERS = {
  symbol(form, [x], draw) {
    const keep = BigInt(form.sampler.keep_weight);
    const word = draw();
    return integer(form, word < keep ? x : Number((word - keep) / BigInt(form.sampler.noise_weight)));
  },

  bits(form, symbols, draw) {
    const { num_sensitive: v, sampler } = form;
    const heads = symbols.map(() => draw() < BigInt(sampler.keep_weight));
    const bits = noise(v, Number(sampler.noise_numerator), draw);
    if (heads[0] && symbols[0] >= v) {
      return bitBytes(form, sampler.noise_in_clear ? bits : bits.fill(0n), symbols[0] - v + 1);
    }
    symbols.forEach((x, j) => {
      if (heads[j] && symbols.indexOf(x) === j) bits[x >> 6] |= 1n << BigInt(x & 63); // of equal symbols the first coin counts
    });
    return bitBytes(form, bits, 0);
  },

  subset(form, [x], draw) {
    const { num_sensitive: v, sampler } = form;
    const heads = draw() < BigInt(sampler.keep_weight);
    const words = new BigUint64Array(v);
    const larger = heads && x < v ? sampler.larger_own_weight : sampler.larger_weight;
    const size = sampler.subset_size + (larger !== undefined && draw() < BigInt(larger) ? 1 : 0);
    let limit;
    do {
      for (let i = 0; i < v; i++) words[i] = draw();
      if (heads && x < v) words[x] = 0n;
      limit = words.slice().sort()[size - 1];
    } while (words.reduce((chosen, word) => chosen + (word <= limit), 0) !== size);
    const bits = new BigUint64Array(Math.ceil(v / 64));
    if (heads && x >= v) return bitBytes(form, bits, x - v + 1);
    words.forEach((word, i) => {
      if (word <= limit) bits[i >> 6] |= 1n << BigInt(i & 63);
    });
    return bitBytes(form, bits, 0);
  },

  column(form, [x], draw) {
    const { num_sensitive: v, sampler } = form;
    const heads = draw() < BigInt(sampler.keep_weight);
    const y = Number(draw() & BigInt(2 * sampler.half - 1));
    if (heads && x >= v) return integer(form, 2 * sampler.half + x - v);
    return integer(form, heads && isOdd((sampler.half + x) & y) ? y ^ sampler.half : y);
  },

  two_stages(form, [x], draw) {
    const [a, b] = [BigInt(form.sampler.noise_weight), BigInt(form.sampler.answer_noise_weight)];
    const [last, word] = [form.num_symbols - 1, draw()];
    const d = BigInt(last);
    if (x === last) return integer(form, word < d * a ? Number(word / a) : last);
    if (word < (d - 1n) * b) return integer(form, (x + 1 + Number(word / b)) % last);
    return integer(form, word < (d - 1n) * b + a ? last : x);
  },

  table(form, [x], draw) {
    let word = draw();
    return integer(form, form.sampler.weights[x].findIndex((weight) => (word -= BigInt(weight)) < 0n));
  },

  wave(form, [x], draw) {
    const { half_width: b, num_others, near_weight, noise_weight } = form.sampler;
    const [near, noise, word] = [BigInt(near_weight), BigInt(noise_weight), draw()];
    const [w, line] = [2 * b + 1, form.num_sensitive - num_others + 2 * b];
    const [own, far] = [x + 2 * b < line ? x : line + w * (x + 2 * b - line), line + w * num_others - w];
    let share = Number(word / noise); // ordered outputs have one share, others w
    if (x >= form.num_sensitive) {
      if (share >= far + w) return integer(form, x + 2 * b); // in clear
    } else if (share < far) share += share < own ? 0 : w;
    else {
      const step = Number((word - BigInt(far) * noise) / near);
      share = own + (step < w ? step : b);
    }
    return integer(form, share < line ? share : line + Math.floor((share - line) / w));
  },
};

/** v bits, each 1 with probability rate / 2^32, 64 at a time. */
function noise(v, rate, draw) {
  const bits = new BigUint64Array(Math.ceil(v / 64));
  for (let digit = 0; digit < 32; digit++) {
    for (let i = 0; i < bits.length; i++) bits[i] = (rate >>> digit) & 1 ? bits[i] | draw() : bits[i] & draw();
  }
  if (v % 64) bits[bits.length - 1] &= (1n << BigInt(v % 64)) - 1n;
  return bits;
}

function isOdd(number) {
  let ones = 0;
  for (let rest = number; rest; rest &= rest - 1) ones++;
  return ones % 2 === 1;
}

/** A payload of the layout `integer`. */
export function integer({ payload }, number) {
  const bytes = new Uint8Array(payload.bytes);
  writeLittleEndian(bytes, number);
  return bytes;
}

function bitBytes({ payload }, bits, clear) {
  const words = new DataView(new ArrayBuffer(8 * bits.length));
  bits.forEach((word, i) => words.setBigUint64(8 * i, word, true));
  const bytes = new Uint8Array(payload.bytes);
  bytes.set(new Uint8Array(words.buffer, 0, payload.bit_bytes));
  writeLittleEndian(bytes.subarray(payload.bit_bytes), clear);
  return bytes;
}

function writeLittleEndian(bytes, number) {
  for (let i = 0; i < bytes.length; i++) bytes[i] = number / 256 ** i;
}
