"""Weighted least squares over hashed symbols, with the standard errors that follow from the known noise.

Letters: C cohorts, k buckets, S unknowns, n_c reports of cohort c; H_c is the 0/1 matrix of ``Buckets``, J = I - 1/k if
the system is centred, else I. The mechanism gives unbiased bucket frequencies u_c with E[u_c] = H_c p.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from scipy import linalg

from uldp_transforms.ldp.errors import IllConditionedError, InsufficientCohortsError
from uldp_transforms.ldp.estimators.buckets import Buckets

_MAX_CONDITION = 1e8
_BLOCK = 256  # rows that are copied at a time


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Observation:
    """What hashed symbols say about S unknowns.

    Attributes:
        owner: name of the collection, for messages.
        buckets: which bucket an unknown falls into; C cohorts, all of which sent reports.
        num_reports: (C,) n_c.
        inverted: (C, k) u_c, unbiased bucket frequencies.
        noise: of plausible bucket frequencies P_c (C, k) the (C, k) variances D such that n_c Cov(u_c) acts on what
            J keeps as diag(D_c) - P_c P_c^T.
        mass: sum of all frequencies, listed or not, in a bucket vector (1, or h with h hash functions).
        centred: subtract the mean over buckets, which takes out what unlisted values add to every bucket alike.
        complete: the unknowns are all there is, so their frequencies sum to 1.
    """

    owner: str
    buckets: Buckets
    num_reports: np.ndarray
    inverted: np.ndarray
    noise: Callable[[np.ndarray], np.ndarray]
    mass: float
    centred: bool
    complete: bool

    def centre(self, cells: np.ndarray) -> np.ndarray:
        """J x of each cohort; (C, k) -> (C, k)."""
        return cells - cells.mean(axis=1, keepdims=True) if self.centred else cells

    def plausible(self, fitted: np.ndarray) -> np.ndarray:
        """Bucket frequencies near the fitted ones that can be, (C, k)."""
        if not self.centred:
            plausible: np.ndarray = np.maximum(fitted, 0)
            return plausible
        positive = np.maximum(self.centre(fitted) + self.mass / self.buckets.num_buckets, 0)
        scaled: np.ndarray = self.mass * positive / np.maximum(positive.sum(axis=1, keepdims=True), 1e-300)
        return scaled


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Solution:
    """What least squares found.

    Attributes:
        frequencies: (S,).
        variances: (S,), of the frequencies.
        variance_of_sum: of the unknowns whose sum was of interest.
        misfit, degrees: sum of squared residuals in units of the known noise, and its degrees of freedom: nearly
            chi-square if there are no unlisted values and clients are honest. 0 and 0 if the system is not centred.
    """

    frequencies: np.ndarray
    variances: np.ndarray
    variance_of_sum: float
    misfit: float
    degrees: float


def least_squares(given: Observation, summed: np.ndarray) -> Solution:
    """Minimise sum_c n_c |J (u_c - H_c p)|^2.

    Standard errors: the known covariance of u_c through the linear map ("sandwich"), plus, in centred systems, what
    the residuals show beyond it: the hash noise of unlisted values.

    Args:
        given: the observation.
        summed: (S,) bool, the unknowns whose sum is of interest.

    Raises:
        InsufficientCohortsError: if there are fewer equations than unknowns.
        IllConditionedError: if the unknowns can hardly be told apart.

    Source: Kairouz, Bonawitz and Ramage 2016, section 5; centring, weights and errors are derived in
    docs/estimation.md.
    """
    degrees = _degrees_of_freedom(given)
    buckets, u = given.buckets, given.centre(given.inverted)
    weights = np.broadcast_to(given.num_reports[:, np.newaxis].astype(np.float64), u.shape)
    gram = buckets.gram(weights, centred=given.centred)
    inverse, offset = _solver(gram, given.complete, given.owner)
    frequencies = inverse @ buckets.gather(weights * u).sum(axis=0) + offset

    fitted = buckets.forward(frequencies)
    shares = given.plausible(fitted)
    variances = given.noise(shares)
    noise = buckets.gram(weights * variances, centred=given.centred)
    spread = np.sqrt(given.num_reports)[:, np.newaxis] * buckets.gather(given.centre(shares))
    noise -= spread.T @ spread
    squares = float((given.num_reports[:, np.newaxis] * (u - given.centre(fitted)) ** 2).sum())
    known, effective = _residual_law(given, shares, variances)
    centred = given.centred and degrees > 0
    excess = max(squares / degrees - known, 0.0) if centred else 0.0
    own = np.einsum("ii->i", inverse)
    direction = inverse @ summed.astype(np.float64)
    return Solution(
        frequencies=frequencies,
        variance_of_sum=float(direction @ noise @ direction + excess * direction[summed].sum()),
        variances=_sandwich_diagonal(inverse, noise, gram) + excess * own,
        misfit=effective * squares / known if centred else 0.0,
        degrees=effective * degrees if centred else 0.0,
    )


def _degrees_of_freedom(given: Observation) -> int:
    num_cohorts, num_unknowns = len(given.num_reports), int(given.buckets.table.shape[1])
    per_cohort = given.buckets.num_buckets - 1  # what a cohort's buckets sum to is the same for every unknown
    shared = given.complete or not given.centred
    degrees = num_cohorts * per_cohort + shared - num_unknowns
    if degrees < 0:
        raise InsufficientCohortsError(
            f"collection {given.owner!r}: {num_unknowns} candidates need at least "
            f"{-(-(num_unknowns - shared) // per_cohort)} reporting cohorts, got {num_cohorts}"
        )
    return degrees


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


def _residual_law(given: Observation, shares: np.ndarray, variances: np.ndarray) -> tuple[float, float]:
    """n_c times the mean variance of a direction that centring leaves, and the factor by which degrees shrink.

    With S_c = J (diag D_c - P_c P_c^T) J the squared residuals of a cohort have the mean tr S_c and the variance
    2 tr S_c^2. A chi-square law of fewer degrees of freedom has the same ratio (Satterthwaite).
    """
    k = given.buckets.num_buckets
    deviations = given.centre(shares)
    lengths = (deviations**2).sum(axis=1)
    total = variances.sum(axis=1)
    mean = total * (1 - 1 / k) - lengths
    square = (variances**2).sum(axis=1) * (1 - 2 / k) + (total / k) ** 2
    square += lengths**2 - 2 * (variances * deviations**2).sum(axis=1)
    return float(mean.mean() / (k - 1)), float(mean.sum() ** 2 / square.sum() / (len(mean) * (k - 1)))


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
