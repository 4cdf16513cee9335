"""A sum of counts that grows in place."""

from __future__ import annotations

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.counts.sparse_table import SparseCounts, sum_of_sparse


class RunningSum:
    """Adds counts to a table of its own, in time proportional to what is added and not to the table.

    Counts that are added are never changed, and ``snapshot`` never changes afterwards. Sparse counts are collected
    until they have as many numbers as their sum so far, so that n of them are sorted about log n times.

    Args:
        first: the first counts of the sum.
    """

    def __init__(self, first: CohortCounts) -> None:
        self._sum = first
        self._is_own = False  # whether nobody else holds the arrays of the sum
        self._waiting: list[SparseCounts] = []
        self._num_waiting = 0

    @property
    def num_held(self) -> int:
        """Number of 8-byte integers in memory."""
        return self._sum.num_held + 2 * self._num_waiting

    def add(self, counts: CohortCounts) -> None:
        """Add counts of the same shape.

        Raises:
            SpecError: the shapes or the lengths of the patterns differ.
        """
        patterns = self._sum.sum_of_patterns(counts)
        if isinstance(counts, SparseCounts) and isinstance(self._sum, SparseCounts):
            self._sum = self._sum.with_patterns(patterns)
            self._waiting.append(counts)
            self._num_waiting += len(counts.places)
            if self._num_waiting > len(self._sum.places):
                self._add_waiting()
            return
        own = self._own_arrays()
        counts.add_to(own.num_reports, own.cells)
        self._sum = CohortCounts(own.num_reports, own.cells, patterns)

    def snapshot(self) -> CohortCounts:
        """The counts so far."""
        self._add_waiting()
        self._is_own = False
        return self._sum

    def _add_waiting(self) -> None:
        if self._waiting:
            assert isinstance(self._sum, SparseCounts)
            self._sum = sum_of_sparse([self._sum, *self._waiting], self._sum.patterns)
            self._waiting, self._num_waiting = [], 0

    def _own_arrays(self) -> CohortCounts:
        self._add_waiting()
        if not self._is_own:
            cells = self._sum.cells.copy(order="C")
            self._sum = CohortCounts(self._sum.num_reports.copy(), cells, self._sum.patterns)
            self._is_own = True
        return self._sum
