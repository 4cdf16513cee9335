"""Buckets, cohorts and the precision of candidates of open alphabets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support.ldp.small_mechanisms import make
from uldp_transforms.ldp.alphabets import Hashed
from uldp_transforms_planner.planning import (
    best_num_buckets,
    cohorts_needed,
    distinguishable_share,
    hashed_variance,
)


@pytest.mark.parametrize(("size", "epsilon"), [(1, 3), (20, 2), (20, 8), (256, 8), (10_000, 6)])
def test_own_people_make_fewer_buckets_the_best(size, epsilon):
    """The sum of a rare candidate's variance and of what its holders add, from the mechanism's own variances."""

    def loss(k: int) -> float:
        mechanism = make("krr", k, k, epsilon=epsilon)
        rare = hashed_variance(mechanism, 1, 60_000, 1)
        full, empty = (float(mechanism.private_variances(np.eye(k)[place])[0]) for place in (0, 1))
        return size * rare + 0.9 * (k - 2) / (k - 1) * (full - empty)

    best = best_num_buckets(epsilon, 1, size, 0.9)
    assert best <= best_num_buckets(epsilon, 1, size, 0)
    assert loss(best) <= min(map(loss, np.unique(np.geomspace(2, 4000, 150).astype(int)).tolist())) * (1 + 1e-3)


@pytest.mark.parametrize("epsilon", [0.2, 1, 2.5, 5])
def test_no_other_number_of_buckets_is_more_precise(epsilon):
    best = best_num_buckets(epsilon, candidate_share=0)

    def variance(k: int) -> float:
        return hashed_variance(make("krr", k, k, epsilon=epsilon), 1, 60_000, 1)  # so many cohorts count nothing

    assert variance(best) <= min(variance(k) for k in range(2, 400)) * (1 + 1e-4)


def test_cohorts_are_no_more_than_allowed():
    assert cohorts_needed(100, 4, 200) == 200
    assert cohorts_needed(100, 4, 2) == 2


# ---------------------------------------------------------------------- precision


@pytest.mark.parametrize("share", [0.1, 0.7, 1.0])
@pytest.mark.parametrize(("k", "epsilon"), [(4, 1), (8, 2), (30, 0.5)])
def test_closed_forms_of_the_noise_of_candidates(k, epsilon, share):
    e, u, listed = math.exp(epsilon), math.expm1(epsilon), 3
    others = 1 - share

    def found(name: str, **fields: int) -> float:
        mechanism = make(name, k + listed, k, epsilon=epsilon, **fields)
        endless = 60_000
        correction = 1 - 1 / (endless * (k - 1))
        return hashed_variance(mechanism, 1, endless, 1, sensitive_share=share) * correction

    protected = share + others * k / (k + u)
    assert found("urr") == pytest.approx(protected * (k + u) ** 2 / ((k - 1) * u**2), rel=1e-8)
    d = k // 3 + 1
    delta = u * d * (k - d) / ((k - 1) * (d * u + k))
    protected = share + others * k / (k + u * d)
    subsets = (k / (k - 1)) ** 2 * protected * (d / k) * (1 - d / k) / delta**2
    assert found("uss", subset_size=d) == pytest.approx(subsets, rel=1e-8)
    theta = math.exp(epsilon / 2) / (1 + math.exp(epsilon / 2))
    psi, noise = 1 - theta, 1 - u * theta / e
    inner = share * (theta * (1 - psi) + (1 - theta) * psi + (k - 2) * psi * (1 - psi))
    bits = (inner + others * noise * k * psi * (1 - psi)) / ((k - 1) * (theta - psi) ** 2)
    assert found("urap") == pytest.approx(bits, rel=1e-7)


@pytest.mark.parametrize(("k", "cohorts", "candidates"), [(4, 64, 40), (8, 40, 60), (3, 120, 50)])
@pytest.mark.parametrize("name", ["krr", "ss", "rappor"])
def test_leading_term_of_least_squares(name, k, cohorts, candidates):
    """The exact covariance of least squares over the library's own hash functions, with equally frequent candidates.

    The formula is the leading term: within 10 %.
    """
    mechanism = make(name, k, k, epsilon=1)
    table = Hashed(num_buckets=k, seed=3).symbol_table(tuple(map(str, range(candidates))), cohorts)
    centring = np.eye(k) - 1 / k
    gram, meat = np.zeros((2, candidates, candidates))
    for symbols in table:
        operator = centring @ np.eye(k)[:, symbols]
        p = np.bincount(symbols, minlength=k) / candidates
        weights = np.eye(k)
        covariance = np.array(  # polarisation of variances of sums
            [[mechanism.variance_of(a + b, p) - mechanism.variance_of(a - b, p) for b in weights] for a in weights]
        )
        gram += operator.T @ operator
        meat += operator.T @ covariance @ operator / 4
    inverse = np.linalg.inv(gram)
    exact = cohorts * np.diag(inverse @ meat @ inverse).mean()
    assert hashed_variance(mechanism, 1, cohorts, candidates) == pytest.approx(exact, rel=0.1)


def test_unlisted_texts_are_noise_that_does_not_fall_with_reports():
    mechanism = make("krr", 4, 4, epsilon=1)
    for n in (10**3, 10**15):
        more = hashed_variance(mechanism, n, 100, 60, unlisted_squares=0.01) - hashed_variance(mechanism, n, 100, 60)
        assert more == pytest.approx(0.01 / 300 / (1 - 60 / 300), rel=1e-6)


# ---------------------------------------------------------------------- telling texts apart


@pytest.mark.parametrize(("k", "cohorts", "candidates"), [(2, 1, 2), (2, 3, 4), (3, 1, 5)])
def test_distinguishable_share_is_that_of_all_hash_functions(k, cohorts, candidates):
    """A text has one of k**C equally likely rows of buckets, and so has each other one."""
    rows = k**cohorts
    alone = sum(math.prod(other != 0 for other in others) for others in np.ndindex(*[rows] * (candidates - 1)))
    assert distinguishable_share(k, cohorts, candidates) == pytest.approx(alone / rows ** (candidates - 1))
