/** From symbols to a payload, with integers only: docs/client.md. Words are drawn in the order of that page. */

/** Each takes a form and gives (symbols, draw) -> payload. */
export const SAMPLERS = {
  symbol(form) {
    const [keep, noise] = [BigInt(form.sampler.keep_weight), BigInt(form.sampler.noise_weight)];
    return ([x], draw) => {
      const word = draw();
      return integer(form, word < keep ? x : Number((word - keep) / noise));
    };
  },

  bits(form) {
    const { num_sensitive: v, sampler } = form;
    const [keep, rate] = [BigInt(sampler.keep_weight), Number(sampler.noise_numerator)];
    return (symbols, draw) => {
      const heads = symbols.map(() => draw() < keep);
      const bits = noise(v, rate, draw);
      if (heads[0] && symbols[0] >= v) {
        return bitBytes(form, sampler.noise_in_clear ? bits : bits.fill(0n), symbols[0] - v + 1);
      }
      symbols.forEach((x, j) => {
        if (heads[j] && symbols.indexOf(x) === j) bits[x >> 6] |= 1n << BigInt(x & 63); // of equal symbols the first coin counts
      });
      return bitBytes(form, bits, 0);
    };
  },

  subset(form) {
    const { num_sensitive: v, sampler } = form;
    const [keep, larger, own] = [sampler.keep_weight, sampler.larger_weight ?? 0, sampler.larger_own_weight ?? 0].map(BigInt);
    return ([x], draw) => {
      const heads = draw() < keep;
      const words = new BigUint64Array(v);
      const size = sampler.subset_size + (larger && draw() < (heads && x < v ? own : larger) ? 1 : 0);
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
    };
  },

  column(form) {
    const { num_sensitive: v, sampler } = form;
    const [keep, half, last] = [BigInt(sampler.keep_weight), sampler.half, BigInt(2 * sampler.half - 1)];
    return ([x], draw) => {
      const heads = draw() < keep;
      const y = Number(draw() & last);
      if (heads && x >= v) return integer(form, 2 * half + x - v);
      return integer(form, heads && isOdd((half + x) & y) ? y ^ half : y);
    };
  },

  two_stages(form) {
    const [a, b] = [BigInt(form.sampler.noise_weight), BigInt(form.sampler.answer_noise_weight)];
    const last = form.num_symbols - 1;
    const d = BigInt(last);
    return ([x], draw) => {
      const word = draw();
      if (x === last) return integer(form, word < d * a ? Number(word / a) : last);
      if (word < (d - 1n) * b) return integer(form, (x + 1 + Number(word / b)) % last);
      return integer(form, word < (d - 1n) * b + a ? last : x);
    };
  },

  in_clear(form) {
    return ([x]) => integer(form, x);
  },

  within_blocks(form) {
    const { part_of, parts } = form.sampler;
    const draws = parts.map((part) => SAMPLERS[part.sampler.sampler](part));
    const places = []; // symbol -> block, and symbol within the block
    for (const first of [true, false]) {
      part_of.forEach((part, block) => {
        const { num_first: v, num_symbols: k } = parts[part];
        for (let x = first ? 0 : v; x < (first ? v : k); x++) places.push([block, x]);
      });
    }
    return (symbols, draw) => {
      const [block] = places[symbols[0]];
      const bytes = new Uint8Array(form.payload.bytes);
      writeLittleEndian(bytes.subarray(0, form.payload.block_bytes), block);
      const own = symbols.map((symbol) => places[symbol][1]);
      bytes.set(draws[part_of[block]](own, draw), form.payload.block_bytes);
      return bytes;
    };
  },

  table(form) {
    const weights = form.sampler.weights.map((outputs) => outputs.map(BigInt));
    return ([x], draw) => {
      let word = draw();
      return integer(form, weights[x].findIndex((weight) => (word -= weight) < 0n));
    };
  },

  wave(form) {
    const { half_width: b, num_others, near_weight, noise_weight } = form.sampler;
    const [near, noise] = [BigInt(near_weight), BigInt(noise_weight)];
    const [w, line] = [2 * b + 1, form.num_sensitive - num_others + 2 * b];
    const far = line + w * num_others - w;
    return ([x], draw) => {
      const word = draw();
      const own = x + 2 * b < line ? x : line + w * (x + 2 * b - line);
      let share = Number(word / noise); // ordered outputs have one share, others w
      if (x >= form.num_sensitive) {
        if (share >= far + w) return integer(form, x + 2 * b); // in clear
      } else if (share < far) share += share < own ? 0 : w;
      else {
        const step = Number((word - BigInt(far) * noise) / near);
        share = own + (step < w ? step : b);
      }
      return integer(form, share < line ? share : line + Math.floor((share - line) / w));
    };
  },

  nested(form) {
    const { num_sensitive: v, sampler, payload } = form;
    const [members, at = 0] = [sampler.members, payload.bit_bytes];
    const samplers = members.map((sampler) => SAMPLERS[sampler.sampler]({ ...form, num_sensitive: sampler.symbols.length, sampler }));
    return ([x], draw) => {
      let [bytes, number, own] = [];
      members.forEach(({ symbols }, level) => {
        const place = symbols.indexOf(x);
        const drawn = samplers[level]([own ? 0 : place < 0 ? symbols.length : place], draw);
        own ||= place >= 0;
        if (number !== undefined) return;
        bytes = drawn;
        const found = drawn.subarray(at).reduceRight((sum, byte) => 256 * sum + byte, 0);
        if (found < (at ? 1 : symbols.length)) number = at ? level : symbols[found];
      });
      writeLittleEndian(bytes.subarray(at), number ?? (at ? members.length + x - v : x));
      return bytes;
    };
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
  return number.toString(2).split("1").length % 2 === 0;
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
  bytes.set(new Uint8Array(words.buffer).subarray(0, payload.bit_bytes));
  writeLittleEndian(bytes.subarray(payload.bit_bytes), clear);
  return bytes;
}

function writeLittleEndian(bytes, number) {
  for (let i = 0; i < bytes.length; i++) bytes[i] = number / 256 ** i;
}
