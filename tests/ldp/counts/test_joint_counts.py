"""Reports of many collections that are counted in one pass: what each collection's reports say when counted alone."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.tolerance import generator
from uldp_transforms.ldp.counts import many_collections as joint_counts
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.counts.many_collections import count_cells
from uldp_transforms.ldp.counts.sparse_table import PAYS, SparseCounts

SMALL, LARGE = (1, 4), (1024, 4096)
SHAPES = [SMALL, LARGE, (64, 16), SMALL, (3, 300), LARGE, (7, 2)]


def reports(shapes: list[tuple[int, int]], sizes: list[int]) -> tuple[np.ndarray, ...]:
    """So many reports of each group, in random order: cohorts, cells, groups."""
    rng = generator("joint", *sizes)
    groups = rng.permutation(np.repeat(np.arange(len(shapes)), sizes))
    num_cohorts, num_cells = np.array(shapes)[groups].T
    return rng.integers(0, num_cohorts).astype(np.uint16), rng.integers(0, num_cells).astype(np.uint32), groups


def one_by_one(shape: tuple[int, int], cohorts: np.ndarray, cells: np.ndarray) -> CohortCounts:
    num_reports, table = np.zeros(shape[0], np.int64), np.zeros(shape, np.int64)
    for cohort, cell in zip(cohorts.tolist(), cells.tolist()):
        num_reports[cohort] += 1
        table[cohort, cell] += 1
    return CohortCounts(num_reports, table)


@pytest.mark.parametrize(
    ("shapes", "sizes", "num_sparse"),
    [
        (SHAPES, [5, 3, 2, 0, 1, 40, 9], 5),
        ([LARGE, (64, 16), LARGE], [1, 1, 2], 3),
        ([SMALL, (64, 16), SMALL], [1, 900, 2], 0),
        ([SMALL, (64, 2000), SMALL], [1, 8000, 2], 0),
        ([SMALL], [3], 0),
    ],
    ids=["both", "sparse", "small", "full", "one"],
)
@pytest.mark.parametrize("most", [1, 5000, 1 << 22], ids=["alone", "in chunks", "at once"])
def test_groups_are_counted_as_each_is_alone(
    monkeypatch: pytest.MonkeyPatch, shapes: list[tuple[int, int]], sizes: list[int], num_sparse: int, most: int
) -> None:
    monkeypatch.setattr(joint_counts, "_MAX_NUMBERS", most)
    cohorts, cells, groups = reports(shapes, sizes)
    found = list(count_cells(cohorts, cells, groups, np.array(shapes)))
    assert len(found) == len(shapes)
    for group, (shape, counts) in enumerate(zip(shapes, found)):
        own = groups == group
        assert counts == one_by_one(shape, cohorts[own], cells[own])
        assert counts.total == sizes[group]
        assert counts.patterns.shape == (0,)
    assert sum(isinstance(counts, SparseCounts) for counts in found) == num_sparse


@pytest.mark.parametrize("num_reports", [16 * size for size in (1, 100, 250, 254, 255, 256, 257, 400)])
def test_a_group_is_sparse_where_its_reports_are_few_and_that_pays(num_reports: int) -> None:
    shape = (1, 1 << 16)
    (counts,) = count_cells(*reports([shape], [num_reports]), np.array([shape]))
    used = int(np.count_nonzero(counts.num_reports)) + int(np.count_nonzero(counts.cells))
    assert isinstance(counts, SparseCounts) is (used * PAYS <= 1 + shape[1] and num_reports * PAYS < shape[1])
