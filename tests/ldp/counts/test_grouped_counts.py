"""Counts by stated cohort numbers, split into groups: against the sums of the rows of each group."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.tolerance import generator
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.counts.sparse_table import SparseCounts, counts_at, split_groups

NUM_COHORTS, NUM_CELLS, NUM_GROUPS = 3, 5, 6
TABLE = np.array([2, 0, 2, 7, 0, 2])
"""Kept group of each group; they need not be numbered without gaps."""


def stated(number: int, filled: int) -> CohortCounts:
    """So many rows of group and cohort have reports."""
    rng = generator("grouped counts", number, filled)
    num_reports = np.zeros(NUM_GROUPS * NUM_COHORTS, np.int64)
    cells = np.zeros((len(num_reports), NUM_CELLS), np.int64)
    for row in rng.choice(len(num_reports), filled, replace=False):
        num_reports[row] = rng.integers(1, 9)
        cells[row] = rng.integers(0, 4, NUM_CELLS)
    return CohortCounts(num_reports, cells)


def sparse(counts: CohortCounts) -> SparseCounts:
    listed = np.concatenate([counts.num_reports, counts.cells.ravel()])
    places = np.flatnonzero(listed)
    return SparseCounts(counts.shape, places, listed[places], np.zeros(0, np.int64))


@pytest.mark.parametrize("filled", [0, 1, 2, 7, 18])
@pytest.mark.parametrize("form", [sparse, lambda counts: counts], ids=["sparse", "full"])
def test_groups_are_the_sums_of_their_rows(filled: int, form) -> None:
    for seed in range(10):
        counts = stated(seed, filled)
        reports, cells = counts.num_reports.reshape(NUM_GROUPS, -1), counts.cells.reshape(NUM_GROUPS, -1, NUM_CELLS)
        total, found = split_groups(form(counts), NUM_COHORTS, TABLE)
        assert total == CohortCounts(reports.sum(axis=0), cells.sum(axis=0))
        with_reports = sorted(set(TABLE[reports.any(axis=1)].tolist()))
        assert [number for number, _ in found] == with_reports
        for number, own in found:
            assert own == CohortCounts(reports[number == TABLE].sum(axis=0), cells[number == TABLE].sum(axis=0))


def test_a_group_of_few_reports_is_held_sparsely() -> None:
    counts = counts_at((40, 100), np.array([3, 21, 40, 4039]), np.array([1, 1, 1, 2]), np.zeros(0, np.int64))
    total, found = split_groups(counts, 20, np.array([0, 1]))
    assert isinstance(total, SparseCounts) and all(isinstance(own, SparseCounts) for _, own in found)
    assert [(number, own.total, int(own.cells.sum())) for number, own in found] == [(0, 1, 1), (1, 1, 2)]
