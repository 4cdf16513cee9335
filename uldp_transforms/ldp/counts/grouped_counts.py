"""Splits counts by the cohort numbers that reports state into the counts of groups.

A report states ``group * C + cohort``. Counting by that number costs one pass, as counting without groups does; the
total and each roll-up are sums of those counts.
"""

from __future__ import annotations

import numpy as np

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.counts.sparse_table import SparseCounts, counts_at, split_counts


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
