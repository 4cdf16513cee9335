"""Differences of means, quantiles and shares above limits: coverage, p-values, bounds, and open ends."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.support.ldp.made_collections import made
from tests.support.tolerance import binomial_limits, generator, student_limit
from uldp_transforms.ldp import CohortCounts, Collection, SpecError
from uldp_transforms.ldp.estimators.number_sums import NumberReports, NumberSums
from uldp_transforms.ldp.estimators.smooth_figures import SmoothFigures
from uldp_transforms.rows.figures.compared_figures import MEAN, QUANTILE, SHARE_ABOVE
from uldp_transforms_compare.comparisons.compare_numbers import compare_numbers
from uldp_transforms_compare.comparisons.difference_columns import Difference

BINS, LIMITS, QUANTILES = 32, (0.25, 0.5), (0.1, 0.5, 0.9)
CENTRES = (np.arange(BINS) + 0.5) / BINS


def collection(epsilon: float = 1.0, mechanism: str = "sw", **alphabet: Any) -> Collection:
    spec = {"id": "ordered", "low": 0, "high": 1, "num_bins": BINS} | alphabet
    return made(spec, {"id": mechanism, "epsilon": epsilon}, id="numbers")


def side(item: Collection, cells: Any, times: int = 1) -> NumberSums:
    cells = np.asarray(cells, dtype=np.int64)[np.newaxis]
    return NumberSums([NumberReports(item, CohortCounts(cells.sum(axis=1), cells), times)])


def law_of(scale: float) -> np.ndarray:
    """Shares of bins of a gamma law, the tail in the last bin."""
    return np.diff(stats.gamma(4, scale=scale).cdf(np.append(np.arange(BINS) / BINS, np.inf)))


def truths(a: np.ndarray, b: np.ndarray) -> list[float]:
    """The differences of all figures, in the order of ``compare_numbers``."""
    edges, found = np.arange(BINS + 1) / BINS, []
    for p in (a, b):
        below = np.append(0, np.cumsum(p))
        above = [p[int(limit * BINS) :].sum() for limit in LIMITS]
        found.append(np.array([CENTRES @ p, *np.interp(QUANTILES, below, edges), *above]))
    return (found[0] - found[1]).tolist()


def holds(low: float | None, high: float | None, truth: float) -> bool:
    return (low is None or low <= truth) and (high is None or truth <= high)


def contains_zero(found: Difference) -> bool:
    return holds(found.low, found.high, 0.0)


RUNS = 15
SETTINGS = list(itertools.product((0.5, 1.0, 2.0, 4.0), (500, 5_000, 50_000)))


def test_intervals_of_differences_hold() -> None:
    """Unbiased ones of means and shares in 94 to 97 % of all runs, of quantiles in at least 94 %, at each epsilon
    from .5 to 4 and 500 to 50,000 people; and p-values agree with the intervals in every run."""
    rng, a, b = generator("differences of numbers"), law_of(0.075), law_of(0.06)
    truth, held = truths(a, b), np.zeros(6, dtype=int)
    for epsilon, people in SETTINGS:
        item = collection(epsilon)
        for _ in range(RUNS):
            sides = [side(item, rng.multinomial(people, item.mechanism.response(p))) for p in (a, b)]
            found = compare_numbers(*sides, limits=LIMITS, quantiles=QUANTILES, smooth=False)
            held += [holds(one.low, one.high, true) for one, true in zip(found, truth)]
            for one in found:
                assert (one.p_value >= 0.05) == contains_zero(one), (one, epsilon, people)
    number = RUNS * len(SETTINGS)
    least, most = binomial_limits(number, 0.94)[0], binomial_limits(number, 0.97)[1]
    for at in (0, 4, 5):
        assert least <= held[at] <= most
    assert held[1:4].min() >= least


def test_variances_are_right_on_average_where_reports_are_few() -> None:
    """That at the nearest distribution alone is a quarter too small here."""
    item, law, rng = collection(2.0), law_of(0.06), generator("variances of few reports")
    weights = (CENTRES > 0.25).astype(float)
    truth = float(item.mechanism.variance_of(weights, law)) / 500
    found = np.array(
        [side(item, rng.multinomial(500, item.mechanism.response(law))).ratio(weights).of_sum for _ in range(300)]
    )
    error = student_limit(len(found)) * found.std(ddof=1) / len(found) ** 0.5
    assert 0.98 * truth - error <= found.mean() <= 1.05 * truth + error
    assert error < 0.1 * truth  # so that a fifth would be found


def test_smooth_intervals_of_differences_hold_and_are_shorter() -> None:
    rng, a, b = generator("smooth differences of numbers"), law_of(0.075), law_of(0.06)
    truth, held, lengths = truths(a, b), np.zeros(6, dtype=int), np.zeros((2, 6))
    item = collection(2.0)
    for _ in range(RUNS):
        sides = [side(item, rng.multinomial(20_000, item.mechanism.response(p))) for p in (a, b)]
        found = compare_numbers(*sides, limits=LIMITS, quantiles=QUANTILES)
        held += [holds(one.display_low, one.display_high, true) for one, true in zip(found, truth)]
        for at, one in enumerate(found):
            assert one.display_low is not None
            assert one.display_high is not None
            assert one.display_difference is not None
            assert one.display_low <= one.display_difference <= one.display_high
            ends = 2.0 if one.low is None or one.high is None else one.high - one.low
            lengths[:, at] += ends, one.display_high - one.display_low
    assert held.min() >= binomial_limits(RUNS, 0.93)[0]
    assert (lengths[1, 2:] < lengths[0, 2:]).all()
    assert (lengths[1, 3:] < 0.75 * lengths[0, 3:]).all()


def test_smooth_differences_are_those_of_two_posteriors_or_none() -> None:
    """With the roots of the sums of squares as ends; the first median may be in the last bin, which is open."""
    item, late = collection(4.0), np.append(np.zeros(BINS - 1), 1.0)
    laws = 0.6 * late + 0.4 * law_of(0.06), law_of(0.06)
    sides = [side(item, np.rint(2_000 * item.mechanism.response(law))) for law in laws]
    options: dict[str, Any] = {"limits": [0.25], "quantiles": [0.5], "confidence": 0.9}
    found = compare_numbers(*sides, **options)
    figures = [SmoothFigures(one.smooth, one.edges, stats.norm.ppf(0.95)) for one in sides if one.smooth is not None]
    asked = [one.mean(CENTRES) for one in figures], [one.quantile(0.5) for one in figures]
    for told, (a, b) in zip(found, (*asked, [one.share_above(CENTRES > 0.25) for one in figures]), strict=True):
        (value, low, high), (other, least, most) = (np.array(one, dtype=float) for one in (a, b))  # open: NaN
        ends = (
            value - other - np.hypot(value - low, most - other),
            value - other + np.hypot(high - value, other - least),
        )
        assert told.display_difference == pytest.approx(value - other)
        assert told.display_low == (None if np.isnan(ends[0]) else pytest.approx(ends[0]))
        assert told.display_high == (None if np.isnan(ends[1]) else pytest.approx(ends[1]))
    assert [one.display_high is None for one in found] == [False, True, False]
    none = dict.fromkeys(("display_difference", "display_low", "display_high"))
    expected = [dataclasses.replace(one, **none) for one in found]
    assert compare_numbers(*sides, smooth=False, **options) == expected
    vars(sides[1])["smooth"] = None
    assert compare_numbers(*sides, **options) == expected


def test_exchanged_groups_have_the_opposite_differences() -> None:
    item, rng = collection(2.0, others=["none"]), generator("exchanged groups")
    law = np.append(0.8 * law_of(0.06), 0.2), np.append(0.7 * law_of(0.08), 0.3)
    a, b = (side(item, rng.multinomial(5_000, item.mechanism.response(p))) for p in law)
    options: dict[str, Any] = {"limits": [0.3], "quantiles": [0.5, 0.99]}
    here, there = compare_numbers(a, b, **options), compare_numbers(b, a, **options)
    assert [one.figure for one in here] == [MEAN, QUANTILE, QUANTILE, SHARE_ABOVE]

    def opposite(end: float | None) -> Any:
        return None if end is None else pytest.approx(-end, abs=1e-9)

    for one, other in zip(here, there):
        assert (one.low, one.high) == (opposite(other.high), opposite(other.low))
        assert (one.display_low, one.display_high) == (opposite(other.display_high), opposite(other.display_low))
        assert one.p_value == pytest.approx(other.p_value, rel=1e-6)
        assert one.difference == opposite(other.difference)


def test_a_quantile_in_a_clamped_bin_has_an_open_end() -> None:
    item = collection(4.0)
    late = np.zeros(BINS)
    late[-1] = 1.0
    sides = [side(item, np.rint(100_000 * item.mechanism.response(p))) for p in (late, law_of(0.06))]
    [median] = [one for one in compare_numbers(*sides, quantiles=[0.5]) if one.figure == QUANTILE]
    assert median.high is None
    assert median.low is not None
    assert 0.5 < median.low <= median.difference
    assert median.p_value < 1e-6


def test_all_people_without_a_number_have_no_differences() -> None:
    item = collection(4.0, others=["none"])
    nobody = np.append(np.zeros(BINS), 1.0)
    nearly = side(item, 1000 * np.rint(item.mechanism.response(nobody)))
    assert nearly.people < 0
    everybody = side(item, np.rint(1e4 * item.mechanism.response(np.append(law_of(0.06), 0.0))))
    assert [one.figure for one in compare_numbers(nearly, everybody, limits=[0.5], quantiles=[0.5])] == []


def test_the_scale_log_has_quantiles_and_shares_only() -> None:
    item = collection(low=1, high=100, scale="log")
    sides = [side(item, np.arange(100, 100 + item.num_cells) + shift) for shift in (0, 9)]
    found: list[Difference] = compare_numbers(*sides, limits=[10.0], quantiles=[0.5])
    assert [(one.figure, one.at) for one in found] == [(QUANTILE, 0.5), (SHARE_ABOVE, 10.0)]


def test_other_bins_are_refused() -> None:
    sides = [side(item, np.full(item.num_cells, 20)) for item in (collection(), collection(high=2))]
    with pytest.raises(SpecError) as caught:
        compare_numbers(*sides)
    assert str(caught.value) == (
        "compare_numbers needs the same bins in both groups, got [[0.0, 1.0], [0.0, 2.0]] as their ends"
    )
    with pytest.raises(SpecError) as caught:
        compare_numbers(sides[0], sides[0], confidence=1.0)
    assert str(caught.value) == "compare_numbers.confidence must be between 0 and 1, got 1.0"
