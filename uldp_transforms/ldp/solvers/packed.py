"""The operator of a long list: the bucket of each unknown in each cohort, in at most one byte per cell."""

from __future__ import annotations

import dataclasses
import functools
import os
import tempfile
import threading
from collections import OrderedDict

import numpy as np

from uldp_transforms.ldp.alphabets import Alphabet

_BLOCK = 32_768  # unknowns that are looked up at a time, so that their sums stay in the cache
_MOST_CODES = 1 << 16
_BUILD_CELLS = 4_000_000  # cells that are hashed at a time
_MAPPED_BYTES = 1 << 26  # a larger table is a temporary file, which the system keeps in memory while there is room
_LISTS = 16  # lists that a process keeps: at most a gigabyte in memory


@dataclasses.dataclass(frozen=True, eq=False)
class PackedBuckets:
    """H of all cohorts, as in ``Buckets``, for up to millions of unknowns, with one pass over the table per product.

    The buckets of several cohorts are the digits of one code, so that one look-up serves all of them. With several hash
    functions a column is one of them, and the digit k means that an earlier function has the same bucket.

    Attributes:
        codes: (G, S) unsigned integers; digit i, to the base ``base``, is the bucket in the group's cohort i.
        num_buckets: k.
        num_cohorts: C.
        num_hashes: h.
        group: number of cohorts in one code; 1 with several hash functions.
    """

    codes: np.ndarray
    num_buckets: int
    num_cohorts: int
    num_hashes: int
    group: int

    @classmethod
    def of_values(
        cls, alphabet: Alphabet, values: tuple[str, ...], num_cohorts: int, num_buckets: int
    ) -> PackedBuckets:
        """The table of values whose symbols are all among the first ``num_buckets``."""
        k, h = num_buckets, alphabet.num_hashes
        group = _group_size(k, len(values)) if h == 1 else 1
        columns = num_cohorts * h
        largest = k**group - 1 if h == 1 else k
        codes = _allocate((-(-columns // group), len(values)), np.min_scalar_type(largest))
        step = max(1, _BUILD_CELLS // columns)  # blocks that fit into the cache
        for start in range(0, len(values), step):
            rows = np.ascontiguousarray(alphabet.symbol_rows(values[start : start + step], num_cohorts).T)
            _encode(rows, k, h, group, codes[:, start : start + step])
        return cls(codes, k, num_cohorts, h, group)

    @property
    def num_unknowns(self) -> int:
        """S."""
        return int(self.codes.shape[1])

    def collect(self, cells: np.ndarray) -> np.ndarray:
        """sum_c H_c^T g_c: (S,) sums over each unknown's own buckets, in all cohorts, of g (C, k)."""
        sums = np.zeros(self.num_unknowns)
        for number, codes in enumerate(self.codes):
            table = self._of_codes(cells, number)
            for start in range(0, len(sums), _BLOCK):
                part = sums[start : start + _BLOCK]
                part += np.take(table, codes[start : start + _BLOCK])
        return sums

    def forward(self, frequencies: np.ndarray) -> np.ndarray:
        """H p: bucket frequencies (C, k) of frequencies (S,)."""
        k, cells = self.num_buckets, np.zeros((self.num_cohorts, self.num_buckets))
        for number, codes in enumerate(self.codes):
            if self.num_hashes > 1:
                cells[number // self.num_hashes] += np.bincount(codes, frequencies, k)[:k]
                continue
            first = number * self.group
            members = min(self.group, self.num_cohorts - first)
            sums = np.bincount(codes, frequencies, k**members)
            for digit in range(members):
                cells[first + digit] = sums.reshape(-1, k, k**digit).sum(axis=(0, 2))
        return cells

    def _of_codes(self, cells: np.ndarray, number: int) -> np.ndarray:
        """The sum of the cells of all cohorts of a group, for each code."""
        if self.num_hashes > 1:
            return np.append(cells[number // self.num_hashes], 0.0)
        first = number * self.group
        table: np.ndarray = cells[first]
        for row in cells[first + 1 : first + self.group]:
            table = (row[:, np.newaxis] + table[np.newaxis, :]).ravel()
        return table

    def lengths(self, weights: np.ndarray) -> np.ndarray:
        """sum_c w_c |J H_c e_s|^2 = sum_c w_c (b - b^2 / k) with b buckets of the unknown in a cohort; (S,) or (1,).

        Args:
            weights: (C,).
        """
        k, h = self.num_buckets, self.num_hashes
        if h == 1:
            return np.array([weights.sum() * (1 - 1 / k)])
        lengths = np.zeros(self.num_unknowns)
        for weight, columns in zip(weights, self.codes.reshape(self.num_cohorts, h, -1)):
            distinct = (columns != k).sum(axis=0)
            lengths += weight * (distinct - distinct**2 / k)
        return lengths

    @functools.cached_property
    def mean_length(self) -> float:
        """Mean of b - b^2 / k over cohorts and unknowns."""
        return float(self.lengths(np.full(self.num_cohorts, 1 / self.num_cohorts)).mean())

    @functools.cached_property
    def mean_buckets(self) -> float:
        """Effective number b of buckets of an unknown in a cohort: b - b^2 / k equals ``mean_length``."""
        k = self.num_buckets
        root = np.sqrt(max(k * k - 4 * k * self.mean_length, 0.0))
        return float((k - root) / 2) if self.num_hashes > 1 else 1.0


def _group_size(num_buckets: int, num_unknowns: int) -> int:
    """Number of cohorts in one code: limited by 16 bits, and by at most as many codes as unknowns."""
    most = min(_MOST_CODES, max(num_unknowns, num_buckets))
    return max((group for group in range(2, _MOST_CODES.bit_length()) if num_buckets**group <= most), default=1)


def _encode(rows: np.ndarray, k: int, h: int, group: int, codes: np.ndarray) -> None:
    """Write buckets (C h, S) into codes (G, S)."""
    if h > 1:
        for column, row in enumerate(rows):
            earlier = rows[column - column % h : column]
            codes[column] = np.where((earlier == row).any(axis=0), k, row.astype(np.int64))
        return
    for number in range(len(codes)):
        digits = rows[number * group : (number + 1) * group]
        code = digits[-1].astype(codes.dtype)
        for row in digits[-2::-1]:
            code *= codes.dtype.type(k)
            code += row.astype(codes.dtype)
        codes[number] = code


def _allocate(shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """An array in memory or, if it is large, in an unnamed file that vanishes with the process."""
    size = shape[0] * shape[1] * dtype.itemsize
    if size > _MAPPED_BYTES and hasattr(os, "posix_fallocate"):
        try:
            with tempfile.TemporaryFile() as file:
                os.posix_fallocate(file.fileno(), 0, size)  # detects a full disk here, not when a page is written
                return np.memmap(file, dtype, "r+", shape=shape)
        except OSError:
            pass
    return np.empty(shape, dtype)


class _Slot:
    """A table, or a placeholder until it is built."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.table: PackedBuckets | None = None


_slots: OrderedDict[tuple[Alphabet, tuple[str, ...], int, int], _Slot] = OrderedDict()
_slots_lock = threading.Lock()


def packed_buckets(alphabet: Alphabet, values: tuple[str, ...], num_cohorts: int, num_buckets: int) -> PackedBuckets:
    """``PackedBuckets.of_values``, built once per process for each list and safe for threads.

    The most recently used lists are kept.
    """
    key = (alphabet, values, num_cohorts, num_buckets)
    with _slots_lock:
        slot = _slots.setdefault(key, _Slot())
        _slots.move_to_end(key)
        while len(_slots) > _LISTS:
            _slots.popitem(last=False)
    with slot.lock:
        if slot.table is None:
            slot.table = PackedBuckets.of_values(*key)
        return slot.table
