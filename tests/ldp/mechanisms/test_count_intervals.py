"""Ends of score intervals by their definition, and equal ends for equal counts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from uldp_transforms.ldp.mechanisms.count_intervals import binomial_intervals, score_intervals


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
