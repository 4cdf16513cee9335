"""Counts many collections in one pass, for reports that are counted in one cell each.

One list holds the numbers of all counts, whatever their shapes: for each group of reports its C numbers of reports,
then its C M cells. A report adds 1 at two places of that list.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.counts.sparse_table import PAYS, split_counts

_SMALL = 32_768
"""Maximum number of counters for which a full list is always made."""

_MAX_NUMBERS = 4_194_304
"""Maximum length of such a list, unless a single group needs more."""


def count_cells(
    cohorts: np.ndarray, cells: np.ndarray, groups: np.ndarray, shapes: np.ndarray
) -> Iterator[CohortCounts]:
    """Count the reports of each cell by group and cohort.

    Args:
        cohorts: (n,) integers in [0, C) of their groups.
        cells: (n,) integers in [0, M) of their groups.
        groups: (n,) int64 in [0, G), for instance the collection and base period of each report.
        shapes: (G, 2) int64, C and M of each group.

    Returns:
        Counts of each group, without patterns: sparse where that saves memory, else in full.
    """
    lengths = shapes[:, 0] * (1 + shapes[:, 1])
    if lengths.sum() <= _SMALL:
        return _in_full(cohorts, cells, groups, shapes)
    sizes = np.bincount(groups, minlength=len(shapes))
    many = sizes * PAYS >= lengths - shapes[:, 0]
    if many.all():
        return _in_full(cohorts, cells, groups, shapes)
    if not many.any():
        return _sparse(cohorts, cells, groups, shapes)
    ranks = np.where(many, np.cumsum(many), np.cumsum(~many)) - 1
    of_many, full_or_sparse = many[groups], {}
    for kind, count in ((True, _in_full), (False, _sparse)):
        rows = np.flatnonzero(of_many == kind)
        full_or_sparse[kind] = count(cohorts[rows], cells[rows], ranks[groups[rows]], shapes[many == kind])
    return (next(full_or_sparse[kind]) for kind in many.tolist())


def _in_full(cohorts: np.ndarray, cells: np.ndarray, groups: np.ndarray, shapes: np.ndarray) -> Iterator[CohortCounts]:
    ends = np.cumsum(shapes[:, 0] * (1 + shapes[:, 1]))
    none, first = np.zeros(0, dtype=np.int64), 0
    while first < len(shapes):
        begin = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, begin + _MAX_NUMBERS, side="right")))
        here = slice(None) if last - first == len(shapes) else (groups >= first) & (groups < last)
        places = _places(cohorts[here], cells[here], groups[here], shapes, ends - begin)
        numbers = np.bincount(places, minlength=int(ends[last - 1]) - begin)
        start = 0
        for stop, shape in zip((ends[first:last] - begin).tolist(), shapes[first:last].tolist()):
            middle = start + shape[0]
            counts = object.__new__(CohortCounts)  # same as __init__, without its checks
            own = numbers[middle:stop].reshape(shape)
            vars(counts).update(num_reports=numbers[start:middle], cells=own, patterns=none)
            yield counts
            start = stop
        first = last


def _sparse(cohorts: np.ndarray, cells: np.ndarray, groups: np.ndarray, shapes: np.ndarray) -> Iterator[CohortCounts]:
    ends = np.cumsum(shapes[:, 0] * (1 + shapes[:, 1]))
    places = _places(cohorts, cells, groups, shapes, ends)
    places.sort()
    is_first = np.ones(len(places) + 1, dtype=bool)
    np.not_equal(places[1:], places[:-1], out=is_first[1:-1])
    bounds = is_first.nonzero()[0]
    first = bounds[:-1]
    return split_counts(shapes, places[first], bounds[1:] - first, np.zeros((len(shapes), 0), dtype=np.int64))


def _places(
    cohorts: np.ndarray, cells: np.ndarray, groups: np.ndarray, shapes: np.ndarray, ends: np.ndarray
) -> np.ndarray:
    """(2 n,) int64, the two places of each report in the list whose groups end before ``ends`` (G,)."""
    num_cohorts, num_cells = shapes.T
    in_group = ends - num_cohorts * (1 + num_cells)
    of_reports = in_group[groups] + cohorts
    of_cells = (in_group + num_cohorts)[groups] + cohorts * num_cells[groups] + cells
    return np.concatenate([of_reports, of_cells])
