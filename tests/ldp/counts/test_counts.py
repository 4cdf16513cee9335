"""Counts add up: any order and any cut of the reports give the same. Batches are columns of equal length."""

from __future__ import annotations

import functools
import itertools
import pickle
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.cases import COLLECTIONS, VALUES, collections
from tests.support.ldp.made_collections import made
from tests.support.tolerance import generator
from uldp_transforms.ldp import CohortCounts, ReportBatch, SpecError

N = 300


@functools.cache
def batch_of(name: str) -> ReportBatch:
    """N reports of a collection."""
    rng = generator("batch", name)
    return COLLECTIONS[name].perturb(rng.choice(VALUES, N).tolist(), rng, event_times=np.arange(N))


def copy(counts: CohortCounts) -> CohortCounts:
    return CohortCounts(counts.num_reports.copy(), counts.cells.copy(), counts.patterns.copy())


# ---------------------------------------------------------------------- the three-path law


@collections
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32), cuts=st.lists(st.integers(0, N), max_size=6))
def test_parts_in_any_order_and_cut_add_up_to_the_whole(name, seed, cuts):
    collection, batch = COLLECTIONS[name], batch_of(name)
    rng = np.random.default_rng(seed)
    shuffled = batch[rng.permutation(N)]
    bounds = [0, *sorted(cuts), N]
    parts = [collection.count(shuffled[slice(*ends)], bit_patterns=True) for ends in itertools.pairwise(bounds)]
    untouched = [copy(part) for part in parts]
    merged = CohortCounts.empty(collection.num_cohorts, collection.num_cells, collection.mechanism.num_patterns)
    for i in rng.permutation(len(parts)):
        merged = merged + parts[i]
    assert merged == collection.count(batch, bit_patterns=True)
    assert parts == untouched


@collections
def test_counts_of_several_periods_are_those_of_each_alone(name):
    collection, batch = COLLECTIONS[name], batch_of(name)
    periods = np.arange(N) * 7 % 4
    rows = periods * collection.num_cohorts + batch.cohorts
    together = collection.count_groups(batch.payloads, rows, 5)
    assert together == [collection.count(batch[periods == period]) for period in range(5)]
    assert together[4] == CohortCounts.empty(collection.num_cohorts, collection.num_cells)
    together = collection.count_groups(batch.payloads, rows, 5, bit_patterns=True)
    assert together == [collection.count(batch[periods == period], bit_patterns=True) for period in range(5)]


