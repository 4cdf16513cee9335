"""Least squares over hashed symbols: point, variances and the variance of a sum against dense matrices.

Here the noise is any function of the bucket frequencies, not that of a mechanism; with mechanisms: test_estimators.py
and test_open_uldp.py. Letters: C cohorts, k buckets, S unknowns.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import optimize

from tests.support.calibration import excess_slack
from tests.support.tolerance import chi_square_limits, generator, normal_limit
from uldp_transforms.ldp.errors import IllConditionedError, InsufficientCohortsError
from uldp_transforms.ldp.solvers.buckets import Buckets
from uldp_transforms.ldp.solvers.least_squares import least_squares
from uldp_transforms.ldp.solvers.observation import Observation, Solution

SYSTEMS = {"centred": (True, False), "complete": (True, True), "uncentred": (False, False), "both": (False, True)}
systems = pytest.mark.parametrize(("centred", "complete"), SYSTEMS.values(), ids=SYSTEMS)


def observation(
    size: int, k: int, centred: bool, complete: bool, *, num_hashes: int = 1, disturbed: float = 0.1
) -> Observation[Buckets]:
    """Random hash functions, uneven cohorts, bucket frequencies near those of a random distribution."""
    rng = generator("observation", size, k, centred, complete, num_hashes)
    num_cohorts = 3 + -(-size // (k - 1))
    shape = (num_cohorts, size) if num_hashes == 1 else (num_cohorts, size, num_hashes)
    buckets = Buckets(rng.integers(0, k, shape), k)
    truth = rng.dirichlet(np.ones(size))
    inverted = buckets.forward(truth) + disturbed * rng.normal(size=(num_cohorts, k))
    return Observation(
        owner="c",
        buckets=buckets,
        num_reports=rng.integers(20, 2000, num_cohorts),
        inverted=inverted,
        noise=lambda shares: 0.3 + 2 * shares + np.arange(k) / k,
        mass=0.7 if centred else 1.0,
        centred=centred,
        complete=complete,
    )


@dataclasses.dataclass
class Dense:
    """One fit by whole matrices; ``linear`` maps the stacked observations (C k,) to frequencies."""

    frequencies: np.ndarray
    linear: np.ndarray
    known: np.ndarray
    direction: float
    effective: float
    squares: np.ndarray
    spare: int

    def common(self, num_reports: np.ndarray) -> float:
        """The common noise for which the squares in units of their variance are as many as the spare equations."""

        def excess(common: float) -> float:
            return float((self.squares / (self.direction / num_reports + common)).sum()) - self.spare

        if self.spare <= 0 or excess(0) <= 0:
            return 0.0
        return float(optimize.brentq(excess, 0, self.squares.sum(), xtol=1e-16))


def dense_fit(given: Observation[Buckets], weights: np.ndarray) -> Dense:
    """By a pseudo-inverse of the stacked system and a block-diagonal covariance."""
    k, table = given.buckets.num_buckets, given.buckets.table
    several = table if table.ndim == 3 else table[:, :, np.newaxis]
    size = several.shape[1]
    J = np.eye(k) - given.centred / k
    blocks = [np.array([(row == b).any(axis=1) for b in range(k)], dtype=float) for row in several]
    roots = np.repeat(np.sqrt(weights), k)
    system = np.vstack([J @ block for block in blocks])
    target = np.concatenate([J @ row for row in given.inverted])
    free = np.linalg.svd(np.ones((1, size)))[2][1:].T if given.complete else np.eye(size)
    start = np.full(size, given.total / size) if given.complete else np.zeros(size)
    linear = free @ np.linalg.pinv(roots[:, np.newaxis] * (system @ free)) * roots
    p = start + linear @ (target - system @ start)
    known = np.zeros((len(target), len(target)))
    covariances = []
    for c, block in enumerate(blocks):
        shares = np.maximum(block @ p, 0)
        if given.centred:
            shares = np.maximum(J @ block @ p + given.mass / k, 0)
            shares *= given.mass / shares.sum()
        covariances.append(J @ (np.diag(given.noise(shares[np.newaxis])[0]) - np.outer(shares, shares)) @ J)
        known[c * k : (c + 1) * k, c * k : (c + 1) * k] = covariances[-1] / given.num_reports[c]
    expected = np.mean([np.trace(covariance) for covariance in covariances]) / (k - 1)
    squared = np.mean([np.trace(covariance @ covariance) for covariance in covariances]) / (k - 1)
    return Dense(
        frequencies=p,
        linear=linear,
        known=known,
        direction=expected,
        effective=expected**2 / squared,  # Satterthwaite
        squares=((target - system @ p) ** 2).reshape(-1, k).sum(axis=1),
        spare=len(blocks) * (k - 1) - free.shape[1] if given.centred else 0,
    )


def dense_solution(given: Observation[Buckets], summed: np.ndarray) -> Solution:
    """Weights by precision, until better ones would take less than a hundredth off the variances."""
    n = given.num_reports
    weights = n.astype(float)
    for _ in range(6):
        fit = dense_fit(given, weights)
        better = 1 / (fit.direction / n + fit.common(n))
        if np.var(better / weights) <= 0.01 * np.mean(better / weights) ** 2:
            break
        weights = better
    covariance = fit.linear @ (fit.known + fit.common(n) * np.eye(len(fit.known))) @ fit.linear.T
    judged = fit.spare > 0
    return Solution(
        frequencies=fit.frequencies,
        variances=np.diag(covariance),
        own=None,
        jump=0.0,
        variance_of_sum=np.einsum("...i,ij,...j", summed, covariance, summed),
        misfit=fit.effective * float((n * fit.squares).sum()) / fit.direction if judged else 0.0,
        degrees=fit.effective * fit.spare if judged else 0.0,
        spare=float(fit.spare) if judged and not given.complete else np.inf,
    )


def assert_same(found: Solution, expected: Solution) -> None:
    np.testing.assert_allclose(found.frequencies, expected.frequencies, atol=1e-9)
    np.testing.assert_allclose(found.variances, expected.variances, rtol=1e-5)  # single precision
    assert found.variance_of_sum == pytest.approx(expected.variance_of_sum, rel=1e-7, abs=1e-12)
    assert found.misfit == pytest.approx(expected.misfit)
    assert found.degrees == pytest.approx(expected.degrees)
    assert found.spare == expected.spare


@systems
@pytest.mark.parametrize(("size", "k"), [(2, 2), (9, 4), (30, 5), (12, 24), (40, 30)])
@pytest.mark.parametrize("disturbed", [0.01, 1.0])
def test_it_is_the_dense_solution(centred, complete, size, k, disturbed):
    """Small residuals have no excess over the known noise, large ones have."""
    given = observation(size, k, centred, complete, disturbed=disturbed)
    rng = generator("summed", size, k)
    summed = np.array([rng.random(size) < 0.6, rng.normal(size=size)])
    found = least_squares(given, summed)
    assert_same(found, dense_solution(given, summed))
    if complete:
        assert found.frequencies.sum() == pytest.approx(given.total)
        assert least_squares(given, np.ones(size, dtype=bool)).variance_of_sum == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("k", [3, 8])
def test_several_hash_functions(k):
    given = observation(10, k, True, False, num_hashes=2)
    summed = np.ones(10, dtype=bool)
    assert_same(least_squares(given, summed), dense_solution(given, summed))


SQUARE = np.array([[0, 1, 0, 2, 1], [0, 0, 1, 1, 2]])
"""Two cohorts of three buckets: the first 4 columns are independent when centred, all 5 are where the sum is known."""


@pytest.mark.parametrize("complete", [False, True])
def test_as_many_equations_as_unknowns_are_enough(complete):
    """The solution fits exactly, and residuals say nothing about the noise."""
    given = dataclasses.replace(
        observation(3, 3, True, complete),
        buckets=Buckets(SQUARE[:, : 4 + complete], 3),
        num_reports=np.array([100, 300]),
        inverted=generator("square").random((2, 3)),
    )
    summed = np.arange(4 + complete) < 3
    found = least_squares(given, summed)
    assert_same(found, dense_solution(given, summed))
    assert found.degrees == found.misfit == 0
    fitted = given.buckets.forward(found.frequencies)
    np.testing.assert_allclose(given.centre(fitted), given.centre(given.inverted), atol=1e-9)


@pytest.mark.parametrize("complete", [False, True])
def test_one_unknown_too_many_is_refused(complete):
    table = np.concatenate([SQUARE[:, : 4 + complete], [[2], [2]]], axis=1)
    given = dataclasses.replace(
        observation(3, 3, True, complete),
        buckets=Buckets(table, 3),
        num_reports=np.array([100, 300]),
        inverted=np.zeros((2, 3)),
    )
    with pytest.raises(InsufficientCohortsError, match=f"{5 + complete} candidates need at least 3 reporting cohorts"):
        least_squares(given, np.ones(5 + complete, dtype=bool))


@systems
def test_unknowns_that_always_share_a_bucket_are_refused(centred, complete):
    given = observation(6, 4, centred, complete)
    table = given.buckets.table[:, [0, 1, 2, 3, 4, 0]]
    given = dataclasses.replace(given, buckets=Buckets(table, 4))
    with pytest.raises(IllConditionedError, match="6 candidates must be distinguishable"):
        least_squares(given, np.ones(6, dtype=bool))


def noise_of(variances: np.ndarray, shares: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(C, k): normal with covariance diag(D) - P P^T in each cohort: variance D, less a part of what is along P."""
    noise = np.sqrt(variances) * rng.normal(size=shares.shape)
    size = (shares**2 / variances).sum(axis=1, keepdims=True)
    along = (noise * shares / variances).sum(axis=1, keepdims=True)
    return noise - (1 - np.sqrt(1 - size)) / size * along * shares


def test_the_variances_are_those_of_repeated_observations():
    """Buckets seen through noise with exactly the assumed covariance, many times; nothing is unlisted."""
    size, k, repeats = 6, 4, 800
    given = dataclasses.replace(observation(size, k, True, False), mass=1.0)
    truth = np.full(size, 1 / size)
    shares = given.buckets.forward(truth)
    rng = generator("repeated")
    errors, variances = np.empty((repeats, size)), np.empty((repeats, size))
    for i in range(repeats):
        noise = noise_of(given.noise(shares), shares, rng) / np.sqrt(given.num_reports)[:, np.newaxis]
        seen = dataclasses.replace(given, inverted=shares + noise)
        found = least_squares(seen, np.ones(size, dtype=bool))
        errors[i], variances[i] = found.frequencies - truth, found.variances
    mean = errors.mean(axis=0) / np.sqrt(variances.mean(axis=0) / repeats)
    assert (abs(mean) <= normal_limit(size)).all()
    squares = (errors**2).sum(axis=0) / variances.mean(axis=0)
    low, high = chi_square_limits(repeats, size)
    degrees = len(given.num_reports) * (k - 1) - size
    assert ((low / (1 + excess_slack(degrees)) <= squares) & (squares <= high)).all(), squares / repeats
