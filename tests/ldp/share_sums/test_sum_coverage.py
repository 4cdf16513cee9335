"""How often intervals of sums hold the truth: populations of several forms, sets of 2 to all values, before and after
selection by size."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from tests.support.calibration import windows
from tests.support.tolerance import binomial_limits, generator, student_limit
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators.number_sums import NumberReports
from uldp_transforms.ldp.share_sums import NamedSum, ShareSums
from uldp_transforms.ldp.share_sums.sum_estimate import EstimatedSum, estimate_of_sums, figures_of_sums

K, WINDOWS, PEOPLE = 40, 300, 1_000
VALUES = tuple(f"v{at:02}" for at in range(K))
SHAPES = {
    "flat": np.ones(K),
    "zipf": 1 / np.arange(1, K + 1),
    "geometric": 0.85 ** np.arange(K),
    "one heavy": np.where(np.arange(K) == 3, 20.0, 1.0),
}
SIZES = (2, 5, 20, 39, 40)
RATE = 1e-9  # of false alarms, of each comparison
LEAST, MOST = 0.94, 0.97


@functools.cache
def drawn(mechanism: str, of: str, shape: str) -> tuple[Collection, list[CohortCounts]]:
    """A collection, and its windows."""
    alphabet: dict[str, Any] = {"id": "closed", "values": list(VALUES)}
    if of == "half":
        alphabet |= {"sensitive": list(VALUES[::2])}
    if of == "hashed":
        alphabet = {"id": "hashed", "num_buckets": 8}
    more = {"num_cohorts": 64} if of == "hashed" else {}
    spec = {"id": of, "version": 1, "alphabet": alphabet, "mechanism": {"id": mechanism, "epsilon": 2.0}}
    item, shares = Collection.from_json(spec | more), SHAPES[shape] / SHAPES[shape].sum()
    rng = generator("coverage", mechanism, of, shape)
    return item, windows(item, VALUES, shares, WINDOWS, PEOPLE, rng=rng)


def figures(
    mechanism: str, of: str, shape: str, jobs: list[tuple[NamedSum, ...]], estimator: str
) -> list[list[list[EstimatedSum]]]:
    """The figures of each window, for each job."""
    item, counts = drawn(mechanism, of, shape)
    found = []
    for each in counts:
        estimate = item.estimate(each, estimator, candidates=VALUES if of == "hashed" else None)
        of_jobs = [ShareSums([NumberReports(item, each)], sums, VALUES) for sums in jobs]
        found.append([figures_of_sums(one, estimate_of_sums(one, estimate)) for one in of_jobs])
    return found


def covered(mechanism: str, of: str, shape: str, estimator: str) -> np.ndarray:
    """(WINDOWS, sets) whether the interval of each set, the only one of a job, holds the truth.

    The sets are the first values, which are the largest ones of some shapes.
    """
    shares = SHAPES[shape] / SHAPES[shape].sum()
    truth = [float(shares[:size].sum()) for size in SIZES]
    jobs = [(NamedSum("first", VALUES[:size]),) for size in SIZES]
    rows = figures(mechanism, of, shape, jobs, estimator)
    return np.array(
        [[one.display_low - 1e-9 <= true <= one.display_high + 1e-9 for [one], true in zip(row, truth)] for row in rows]
    )


@pytest.mark.parametrize("estimator", ["eb", "empirical"])
@pytest.mark.parametrize(("mechanism", "of"), [("ss", "closed"), ("uss", "half"), ("krr", "hashed")])
def test_a_set_that_was_chosen_before_is_covered(mechanism: str, of: str, estimator: str) -> None:
    """94 to 97 % of the intervals hold the truth, over all shapes, and no set far less often.

    All values of a known list are certain, and so is nearly the share of all but one, whose interval is cut at 1.
    """
    each = np.concatenate([covered(mechanism, of, shape, estimator) for shape in SHAPES])
    if of != "hashed":
        assert each[:, -1].all(), "everybody has one of the values"
    inner = each[:, :3].mean(axis=1)
    room = student_limit(len(inner), rate=RATE) * inner.std(ddof=1) / np.sqrt(len(inner))
    assert LEAST - room <= inner.mean() <= MOST + room, inner.mean()
    low, _ = binomial_limits(len(each), np.full(len(SIZES), LEAST), RATE)
    assert (each.sum(axis=0) >= low).all(), each.mean(axis=0)


@pytest.mark.parametrize("estimator", ["eb", "empirical"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("mechanism", "of"), [("ss", "closed"), ("krr", "hashed")])
def test_the_largest_of_many_sets_is_covered(mechanism: str, of: str, shape: str, estimator: str) -> None:
    """Of ten sets, the one that seems largest: its plain interval misses too often where all are equal, its displayed
    one holds at least 95 % of the time."""
    shares = SHAPES[shape] / SHAPES[shape].sum()
    sums = tuple(NamedSum(f"set {at}", VALUES[at::10]) for at in range(10))
    truth = [float(shares[at::10].sum()) for at in range(10)]
    plain, shown = 0, 0
    for [row] in figures(mechanism, of, shape, [sums], estimator):
        at = int(np.argmax([one.display_value for one in row]))
        plain += row[at].low <= truth[at] <= row[at].high
        shown += row[at].display_low <= truth[at] <= row[at].display_high
    low, _ = binomial_limits(WINDOWS, 0.95, RATE)
    assert shown >= low, shown / WINDOWS
    if shape == "flat":
        assert plain < low, "selection matters here"


def test_a_set_of_several_levels_is_covered() -> None:
    """400 reports, of which about 3 are clear: nearly all noise of the set is theirs and that of the last level; the
    reports of the first level say little about either."""
    groups, shares = [VALUES[16:22], VALUES[:6], VALUES[6:12]], SHAPES["flat"] / K
    levels = [{"epsilon": epsilon, "values": list(group)} for epsilon, group in zip((0.5, 1.0, 3.0), groups)]
    alphabet = {"id": "closed", "values": list(VALUES), "sensitive": [value for group in groups for value in group]}
    mechanism = {"id": "levels", "of": "urr", "levels": levels}
    item = Collection.from_json({"id": "levels", "version": 1, "alphabet": alphabet, "mechanism": mechanism})
    true, held, number = float(shares[12:].sum()), 0, 300
    for counts in windows(item, VALUES, shares, number, 400, rng=generator("coverage of levels")):
        sums = ShareSums([NumberReports(item, counts)], (NamedSum("others", VALUES[12:]),), VALUES)
        low, high = sums.in_units(np.array(sums.intervals(0.95)))
        held += int(low[0] <= true <= high[0])
    assert held >= binomial_limits(number, LEAST, RATE)[0], held / number
