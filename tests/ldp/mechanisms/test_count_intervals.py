"""Ends of intervals by their definition: which probability each one leaves out, and where the inequality ends."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from uldp_transforms.ldp.mechanisms import count_intervals
from uldp_transforms.ldp.mechanisms.count_intervals import binomial_intervals, score_intervals


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
@pytest.mark.parametrize("trials", [1, 2, 9, 40, 1000])
def test_the_near_end_leaves_out_half_of_the_observed_count_and_the_far_one_all(trials: int, confidence: float) -> None:
    """The near end of few is the lower one; of exactly half, both ends are near. 0 has the end 0."""
    counts, tail = np.unique(np.linspace(0, trials, 21).astype(int)), (1 - confidence) / 2
    low, high = binomial_intervals(counts, trials, confidence)
    mirrored = binomial_intervals(trials - counts, trials, confidence)
    np.testing.assert_allclose(mirrored, (1 - high, 1 - low), rtol=0, atol=1e-12)
    assert low[0] == 0 and high[-1] == 1
    few = 2 * counts <= trials
    law = stats.binom(trials, low[few & (counts > 0)])
    x = counts[few & (counts > 0)]
    np.testing.assert_allclose(law.sf(x) + law.pmf(x) / 2, tail, rtol=1e-6)
    fewer = 2 * counts < trials
    np.testing.assert_allclose(stats.binom.cdf(counts[fewer], trials, high[fewer]), tail, rtol=1e-6)
    many = (2 * counts > trials) & (counts < trials)
    np.testing.assert_allclose(stats.binom.sf(counts[many] - 1, trials, low[many]), tail, rtol=1e-6)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
@pytest.mark.parametrize("trials", [3, 40, 1000])
def test_five_steps_of_newton_reach_the_last_digits(
    monkeypatch: pytest.MonkeyPatch, trials: int, confidence: float
) -> None:
    """A wrong slope reaches the same ends, in tens of steps."""
    counts = np.unique(np.linspace(0, trials, 21).astype(int))
    ends = binomial_intervals(counts, trials, confidence)
    monkeypatch.setattr(count_intervals, "_STEPS", 5)
    np.testing.assert_allclose(binomial_intervals(counts, trials, confidence), ends, rtol=1e-12)


def test_equal_counts_have_equal_intervals_in_their_order() -> None:
    low, high = binomial_intervals(np.array([7, 2, 7]), 10, 0.9)
    assert low[0] == low[2] > low[1] and high[0] == high[2] > high[1]


NULL, SLOPE, CURVATURE, JUMP = 2e-4, 3e-3, 1e-3, 0.02


def variance(p: np.ndarray) -> np.ndarray:
    return NULL + SLOPE * p - CURVATURE * p**2


@pytest.mark.parametrize("counted", [0.02, 0.5, 0.55, 0.97])
@pytest.mark.parametrize("z", [None, 2.5])
def test_at_the_ends_of_a_score_interval_the_estimate_is_z_standard_deviations_away(
    counted: float, z: float | None
) -> None:
    """Of the estimate without its skewness, from which half a report is left out at the near end."""
    raw = np.array([-0.03, 0.0, 0.1, 0.6, 1.02])
    low, high = score_intervals(raw, NULL, SLOPE, CURVATURE, JUMP, counted, confidence=0.9, z=z)
    normal = stats.norm.ppf(0.95)
    centre = raw - (normal**2 - 1) / 6 * (1 - 2 * counted) * JUMP
    below, above = (centre - JUMP / 2, centre) if counted > 0.5 else (centre, centre + JUMP / 2)
    square = normal**2 if z is None else z**2
    here = variance(below) > 0
    np.testing.assert_allclose((below - low)[here] ** 2, (square * variance(low))[here], rtol=1e-9)
    np.testing.assert_allclose((high - above) ** 2, square * variance(high), rtol=1e-9)
    assert (low[here] < below[here]).all() and (above < high).all()


def test_where_the_estimate_could_not_vary_it_is_its_own_lower_end() -> None:
    """An estimate so far below 0 that no frequency below it has a variance."""
    low, _ = score_intervals(np.array([-0.5]), np.array([0.0]), SLOPE, CURVATURE, 0.0, 0.0, confidence=0.9)
    assert low.tolist() == [-0.5]


def test_every_interval_may_have_its_own_confidence() -> None:
    raw, levels = np.array([0.1, 0.1]), np.array([0.5, 0.9])
    found = score_intervals(raw, NULL, SLOPE, CURVATURE, JUMP, 0.1, confidence=levels)
    for place, level in enumerate(levels):
        alone = score_intervals(raw[:1], NULL, SLOPE, CURVATURE, JUMP, 0.1, confidence=float(level))
        assert [end[place] for end in found] == [end[0] for end in alone]
