"""Buckets, cohorts and the precision of candidates of open alphabets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support.ldp.small_mechanisms import SIX_DIGITS, make
from uldp_transforms.ldp.alphabets import Hashed
from uldp_transforms.ldp.planning import (
    best_num_buckets,
    cohorts_needed,
    cohorts_to_distinguish,
    distinguishable_share,
    hashed_variance,
)
from uldp_transforms.ldp.utility import amplification


@pytest.mark.parametrize(("epsilon", "buckets"), [(1, (3, 3, 4)), (2, (4, 7, 8)), (3, (7, 15, 21)), (4, (13, 36, 56))])
def test_golden_numbers_of_buckets_for_rare_candidates(epsilon, buckets):
    assert tuple(best_num_buckets(epsilon, share, 100, 0) for share in (0.05, 0.5, 1)) == buckets


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


@pytest.mark.parametrize(
    ("candidates", "buckets", "cohorts"),
    [
        (100, 4, 1024),
        (20_000, 8, 1024),
        (1, 64, 1024),
        (256, 404, 324),
        (256, 2982, 64),
        (9, 65536, 64),
        (512, 2, 2048),
    ],
)
def test_cohorts_are_as_many_as_accuracy_wants(candidates, buckets, cohorts):
    """1,024 while buckets are few, 64 where they are many, and four equations for each of up to 512 candidates."""
    assert cohorts_needed(candidates, buckets) == cohorts
    assert cohorts * (buckets - 1) >= 4 * min(candidates, 512)


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


def test_golden_conditions():
    needed = 1 / (1 - 0.99 ** (1 / 255))
    assert needed == pytest.approx(25372.8, rel=SIX_DIGITS)
    assert cohorts_to_distinguish(2, 256, 0.99) == 15 == math.ceil(math.log2(needed))
    assert cohorts_to_distinguish(4, 256, 0.99) == 8
    assert distinguishable_share(4, 8, 256) == pytest.approx(0.996117, rel=SIX_DIGITS)


@pytest.mark.parametrize(("k", "cohorts", "candidates"), [(2, 1, 2), (2, 3, 4), (3, 1, 5)])
def test_distinguishable_share_is_that_of_all_hash_functions(k, cohorts, candidates):
    """A text has one of k**C equally likely rows of buckets, and so has each other one."""
    rows = k**cohorts
    alone = sum(math.prod(other != 0 for other in others) for others in np.ndindex(*[rows] * (candidates - 1)))
    assert distinguishable_share(k, cohorts, candidates) == pytest.approx(alone / rows ** (candidates - 1))


# ---------------------------------------------------------------------- lies


@pytest.mark.parametrize(
    ("mechanism", "sensitive", "clear"),
    [
        (make("urr", 60, 50, epsilon=1), 29.5169, 30.0988),
        (make("urap", 60, 50, epsilon=1), 2.54149, 2.54149),
        (make("krr", 8, 8, epsilon=1), 5.07384, None),
        (make("rappor", 8, 8, epsilon=1, theta=0.5), 3.16395, None),
    ],
    ids=lambda case: getattr(case, "id", None),
)
def test_golden_amplifications(mechanism, sensitive, clear):
    found = amplification(mechanism)
    assert found.sensitive == pytest.approx(sensitive, rel=SIX_DIGITS)
    assert found.clear == (None if clear is None else pytest.approx(clear, rel=SIX_DIGITS))


def test_a_variance_is_that_of_the_shares_of_both_kinds_of_texts():
    """Three buckets of sensitive texts and two other symbols, which share what is left: in numbers by hand."""
    mechanism = make("urr", 5, 3, epsilon=1)
    private = mechanism.private_variances(np.array([0.1, 0.1, 0.1, 0.35, 0.35])).mean()
    expected = (1.5 * private / 1000 + 0.25 / 14) / (1 - 4 / 14)
    found = hashed_variance(mechanism, 1000, 7, 4, sensitive_share=0.3, unlisted_squares=0.25)
    assert found == pytest.approx(expected, rel=1e-12)
