"""The filter and the smoother against linear algebra, the likelihood against scipy, coverage by simulation.

The independent side writes the whole Gaussian model down as one covariance matrix and conditions on what was seen.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

from tests.support.ldp.noisy_stream import noisy_stream
from uldp_transforms.ldp.smoothing import (
    Law,
    Series,
    course_of,
    drift_fit,
    filtered,
    fit,
    log_likelihood,
    own_shares,
    smoothed,
    track,
)

DRIFT, NUGGET = 3e-4, 2e-3


def some_series(seed: int, windows: int = 9, values: int = 4, *, missing: bool = True) -> Series:
    """Noise that differs by window and value, gaps between windows, and missing estimates."""
    rng = np.random.default_rng(seed)
    raw = rng.normal(0.2, 0.1, (windows, values))
    if missing:
        raw[rng.random(raw.shape) < 0.2] = np.nan
    n = rng.integers(50, 500, windows)
    return Series(
        raw=raw,
        variances=rng.uniform(1, 3, (1, values)) / n[:, np.newaxis],
        common=rng.uniform(0, 1e-4, values),
        num_reports=n,
        steps=rng.integers(1, 4, windows),
    )


def joint_law(series: Series, value: int, moved: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Covariances of what was seen with itself, (T, T), and of the own shares with what was seen, (T, T)."""
    law, windows = series.law(), len(series.raw)
    added = series.steps * DRIFT * law.shares[value] + np.eye(1, windows)[0]  # before the first nothing is known: 1
    if moved is not None:
        added = added + moved[:, value]
    walk = np.cumsum(added)
    trend = np.minimum.outer(walk, walk)
    own = trend + np.diag(law.people[:, value] + NUGGET * law.shares[value])
    return own + np.diag(law.noise[:, value]), own


