"""Counts per cohort: the additive sufficient statistic of a window, which the collector can store."""

from __future__ import annotations

import dataclasses

import numpy as np

from uldp_transforms.ldp.errors import SpecError


@dataclasses.dataclass(frozen=True, eq=False)
class CohortCounts:
    """Number of reports per cohort, and count of each cell within each cohort.

    Laws: ``a + b == b + a``, ``a + (b + c) == (a + b) + c``, ``a + empty == a``, and counting a concatenation equals
    adding the counts of its parts. Neither operand of ``+`` is changed.

    Examples:
        >>> from uldp_transforms.ldp import CohortCounts, Collection
        >>> collection = Collection.from_json("C.json")
        >>> monday = collection.count(collection.perturb(["flu"] * 20))
        >>> tuesday = collection.count(collection.perturb(["cold"] * 30))
        >>> (monday + tuesday).total
        50
        >>> monday + CohortCounts.empty(*monday.shape) == monday
        True

    Attributes:
        num_reports: (C,) int64, reports per cohort.
        cells: (C, M) int64, counts of the mechanism's cells (for most mechanisms M = K symbols).
        patterns: (P,) int64, the result of ``Mechanism.count_patterns`` for the reports of all cohorts; (0,) if
            patterns were not counted. If either operand of a sum has no patterns, the sum has none.
    """

    num_reports: np.ndarray
    cells: np.ndarray
    patterns: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, np.int64))

    def __post_init__(self) -> None:
        for name, ndim in (("num_reports", 1), ("cells", 2), ("patterns", 1)):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or array.dtype != np.int64 or array.ndim != ndim:
                came = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
                raise SpecError(f"CohortCounts.{name} must be an int64 array of {ndim} dimension(s), got {came}")
        if len(self.num_reports) != len(self.cells):
            raise SpecError(
                f"CohortCounts.cells must have one row per cohort ({len(self.num_reports)}), got {len(self.cells)}"
            )

    @classmethod
    def empty(cls, num_cohorts: int, num_cells: int, num_patterns: int = 0) -> CohortCounts:
        """The neutral element for C cohorts, M cells and P patterns."""
        cells = np.zeros((num_cohorts, num_cells), np.int64)
        return cls(np.zeros(num_cohorts, np.int64), cells, np.zeros(num_patterns, np.int64))

    @property
    def shape(self) -> tuple[int, int]:
        """(C, M)."""
        return self.cells.shape

    @property
    def total(self) -> int:
        """Number of reports of all cohorts."""
        return int(self.num_reports.sum())

    @property
    def num_held(self) -> int:
        """Number of 8-byte integers that these counts hold in memory."""
        return self.num_reports.size + self.cells.size + self.patterns.size

    def __add__(self, other: CohortCounts) -> CohortCounts:
        if not isinstance(other, CohortCounts):
            return NotImplemented
        patterns = self.sum_of_patterns(other)
        return CohortCounts(self.num_reports + other.num_reports, self.cells + other.cells, patterns)

    def add_to(self, num_reports: np.ndarray, cells: np.ndarray) -> None:
        """Add these counts to arrays of the same shapes, in place; ``cells`` must be in C order, and wide enough."""
        num_reports += self.num_reports
        np.add(cells, self.cells, out=cells, casting="unsafe")

    def sum_of_patterns(self, other: CohortCounts) -> np.ndarray:
        """Add the patterns; raises SpecError if the shapes or the lengths of the patterns differ."""
        if self.shape != other.shape:
            raise SpecError(
                f"CohortCounts can be added only if their shapes are equal, got {self.shape} and {other.shape}"
            )
        mine, its = self.patterns, other.patterns
        if len(mine) and len(its) and len(mine) != len(its):
            raise SpecError(
                f"CohortCounts.patterns can be added only if their lengths are equal, got {len(mine)} and {len(its)}"
            )
        return mine + its if len(mine) == len(its) else mine[:0]

    def __neg__(self) -> CohortCounts:
        """The negated counts, which subtract these counts from a sum."""
        return CohortCounts(-self.num_reports, -self.cells, -self.patterns)

    def times(self, number: int) -> CohortCounts:
        """The counts of reports each of which stands for this number of equal ones."""
        return CohortCounts(self.num_reports * number, self.cells * number, self.patterns * number)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CohortCounts):
            return NotImplemented
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in _FIELDS)

    __hash__ = None  # type: ignore[assignment]  # holds arrays: equal by content, not hashable

    def pooled(self) -> CohortCounts:
        """All cohorts added into one."""
        num_reports, cells = self.num_reports.sum(keepdims=True), self.cells.sum(axis=0, keepdims=True)
        return CohortCounts(num_reports, cells, self.patterns.copy())


_FIELDS = tuple(field.name for field in dataclasses.fields(CohortCounts))
