"""A sum of counts that grows in place."""

from __future__ import annotations

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.counts.narrow_table import LARGE, NarrowTable
from uldp_transforms.ldp.counts.sparse_table import SparseCounts, sum_of_sparse


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
