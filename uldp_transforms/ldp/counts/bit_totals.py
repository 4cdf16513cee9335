"""Counts bits per position and group, many reports at once.

Adding bits one by one touches 64 numbers for each 64-bit word. Instead, the reports of a group are arranged in lanes,
and full adders built from whole-word operations add the lanes vertically: three words of weight w become one of weight
w and one of weight 2w, for all 64 positions at once (carry-save addition; Harley and Seal). Of 127 lanes 7 words
remain, which are unpacked and added per group.
"""

from __future__ import annotations

import numpy as np

_LANES = 127  # one less than a power of two: each step adds three words, and none two
_CHUNK_BYTES = 2_097_152
_CHUNK_ROWS = 65_535  # sums of a chunk fit into 16 bits
_FEW_BITS = 16_384  # up to this number, adding bit by bit is faster than filling lanes
_BLOCK_BITS = 1_048_576  # unpacked at once: fewer rows than the 2**24 that single precision counts


def count_bits(payloads: np.ndarray, num_bits: int, groups: np.ndarray, num_groups: int) -> np.ndarray:
    """Number of rows with each bit set, by group.

    Args:
        payloads: (n, ceil(num_bits / 8)) uint8; bit j is bit ``j % 8``, least significant first, of byte ``j // 8``;
            spare bits must be 0.
        num_bits: bits per row.
        groups: (n,) integers in [0, num_groups).
        num_groups: number of rows of the result.

    Returns:
        (num_groups, num_bits) int64.
    """
    if len(payloads) * num_bits <= _FEW_BITS:
        rows, bits = np.nonzero(np.unpackbits(payloads, axis=1, count=num_bits, bitorder="little"))
        places = groups[rows].astype(np.int64) * num_bits + bits
        return np.bincount(places, minlength=num_groups * num_bits).reshape(num_groups, num_bits)
    num_words = -(-num_bits // 64)
    totals = np.zeros((num_groups, 64 * num_words), dtype=np.int64)
    order = None
    sizes = np.array([len(payloads)])
    if num_groups > 1:
        groups = groups.astype(np.min_scalar_type(num_groups))  # NumPy sorts 8-bit and 16-bit integers by radix
        order = np.argsort(groups, kind="stable")
        sizes = np.bincount(groups, minlength=num_groups)
    present = np.flatnonzero(sizes)
    ends = np.cumsum(sizes[present])
    most_rows = min(_at_once(8 * num_words), _CHUNK_ROWS)
    most_groups = _at_once(2 * num_words * _LANES)  # a quarter of its bytes; each fills a row of lanes
    begin = 0
    while begin < len(payloads):
        first = int(np.searchsorted(ends, begin, side="right"))
        end = min(begin + most_rows, int(ends[min(first + most_groups, len(ends)) - 1]))
        here = slice(first, int(np.searchsorted(ends, end, side="left")) + 1)
        in_chunk = np.diff(np.minimum(ends[here], end), prepend=begin)
        rows = payloads[begin:end] if order is None else np.take(payloads, order[begin:end], axis=0)
        totals[present[here]] += _count_sorted(rows, num_words, in_chunk)
        begin = end
    return totals[:, :num_bits]


def count_ones(payloads: np.ndarray) -> np.ndarray:
    """Number of bits (n,) set in each row of (n, W) uint8."""
    if payloads.shape[1] % 8 == 0 and payloads.flags.c_contiguous:
        payloads = payloads.view(np.uint64)
    ones: np.ndarray = np.bitwise_count(payloads).sum(axis=1, dtype=np.int64)
    return ones


def count_weights(payloads: np.ndarray, num_bits: int, groups: np.ndarray, num_groups: int) -> np.ndarray:
    """Number of rows with 0, 1, ..., num_bits bits set, by group.

    Args:
        payloads, num_bits, groups, num_groups: as for ``count_bits``.

    Returns:
        (num_groups, num_bits + 1) int64.
    """
    places = groups.astype(np.int64) * (num_bits + 1)
    places += count_ones(payloads)
    return np.bincount(places, minlength=num_groups * (num_bits + 1)).reshape(num_groups, num_bits + 1)


def count_pairs(payloads: np.ndarray, num_bits: int, groups: np.ndarray, num_groups: int) -> np.ndarray:
    """Number of rows with both bits set, by group and pair of bits.

    Args:
        payloads, num_bits, groups, num_groups: as for ``count_bits``.

    Returns:
        (num_groups, num_bits (num_bits - 1) / 2) int64; the pairs (0, 1), (0, 2), ..., (1, 2), ...
    """
    pairs = np.triu_indices(num_bits, 1)
    totals = np.zeros((num_groups, len(pairs[0])), dtype=np.int64)
    groups = groups.astype(np.min_scalar_type(num_groups))  # NumPy sorts 8-bit and 16-bit integers by radix
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups, minlength=num_groups)
    ends, step = np.cumsum(sizes), max(1, _BLOCK_BITS // num_bits)
    for group in np.flatnonzero(sizes).tolist():
        own = order[ends[group] - sizes[group] : ends[group]]
        for begin in range(0, len(own), step):
            rows = np.take(payloads, own[begin : begin + step], axis=0)
            bits = np.unpackbits(rows, axis=1, count=num_bits, bitorder="little").astype(np.float32)
            totals[group] += (bits.T @ bits)[pairs].astype(np.int64)
    return totals


def _at_once(num_bytes: int) -> int:
    """Number of items of this size that are worked on together."""
    return max(1, _CHUNK_BYTES // num_bytes)


def _count_sorted(rows: np.ndarray, num_words: int, sizes: np.ndarray) -> np.ndarray:
    """Bit counts (G, 64 * num_words) uint16 of rows that are sorted by group, sizes[g] >= 1 rows each."""
    blocks = -(-sizes // _LANES)
    first_block = np.cumsum(blocks) - blocks
    num_blocks = int(blocks.sum()) | 1  # odd: lanes a power of two apart would share cache lines
    slots = np.zeros((_LANES * num_blocks, 8 * num_words), dtype=np.uint8)
    if len(sizes) == 1:  # any place is one of the group
        slots[: len(rows), : rows.shape[1]] = rows
    else:
        _put_into_lanes(slots, rows, sizes, first_block, num_blocks)
    planes = _add_vertically(slots.view("<u8").reshape(_LANES, num_blocks * num_words))
    of_blocks = np.zeros((num_blocks, 64 * num_words), dtype=np.uint8)
    for plane in reversed(planes):
        digits = np.unpackbits(plane.view(np.uint8), bitorder="little")
        of_blocks += of_blocks
        of_blocks += digits.reshape(of_blocks.shape)
    four = of_blocks.astype("<u2").view("<u8")  # four sums of 16 bits in a word
    counts: np.ndarray = np.add.reduceat(four, first_block, axis=0).view("<u2")
    return counts


def _put_into_lanes(
    slots: np.ndarray, rows: np.ndarray, sizes: np.ndarray, first_block: np.ndarray, num_blocks: int
) -> None:
    """Spread the rows of each group over the lanes of its blocks."""
    rank = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes - first_block * _LANES, sizes)
    block, lane = np.divmod(rank, _LANES)
    where = lane * num_blocks + block
    if rows.shape[1] == slots.shape[1]:  # whole words: move each row as one item
        item = f"V{rows.shape[1]}"
        slots.view(item)[where, 0] = rows.view(item)[:, 0]
    else:
        slots[where, : rows.shape[1]] = rows


def _add_vertically(stack: np.ndarray) -> list[np.ndarray]:
    """Binary digits of the column sums of single-bit lanes: planes[w] contains the digits of weight 2**w.

    Args:
        stack: (lanes, N) uint64, one less than a power of two; overwritten.
    """
    planes = []
    while len(stack):
        carries = np.empty((len(stack) // 2, stack.shape[1]), dtype=np.uint64)
        made = 0
        while len(stack) > 1:
            k = len(stack) // 3
            a, b, c = stack[:k], stack[k : 2 * k], stack[2 * k : 3 * k]
            carry = carries[made : made + k]
            made += k
            np.bitwise_and(a, b, out=carry)
            np.bitwise_xor(a, b, out=a)
            np.bitwise_and(a, c, out=b)
            np.bitwise_or(carry, b, out=carry)
            np.bitwise_xor(a, c, out=a)
            rest = len(stack) - 3 * k
            stack[k : k + rest] = stack[3 * k :]
            stack = stack[: k + rest]
        planes.append(stack[0])
        stack = carries
    return planes
