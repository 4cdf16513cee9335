"""The level of confidence of a comparison: it has all intervals, and nothing else depends on it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.rows.confidence_levels import (
    CLOSED,
    ORDERED,
    Job,
    check_longer_intervals,
    check_what_does_not_depend,
    drawn,
)
from uldp_transforms.ldp.estimators.number_sums import NumberReports, NumberSums
from uldp_transforms_compare.comparisons import compare
from uldp_transforms_compare.comparisons.compare_numbers import compare_numbers


def compared(level: float) -> list[Any]:
    pairs = [drawn(CLOSED, values, "side") for values in (list("abcd"), list("bacd"))]
    estimates = [item.estimate(counts, "empirical") for item, counts in pairs]
    return [compare(*estimates, level)]


def compared_numbers(level: float) -> list[Any]:
    sums = [NumberSums([NumberReports(*drawn(ORDERED, values), 1)]) for values in ([1.5, 3.5, 7.5], [3.5, 1.5, 7.5])]
    return list(compare_numbers(sums[0], sums[1], [5.0], [0.5], level))


JOBS: dict[str, tuple[Job, set[str]]] = {
    "shares": (compared, {"", "selected", "lift"}),
    "numbers": (compared_numbers, {"", "display"}),
}
"""Comparisons, and the kinds of intervals that they must have."""


@pytest.mark.parametrize("job", JOBS)
def test_all_intervals_are_longer_at_a_higher_level(job: str) -> None:
    check_longer_intervals(*JOBS[job])


@pytest.mark.parametrize("job", JOBS)
def test_nothing_but_intervals_depends_on_the_level(job: str) -> None:
    check_what_does_not_depend(JOBS[job][0])
