"""The likelihood of outcomes as a function of U frequencies, and its maximum by accelerated, monotone EM."""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
from scipy import sparse

_SMALLEST = 1e-300
_MIXED_IN = 1e-3  # weight of the uniform distribution in the start, so that each observed outcome is possible
_ENOUGH = 1e-4  # minimum share of the increase predicted by the gradient that a long step must achieve (Armijo)
_DIAGONAL = 4  # number of diagonal steps before full Newton steps, each of which takes longer
_FULL = 262_144  # maximum number of coefficients for full Newton steps
_SHORTER, _TRIALS = 0.25, 4  # factor by which a long step is shortened, and maximum number of times


@dataclasses.dataclass(frozen=True, eq=False)
class Likelihood:
    """L(p) = sum_i N_i ln(base_i sum(p) + (rows p)_i), concave on the simplex.

    Attributes:
        counts: (Y,) N_i, number of observations of each outcome; above 0.
        base: (Y,).
        rows: (Y, U) sparse, not negative.
    """

    counts: np.ndarray
    base: np.ndarray
    rows: sparse.csr_array

    @functools.cached_property
    def total(self) -> float:
        """n, number of observations."""
        return float(self.counts.sum())

    @functools.cached_property
    def _largest(self) -> np.ndarray:
        """(Y,): the largest entry of each row."""
        largest: np.ndarray = self.rows.max(axis=1).toarray().ravel()
        return largest

    def fitted(self, point: np.ndarray) -> np.ndarray:
        """(Y,): the probability of each outcome at a point of the simplex, up to its own constant."""
        probabilities: np.ndarray = np.maximum(self.base + self.rows @ point, _SMALLEST)
        return probabilities

    def value(self, fitted: np.ndarray) -> float:
        """L; minus infinity where an observed outcome is impossible."""
        return float(self.counts @ np.log(fitted)) if fitted.min() > _SMALLEST else -np.inf

    def gradient_and_curvature(self, fitted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient d (U,) of L, for which p d = n, and a bound (U,) on the diagonal of minus its second derivative.

        The common term of all frequencies (``base``) is left out of the curvature: it is constant on the simplex.
        """
        ratios = self.counts / fitted
        both = self.rows.T @ np.stack([ratios, self._largest * ratios / fitted], axis=1)
        return both[:, 0] + self.base @ ratios, both[:, 1]

    @functools.cached_property
    def _table(self) -> np.ndarray | None:
        """(Y, U) coefficients of all outcomes; None if they are too many for full Newton steps."""
        if math.prod(self.rows.shape) > _FULL:
            return None
        table: np.ndarray = self.base[:, np.newaxis] + self.rows.toarray()
        return table

    def newton_point(self, fitted: np.ndarray) -> np.ndarray | None:
        """(U,) the distribution where the second-order expansion of L has its maximum; None if it is not computed.

        With s_i = sqrt(N_i) and B = diag(s / fitted) A, the expansion of L - n sum(q) is that of least squares of B q -
        2 s and sqrt(n) sum(q), for q not below 0.

        Source: Kim, Carbonetto, Stephens and Anitescu 2020 (sequential quadratic programming for mixture proportions);
        Lawson and Hanson 1974 for least squares without negative entries.
        """
        if self._table is None:
            return None
        from scipy import optimize  # noqa: PLC0415  # programs that need no maximum start faster

        roots = np.sqrt(self.counts)
        rows = np.vstack([(roots / fitted)[:, np.newaxis] * self._table, np.full(self.rows.shape[1], self.total**0.5)])
        try:
            found = optimize.nnls(rows, np.append(2 * roots, 0.0))[0]
        except RuntimeError:  # it did not converge
            return None
        return found / found.sum() if found.sum() > 0 else None

    def gap(self, gradient: np.ndarray) -> float:
        """Upper bound of L_max - L: L is concave, so by Jensen L_max - L <= n ln(max d / n)."""
        return float(self.total * np.log(np.maximum(gradient.max() / self.total, 1)))


def maximize(likelihood: Likelihood, start: np.ndarray, tolerance: float, max_steps: int) -> tuple[np.ndarray, float]:
    """The maximum of the likelihood on the simplex.

    Each step is a diagonal Newton step, projected onto the simplex in the metric of the curvature, and is shortened
    until the likelihood rises sufficiently; if it does not, a step of expectation maximisation is taken, which always
    raises it. So the likelihood never falls, and entries can become 0 and leave 0 again. After four steps, likelihoods
    with few coefficients take full Newton steps, of which a few are enough, see ``Likelihood.newton_point``.

    Args:
        likelihood: what to maximise.
        start: (U,), a distribution near the maximum, such as the projected linear estimate.
        tolerance: stop when L is proved to be within this of its maximum.
        max_steps: maximum number of steps.

    Returns:
        The best point (U,), and the proved bound of the distance of its likelihood from the maximum.
    """
    point = (1 - _MIXED_IN) * start + _MIXED_IN / len(start)
    fitted = likelihood.fitted(point)
    value = likelihood.value(fitted)
    for step in range(max_steps):
        gradient, curvature = likelihood.gradient_and_curvature(fitted)
        gap = likelihood.gap(gradient)
        if gap <= tolerance:
            return point, gap
        newton = likelihood.newton_point(fitted) if step >= _DIAGONAL else None
        metric = np.maximum(curvature, curvature.max() * 1e-12)
        direction = (gradient - gradient.max()) / metric  # a common term of all entries has no effect
        length = 1.0
        for _ in range(_TRIALS):
            if newton is None:
                candidate = project_in_metric(point + length * direction, metric)
            else:
                candidate = point + length * (newton - point)
            fitted = likelihood.fitted(candidate)
            risen = likelihood.value(fitted) - value
            if risen > 0 and risen >= _ENOUGH * (gradient @ (candidate - point)):
                break
            length *= _SHORTER
        else:
            candidate = point * gradient
            candidate /= candidate.sum()
            fitted = likelihood.fitted(candidate)
        point, value = candidate, likelihood.value(fitted)
    return point, likelihood.gap(likelihood.gradient_and_curvature(fitted)[0])


def project_in_metric(point: np.ndarray, metric: np.ndarray) -> np.ndarray:
    """The distribution q with the least sum of metric (q - point)**2, for a positive metric (U,).

    It is max(point + level / metric, 0) with the unique level for which the sum is 1.
    """
    thresholds = -point * metric  # an entry is positive if the level is above its threshold
    order = np.argsort(thresholds)
    levels = (1 - np.cumsum(point[order])) / np.cumsum(1 / metric[order])
    level = levels[np.flatnonzero(levels > thresholds[order])[-1]]
    projected = np.maximum(point + level / metric, 0)
    normalized: np.ndarray = projected / projected.sum()  # removes rounding errors of the sum
    return normalized
