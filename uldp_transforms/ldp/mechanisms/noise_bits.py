"""Noise bits of unary reports: one report at a time from a fixed number of words, many reports from tables of patterns.

Both draw independent bits, each 1 with probability exactly ``numerator / 2**BIT_PLANES``. A single report, and so every
report and memo of a client, takes ``bernoulli_planes``: its words are specified, and their number does not depend on
what is drawn. A batch takes a table: the next 8 or 16 bits of a report are one of 2**8 or 2**16 patterns, found from a
random fraction by inversion. Sixteen digits of the fraction nearly always decide, and otherwise further digits do.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_right
from itertools import accumulate

import numpy as np

from uldp_transforms.ldp.sampling import BIT_PLANES, WordSource, bernoulli_planes

MANY_REPORTS = 1_000
"""Number of reports from which a table is used."""

_RARE = 0.05  # largest rate for which sixteen digits nearly always decide wide patterns
_CELLS = 65_536
_TAIL = 4_096  # patterns with a joint probability below 1 / _TAIL are not in the table
_PIECES_AT_ONCE = 131_072


def noise_bits(source: WordSource, num_rows: int, num_bits: int, numerator: int) -> np.ndarray:
    """``bernoulli_planes`` of few reports, and the same distribution from fewer words for many.

    Args:
        source, num_rows, num_bits, numerator: as for ``bernoulli_planes``.

    Returns:
        As ``bernoulli_planes``.
    """
    if num_rows < MANY_REPORTS:
        return bernoulli_planes(source, num_rows, num_bits, numerator)
    rate = numerator / (1 << BIT_PLANES)
    return pattern_table(numerator, 16 if min(rate, 1 - rate) <= _RARE else 8).draw(source, num_rows, num_bits)


class PatternTable:
    """Patterns of ``width`` independent bits, by inversion of a random fraction u in [0, 1).

    Patterns are laid out on [0, 1), the likeliest first; each has an interval as long as its probability. A cell is one
    of 2**16 equal parts of [0, 1): nearly all of them lie inside one interval, which the table names.

    Args:
        numerator: as for ``bernoulli_planes``.
        width: 8 or 16 bits.
    """

    def __init__(self, numerator: int, width: int):
        self.width = width
        self.digits = BIT_PLANES * width
        """Binary digits of the ends of all intervals: u is an integer below ``2**digits``."""
        whole = 1 << BIT_PLANES
        rare = min(numerator, whole - numerator)
        patterns = np.arange(1 << width, dtype=np.uint16)
        order = patterns[np.argsort(np.bitwise_count(patterns), kind="stable")]
        self._order = order if rare == numerator else ~order & np.uint16((1 << width) - 1)
        sizes = [math.comb(width, ones) for ones in range(width + 1)]
        self._lengths = [rare**ones * (whole - rare) ** (width - ones) for ones in range(len(sizes))]
        self._firsts = [0, *accumulate(sizes)]
        self._starts = [0, *accumulate(size * length for size, length in zip(sizes, self._lengths))]
        self._build()

    def _build(self) -> None:
        """Fill in the cells, and the starts of the intervals that share a cell, for all but the rarest patterns."""
        shift, starts, end_of_all = self.digits - 16, [0], 1 << self.digits
        for length, begin, end in zip(self._lengths, self._starts, self._starts[1:]):
            starts += range(begin + length, end + 1, length)
            if (end_of_all - end) * _TAIL < end_of_all:
                break
        first_cells = np.array([-(-start >> shift) for start in starts])
        last_cells = np.array([start >> shift for start in starts[1:]])
        sure = np.repeat(self._order[: len(starts) - 1], np.maximum(last_cells - first_cells[:-1], 0))
        self.sure = sure.astype(np.uint8 if self.width == 8 else "<u2")
        shared = {start >> shift for start in starts if start % (1 << shift)}
        self.unsure = np.array(sorted(shared | set(range(starts[-1] >> shift, _CELLS))), dtype=np.uint64)
        self._keys = np.array([start >> (self.digits - 64) for start in starts if start < end_of_all], np.uint64)

    def pattern(self, u: int) -> int:
        """The pattern whose interval contains u / 2**digits; bit j is ``pattern >> j & 1``."""
        ones = bisect_right(self._starts, u) - 1
        return int(self._order[self._firsts[ones] + (u - self._starts[ones]) // self._lengths[ones]])

    def draw(self, source: WordSource, num_rows: int, num_bits: int) -> np.ndarray:
        """As ``bernoulli_planes``; the number of words depends on what is drawn."""
        num_bytes, pieces = -(-num_bits // 8), -(-num_bits // self.width)
        out = np.empty((num_rows, num_bytes), dtype=np.uint8)
        rows_at_once = max(1, _PIECES_AT_ONCE // pieces)
        for start in range(0, num_rows, rows_at_once):
            rows = min(rows_at_once, num_rows - start)
            drawn = self._draw_pieces(source, rows * pieces)
            out[start : start + rows] = drawn.view(np.uint8).reshape(rows, -1)[:, :num_bytes]
        if num_bits % 8:
            out[:, -1] &= np.uint8((1 << (num_bits % 8)) - 1)
        return out

    def _draw_pieces(self, source: WordSource, number: int) -> np.ndarray:
        """Independent patterns (number,), little-endian.

        Cells are equally likely, so their numbers may be permuted: those below ``len(self.sure)`` are decided.
        """
        cells = source.words(-(-number // 4)).astype("<u8", copy=False).view("<u2")[:number]
        drawn = np.take(self.sure, cells, mode="clip")
        unsure = np.flatnonzero(cells > np.uint16(len(self.sure) - 1))
        if len(unsure):
            drawn[unsure] = self._decide(self.unsure[cells[unsure].astype(np.int64) - len(self.sure)], source)
        return drawn

    def _decide(self, cells: np.ndarray, source: WordSource) -> np.ndarray:
        """Patterns for fractions in cells (m,) uint64 that several intervals share.

        64 digits of u decide unless they equal those of an interval's start, or u is beyond the table.
        """
        keys = cells << np.uint64(48) | source.words(len(cells)) >> np.uint64(16)
        at = np.searchsorted(self._keys, keys, side="right") - 1
        patterns: np.ndarray = self._order[at]
        for each in np.flatnonzero((self._keys[at] == keys) | (at == len(self._keys) - 1)).tolist():
            more = self.digits - 64
            rest = int.from_bytes(source.words(more // 64).astype("<u8").tobytes(), "little")
            patterns[each] = self.pattern(int(keys[each]) << more | rest)
        return patterns


@functools.lru_cache(maxsize=64)
def pattern_table(numerator: int, width: int) -> PatternTable:
    """The table, kept for the next batch."""
    return PatternTable(numerator, width)
