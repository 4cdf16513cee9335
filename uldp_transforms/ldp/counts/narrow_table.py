"""A full table of counts in the narrowest integers that hold them, which grows in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.counts.sparse_table import SparseCounts

LARGE = 1 << 12
"""Number of cells from which on a table is stored in less than 8 bytes a cell where its numbers allow that."""

_DTYPES: tuple[np.dtype[Any], ...] = tuple(map(np.dtype, (np.uint8, np.uint16, np.uint32)))
_WIDEST: np.dtype[Any] = np.dtype(np.int64)
_NONE = np.zeros(0, dtype=np.int64)


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
