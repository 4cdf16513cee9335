"""A sum of counts that grows in place, in the narrowest integers that hold it."""

from __future__ import annotations

from typing import Any

import numpy as np

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.counts.sparse_table import SparseCounts, sum_of_sparse

LARGE = 1 << 12
"""Number of cells from which on a table is stored in less than 8 bytes a cell where its numbers allow that."""

_DTYPES: tuple[np.dtype[Any], ...] = tuple(map(np.dtype, (np.uint8, np.uint16, np.uint32)))
_WIDEST: np.dtype[Any] = np.dtype(np.int64)
_NONE = np.zeros(0, dtype=np.int64)


class RunningSum:
    """Adds counts to a table of its own, in time proportional to what is added and not to the table.

    Counts that are added are never changed, and ``snapshot`` never changes afterwards. Sparse counts are collected
    until they have as many numbers as their sum so far, so that n of them are sorted about log n times. Other counts
    are added to a ``NarrowTable``; large ones are in one from the beginning.

    Args:
        first: the first counts of the sum.
    """

    def __init__(self, first: CohortCounts) -> None:
        self._sum = first  # used while there is no table
        self._table: NarrowTable | None = None
        self._waiting: list[SparseCounts] = []
        self._num_waiting = 0
        self._narrow_if_large()

    @property
    def num_held(self) -> int:
        """Memory as a number of 8-byte integers."""
        return self._sum.num_held + 2 * self._num_waiting if self._table is None else self._table.num_held

    def add(self, counts: CohortCounts) -> None:
        """Add counts of the same shape.

        Raises:
            SpecError: the shapes or the lengths of the patterns differ.
        """
        if self._table is None and isinstance(counts, SparseCounts) and isinstance(self._sum, SparseCounts):
            self._sum = self._sum.with_patterns(self._sum.sum_of_patterns(counts))
            self._waiting.append(counts)
            self._num_waiting += len(counts.places)
            if self._num_waiting > len(self._sum.places):
                self._add_waiting()
            return
        self._as_table().add(counts)

    def snapshot(self) -> CohortCounts:
        """The counts so far."""
        self._add_waiting()
        return self._sum if self._table is None else self._table.counts()

    def _add_waiting(self) -> None:
        if self._waiting:
            assert isinstance(self._sum, SparseCounts)
            self._sum = sum_of_sparse([self._sum, *self._waiting], self._sum.patterns)
            self._waiting, self._num_waiting = [], 0
            self._narrow_if_large()

    def _narrow_if_large(self) -> None:
        shape = self._sum.shape
        if shape[0] * shape[1] >= LARGE and not isinstance(self._sum, SparseCounts):
            self._as_table()

    def _as_table(self) -> NarrowTable:
        self._add_waiting()
        if self._table is None:
            none = self._sum.patterns[:0]
            self._table = NarrowTable(self._sum)
            self._sum = SparseCounts(self._sum.shape, none, none, none)
        return self._table


class NarrowTable:
    """Counts to which others are added in place; equal to the same sum in 8-byte integers.

    Negative numbers, which subtract replaced reports, make the table as wide as any.

    Args:
        counts: the first counts, which are copied.
    """

    def __init__(self, counts: CohortCounts) -> None:
        self._num_reports = counts.num_reports.copy()
        lowest, self._most = _ends(counts)
        self._cells = counts.cells.astype(self._dtype_for(lowest, counts.cells.size), order="C")
        self._head = SparseCounts(counts.shape, _NONE, _NONE, counts.patterns)  # the shape and the patterns

    @property
    def num_held(self) -> int:
        """Memory as a number of 8-byte integers."""
        held: int = self._num_reports.size + self._cells.nbytes // 8 + len(self._head.patterns)
        return held

    def add(self, counts: CohortCounts) -> None:
        """Add counts of the same shape.

        Raises:
            SpecError: the shapes or the lengths of the patterns differ.
        """
        self._head = self._head.with_patterns(self._head.sum_of_patterns(counts))
        lowest, most = _ends(counts)
        if self._cells.dtype != _WIDEST and (lowest < 0 or self._most + most > np.iinfo(self._cells.dtype).max):
            self._most = int(self._cells.max())  # it was an upper bound
            self._most += most
            self._cells = self._cells.astype(self._dtype_for(lowest, self._cells.size), copy=False)
        else:
            self._most += most
        counts.add_to(self._num_reports, self._cells)

    def counts(self) -> CohortCounts:
        """The sum so far, in new arrays."""
        return CohortCounts(self._num_reports.copy(), self._cells.astype(np.int64), self._head.patterns)

    def _dtype_for(self, lowest: int, size: int) -> np.dtype[Any]:
        """The narrowest type for numbers from ``lowest`` to the largest possible cell."""
        if lowest < 0 or size < LARGE:
            return _WIDEST
        return next((dtype for dtype in _DTYPES if self._most <= np.iinfo(dtype).max), _WIDEST)


def _ends(counts: CohortCounts) -> tuple[int, int]:
    """The smallest and the largest cell, but at most and at least 0."""
    cells = counts.cells if not isinstance(counts, SparseCounts) else counts.numbers
    return int(cells.min(initial=0)), int(cells.max(initial=0))
