"""The parts of forecasts: by hand, by integration, and six digits of what they were."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.support.ldp.small_mechanisms import SIX_DIGITS, zipf
from uldp_transforms_planner.planning import hashed_forecast
from uldp_transforms_planner.planning.forecast import Estimates, Groups, Together


def digits(number: float) -> Any:
    return pytest.approx(number, rel=SIX_DIGITS)


# ---------------------------------------------------------------------- errors of estimates


def estimates(**fields: Any) -> Estimates:
    arrays = {name: np.array(value, dtype=float) for name, value in fields.items() if isinstance(value, list)}
    return Estimates(**fields | arrays)


def test_errors_of_estimates_by_hand() -> None:
    """Two values with the variance 0.01 and one with 0.04, of which so many reports are counted that all is normal."""
    one = estimates(numbers=[2, 1], variances=[0.01, 0.04], counted=[50, 900], steps=[0.02, 0.1], num_reports=1000)
    assert one.l2 == pytest.approx(0.06)
    assert (one.l1, one.normal_l1) == (pytest.approx(math.sqrt(2 / math.pi) * 0.4),) * 2
    z = stats.norm.isf(0.025)
    squares = 2 * (0.01 + (z * 0.01) ** 2) + 0.04 + (z * 0.05) ** 2
    assert one.half_width() == pytest.approx(z * math.sqrt(squares / 3))
    quantiles = stats.norm.isf(0.05 / 2 / 7) + stats.norm.isf(0.2)
    assert one.change(7) == pytest.approx(quantiles * math.sqrt(2 * 0.06 / 3))
    both = Together((one, one))
    assert (both.l1, both.l2, both.normal_l1) == (2 * one.l1, 2 * one.l2, 2 * one.normal_l1)


# ---------------------------------------------------------------------- hashed candidates


def test_frequencies_that_are_not_known_yet_are_the_bayes_risk_of_the_prior() -> None:
    """By integration on a fine grid, within 2 %. What stands out by more than four errors costs its own variance."""
    prior, error = zipf(20), 0.05
    seen, low = np.linspace(-0.5, 1, 6001)[:, np.newaxis], prior[prior <= 4 * error]
    joint = stats.norm.pdf(seen, low, error)
    mean = joint @ low / joint.sum(axis=1)
    risk = (joint * (low - mean[:, np.newaxis]) ** 2).sum() * (seen[1, 0] - seen[0, 0])
    expected = risk + (len(prior) - len(low)) * error**2
    assert hashed_forecast._unknown(Groups.of(prior), error) == pytest.approx(expected, rel=0.02)


def test_golden_fixed_points_of_message_passing() -> None:
    many = Groups.of(0.9 * zipf(3000))
    assert hashed_forecast._fixed_point(1e-6, many, 5e-4, 500) == digits(3.01043e-6)
    assert hashed_forecast._fixed_point(1e-5, many, 0.0, 100) == digits(2.92551e-5)
    assert hashed_forecast._fixed_point(1e-9, Groups.of(zipf(600)), 0.0, 5000) == digits(1.13736e-9)