@collections
def test_patterns_are_those_of_bits_that_are_independent(name):
    """Everything else is counted as without; each report has a weight, and clear reports have the bits they have."""
    collection, batch = COLLECTIONS[name], batch_of(name)
    counts = collection.count(batch, bit_patterns=True)
    plain = collection.count(batch)
    assert (counts.num_reports.tolist(), counts.cells.tolist()) == (plain.num_reports.tolist(), plain.cells.tolist())
    assert plain.patterns.tolist() == []
    v, mechanism = collection.mechanism.num_sensitive, collection.mechanism
    assert len(counts.patterns) == mechanism.num_patterns
    assert len(counts.patterns) == (v + 1 + v * (v - 1) // 2 if mechanism.independent_bits else 0)
    if len(counts.patterns):
        assert counts.patterns[: v + 1].sum() == N
        assert counts.patterns[: v + 1] @ np.arange(v + 1) == counts.cells[:, :v].sum()


def test_periods_of_65536_cohorts_are_told_apart():
    """Cohorts are numbers of 16 bits, in which the number of cohorts itself has no room."""
    collection = made(
        {"id": "hashed", "num_buckets": 2}, {"id": "rappor", "epsilon": 1.0}, num_cohorts=65_536, id="many"
    )
    batch = collection.perturb(["a"] * 50, generator("many cohorts"))
    counts = collection.count(batch, bit_patterns=True)
    assert counts.patterns[:3].sum() == 50
    assert counts.patterns[3] == (batch.payloads[:, 0] == 3).sum()


@collections
def test_counting_changes_nothing(name):
    batch = pickle.loads(pickle.dumps(batch_of(name)))
    COLLECTIONS[name].count(batch)
    assert batch == batch_of(name)


# ---------------------------------------------------------------------- CohortCounts


def counts(num_reports: list[int], cells: list[list[int]], patterns: Sequence[int] = ()) -> CohortCounts:
    return CohortCounts(np.array(num_reports), np.array(cells), np.array(patterns, np.int64))


A, B = counts([1, 2], [[3, 4, 5], [6, 7, 8]]), counts([10, 20], [[30, 40, 50], [60, 70, 80]])


WITH = counts([1, 2], [[3, 4, 5], [6, 7, 8]], [9, 10])


def test_patterns_add_up_where_both_have_them():
    """A part without them (of a job that was updated) makes a sum without them, in any order."""
    assert WITH + WITH == counts([2, 4], [[6, 8, 10], [12, 14, 16]], [18, 20]) != A + A
    assert WITH + CohortCounts.empty(2, 3, 2) == WITH != A
    assert WITH + A == A + WITH == A + A
    for order in itertools.permutations([WITH, A, WITH]):
        first, second, third = order
        assert (first + second) + third == first + (second + third) == A + A + A
    assert WITH.patterns.tolist() == [9, 10]
    with pytest.raises(SpecError, match="their lengths are equal, got 2 and 3"):
        WITH + CohortCounts.empty(2, 3, 3)


def test_counts_beyond_32_bits_stay_exact():
    large = counts([1 << 40], [[1 << 40, (1 << 53) + 1]])
    assert (large + large).cells.tolist() == [[1 << 41, (1 << 54) + 2]]


def test_counts_are_not_hashable_and_equal_nothing_else():
    assert A != 1 and A.__eq__(1) is NotImplemented
    with pytest.raises(TypeError):
        hash(A)
    with pytest.raises(TypeError):
        A + 1


# ---------------------------------------------------------------------- ReportBatch

BATCH = batch_of("permuted-urap")


@given(cuts=st.lists(st.integers(0, N), max_size=5))
def test_concatenation_undoes_slicing(cuts):
    bounds = [0, *sorted(cuts), N]
    parts = [BATCH[slice(*ends)] for ends in itertools.pairwise(bounds)]
    assert ReportBatch.concatenate(parts) == BATCH


@pytest.mark.parametrize(
    "rows", [slice(3, 9), np.arange(3, 9), np.isin(np.arange(N), np.arange(3, 9))], ids=["slice", "indices", "mask"]
)
def test_rows_are_picked_from_every_column(rows):
    part = BATCH[rows]
    assert len(part) == 6
    assert part.event_times.tolist() == list(range(3, 9))
    assert (part.fingerprint, part.seeded) == (BATCH.fingerprint, BATCH.seeded)
    for column in ("cohorts", "payloads", "report_ids"):
        np.testing.assert_array_equal(getattr(part, column), getattr(BATCH, column)[3:9])


def without_ids(batch: ReportBatch) -> ReportBatch:
    columns = (batch.fingerprint, batch.cohorts, batch.payloads, batch.event_times)
    return ReportBatch(*columns, report_ids=np.zeros((0, 16), np.uint8))


def test_batches_without_ids():
    bare = without_ids(BATCH)
    assert len(bare[5:8].report_ids) == 0
    assert ReportBatch.concatenate([bare[:5], bare[5:]]) == bare
    assert len(ReportBatch.concatenate([BATCH, bare]).report_ids) == 0, "some without ids: none of them can be told"
    assert not bare.seeded
    assert ReportBatch.concatenate([bare, BATCH]).seeded


def test_batches_are_not_hashable_and_equal_nothing_else():
    assert BATCH != 1 and BATCH.__eq__(1) is NotImplemented
    assert BATCH[:1] != BATCH
    with pytest.raises(TypeError):
        hash(BATCH)


@pytest.mark.parametrize("with_ids", [True, False])
def test_sorted_reports_are_split_by_collection(with_ids):
    """In their order; a collection may have none."""
    batch = BATCH if with_ids else without_ids(BATCH)
    names = [bytes([number]) * 32 for number in range(3)]
    found = batch[:10].split(names, np.array([4, 0, 6]))
    for part, name, rows in zip(found, names, (slice(0, 4), slice(4, 4), slice(4, 10)), strict=True):
        assert part == ReportBatch(
            name, BATCH.cohorts[rows], BATCH.payloads[rows], BATCH.event_times[rows],
            BATCH.report_ids[rows] if with_ids else np.zeros((0, 16), np.uint8), batch.seeded,
        )  # fmt: skip
    assert batch[:10].num_bytes == 10 * (2 + BATCH.payloads.shape[1] + 8 + 16 * with_ids)
