"""Per-cohort counts: the additive sufficient statistic of a window, and the durable product of the collector."""

from __future__ import annotations

import dataclasses

import numpy as np

from uldp_transforms.ldp.errors import SpecError


@dataclasses.dataclass(frozen=True, eq=False)
class CohortCounts:
    """How many reports each cohort sent and how often each cell was counted in it.

    Laws: ``a + b == b + a``, ``a + (b + c) == (a + b) + c``, ``a + empty == a``, and counting a concatenation equals
    adding the counts of its parts. Neither operand of ``+`` is changed.

    Attributes:
        num_reports: (C,) int64, reports per cohort.
        cells: (C, M) int64, what the mechanism counts (for most mechanisms M = K symbols).
    """

    num_reports: np.ndarray
    cells: np.ndarray

    def __post_init__(self) -> None:
        for name, array, ndim in (("num_reports", self.num_reports, 1), ("cells", self.cells, 2)):
            if not isinstance(array, np.ndarray) or array.dtype != np.int64 or array.ndim != ndim:
                came = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
                raise SpecError(f"CohortCounts.{name} must be an int64 array of {ndim} dimension(s), got {came}")
        if len(self.num_reports) != len(self.cells):
            raise SpecError(
                f"CohortCounts.cells must have one row per cohort ({len(self.num_reports)}), got {len(self.cells)}"
            )

    @classmethod
    def empty(cls, num_cohorts: int, num_cells: int) -> CohortCounts:
        """The neutral element for C cohorts and M cells."""
        return cls(np.zeros(num_cohorts, np.int64), np.zeros((num_cohorts, num_cells), np.int64))

    @property
    def shape(self) -> tuple[int, int]:
        """(C, M)."""
        return self.cells.shape

    @property
    def total(self) -> int:
        """Number of reports of all cohorts."""
        return int(self.num_reports.sum())

    def __add__(self, other: CohortCounts) -> CohortCounts:
        if not isinstance(other, CohortCounts):
            return NotImplemented
        if self.shape != other.shape:
            raise SpecError(f"CohortCounts can be added only in equal shapes, got {self.shape} and {other.shape}")
        return CohortCounts(self.num_reports + other.num_reports, self.cells + other.cells)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CohortCounts):
            return NotImplemented
        return np.array_equal(self.num_reports, other.num_reports) and np.array_equal(self.cells, other.cells)

    __hash__ = None  # type: ignore[assignment]  # holds arrays: equal by content, not hashable

    def pooled(self) -> CohortCounts:
        """All cohorts added into one."""
        return CohortCounts(self.num_reports.sum(keepdims=True), self.cells.sum(axis=0, keepdims=True))
