"""Inputs and results of the solvers of hashed symbols.

Notation: C cohorts, k buckets, S unknowns, n_c reports of cohort c; H_c is the 0/1 matrix of the buckets of cohort c,
J = I - 1/k if the system is centred, else I. The mechanism gives unbiased bucket frequencies u_c with E[u_c] = H_c p.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

from uldp_transforms.ldp.solvers.buckets import Buckets
from uldp_transforms.ldp.solvers.hash_chance import Chance, ChanceOfMeans
from uldp_transforms.ldp.solvers.packed import PackedBuckets

_NEWTON_STEPS = 50
_ENOUGH = 1e-9  # relative to the degrees of freedom
B = TypeVar("B", Buckets, PackedBuckets)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Observation(Generic[B]):
    """Observed frequencies of hashed symbols, and how they depend on S unknowns.

    Attributes:
        owner: name of the collection, for error messages.
        buckets: the bucket of each unknown in each cohort.
        num_reports: (C,) n_c; above 0 in all cohorts for ``least_squares``.
        inverted: (C, k) u_c, unbiased bucket frequencies.
        noise: function of plausible bucket frequencies P_c (C, k) that returns the (C, k) variances D such that n_c
            Cov(u_c) equals diag(D_c) - P_c P_c^T after centring. D is linear in P.
        mass: sum of a bucket vector over all values, listed or not (1, or h with h hash functions).
        centred: whether to subtract the mean over buckets, which removes the even contribution of unlisted values.
        complete: whether the unknowns are all values that share these buckets, so that their sum is known.
        jump: n times the contribution of one more counted report to its unknown's estimate.
        counted: average share of all reports that are counted in a bucket.
        total_variance: of the share of people whose values share these buckets, which other symbols tell; 0 if
            everybody has such a value.
    """

    owner: str
    buckets: B
    num_reports: np.ndarray
    inverted: np.ndarray
    noise: Callable[[np.ndarray], np.ndarray]
    mass: float
    centred: bool
    complete: bool
    jump: float = 0.0
    counted: float = 0.0
    total_variance: float = 0.0

    @property
    def total(self) -> float:
        """Share of people whose values share these buckets: the sum of the unknowns of a complete list."""
        return self.mass / self.buckets.num_hashes

    def variance_of_total(self, shares: Any, frequencies: Any) -> Any:
        """What the error of ``total`` adds to the variances of estimates, or sums of them, with these shares of it.

        With the share q of the total t the estimate p is the sum of p - q t, which comes from differences between
        buckets, and of q t. Both are correlated: n Cov(p - q t, t) = (1 - t) (p - q t), from sampling people.
        """
        if not self.complete or not self.total_variance:
            return 0.0
        apart = (1 - self.total) * (frequencies - shares * self.total) / self.num_reports.sum()
        return shares**2 * self.total_variance + 2 * shares * apart

    def centre(self, cells: np.ndarray) -> np.ndarray:
        """J x of each cohort; (C, k) -> (C, k)."""
        return cells - cells.mean(axis=1, keepdims=True) if self.centred else cells

    def plausible(self, fitted: np.ndarray) -> np.ndarray:
        """Possible bucket frequencies near the fitted ones, (C, k)."""
        if not self.centred:
            plausible: np.ndarray = np.maximum(fitted, 0)
            return plausible
        positive = np.maximum(self.centre(fitted) + self.mass / self.buckets.num_buckets, 0)
        scaled: np.ndarray = self.mass * positive / np.maximum(positive.sum(axis=1, keepdims=True), 1e-300)
        return scaled

    @functools.cached_property
    def noise_law(self) -> tuple[float, float]:
        """D of an empty bucket, and the increase of D per unit of the bucket's own frequency, at constant mass."""
        mass = self.mass if self.mass > 0 else 1.0
        variances = self.noise(mass * np.eye(1, self.buckets.num_buckets))[0]
        return float(variances[1]), float(variances[0] - variances[1]) / mass


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class OwnNoise:
    """The variance of an estimate as a function of its own true frequency p: null + slope p - curvature p^2.

    Attributes:
        null, slope, curvature: (S,).
        least: (S,) the null if all buckets of the unknown were empty: a lower bound of the null.
    """

    null: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray
    least: np.ndarray

    def at(self, frequencies: np.ndarray) -> np.ndarray:
        """(S,) the variances if these are the frequencies."""
        variances: np.ndarray = self.null + self.slope * frequencies - self.curvature * frequencies**2
        return variances

    def through(self, frequencies: np.ndarray, variances: np.ndarray) -> OwnNoise:
        """This function with another null, such that the variances at the frequencies are ``variances``; all (S,)."""
        rest = variances - self.slope * frequencies + self.curvature * frequencies**2
        return dataclasses.replace(self, null=np.maximum(rest, self.least))


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Solution:
    """The result of a solver.

    Attributes:
        frequencies: (S,).
        variances: (S,), of the frequencies.
        own: the variances as functions of the true frequencies; None if the system is not centred.
        jump: n times the contribution of one more counted report to an estimate; (S,) if it differs between estimates.
        counted: average share of all reports that are counted in a bucket.
        variance_of_sum: (...), variances of the sums with the weights ``summed``, (..., S).
        misfit, degrees: sum of squared residuals in units of the known noise, and its degrees of freedom: approximately
            chi-square if there are no unlisted values and clients are honest. Both are 0 if unknown.
        spare: degrees of freedom of the noise level that was estimated from residuals: equations less unknowns.
            Infinity if no noise level was estimated.
        common: (S,) hash noise: the part of the variances that is the same in all windows. Unbiased, so possibly
            negative. None where hashing adds no noise.
        common_of_sum: (...), hash noise in ``variance_of_sum``; None where hashing adds no noise.
        chance: distribution of the error from collisions with unlisted texts; None if there are no unlisted texts, or
            no residuals to estimate it from.
    """

    frequencies: np.ndarray
    variances: np.ndarray
    own: OwnNoise | None
    jump: float | np.ndarray
    variance_of_sum: float | np.ndarray
    misfit: float
    degrees: float
    spare: float
    counted: float = 0.0
    common: np.ndarray | None = None
    common_of_sum: np.ndarray | None = None
    chance: Chance | ChanceOfMeans | None = None