def posterior(series: Series, value: int, told: np.ndarray, moved: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
    """Means and variances (T,) of the own shares, given those windows that are ``told`` and seen."""
    told = told & series.seen[:, value]
    observed, own = joint_law(series, value, moved)
    gain = np.linalg.solve(observed[np.ix_(told, told)], own[told]).T
    means = gain @ series.raw[told, value]
    variances = np.diag(own) - np.einsum("ij,ij->i", gain, own[:, told])
    return means, variances + series.common[value]


def drift_and_nugget(series: Series) -> tuple[np.ndarray, np.ndarray]:
    shares = series.law().shares
    return DRIFT * shares, NUGGET * shares


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_smoothed_is_the_posterior(seed: int, missing: bool) -> None:
    series = some_series(seed, missing=missing)
    law = series.law()
    moved = np.random.default_rng(seed).random(series.raw.shape) < 0.1
    found = own_shares(series, law, course_of(series, law, *drift_and_nugget(series), moved.astype(float)))
    for value in range(4):
        expected = posterior(series, value, np.ones(len(series.raw), dtype=bool), moved)
        seen = series.seen[:, value]
        np.testing.assert_allclose(found[0][seen, value], expected[0][seen], rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose(found[1][seen, value], expected[1][seen], rtol=1e-6)
        assert np.isnan(found[0][~seen, value]).all()


@pytest.mark.parametrize("seed", range(5))
def test_filtered_is_the_posterior_of_the_windows_so_far(seed: int) -> None:
    """Of the model of alarms too, whose filter it is."""
    series = some_series(seed)
    law = series.law()
    course = track(series, law, DRIFT, NUGGET)
    for t in range(len(series.raw)):
        known, own = series.until(t + 1), Law(law.shares, law.noise[: t + 1], law.people[: t + 1])
        so_far = course_of(known, own, *drift_and_nugget(series))
        np.testing.assert_allclose(so_far.mean[t], course.level[t], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(so_far.variance[t], course.variance[t], rtol=1e-9)
        means, variances = own_shares(known, own, so_far)
        for value in np.flatnonzero(series.seen[t]):
            expected = posterior(series, value, np.arange(len(series.raw)) <= t)
            np.testing.assert_allclose(means[t, value], expected[0][t], rtol=1e-7, atol=1e-10)
            np.testing.assert_allclose(variances[t, value], expected[1][t], rtol=1e-6)


def test_the_filter_ends_where_the_smoother_begins() -> None:
    series, _ = noisy_stream(np.random.default_rng(1), windows=30)
    both, last = smoothed(series), filtered(series, 29)
    for name in ("means", "low", "high"):
        np.testing.assert_array_equal(getattr(last, name)[0], getattr(both, name)[-1])
    earlier = filtered(series, 20)
    changed = dataclasses.replace(series, raw=np.where(np.arange(30)[:, np.newaxis] > 20, np.nan, series.raw))
    np.testing.assert_array_equal(earlier.means, filtered(changed, 20).means)


@pytest.mark.parametrize("seed", range(4))
def test_windows_together_are_as_one_after_the_other(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many at a time are computed by the same operations, so nothing differs; with jumps, gaps and missing cells."""
    rng = np.random.default_rng([31, seed])
    series, _ = noisy_stream(rng, drift=1e-6, nugget=5e-4)
    raw, jumps = series.raw.copy(), [12, 20, 21, 44]
    missing = rng.random(raw.shape) < 0.05
    missing[30], missing[jumps, jumps] = True, False
    raw[missing] = np.nan
    for t in jumps:
        raw[t:, t] += 0.4
    series = dataclasses.replace(series, raw=raw, steps=rng.integers(1, 3, len(raw)), jump=2.0)
    moved = np.zeros(raw.shape, dtype=bool)
    moved[jumps, jumps] = True
    grid, found = np.array([0, 1e-6, 1e-3]), []
    for together in (drift_fit._TOGETHER, 1):
        monkeypatch.setattr(drift_fit, "_TOGETHER", together)
        found.append(log_likelihood(series, series.law(), grid, grid[::-1], moved, 3.0))
    np.testing.assert_allclose(*found, rtol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_likelihood_is_that_of_the_normal_law(seed: int) -> None:
    series = some_series(seed, windows=40)
    expected = 0.0
    for value in range(4):
        told = series.seen[:, value]
        observed, _ = joint_law(series, value)
        expected += stats.multivariate_normal.logpdf(series.raw[told, value], cov=observed[np.ix_(told, told)])
    found = log_likelihood(series, series.law(), np.array([DRIFT, 1e-5]), np.array([NUGGET, 0.1]))
    assert found.shape == (2,)
    assert found[0] - series.seen.sum() * np.log(2 * np.pi) / 2 == pytest.approx(expected, rel=1e-9)


def test_the_bend_is_huber_s() -> None:
    """One window: z = 10 counts as 2 b z - b^2 instead of z^2."""
    series = Series(
        raw=np.array([[10.0]]),
        variances=np.array([[1.0]]),
        common=np.zeros(1),
        num_reports=np.array([10**9]),
        steps=np.ones(1),
        spread=np.zeros(1),
    )
    law = series.law()
    straight, bent = (log_likelihood(series, law, np.zeros(1), np.zeros(1), bend=bend)[0] for bend in (np.inf, 3.0))
    z = 10 / np.sqrt(law.noise + law.people)[0, 0]
    assert bent - straight == pytest.approx((z**2 - (6 * z - 9)) / 2)


# ------------------------------------------------------------------------------------------------ simulated streams


def test_fitted_numbers_are_near_the_truth() -> None:
    """The grid ends in steps of 1.33; likelihoods of 3,000 innovations are within a factor of 3 (seen: 1.5)."""
    series, _ = noisy_stream(np.random.default_rng(5), drift=1e-4, nugget=1e-3, n=20_000)
    drift, nugget = fit(series, series.law())
    assert 1 / 3 < drift / 1e-4 < 3
    assert 1 / 3 < nugget / 1e-3 < 3
