"""The operator of a hashed alphabet: which bucket each unknown falls into in each cohort."""

from __future__ import annotations

import dataclasses
import functools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy import sparse

_DENSE_BUCKETS = 24  # with fewer buckets a dense product is faster than summing over collisions
_CHUNK_CELLS = 16_000_000
_ROWS = 64  # rows of a Gram matrix that a thread fills at a time


@dataclasses.dataclass(frozen=True, eq=False)
class Buckets:
    """H of all cohorts, (C k x S): a 1 for each cohort, unknown and hash function (fewer where buckets coincide).

    Attributes:
        table: (C, S) or (C, S, h) int64 in [0, k).
        num_buckets: k.
    """

    table: np.ndarray
    num_buckets: int

    @property
    def num_hashes(self) -> int:
        """h, the number of hash functions."""
        return int(self.table.shape[2]) if self.table.ndim == 3 else 1

    @functools.cached_property
    def _cells(self) -> np.ndarray:
        """(C, S, h) int32: rows of H."""
        table = self.table if self.table.ndim == 3 else self.table[:, :, np.newaxis]
        offsets = self.num_buckets * np.arange(len(table))[:, np.newaxis, np.newaxis]
        return (table + offsets).astype(np.int32)

    @functools.cached_property
    def _first(self) -> np.ndarray | None:
        """(C, S, h) bool: False where an earlier hash function gives the same bucket; None if there is one function."""
        cells = self._cells
        if cells.shape[2] == 1:
            return None
        earlier = [(cells[:, :, :i] == cells[:, :, i : i + 1]).any(axis=2) for i in range(cells.shape[2])]
        return ~np.stack(earlier, axis=2)

    def forward(self, frequencies: np.ndarray) -> np.ndarray:
        """H p: bucket frequencies (C, k) of frequencies (S,)."""
        shape = self._cells.shape
        weights = np.broadcast_to(frequencies[np.newaxis, :, np.newaxis], shape)
        if self._first is not None:
            weights = weights * self._first
        size = shape[0] * self.num_buckets
        return np.bincount(self._cells.ravel(), weights.ravel(), size).reshape(shape[0], self.num_buckets)

    def gather(self, cells: np.ndarray) -> np.ndarray:
        """H_c^T g_c of each cohort: (C, S) sums over each unknown's own buckets of g (C, k)."""
        gathered = np.ascontiguousarray(cells).ravel()[self._cells]
        sums: np.ndarray = gathered[:, :, 0] if self._first is None else (gathered * self._first).sum(axis=2)
        return sums

    def collect(self, cells: np.ndarray) -> np.ndarray:
        """sum_c H_c^T g_c: (S,) sums over each unknown's own buckets, in all cohorts, of g (C, k)."""
        sums: np.ndarray = self.gather(cells).sum(axis=0)
        return sums

    def matrix(self) -> sparse.csr_array:
        """H itself, sparse."""
        num_cohorts, num_unknowns, _ = self._cells.shape
        columns = np.broadcast_to(np.arange(num_unknowns)[np.newaxis, :, np.newaxis], self._cells.shape)
        ones = np.ones(self._cells.size) if self._first is None else self._first.ravel().astype(np.float64)
        shape = (num_cohorts * self.num_buckets, num_unknowns)
        return sparse.csr_array((ones, (self._cells.ravel(), columns.ravel())), shape=shape)

    def gram(self, weights: np.ndarray, *, centred: bool) -> np.ndarray:
        """sum_c H_c^T J W_c J H_c with diagonal W_c; J = I - 1/k if centred, else I.

        Args:
            weights: (C, k), not negative.

        Returns:
            (S, S) float64.
        """
        if self._first is not None:
            return self._gram_of_several(weights, centred)
        dense = self.num_buckets < _DENSE_BUCKETS
        gram = self._dense_gram(weights) if dense else self._scattered_gram(weights)
        if centred:  # J has the same row for every unknown: H_c^T 1 = 1
            crossed = self.gather(weights).sum(axis=0) / self.num_buckets
            gram -= crossed[:, np.newaxis] - weights.sum() / self.num_buckets**2
            gram -= crossed[np.newaxis, :]
        return gram

    def gram_within(self, weights: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """``gram`` with matrices J_c that centre over the kept cells and are 0 on all others.

        Args:
            weights: (C, k).
            kept: (C, k) 1 or 0, with at least one 1 in each cohort.
        """
        used, sizes = weights * kept, kept.sum(axis=1)[:, np.newaxis]
        gram, present = self.gram(used, centred=False), self.gather(kept)
        crossed = (self.gather(used) / sizes).T @ present
        gram -= crossed + crossed.T
        gram += (present * (used.sum(axis=1, keepdims=True) / sizes**2)).T @ present
        return gram

    def _dense_gram(self, weights: np.ndarray) -> np.ndarray:
        """The Gram matrix, not centred, as a product of a matrix with its own transpose."""
        (num_cohorts, num_unknowns, _), k = self._cells.shape, self.num_buckets
        step, roots = max(1, _CHUNK_CELLS // (k * num_unknowns)), np.sqrt(weights)[:, :, np.newaxis]
        gram = np.zeros((num_unknowns, num_unknowns))
        for start in range(0, num_cohorts, step):
            part = slice(start, start + step)
            table = self._cells[part, :, 0] - k * np.arange(start, min(start + step, num_cohorts))[:, np.newaxis]
            block = (table[:, np.newaxis] == np.arange(k)[:, np.newaxis]) * roots[part]
            block = block.reshape(-1, num_unknowns)
            gram += block.T @ block
        return gram

    def _gram_of_several(self, weights: np.ndarray, centred: bool) -> np.ndarray:
        """The Gram matrix for several hash functions."""
        num_cohorts, num_unknowns, _ = self._cells.shape
        k, step = self.num_buckets, max(1, _CHUNK_CELLS // (self.num_buckets * num_unknowns))
        columns = np.arange(num_unknowns)[np.newaxis, :, np.newaxis]
        gram = np.zeros((num_unknowns, num_unknowns))
        for start in range(0, num_cohorts, step):
            cells = self._cells[start : start + step] - k * start
            block = np.zeros((len(cells) * k, num_unknowns))
            block[cells, np.broadcast_to(columns, cells.shape)] = 1
            if centred:
                by_cohort = block.reshape(len(cells), k, num_unknowns)
                by_cohort -= by_cohort.mean(axis=1, keepdims=True)
            gram += (block * weights[start : start + step].reshape(-1, 1)).T @ block
        return gram

    def _scattered_gram(self, weights: np.ndarray) -> np.ndarray:
        """The Gram matrix row by row: each unknown that shares a bucket with the row's unknown adds the bucket's
        weight."""
        members, sizes = self._members
        starts, flat = np.cumsum(sizes) - sizes, np.ascontiguousarray(weights).ravel()
        rows = np.ascontiguousarray(self._cells[:, :, 0].T)
        gram = np.empty((len(rows), len(rows)))

        def fill(part: range) -> None:
            for unknown in part:
                own = rows[unknown]
                lengths = sizes[own]
                ends = np.cumsum(lengths)
                places = np.arange(ends[-1]) + np.repeat(starts[own] - ends + lengths, lengths)
                gram[unknown] = np.bincount(members[places], np.repeat(flat[own], lengths), len(rows))

        with ThreadPoolExecutor() as pool:
            list(pool.map(fill, (range(i, min(i + _ROWS, len(rows))) for i in range(0, len(rows), _ROWS))))
        return gram

    @functools.cached_property
    def _members(self) -> tuple[np.ndarray, np.ndarray]:
        """Unknowns sorted by bucket, cohort after cohort, (C S,) int32; and the number of unknowns per bucket, (C
        k,)."""
        table = self._cells[:, :, 0]
        buckets = table - self.num_buckets * np.arange(len(table), dtype=np.int32)[:, np.newaxis]
        order = np.argsort(buckets.astype(np.uint16), axis=1, kind="stable")  # NumPy sorts 16-bit integers by radix
        return order.astype(np.int32).ravel(), np.bincount(table.ravel(), minlength=len(table) * self.num_buckets)
