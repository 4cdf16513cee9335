"""Strict intervals: against the exact quantiles of Beta laws, and by enumeration of every count."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from uldp_transforms.ldp.mechanisms.binomial_law import clopper_pearson
from uldp_transforms.ldp.mechanisms.count_intervals import binomial_intervals, score_intervals

ALPHAS = 0.05 * np.array([1, 0.3, 0.1, 0.01, 1e-3, 1e-4, 1e-5])
"""Of the last of any number of values, to the first of a hundred thousand."""


@pytest.mark.parametrize("trials", [1, 5, 50, 300, 1e4, 1e6, 1e9, 1e11])
@pytest.mark.parametrize("z", [0.5, 1.0, 1.96, 3.0, 5.0, 8.0])
def test_ends_leave_out_what_they_say_and_hardly_less(trials, z):
    """Not for counts of whole numbers alone. Of upper ends near 1 the tail is not a number that a computer has."""
    counts = np.concatenate([np.geomspace(0.5, trials, 60), trials - np.geomspace(0.5, trials, 60)])
    low, high = clopper_pearson(np.sort(counts), trials, z)
    found, tail = np.sort(counts), special.ndtr(-z)
    some = found >= 0.5
    below = special.betainc(found[some], trials - found[some] + 1, low[some]) / tail
    some = (trials - found >= 0.5) & (high < 0.999)
    above = special.betaincc(found[some] + 1, trials - found[some], high[some]) / tail
    for left_out in (below, above):
        assert (left_out < 1.002).all() and (left_out > 0.86).all()
    assert (np.diff(low) > -1e-12).all() and (np.diff(high) > -1e-12).all()
    np.testing.assert_allclose(low, 1 - clopper_pearson(trials - found, trials, z)[1], atol=1e-9)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("z", [1e-9, 0.01, 0.3, 1.96, 8.0, 25.0, 76.0, 200.0])
@pytest.mark.parametrize("trials", [1, 5, 300, 1e4, 1e6, 1e11])
def test_ends_are_numbers_for_every_z(trials, z):
    """Student's law with few degrees of freedom asks for z of 50; where the mode is the end, 0 / 0 must not arise.

    If all n trials succeed, the lower end is that of a Beta(n, 1) law, which leaves out p^n below p.
    """
    counts = np.concatenate([np.geomspace(0.5, trials, 60), trials - np.geomspace(0.5, trials, 60)])
    low, high = clopper_pearson(counts, trials, z)
    assert ((low >= 0) & (low <= 1) & (high >= 0) & (high <= 1)).all()
    assert z < 1 or (low <= high).all()
    expected = special.log_ndtr(-z) / trials
    if -700 < expected < -1e-6:  # elsewhere the end is 0 or 1, but for rounding
        end = clopper_pearson(np.array([trials]), trials, z)[0][0]
        assert trials * np.log(end) == pytest.approx(trials * expected, abs=0.15)


def test_no_count_is_0_and_all_are_1_and_no_interval_is_wanted_where_the_confidence_is_nan():
    low, high = binomial_intervals(np.array([0, 7, 10, 3]), 10, np.array([0.95, 0.99, 0.9999, np.nan]), strict=True)
    assert (low[0], high[2]) == (0, 1)
    assert high[0] == pytest.approx(1 - 0.025**0.1, rel=1e-2)
    assert np.isnan([low[3], high[3]]).all() and np.isfinite([low[:3], high[:3]]).all()


@pytest.mark.parametrize("n", [300, 3000])
def test_every_probability_is_held_at_every_level(n):
    """By enumeration of all counts: what misses is at most alpha, whatever the probability, within 0.2 %."""
    counts = np.arange(n + 1)
    half = np.geomspace(1e-4 / n, 0.5, 1500)
    for alpha in ALPHAS:
        low, high = binomial_intervals(counts, n, np.full(n + 1, 1 - alpha), strict=True)
        assert _missed(low, high, n, np.concatenate([half, 1 - half]), 1.0, 0.0).max() <= 1.002 * alpha


@pytest.mark.parametrize("n", [300, 3000])
@pytest.mark.parametrize(("k", "epsilon"), [(4, 1.0), (64, 4.0), (400, 6.0), (22_027, 10.0), (65_536, 16.0)])
def test_so_is_every_frequency_of_counts_with_noise(n, k, epsilon):
    """k-RR of hashed values with equal cohorts: V is a quadratic function of the frequency, which says it all."""
    q, s = np.exp(-epsilon), 1 / (1 + (k - 1) * np.exp(-epsilon))
    noise, step = 1 / k, (s - q * s) * (k - 1) / k
    raw = (np.arange(n + 1) / n - noise) / step
    law = noise * (1 - noise) / (n * step**2), (1 - 2 * noise) / (n * step), 1 / n
    shares = np.concatenate([[0], np.geomspace(1e-3 / n, 1, 1500)])
    for alpha in ALPHAS:
        low, high = score_intervals(raw, *law, 1 / (n * step), 0.0, confidence=1 - alpha, strict=True)
        assert _missed(low, high, n, shares, step, noise).max() <= 1.002 * alpha


def _missed(low: np.ndarray, high: np.ndarray, n: int, shares: np.ndarray, step: float, noise: float) -> np.ndarray:
    """Of each share, how often intervals (n + 1,) of counts miss it, if noise + step * share are counted."""
    at_least, at_most = np.searchsorted(low, shares, side="right"), np.searchsorted(high, shares, side="left")
    counted = noise + step * shares
    return stats.binom.sf(at_least - 1, n, counted) + stats.binom.cdf(at_most - 1, n, counted)