def residual_law(given: Observation[B], shares: np.ndarray, variances: np.ndarray) -> tuple[float, float]:
    """n_c times the mean variance per direction after centring, and the factor for the degrees of freedom.

    With S_c = J (diag D_c - P_c P_c^T) J the squared residuals of a cohort have the mean tr S_c and the variance
    2 tr S_c^2. A chi-square distribution with fewer degrees of freedom has the same ratio (Satterthwaite).
    """
    k = given.buckets.num_buckets
    deviations = given.centre(shares)
    lengths = (deviations**2).sum(axis=1)
    total = variances.sum(axis=1)
    mean = total * (1 - 1 / k) - lengths
    square = (variances**2).sum(axis=1) * (1 - 2 / k) + (total / k) ** 2
    square += lengths**2 - 2 * (variances * deviations**2).sum(axis=1)
    return float(mean.mean() / (k - 1)), float(mean.sum() ** 2 / square.sum() / (len(mean) * (k - 1)))


def common_noise(squares: np.ndarray, degrees: float, known: np.ndarray) -> float:
    """The excess variance per direction, equal in all cohorts, that squared residuals show beyond the known variance.

    It is the hash noise, which does not depend on the number of reports: the unique positive number, if there is one,
    for which the squares in units of their variance, sum_c squares_c / (known_c + common), equal their degrees of
    freedom (Paule and Mandel 1982). The sum decreases and is convex, so Newton's steps from 0 converge to it from
    below.

    Args:
        squares: (C,) sums of squared residuals.
        degrees: of all of them; above 0.
        known: (C,) variances per direction.
    """
    common = 0.0
    for _ in range(_NEWTON_STEPS):
        ratios = squares / (known + common)
        excess = float(ratios.sum()) - degrees
        if excess <= degrees * _ENOUGH:
            break
        common += excess / float((ratios / (known + common)).sum())
    return common


def signed_common_noise(squares: np.ndarray, degrees: float, known: np.ndarray) -> float:
    """``common_noise`` to first order and unbiased, so that the mean over windows is right; possibly negative."""
    return (float((squares / known).sum()) - degrees) / degrees * len(known) / float((1 / known).sum())


def own_noise(
    given: Observation[B], weights: np.ndarray, num_reports: np.ndarray, reach: np.ndarray, buckets: float
) -> OwnNoise:
    """The variance of an estimate as a function of its own frequency; the null is not set.

    The estimate moves by w_c / sum(w) with its own buckets of cohort c, and in the opposite direction with all others.
    If the share of its holders rises by p, P rises by p in the own buckets and falls by b p / k in all.

    Args:
        weights: (C,) of the cohorts.
        num_reports: (C,), above 0.
        reach: (S,), response of the estimate to its own frequency: 1 unless the sum is imposed.
        buckets: b, number of buckets of one unknown in a cohort.
    """
    share = buckets / given.buckets.num_buckets
    scale = reach**2 * float((weights**2 / num_reports).sum() / weights.sum() ** 2)
    empty, growth = given.noise_law
    each = scale / (buckets * (1 - share))
    return OwnNoise(
        null=np.zeros_like(scale), slope=each * growth * (1 - 2 * share), curvature=scale, least=each * empty
    )
