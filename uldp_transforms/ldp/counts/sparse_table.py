"""Sparse counts of few reports in a large table, and counts split into those of groups.

For groups, a report states ``group * C + cohort``. Counting by that number costs one pass, as counting without groups
does; the total and each roll-up are sums of those counts.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts

PAYS = 16
"""Counts are stored sparsely if at most one in this many numbers is not 0."""


class SparseCounts(CohortCounts):
    """Counts stored as the places and values of their nonzero numbers; equal to the same counts in full.

    ``num_reports`` and ``cells`` are filled in when they are first read; sums, ``total`` and the coder do not read
    them. Places are positions in a list of the C numbers of reports followed by the C M cells, row by row.
    ``counts_at`` builds such counts.

    Attributes:
        places: (N,) int64, increasing.
        numbers: (N,) int64, nonzero.
    """

    places: np.ndarray
    numbers: np.ndarray
    patterns: np.ndarray = np.zeros(0, dtype=np.int64)
    _shape: tuple[int, int]

    def __init__(self, shape: tuple[int, int], places: np.ndarray, numbers: np.ndarray, patterns: np.ndarray):
        vars(self).update(_shape=shape, places=places, numbers=numbers, patterns=patterns)  # the class is frozen

    @property
    def shape(self) -> tuple[int, int]:
        return self._shape

    @property
    def total(self) -> int:
        of_reports = self.numbers[: self.places.searchsorted(self._shape[0])]
        return int(np.add.reduce(of_reports))

    @property
    def num_held(self) -> int:
        return 2 * len(self.places) + len(self.patterns)

    @property
    def pays(self) -> bool:
        """Whether the sparse form takes at most an eighth of the memory of the full one."""
        return len(self.places) * PAYS <= self._shape[0] * (1 + self._shape[1])

    def in_full(self) -> CohortCounts:
        """The same counts as full arrays."""
        return CohortCounts(self.num_reports, self.cells, self.patterns)

    @functools.cached_property
    def num_reports(self) -> np.ndarray:
        filled = np.zeros(self._shape[0], dtype=np.int64)
        first_cell = np.searchsorted(self.places, len(filled))
        filled[self.places[:first_cell]] = self.numbers[:first_cell]
        return filled

    @functools.cached_property
    def cells(self) -> np.ndarray:
        filled = np.zeros(self._shape, dtype=np.int64)
        first_cell = np.searchsorted(self.places, len(filled))
        filled.reshape(-1)[self.places[first_cell:] - len(filled)] = self.numbers[first_cell:]
        return filled

    def __add__(self, other: CohortCounts) -> CohortCounts:
        if not isinstance(other, CohortCounts):
            return NotImplemented
        patterns = self.sum_of_patterns(other)
        if isinstance(other, SparseCounts):
            return sum_of_sparse([self, other], patterns)
        num_reports, cells = other.num_reports.copy(), other.cells.copy(order="C")
        self.add_to(num_reports, cells)
        return CohortCounts(num_reports, cells, patterns)

    __radd__ = __add__

    def add_to(self, num_reports: np.ndarray, cells: np.ndarray) -> None:
        first_cell = np.searchsorted(self.places, len(num_reports))
        num_reports[self.places[:first_cell]] += self.numbers[:first_cell]
        numbers = self.numbers[first_cell:].astype(cells.dtype, copy=False)
        cells.reshape(-1)[self.places[first_cell:] - len(num_reports)] += numbers

    def with_patterns(self, patterns: np.ndarray) -> SparseCounts:
        """The same counts with other patterns."""
        return SparseCounts(self._shape, self.places, self.numbers, patterns)

    def __neg__(self) -> CohortCounts:
        return SparseCounts(self._shape, self.places, -self.numbers, -self.patterns)

    def times(self, number: int) -> SparseCounts:
        return SparseCounts(self._shape, self.places, self.numbers * number, self.patterns * number)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SparseCounts):
            return super().__eq__(other)
        names = (*_COLUMNS, "patterns")
        return self._shape == other._shape and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in names
        )

    __hash__ = None


_COLUMNS = ("places", "numbers")


def counts_at(shape: tuple[int, int], places: np.ndarray, numbers: np.ndarray, patterns: np.ndarray) -> CohortCounts:
    """Counts from numbers at places, in any order and possibly repeated: sparse if that saves memory, else in full.

    Args:
        shape: (C, M).
        places: (n,) int64 in [0, C + C M): see ``SparseCounts``.
        numbers: (n,) int64.
        patterns: (P,) int64.
    """
    order = np.argsort(places, kind="stable")  # linear for sums of few sorted parts
    places, numbers = places[order], numbers[order]
    first = np.flatnonzero(np.diff(places, prepend=-1))
    places, numbers = places[first], np.add.reduceat(numbers, first) if len(first) else numbers
    kept = numbers != 0
    if not kept.all():
        places, numbers = places[kept], numbers[kept]
    counts = SparseCounts(shape, places, numbers, patterns)
    return counts if counts.pays else counts.in_full()


def sum_of_sparse(parts: Sequence[SparseCounts], patterns: np.ndarray) -> CohortCounts:
    """Add counts of one shape, with the given patterns: sparse if that saves memory, else in full."""
    places, numbers = (np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS)
    return counts_at(parts[0].shape, places, numbers, patterns)


def split_counts(
    shapes: np.ndarray, places: np.ndarray, numbers: np.ndarray, patterns: np.ndarray
) -> Iterator[CohortCounts]:
    """Split one list of numbers into many counts: sparse where that saves memory, else in full.

    Args:
        shapes: (G, 2) int64, C and M of each of the G counts.
        places: (n,) int64, increasing, in the concatenation of the C + C M numbers of all counts; see ``SparseCounts``.
        numbers: (n,) int64, nonzero.
        patterns: (G, P) int64, patterns of each.
    """
    lengths = shapes[:, 0] * (1 + shapes[:, 1])
    ends = np.cumsum(lengths)
    stops = places.searchsorted(ends)
    sizes = np.concatenate((stops[:1], stops[1:] - stops[:-1]))
    places = places - np.repeat(ends - lengths, sizes)
    one_shape = len(shapes) > 0 and (shapes == shapes[0]).all()
    as_tuples = itertools.repeat(tuple(shapes[0].tolist())) if one_shape else zip(*shapes.T.tolist())
    found = _slices(as_tuples, stops.tolist(), places, numbers)
    if patterns.shape[1]:
        found = map(SparseCounts.with_patterns, found, patterns)
    pays = sizes * PAYS <= lengths
    if pays.all():
        return found
    return (counts if sparse else counts.in_full() for counts, sparse in zip(found, pays.tolist()))


def _slices(
    shapes: Iterable[tuple[int, int]], stops: list[int], places: np.ndarray, numbers: np.ndarray
) -> Iterator[SparseCounts]:
    """Counts of places and numbers up to each stop, without patterns. A job with many collections makes one for almost
    every report."""
    new, start = object.__new__, 0
    for shape, stop in zip(shapes, stops):
        counts = new(SparseCounts)
        fields = counts.__dict__  # same as __init__, without its overhead
        fields["_shape"] = shape
        fields["places"] = places[start:stop]
        fields["numbers"] = numbers[start:stop]
        yield counts
        start = stop


def split_groups(
    counts: CohortCounts, num_cohorts: int, table: np.ndarray
) -> tuple[CohortCounts, list[tuple[int, CohortCounts]]]:
    """The total of all groups, and the counts of each kept group that has reports.

    Time and memory are proportional to the numbers that are not 0, and do not depend on the number of groups.

    Args:
        counts: of shape (G C, M), without patterns; row ``group * C + cohort``.
        num_cohorts: C.
        table: (G,) int64, number of the kept group of each group; see ``RollUp.table``.

    Returns:
        Counts of shape (C, M): the total; (number, counts) of kept groups, in order of their numbers.
    """
    num_cells = counts.shape[1]
    strata, places, numbers = _nonzero(counts)
    groups, cohorts = np.divmod(strata, num_cohorts)
    of_reports = places < 0
    local = np.where(of_reports, cohorts, num_cohorts + cohorts * num_cells + places)
    shape, none = (num_cohorts, num_cells), np.zeros(0, dtype=np.int64)
    total = counts_at(shape, local, numbers, none)
    kept, index = np.unique(table[groups], return_inverse=True)
    length = num_cohorts * (1 + num_cells)
    keys = index * length + local
    order = np.argsort(keys, kind="stable")
    keys, numbers = keys[order], numbers[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    sums = np.add.reduceat(numbers, first) if len(first) else numbers
    shapes = np.broadcast_to(np.array(shape, dtype=np.int64), (len(kept), 2))
    found = split_counts(shapes, keys[first], sums, np.zeros((len(kept), 0), dtype=np.int64))
    return total, list(zip(kept.tolist(), found))


def _nonzero(counts: CohortCounts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, cell (-1: the number of reports) and number of all counters that are not 0."""
    num_rows, num_cells = counts.shape
    if isinstance(counts, SparseCounts):
        places, numbers = counts.places, counts.numbers
        first_cell = int(np.searchsorted(places, num_rows))
        rows, cells = np.divmod(places[first_cell:] - num_rows, num_cells)
        return (
            np.concatenate([places[:first_cell], rows]),
            np.concatenate([np.full(first_cell, -1), cells]),
            numbers,
        )
    rows = np.flatnonzero(counts.num_reports)
    of_cells, cells = np.nonzero(counts.cells)
    return (
        np.concatenate([rows, of_cells]),
        np.concatenate([np.full(len(rows), -1), cells]),
        np.concatenate([counts.num_reports[rows], counts.cells[of_cells, cells]]),
    )
