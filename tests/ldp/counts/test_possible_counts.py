"""Counts that no reports make: compared with all counts that a few reports can make, whoever sends them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tests.support.cases import MECHANISMS_TO_TEST, as_array, collection, enumerated, label, mechanisms
from tests.support.together import together
from tests.support.tolerance import generator
from uldp_transforms.ldp import CohortCounts
from uldp_transforms.ldp.alphabets import Closed
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms import HadamardResponse, Mechanism, UtilityOptimizedHadamardResponse
from uldp_transforms.ldp.mechanisms.mechanism import exact_sums

_MOST_TABLES = 20_000
_MOST_SETS = 60_000


def possible(mechanism: Mechanism, counts: CohortCounts) -> np.ndarray:
    """(C,) bool: in no mask."""
    found = np.ones(len(counts.num_reports), dtype=bool)
    for _, mask in mechanism.count_violations(counts):
        assert mask.shape == found.shape
        found &= ~mask.astype(bool)
    return found


@mechanisms
def test_counts_of_any_reports_are_possible(mechanism):
    """Any valid payloads, so often as nobody honest would send them; cohorts of many, of few and of none."""
    _, _, cells, _ = enumerated(mechanism)
    rng = generator("possible counts", label(mechanism))
    sizes = np.array([0, 1, 2, 7, 100, 10**6, 1 << 40])
    shares = rng.dirichlet(np.full(len(cells), 0.1), len(sizes))
    sent = np.array([rng.multinomial(size, share) for size, share in zip(sizes, shares)])
    counts = CohortCounts(sizes, sent @ cells)
    assert possible(mechanism, counts).all()
    assert possible(mechanism, counts + counts).all()


def every_table(mechanism: Mechanism, num_reports: int) -> np.ndarray:
    """All tables of cells from -1 to one more than there are reports."""
    return np.array(list(itertools.product(range(-1, num_reports + 2), repeat=mechanism.num_cells)))


def made_by_reports(cells: np.ndarray, num_reports: int) -> set[tuple[int, ...]]:
    """All tables that so many reports make."""
    sets = itertools.combinations_with_replacement(range(len(cells)), num_reports)
    return {tuple(cells[list(chosen)].sum(axis=0).tolist()) for chosen in sets}


def is_short(mechanism: Mechanism, num_reports: int) -> bool:
    """Few enough to enumerate; and of columns of the matrix all such counts are found for 2^m symbols and one more."""
    if isinstance(mechanism, UtilityOptimizedHadamardResponse) and mechanism.num_sensitive == 7:
        return False
    sets = math.comb(mechanism.num_outputs + num_reports - 1, num_reports)
    return (num_reports + 3) ** mechanism.num_cells <= _MOST_TABLES and sets <= _MOST_SETS


SHORT = [(case, number) for case in MECHANISMS_TO_TEST for number in range(4) if is_short(case, number)]


@together(
    ("mechanism", "num_reports"),
    SHORT,
    ids=lambda pair: f"{label(pair[0])} {pair[1]}",
    by=lambda pair: f"{pair[0].id}-{pair[1]}",
)
def test_no_other_counts_are_possible(mechanism, num_reports):
    """By enumeration, where that is short; ``is_short`` says where it is not."""
    _, _, cells, _ = enumerated(mechanism)
    tables = every_table(mechanism, num_reports)
    found = possible(mechanism, CohortCounts(np.full(len(tables), num_reports), tables))
    assert set(map(tuple, tables[found].tolist())) == made_by_reports(cells, num_reports)


@pytest.mark.parametrize("num_sensitive", [2, 3, 4, 5])
def test_columns_of_a_matrix_by_enumeration(num_sensitive):
    """Two reports of every kind; four symbols are the first whose signs are bound to each other."""
    mechanism = HadamardResponse(num_symbols=num_sensitive, num_sensitive=num_sensitive, epsilon=1)
    cells = mechanism.count(as_array(mechanism.channel()[0]), np.arange(mechanism.num_outputs), mechanism.num_outputs)
    for num_reports in (1, 2, 3):
        tables = every_table(mechanism, num_reports)
        found = possible(mechanism, CohortCounts(np.full(len(tables), num_reports), tables))
        assert set(map(tuple, tables[found].tolist())) == made_by_reports(cells, num_reports)


def test_sums_are_exact_beyond_64_bits():
    cells = np.full((2, 5000), 1 << 53)
    cells[1, 0] -= 1
    assert exact_sums(cells).tolist() == [5000 << 53, (5000 << 53) - 1]


@pytest.mark.parametrize("mechanism", ["krr", "rappor", "ss", "hr"])
def test_numbers_that_wrap_around_are_not_taken_for_small_ones(mechanism):
    """2,048 cells of 2**53 sum to 0 modulo 2**64."""
    of = collection(Closed(values=tuple(map(str, range(2048)))), 1, mechanism)
    counts = CohortCounts(np.array([9]), np.full((1, 2048), 1 << 53))
    with pytest.raises(
        SpecError, match="must have no cell above the reports of its cohort, got a violation in cohort 0"
    ):
        of.check_counts(counts)


def test_all_mechanisms_are_enumerated_somewhere():
    """Of every class with counts of its own a case is short enough for two reports."""
    short = {type(case) for case in MECHANISMS_TO_TEST if 5**case.num_cells <= _MOST_TABLES}
    assert {type(case) for case in MECHANISMS_TO_TEST} == short
