"""Weighted least squares over hashed symbols, with standard errors from the known noise.

Exact solution by dense S x S matrices. For the notation see ``observation``.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import linalg

from uldp_transforms.ldp.errors import IllConditionedError, InsufficientCohortsError
from uldp_transforms.ldp.solvers.buckets import Buckets
from uldp_transforms.ldp.solvers.hash_chance import Absorbed, Chance
from uldp_transforms.ldp.solvers.observation import (
    Observation,
    OwnNoise,
    Solution,
    common_noise,
    own_noise,
    residual_law,
    signed_common_noise,
)
from uldp_transforms.ldp.solvers.overfull import centre, leave_out, lengths

_MAX_CONDITION = 1e8
_ROUNDS = 6  # of reweighting, which converges in two or three
_UNEVEN = 0.1  # minimum change of weights worth a new fit: its square, 1 %, is the gain in variance
_MORE = 4  # pseudo-reports that are added for the variances of rare unknowns
_FEW_COHORTS = 64  # up to which the content that an estimate absorbs from its cells is not negligible
_BLOCK = 256  # rows that are copied at a time


def least_squares(given: Observation[Buckets], summed: np.ndarray) -> Solution:
    """Minimise sum_c w_c |J (u_c - H_c p)|^2, w_c being proportional to the precision of cohort c.

    The initial weights are n_c. If the residuals show noise beyond the known noise, which hashing adds to all cohorts
    equally, cohorts with many reports get less weight.
    Standard errors: the known covariance of u_c propagated through the linear map ("sandwich"), plus, in centred
    systems, the excess noise in the residuals: the hash noise of unlisted values.

    Args:
        given: the observation; every cohort has reports.
        summed: (..., S), weights of sums of interest, such as True and False.

    Raises:
        InsufficientCohortsError: if there are fewer equations than unknowns.
        IllConditionedError: if the unknowns are nearly indistinguishable.

    Source: Kairouz, Bonawitz and Ramage 2016, section 5; centring, weights and errors are derived in
    docs/estimation.md.
    """
    num_cohorts, num_unknowns = given.buckets.table.shape[:2]
    shared = given.complete or not given.centred
    spare = spare_equations(given.owner, num_cohorts, given.buckets.num_buckets, num_unknowns, shared=shared)
    fit = whole = _settle(given, np.ones_like(given.inverted), spare)
    if given.centred and not given.complete:
        fit = leave_out(given, whole, _without)
    return _solution(given, fit, whole, summed)


def _settle(given: Observation[Buckets], kept: np.ndarray, spare: int) -> _Fit:
    """Least squares over some cells, iteratively reweighted from its own residuals."""
    weights = given.num_reports.astype(np.float64)
    for _ in range(_ROUNDS):
        fit = _fit(given, weights, kept, spare)
        if not fit.common:
            break
        better = 1 / (fit.privacy / given.num_reports + fit.common)
        ratios = better / weights
        if ratios.std() <= _UNEVEN * ratios.mean():
            break
        weights = better
    return fit


def _without(given: Observation[Buckets], last: _Fit, kept: np.ndarray) -> _Fit | None:
    """The fit to fewer cells; None if these leave the unknowns nearly indistinguishable."""
    spare = last.spare - int(np.count_nonzero(last.kept) - np.count_nonzero(kept))
    if spare <= 0:
        return None
    try:
        return _settle(given, kept, spare)
    except IllConditionedError:
        return None


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class _Fit:
    """Least squares with some weights, over some cells.

    Attributes:
        kept: (C, k) 1 for cells that are used, 0 for those that are left out.
        weights: (C,).
        gram: (S, S).
        inverse, offset: (S, S) and (S,), P and q of ``solver``: q is the share of the total that each unknown receives.
        frequencies: (S,).
        fitted, residuals: (C, k) fitted bucket frequencies, and the remainder.
        shares, variances: (C, k), plausible bucket frequencies and their noise D.
        privacy: known noise per direction, for one report.
        effective: factor that reduces the degrees of freedom because that noise differs between directions.
        common: excess noise per direction, the same in all cohorts.
        signed: unbiased version of ``common``, possibly negative.
        squares: sum of n_c times the squared residuals.
        spare: equations less unknowns.
        error: mean standard error of the unknowns, without the sampling noise of their own holders.
    """

    kept: np.ndarray
    weights: np.ndarray
    gram: np.ndarray
    inverse: np.ndarray
    offset: np.ndarray
    frequencies: np.ndarray
    fitted: np.ndarray
    residuals: np.ndarray
    shares: np.ndarray
    variances: np.ndarray
    privacy: float
    effective: float
    common: float
    signed: float
    squares: float
    spare: int
    error: float


def _fit(given: Observation[Buckets], weights: np.ndarray, kept: np.ndarray, spare: int) -> _Fit:
    buckets, u, n = given.buckets, _centre(given, given.inverted, kept), given.num_reports
    cells = np.broadcast_to(weights[:, np.newaxis], u.shape)
    gram = _gram(given, cells, kept)
    inverse, offset = solver(gram, given.complete, given.owner)
    frequencies = inverse @ buckets.collect(cells * u) + offset * given.total
    fitted = buckets.forward(frequencies)
    shares = given.plausible(fitted)
    variances = given.noise(shares)
    privacy, effective = residual_law(given, shares, variances)
    residuals = u - _centre(given, fitted, kept)
    squares = (residuals**2).sum(axis=1)
    common = signed = 0.0
    if given.centred and spare > 0:
        common = common_noise(squares, spare, privacy / n)
        signed = signed_common_noise(squares, spare, privacy / n)
    level = float(weights**2 @ (privacy / n + common) / weights.sum())
    return _Fit(
        kept=kept,
        weights=weights,
        gram=gram,
        inverse=inverse,
        offset=offset,
        frequencies=frequencies,
        fitted=fitted,
        residuals=residuals,
        shares=shares,
        variances=variances,
        privacy=privacy,
        effective=effective,
        common=common,
        signed=signed,
        squares=float(n @ squares),
        spare=spare,
        error=float(np.sqrt(max(level * np.diag(inverse).mean(), 0))),
    )


def _centre(given: Observation[Buckets], cells: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """J x of each cohort, over the cells that are kept."""
    return given.centre(cells) if kept.all() else centre(cells, kept)


def _gram(given: Observation[Buckets], weights: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """sum_c H_c^T J W_c J H_c (S, S), over the cells that are kept."""
    if kept.all():
        return given.buckets.gram(weights, centred=given.centred)
    return given.buckets.gram_within(weights, kept)


def _solution(given: Observation[Buckets], fit: _Fit, whole: _Fit, summed: np.ndarray) -> Solution:
    """The fit with its variances, and the goodness of fit over all cells; ``fit.gram`` is overwritten."""
    buckets, n, weights = given.buckets, given.num_reports, fit.weights
    per_report = (weights**2 / n)[:, np.newaxis]
    noise = _gram(given, per_report * fit.variances + (weights**2)[:, np.newaxis] * fit.common, fit.kept)
    spread = np.sqrt(per_report) * buckets.gather(_centre(given, fit.shares, fit.kept))
    noise -= spread.T @ spread
    rows = np.atleast_2d(summed).astype(np.float64)
    directions = [fit.inverse @ row for row in rows]
    variance_of_sum = np.array([direction @ noise @ direction for direction in directions])
    variance_of_sum += given.variance_of_total(rows @ fit.offset, rows @ fit.frequencies)
    shape = summed.shape[:-1]
    variances = _sandwich_diagonal(fit.inverse, noise, fit.gram)
    variances = variances + given.variance_of_total(fit.offset, fit.frequencies)
    own = None
    if given.centred:
        own = own_noise(given, weights, n, _reach(given, fit), float(min(buckets.num_hashes, buckets.num_buckets / 2)))
        own = _as_if_more_were_seen(given, own.through(_held(given, fit.frequencies), variances))
    judged = given.centred and whole.spare > 0
    jump = given.jump * float(np.sqrt(per_report.sum() / n.sum()) / weights.sum())
    signed = fit.signed * float((weights**2).sum() / weights.sum())
    return Solution(
        frequencies=fit.frequencies,
        variances=variances + jump**2,
        own=own,
        jump=jump,
        counted=given.counted,
        variance_of_sum=variance_of_sum.reshape(shape),
        misfit=whole.effective * whole.squares / whole.privacy if judged else 0.0,
        degrees=whole.effective * whole.spare if judged else 0.0,
        spare=float(fit.spare) if judged and not given.complete else np.inf,
        common=signed * np.diag(fit.inverse) if judged else None,
        common_of_sum=signed * np.einsum("ri,ri->r", directions, rows).reshape(shape) if judged else None,
        chance=_chance(given, fit) if judged and not given.complete and fit.spare else None,
    )


def _chance(given: Observation[Buckets], fit: _Fit) -> Chance:
    """Contribution of cells to the estimate of an unknown with randomly drawn buckets.

    The contribution is the leave-one-out residual of a cell: the residual over 1 - h, h being the leverage. Each
    unknown in a cell is estimated from its other cohorts, with a variance proportional to 1 / (sum(w) - w_c). With few
    equations an unknown also takes part of the noise of its neighbours; so the standard deviation of the cells is at
    least the error.
    """
    weights, total = fit.weights[:, np.newaxis], float(fit.weights.sum())
    held = given.buckets.forward(np.ones(len(fit.frequencies)))
    others = total - weights
    absorbed = np.divide(weights * held, others, out=np.zeros_like(held), where=others > 0)  # h / (1 - h)
    each: np.ndarray = weights * fit.residuals * fit.kept / (total * (1 - 1 / given.buckets.num_buckets))
    if given.buckets.num_hashes > 1 or len(weights) > _FEW_COHORTS:
        return Chance(each * (1 + absorbed), least=fit.error)
    gains = fit.weights / (total * (1 - 1 / given.buckets.num_buckets))
    present = each * np.divide(weights, others, out=np.zeros_like(weights), where=others > 0)
    return Chance(each * (1 + absorbed), least=fit.error, absorbed=Absorbed(given.buckets.table, gains, present))


def _held(given: Observation[Buckets], frequencies: np.ndarray) -> np.ndarray:
    """(S,): content of the plausible buckets, on which the variances are based, that belongs to each unknown.

    The sum is at most 1. The positive ones among many noisy frequencies would sum to more, and would on average explain
    more of the noise than there is.
    """
    positive = np.maximum(frequencies, 0)
    held: np.ndarray = positive - max(float(positive.sum()) - given.mass, 0) / len(positive)
    return held


def _as_if_more_were_seen(given: Observation[Buckets], own: OwnNoise) -> OwnNoise:
    """The variances with a lower bound for the nulls that few reports make too small.

    Of n reports about N = n counted fall into the buckets of an unknown. The number of its own reports is estimated
    from these N, so if the unknown seems frequent, the others seem rare and the null becomes too small. The null is
    computed as if ``_MORE`` other reports of equally frequent unknowns had been counted.
    """
    n, even = given.num_reports, given.mass / given.buckets.table.shape[1]
    filled = given.buckets.forward(np.full(given.buckets.table.shape[1], even))
    others = np.maximum(given.buckets.collect(n[:, np.newaxis] * filled) / n.sum() - even, 0)
    empty, growth = given.noise_law
    alike = own.least * (1 + growth / empty * others)
    seen = n.sum() * given.counted
    null = np.maximum(own.null, (seen * own.null + _MORE * alike) / (seen + _MORE))
    return dataclasses.replace(own, null=null)


def _reach(given: Observation[Buckets], fit: _Fit) -> np.ndarray:
    """(S,) response of an estimate to its own frequency, relative to that with all cells in use."""
    if fit.kept.all():
        return 1 - fit.offset
    full = (1 - 1 / given.buckets.num_buckets) * fit.weights.sum()
    thinned: np.ndarray = np.sqrt(np.maximum(full / lengths(given.buckets, fit.weights, fit.kept), 1))
    return thinned


def spare_equations(owner: str, num_cohorts: int, num_buckets: int, num_unknowns: int, *, shared: bool) -> int:
    """Number of equations less number of unknowns.

    Args:
        owner: name of the collection, for the error message.
        num_cohorts: C.
        num_buckets: k.
        num_unknowns: S.
        shared: whether the sum over buckets of a cohort, which is the same in all cohorts, is an equation too.

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

    ``noise`` is a multiple of ``gram``, whose contribution is that multiple of the inverse, plus a small remainder, for
    which single precision is sufficient.
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


def solver(gram: np.ndarray, complete: bool, owner: str) -> tuple[np.ndarray, np.ndarray]:
    """Matrix P and vector q such that p = P g + t q minimises p^T G p / 2 - g^T p, with sum(p) = t if complete.

    Raises:
        IllConditionedError: if G is singular (on the plane sum(p) = t, if complete) or nearly so.
    """
    size = len(gram)
    system = gram + np.trace(gram) / size**2 if complete else gram  # leaves minima with sum(p) = t unchanged
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
