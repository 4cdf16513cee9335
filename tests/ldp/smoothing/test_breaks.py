"""Breaks in the course of a value: their odds against whole normal laws, and how many there may be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from uldp_transforms.ldp.smoothing import Series
from uldp_transforms.ldp.smoothing.breaks import Broken, _found, _log_odds
from uldp_transforms.ldp.smoothing.series import Law


def some_values(raw: np.ndarray, shifts: Any = 0, pulses: Any = 0, deviation: float = 0.02) -> Broken:
    """Values of which the windows say with this deviation what drifts a little; some share their noise."""
    size = raw.shape
    series = Series(
        raw=raw,
        variances=np.full(size, deviation**2),
        common=np.linspace(0, 1e-4, size[1]),
        num_reports=np.full(size[0], 1000),
        steps=1 + np.arange(size[0]) % 2,
    )
    noise = deviation**2 * (1 + np.arange(size[0]) % 3)[:, np.newaxis] * np.ones(size)
    law = Law(np.full(size[1], 0.2), noise, np.full(size, 1e-5))
    drift, nugget = np.linspace(1e-6, 1e-5, size[1]), np.linspace(1e-4, 2e-4, size[1])
    return Broken.of(series, law, drift, nugget, shifts + np.zeros(size), pulses + np.zeros(size))


def a_walk(windows: int, values: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng([83, seed])
    return 0.2 + np.cumsum(rng.normal(0, 0.003, (windows, values)), axis=0) + rng.normal(0, 0.03, (windows, values))


def covariance_of(values: Broken, value: int) -> np.ndarray:
    """(T, T) of what the windows say."""
    steps = values.series.steps * values.drift[value] + values.shifts[:, value] + np.eye(1, len(values.shifts))[0]
    walk = np.cumsum(steps)
    alone = values.law.noise + values.law.people + values.pulses
    return np.minimum.outer(walk, walk) + np.diag(alone[:, value] + values.nugget[value])


def test_odds_of_a_change_are_those_of_the_whole_normal_law() -> None:
    """A change has 16 times the variance of a window, and .2 of either kind are expected in a series."""
    raw, shifts, pulses = a_walk(7, 3, 1), np.zeros((7, 3)), np.zeros((7, 3))
    raw[4:, 0] += 0.1
    raw[2, 1], shifts[5, 1], pulses[3, 2] = np.nan, 0.03, 0.01
    values = some_values(raw, shifts, pulses)
    found = _log_odds(values)
    for value in range(3):
        seen, covariance = values.series.seen[:, value], covariance_of(values, value)
        width = 16 * ((values.law.noise + values.law.people)[:, value].mean() + values.nugget[value])

        def log_density(more: np.ndarray) -> float:
            law = (covariance + more)[np.ix_(seen, seen)]  # noqa: B023  # called in this turn
            return float(stats.multivariate_normal.logpdf(raw[seen, value], cov=law))  # noqa: B023

        for t in range(7):
            for kind, direction in enumerate((np.arange(7) >= t, np.arange(7) == t)):
                known = (shifts, pulses)[kind][t, value] > 0
                expected = log_density(width * np.outer(direction, direction)) - log_density(np.zeros((7, 7)))
                expected += np.log(0.2 / 7)
                impossible = known or not seen[t] or (kind, t) == (0, 0)
                assert found[kind, t, value] == (-np.inf if impossible else pytest.approx(expected, abs=1e-6))


def test_a_value_has_at_most_eight_changes() -> None:
    raw = np.full((40, 1), 0.2)
    raw[2::4] += 0.5
    shifts, pulses = _found(some_values(raw, deviation=0.01))
    assert (np.count_nonzero(shifts), np.count_nonzero(pulses)) == (0, 8)
