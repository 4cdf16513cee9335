"""Weighted least squares over hashed symbols, with the standard errors that follow from the known noise.

Exact, by dense S x S matrices. Letters as in ``observation``.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import linalg

from uldp_transforms.ldp.errors import IllConditionedError, InsufficientCohortsError
from uldp_transforms.ldp.estimators.buckets import Buckets
from uldp_transforms.ldp.estimators.observation import (
    Observation,
    Solution,
    common_noise,
    own_noise,
    residual_law,
    signed_common_noise,
)

_MAX_CONDITION = 1e8
_ROUNDS = 6  # of weights, which settle in two or three
_UNEVEN = 0.1  # of better weights: the square, 1 %, is what they would take off the variances
_BLOCK = 256  # rows that are copied at a time


def least_squares(given: Observation[Buckets], summed: np.ndarray) -> Solution:
    """Minimise sum_c w_c |J (u_c - H_c p)|^2, w_c being the precision of cohort c up to a factor.

    The weights begin as n_c. If the residuals show noise beyond the known one, which hashing adds to all cohorts
    alike, cohorts with many reports are given less.
    Standard errors: the known covariance of u_c through the linear map ("sandwich"), plus, in centred systems, what
    the residuals show beyond it: the hash noise of unlisted values.

    Args:
        given: the observation; all cohorts sent reports.
        summed: (S,) bool, the unknowns whose sum is of interest.

    Raises:
        InsufficientCohortsError: if there are fewer equations than unknowns.
        IllConditionedError: if the unknowns can hardly be told apart.

    Source: Kairouz, Bonawitz and Ramage 2016, section 5; centring, weights and errors are derived in
    docs/estimation.md.
    """
    num_cohorts, num_unknowns = given.buckets.table.shape[:2]
    shared = given.complete or not given.centred
    spare = spare_equations(given.owner, num_cohorts, given.buckets.num_buckets, num_unknowns, shared=shared)
    weights = given.num_reports.astype(np.float64)
    for _ in range(_ROUNDS):
        fit = _fit(given, weights, spare)
        if not fit.common:
            break
        better = 1 / (fit.privacy / given.num_reports + fit.common)
        ratios = better / weights
        if ratios.std() <= _UNEVEN * ratios.mean():
            break
        weights = better
    return _solution(given, fit, summed, spare)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class _Fit:
    """Least squares with some weights.

    Attributes:
        weights: (C,).
        gram: (S, S).
        inverse, offset: (S, S) and (S,), P and q of ``_solver``.
        frequencies: (S,).
        shares, variances: (C, k), plausible bucket frequencies and their noise D.
        privacy: known noise of a direction, for one report.
        effective: factor by which degrees shrink because that noise is not the same in all directions.
        common: noise of a direction beyond it, in all cohorts alike.
        signed: the same without bias, maybe below 0.
        squares: sum of n_c times the squared residuals.
    """

    weights: np.ndarray
    gram: np.ndarray
    inverse: np.ndarray
    offset: np.ndarray
    frequencies: np.ndarray
    shares: np.ndarray
    variances: np.ndarray
    privacy: float
    effective: float
    common: float
    signed: float
    squares: float


def _fit(given: Observation[Buckets], weights: np.ndarray, spare: int) -> _Fit:
    buckets, u, n = given.buckets, given.centre(given.inverted), given.num_reports
    cells = np.broadcast_to(weights[:, np.newaxis], u.shape)
    gram = buckets.gram(cells, centred=given.centred)
    inverse, offset = _solver(gram, given.complete, given.owner)
    frequencies = inverse @ buckets.gather(cells * u).sum(axis=0) + offset
    fitted = buckets.forward(frequencies)
    shares = given.plausible(fitted)
    variances = given.noise(shares)
    privacy, effective = residual_law(given, shares, variances)
    squares = ((u - given.centre(fitted)) ** 2).sum(axis=1)
    common = signed = 0.0
    if given.centred and spare > 0:
        common = common_noise(squares, spare, privacy / n)
        signed = signed_common_noise(squares, spare, privacy / n)
    return _Fit(
        weights=weights,
        gram=gram,
        inverse=inverse,
        offset=offset,
        frequencies=frequencies,
        shares=shares,
        variances=variances,
        privacy=privacy,
        effective=effective,
        common=common,
        signed=signed,
        squares=float(n @ squares),
    )


def _solution(given: Observation[Buckets], fit: _Fit, summed: np.ndarray, spare: int) -> Solution:
    """The fit with its variances; ``fit.gram`` is overwritten."""
    buckets, n, weights = given.buckets, given.num_reports, fit.weights
    per_report = (weights**2 / n)[:, np.newaxis]
    known = per_report * fit.variances + (weights**2)[:, np.newaxis] * fit.common
    noise = buckets.gram(known, centred=given.centred)
    spread = np.sqrt(per_report) * buckets.gather(given.centre(fit.shares))
    noise -= spread.T @ spread
    direction = fit.inverse @ summed.astype(np.float64)
    variance_of_sum = float(direction @ noise @ direction)
    variances = _sandwich_diagonal(fit.inverse, noise, fit.gram)
    own = None
    if given.centred:
        reach = 1 - fit.offset if given.complete else np.ones(len(variances))
        mean_buckets = min(buckets.num_hashes * 1.0, buckets.num_buckets / 2)
        own = own_noise(given, weights, n, reach, mean_buckets)
        own = own.through(np.maximum(fit.frequencies, 0), variances)
    judged = given.centred and spare > 0
    jump = given.jump * float(np.sqrt(per_report.sum() / n.sum()) / weights.sum())
    common = fit.signed * float((weights**2).sum() / weights.sum()) * np.diag(fit.inverse)
    return Solution(
        frequencies=fit.frequencies,
        variances=variances + jump**2,
        own=own,
        jump=jump,
        counted=given.counted,
        variance_of_sum=variance_of_sum,
        misfit=fit.effective * fit.squares / fit.privacy if judged else 0.0,
        degrees=fit.effective * spare if judged else 0.0,
        spare=float(spare) if judged and not given.complete else np.inf,
        common=common if judged else None,
    )


def spare_equations(owner: str, num_cohorts: int, num_buckets: int, num_unknowns: int, *, shared: bool) -> int:
    """Equations less unknowns.

    Args:
        owner: name of the collection, for the message.
        num_cohorts: C.
        num_buckets: k.
        num_unknowns: S.
        shared: what the buckets of a cohort sum to, which is the same in all, is an equation too.

    Raises:
        InsufficientCohortsError: if there are fewer equations than unknowns.
    """
    spare = num_cohorts * (num_buckets - 1) + shared - num_unknowns
    if spare < 0:
        raise InsufficientCohortsError(
            f"collection {owner!r}: {num_unknowns} candidates need at least "
            f"{-(-(num_unknowns - shared) // (num_buckets - 1))} reporting cohorts, got {num_cohorts}"
        )
    return spare


def _sandwich_diagonal(inverse: np.ndarray, noise: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """The diagonal of inverse @ noise @ inverse; ``noise`` and ``gram`` are overwritten.

    Noise is a multiple of the system, whose part is simply that multiple of the inverse, and a small rest, for which
    single precision is enough.
    """
    own = np.einsum("ii->i", inverse)
    multiple = np.trace(noise) / np.trace(gram)
    gram *= multiple
    noise -= gram
    single = inverse.astype(np.float32)
    rest = np.einsum("ij,ij->i", single @ noise.astype(np.float32), single)
    products: np.ndarray = multiple * own + rest
    return products


def _mirror(lower: np.ndarray) -> None:
    """Copy the lower triangle of a square matrix onto the upper one, in place."""
    for start in range(0, len(lower), _BLOCK):
        end = start + _BLOCK
        lower[start:end, end:] = lower[end:, start:end].T
        corner = lower[start:end, start:end]
        corner[:] = np.tril(corner) + np.tril(corner, -1).T


def _solver(gram: np.ndarray, complete: bool, owner: str) -> tuple[np.ndarray, np.ndarray]:
    """Matrix P and vector q such that p = P g + q minimises p^T G p / 2 - g^T p, with sum(p) = 1 if complete.

    Raises:
        IllConditionedError: if G is singular (on the plane sum(p) = 1, if complete) or nearly so.
    """
    size = len(gram)
    system = gram + np.trace(gram) / size**2 if complete else gram  # does not change minima with sum(p) = 1
    factor, info = linalg.lapack.dpotrf(system, lower=True)
    reciprocal = linalg.lapack.dpocon(factor, linalg.lapack.dlange("1", system), uplo="L")[0] if info == 0 else 0.0
    condition = 1 / reciprocal if reciprocal > 0 else np.inf
    if not condition < _MAX_CONDITION:
        raise IllConditionedError(
            f"collection {owner!r}: {size} candidates must be distinguishable with a condition number below "
            f"{_MAX_CONDITION:g}, got {condition:.3g}"
        )
    inverse = linalg.lapack.dpotri(factor, lower=True, overwrite_c=True)[0]
    _mirror(inverse)
    if not complete:
        return inverse, np.zeros(size)
    direction = inverse.sum(axis=1)
    offset = direction / direction.sum()
    return inverse - np.outer(offset, direction), offset
