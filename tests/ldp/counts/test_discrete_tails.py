"""Tails of discrete distributions have the bits of ``scipy.stats``, over wide ranges and at all edges."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from uldp_transforms.ldp.counts.discrete_tails import Binomial, Hypergeometric, NegativeBinomial

NUMBER = 20_000
PROBABILITIES = (1e-18, 5e-6, 0.3, 1 - 1e-9)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(41)


def _sizes(rng: np.random.Generator, most: float) -> np.ndarray:
    """Small and large integers."""
    large = np.exp(rng.uniform(0, np.log(most), NUMBER)).astype(np.int64)
    return np.where(rng.random(NUMBER) < 0.4, rng.integers(0, 20, NUMBER), large)


def _rates(rng: np.random.Generator) -> np.ndarray:
    """With 0 and 1, and very small ones."""
    rates = np.where(rng.random(NUMBER) < 0.5, rng.random(NUMBER), 10 ** rng.uniform(-9, 0, NUMBER))
    return np.where(rng.random(NUMBER) < 0.1, rng.choice([0.0, 1.0], NUMBER), rates)


def _counts(
    rng: np.random.Generator, low: np.ndarray, high: np.ndarray, mean: np.ndarray, sd: np.ndarray
) -> np.ndarray:
    """Near the mean, anywhere, at both ends and outside of them."""
    near = np.rint(mean + sd * rng.uniform(-8, 8, NUMBER)).astype(np.int64)
    anywhere = low + (rng.random(NUMBER) * (high - low + 1)).astype(np.int64)
    chosen = np.stack([near, anywhere, low, high, low - 1, high + 1])
    return chosen[rng.integers(0, len(chosen), NUMBER), np.arange(NUMBER)]


def _assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    assert not np.isnan(expected).any()
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize(("ours", "theirs"), [(Binomial.cdf, stats.binom.cdf), (Binomial.sf, stats.binom.sf)])
def test_binomial_tails(
    rng: np.random.Generator, ours: Callable[..., np.ndarray], theirs: Callable[..., np.ndarray]
) -> None:
    trials, rates = _sizes(rng, 1e13), _rates(rng)
    mean = trials * rates
    counts = _counts(rng, np.zeros_like(trials), trials, mean, np.sqrt(mean * (1 - rates)))
    _assert_same(ours(counts, trials, rates), theirs(counts, trials, rates))


@pytest.mark.parametrize("probability", PROBABILITIES)
def test_binomial_quantiles(rng: np.random.Generator, probability: float) -> None:
    trials, rates = _sizes(rng, 1e13), _rates(rng)
    _assert_same(Binomial.ppf(probability, trials, rates), stats.binom.ppf(probability, trials, rates))


@pytest.mark.parametrize("probability", PROBABILITIES)
@pytest.mark.parametrize(
    ("ours", "theirs"), [(NegativeBinomial.ppf, stats.nbinom.ppf), (NegativeBinomial.isf, stats.nbinom.isf)]
)
def test_negative_binomial_quantiles(
    rng: np.random.Generator,
    ours: Callable[..., np.ndarray],
    theirs: Callable[..., np.ndarray],
    probability: float,
) -> None:
    successes, rates = _sizes(rng, 1e9) + 1, np.maximum(_rates(rng), 1e-4)
    _assert_same(ours(probability, successes, rates), theirs(probability, successes, rates))


@pytest.mark.parametrize(
    ("ours", "theirs"), [(Hypergeometric.cdf, stats.hypergeom.cdf), (Hypergeometric.sf, stats.hypergeom.sf)]
)
def test_hypergeometric_tails(
    rng: np.random.Generator, ours: Callable[..., np.ndarray], theirs: Callable[..., np.ndarray]
) -> None:
    total = _sizes(rng, 1e7) + 1
    marked, drawn = (np.rint(rng.random(NUMBER) * total).astype(np.int64) for _ in range(2))
    low, high = np.maximum(drawn - (total - marked), 0), np.minimum(marked, drawn)
    mean = marked * (drawn / total)
    counts = _counts(rng, low, high, mean, np.sqrt(mean * (1 - marked / total) * (1 - drawn / total)))
    _assert_same(ours(counts, total, marked, drawn), theirs(counts, total, marked, drawn))
