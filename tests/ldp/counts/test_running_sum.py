"""A sum that grows in place equals the sum of new arrays, and shares nothing with what goes in or comes out."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.ldp.few_counts import in_either_form, in_full
from uldp_transforms.ldp import CohortCounts
from uldp_transforms.ldp.counts.running_sum import RunningSum
from uldp_transforms.ldp.counts.sparse_table import SparseCounts, counts_at


@settings(max_examples=100)
@given(st.lists(in_either_form(), min_size=1, max_size=8), st.sets(st.integers(0, 7)))
def test_a_running_sum_equals_new_sums(parts: list[CohortCounts], looks: set[int]) -> None:
    before = [in_full(part) for part in parts]
    running, expected, seen = RunningSum(parts[0]), in_full(parts[0]), []
    for place, part in enumerate(parts):
        if place:
            running.add(part)
            expected = expected + in_full(part)
        if place in looks:
            seen.append((running.snapshot(), expected))
    assert running.snapshot() == expected
    assert [in_full(part) for part in parts] == before, "a sum changes none of its parts"
    assert all(snapshot == then for snapshot, then in seen), "a snapshot does not change afterwards"


@pytest.mark.parametrize("size", [3, 1 << 12], ids=["small", "large"])
def test_a_snapshot_does_not_change_afterwards(size: int) -> None:
    """Neither its cells nor its numbers of reports."""
    part = CohortCounts(np.array([3, 4]), np.arange(2 * size).reshape(2, size))
    running = RunningSum(part)
    running.add(part)
    snapshot = running.snapshot()
    for _ in range(2):
        running.add(part)
    assert snapshot == CohortCounts(2 * part.num_reports, 2 * part.cells)
    assert running.snapshot() == CohortCounts(4 * part.num_reports, 4 * part.cells)


@pytest.mark.parametrize("full", [True, False], ids=["full", "sparse"])
def test_patterns_that_only_one_part_has_are_dropped(full: bool) -> None:
    parts = [
        counts_at((8, 60), np.array([place]), np.array([1]), np.arange(count)) for place, count in ((0, 3), (9, 0))
    ]
    first, second = map(in_full, parts) if full else parts
    running = RunningSum(first)
    running.add(second)
    assert running.snapshot() == first + second
    assert len(running.snapshot().patterns) == 0


def sparse(places: np.ndarray) -> CohortCounts:
    """Counts of 1 at each place of a table of 4,195,328 numbers."""
    none = np.zeros(0, np.int64)
    return counts_at((1024, 4096), places, np.ones(len(places), np.int64), none)


def test_adding_few_reports_to_a_large_table_copies_no_table() -> None:
    """A table has 32 MiB; the sums before took one for each addition."""
    rng = np.random.default_rng(1)
    running = RunningSum(CohortCounts(np.zeros(1024, np.int64), np.zeros((1024, 4096), np.int64)))
    parts = [sparse(rng.choice(4_195_328, 2_000, replace=False)) for _ in range(20)]
    running.add(parts[0])  # now it has a table of its own
    tracemalloc.start()
    for part in parts[1:]:
        running.add(part)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20
    assert running.snapshot().cells.sum() + running.snapshot().total == 20 * 2_000


def test_few_reports_stay_sparse_until_a_table_is_smaller() -> None:
    running = RunningSum(sparse(np.arange(1_000)))
    for start in range(1_000, 262_000, 1_000):
        running.add(sparse(np.arange(start, start + 1_000)))
        assert running.num_held <= 4 * (start + 1_000)
    assert isinstance(running.snapshot(), SparseCounts)
    for start in range(262_000, 530_000, 1_000):
        running.add(sparse(np.arange(start, start + 1_000)))
    assert not isinstance(running.snapshot(), SparseCounts)
    assert running.snapshot().total == 1_024


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("form", ["full", "sparse"])
def test_a_table_widens_before_a_number_does_not_fit(bits: int, form: str) -> None:
    """At the largest number of each width, one below, one above, and with what was subtracted."""
    shape, largest = (2, 1 << 12), (1 << bits) - 1
    for first, added in ((largest - 1, (1,)), (largest - 1, (1, 1)), (largest, (1,)), (0, (largest, 1)), (5, (-9, 4))):
        cells = np.zeros(shape, np.int64)
        cells[1, 7] = first
        running, expected = RunningSum(CohortCounts(np.array([0, first]), cells)), first
        for number in added:
            more = SparseCounts(shape, np.array([1, 2 + 4096 + 7]), np.array([number, number]), np.zeros(0, np.int64))
            running.add(in_full(more) if form == "full" else more)
            expected += number
        found = running.snapshot()
        assert (found.cells[1, 7], found.num_reports[1]) == (expected, expected)
        assert found.cells.sum() == expected and found.cells.dtype == np.int64
        widest = min((width for width in (1, 2, 4) if 0 <= expected < 1 << 8 * width), default=8)
        assert running.num_held <= 2 + (8 if min(added) < 0 else widest) * 1024


def test_an_upper_bound_is_measured_before_it_widens_a_table() -> None:
    """300 reports in 300 cells: no cell has more than 1."""
    running = RunningSum(CohortCounts.empty(1, 1 << 12))
    for place in range(300):
        cells = np.zeros((1, 1 << 12), np.int64)
        cells[0, place] = 1
        running.add(CohortCounts(np.array([1]), cells))
    assert running.num_held == 1 + 4096 // 8
    assert (running.snapshot().total, running.snapshot().cells.sum()) == (300, 300)


@pytest.mark.parametrize(
    ("largest", "size"),
    [(255, 1), (256, 2), (65_535, 2), (65_536, 4), ((1 << 32) - 1, 4), (1 << 32, 8)],
)
def test_a_table_is_as_narrow_as_its_largest_number_allows(largest: int, size: int) -> None:
    cells = np.zeros((1, 4096), np.int64)
    cells[0, 7] = largest
    running = RunningSum(CohortCounts(np.array([largest]), cells))
    assert running.num_held == 1 + 4096 * size // 8
    assert running.snapshot().cells[0, 7] == largest
