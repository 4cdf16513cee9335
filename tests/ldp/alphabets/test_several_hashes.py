"""One hash function of O-RAPPOR is never worse than several at the same epsilon: docs/decisions/0063-planning.md."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.tolerance import generator, normal_limit
from uldp_transforms.ldp.mechanisms import Rappor
from uldp_transforms.ldp.sampling import SeededSource

EPSILONS = np.arange(0.5, 8.01, 0.5)


def rappor(epsilon: float, num_hashes: int, num_buckets: int, theta: float | None = None) -> Rappor:
    return Rappor(
        num_symbols=num_buckets, num_sensitive=num_buckets, num_hashes=num_hashes, epsilon=epsilon, theta=theta
    )


def bit_noise(mechanism: Rappor) -> float:
    """r: variance of one inverted noise bit, from the client's own numbers."""
    psi = float(mechanism.noise_rate)
    return psi * (1 - psi) / mechanism.delta**2


def noise_part(mechanism: Rappor, different: int) -> float:
    """The first term of v_h, for a candidate with so many different buckets."""
    return bit_noise(mechanism) / (different * (1 - different / mechanism.num_symbols))


@pytest.mark.parametrize("theta", [None, 0.5, 0.9])
@pytest.mark.parametrize("num_buckets", [8, 16, 64, 1024])
def test_the_noise_is_at_least_h_times_that_of_one(num_buckets, theta):
    factors = [
        noise_part(rappor(epsilon, h, num_buckets, theta), different)
        / noise_part(rappor(epsilon, 1, num_buckets, theta), 1)
        / h
        for epsilon in EPSILONS
        for h in range(2, 17)
        for different in range(1, min(h, num_buckets - 1) + 1)
    ]
    assert min(factors) >= 1 - 1e-6, "psi is rounded to 32 bits"


@pytest.mark.parametrize("h", [1, 2, 4])
def test_the_formula_is_the_variance_of_reports(h):
    """Everybody holds a text with h random different buckets; the candidate, which nobody holds, has h of its own."""
    k, epsilon, n = 16, 3.0, 200_000
    rng, mechanism = generator("several hashes", h), rappor(3.0, h, k)
    held = np.argsort(rng.random((n, k)), axis=1)[:, :h]
    reports = mechanism.perturb(held if h > 1 else held[:, 0], SeededSource(rng))
    bits = (mechanism.supports(reports) - float(mechanism.noise_rate)) / mechanism.delta
    own = np.arange(k) < h
    contributions = (bits - bits.mean(axis=1, keepdims=True)) @ own / (h * (1 - h / k))
    expected = noise_part(mechanism, h) + 1 / (k - 1)
    squares = contributions**2
    assert abs(contributions.mean()) <= normal_limit() * np.sqrt(expected / n)
    assert abs(squares.mean() - expected) <= normal_limit() * squares.std() / np.sqrt(n), epsilon
