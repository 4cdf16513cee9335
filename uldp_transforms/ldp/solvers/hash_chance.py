"""Error from hash collisions: the distribution of the sum of one random cell per cohort.

The buckets of a value are independent of all other reports. So the contents of its buckets, without the reports of its
own holders, are one randomly drawn cell of each cohort. Where few cohorts hash a frequent text, the distribution of
their sum is far from normal, but known.

``tail`` is the p-value of a text that nobody holds. ``Chance`` gives lower ends for the share of a value: its own
reports add to the collisions, and if the value is rare they are few, so both distributions are combined.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from scipy import special

_LARGEST = 64  # cells of a cohort that are treated exactly; the others are approximated by a normal distribution
_TILTS = np.geomspace(0.002, 16, 72)  # in units of 1 / standard deviation
_ROWS = 4096  # values per block
_STEPS = 60  # of Newton's method, which needs about five; bisection where it fails
_RETURNS = 3  # iterations of the excess that estimates have taken from their cells; more hardly change it
_NEAR = 0.5  # standard deviations around the mean, where the formula divides by nearly 0 and is not needed
_TINY = 1e-300

Moments = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def tail(cells: np.ndarray, score: float) -> float:
    """The probability that the sum of one random cell of each row is at least ``score``.

    Saddlepoint approximation over all cells; at the largest possible sum, the exact probability.

    Args:
        cells: (R, k), each row with mean 0.
        score: above 0 for an upper tail.

    Source: Lugannani and Rice 1980, in the form of Barndorff-Nielsen 1986.
    """
    deviation = float(np.sqrt((cells**2).mean(axis=1).sum()))
    if deviation == 0:
        return 1.0
    law, x = _Law.of(cells / deviation), score / deviation
    if x < _NEAR:
        return float(special.ndtr(-x)) if x > 0 else 1.0
    if x >= float(law.means.max(axis=1).sum()) * (1 - 1e-9):
        return float(max(cells.shape[1] ** -float(len(cells)), _TINY))
    t = law.tilt(x)
    value, _, curvature = law.cumulants(t)
    return float(max(special.ndtr(-_distance(t, t * x - value, curvature)), _TINY))


@dataclasses.dataclass(frozen=True, eq=False)
class Absorbed:
    """The content that estimates have absorbed from their own cells.

    If an estimate exceeds its share by x, the fit has taken x from its own cells: where it shares the buckets of a
    frequent text several times, these cells seem to contain less than they do.

    Attributes:
        table: (C, S) the buckets.
        gains: (C,) content that a cell lacks for each unit of x.
        present: (C, k) content that has already been returned to the cells.
    """

    table: np.ndarray
    gains: np.ndarray
    present: np.ndarray


class Chance:
    """The distribution of the sum of one random cell of each row.

    Args:
        cells: (C, k), contribution of each bucket to an estimate.
        least: minimum standard deviation of the sum; cells are scaled up to reach it (default: 0, no scaling).
        absorbed: content that each estimate has absorbed (default: None, negligible).
    """

    def __init__(self, cells: np.ndarray, least: float = 0.0, absorbed: Absorbed | None = None):
        self._scale = max(1.0, least / max(float(np.sqrt(cells.var(axis=1).sum())), _TINY))
        self.cells = cells * self._scale
        self._absorbed = absorbed

    def lower_ends(self, raw: np.ndarray, steps: np.ndarray, z: np.ndarray) -> np.ndarray:
        """(S,): shares at which collisions plus own reports exceed ``raw`` as often as a normal variable exceeds z.

        Ends below 0 are computed from collisions alone.

        Args:
            raw: (S,) estimates.
            steps: (S,) contribution of one own report to each estimate; their number is Poisson. 0: no sampling noise.
        """
        centred = self.cells - self.cells.mean(axis=1, keepdims=True)
        deviation = float(np.sqrt((centred**2).mean(axis=1).sum()))
        if deviation == 0:
            return np.where(np.isnan(z), np.nan, raw)
        law = _Law.of_the_largest(centred / deviation)
        moments = [law.moments(t) for t in _TILTS.tolist()]
        cumulants = np.array([_cumulants(*of_tilt) for of_tilt in moments]).T[:, :, np.newaxis]
        wanted, ends = np.flatnonzero(~np.isnan(z)), np.full(len(raw), np.nan)
        for start in range(0, len(wanted), _ROWS):
            some = wanted[start : start + _ROWS]
            scaled = raw[some] / deviation, np.maximum(steps[some], 0) / deviation, z[some]
            found, excess = _ends(cumulants, *scaled)
            for _ in range(_RETURNS if self._absorbed else 0):
                found, excess = _ends(self._returned(moments, centred, deviation, some, excess), *scaled)
            ends[some] = deviation * found
        return ends

    def _returned(
        self, moments: list[Moments], centred: np.ndarray, deviation: float, some: np.ndarray, excess: np.ndarray
    ) -> np.ndarray:
        """(3, T, N) cumulants for some estimates after an absorbed excess (N,) is returned to their cells.

        Args:
            moments: of all cells at each tilt.
            centred: (C, k) cells.
            deviation: unit of the moments and the excess.
            some: (N,) positions of the estimates.
            excess: (N,).
        """
        assert self._absorbed is not None
        rows, table = np.arange(len(centred))[:, np.newaxis], self._absorbed.table[:, some]
        missing = self._absorbed.gains[:, np.newaxis] * excess - self._absorbed.present[rows, table] / deviation
        own, more = centred[rows, table] / deviation, self._scale * missing
        laws = [_cumulants_with(t, given, own, more, centred.shape[1]) for t, given in zip(_TILTS.tolist(), moments)]
        return np.stack(laws, axis=1)


class ChanceOfMeans:
    """The distribution of collisions for means of several estimates, each from different cohorts.

    Args:
        parts: distribution for each estimate.
        shares: (P, S) weights of the estimates in the mean of each value.
    """

    def __init__(self, parts: Sequence[Chance], shares: np.ndarray):
        kinds, self._kinds = np.unique(shares, axis=1, return_inverse=True)
        self._chances = [
            Chance(np.concatenate([share * part.cells for share, part in zip(kind, parts)])) for kind in kinds.T
        ]

    def lower_ends(self, raw: np.ndarray, steps: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Lower ends as in ``Chance.lower_ends``."""
        ends = np.empty(len(raw))
        for kind, chance in enumerate(self._chances):
            those = self._kinds.ravel() == kind
            ends[those] = chance.lower_ends(raw[those], steps[those], z[those])
        return ends


def _ends(cumulants: np.ndarray, raw: np.ndarray, steps: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower ends in units of the standard deviation of collisions, and the expected collisions there; (S,) each.

    Saddlepoint approximation on a grid of tilts, each of which belongs to one share with the tilted mean raw.

    Args:
        cumulants: (3, T, 1) or (3, T, S), see ``_cumulants``, of the collisions at the tilts.
        raw, steps, z: (S,).
    """
    value, slope, curvature = cumulants
    t = _TILTS[:, np.newaxis]
    left, tilted = raw - slope, np.exp(np.minimum(t * steps, 700))
    ends = left / np.where(left > 0, tilted, 1)  # below 0 there are no own reports
    seen = np.maximum(ends, 0)
    reports = np.divide(seen, steps, out=np.zeros_like(seen), where=steps > 0)
    added = np.where(steps > 0, reports * (tilted - 1), t * seen) + t * np.minimum(ends, 0)
    distances = _distance(t, t * raw - value - added, curvature + seen * steps * tilted)
    reached = np.maximum.accumulate(distances, axis=0)
    by_chance = np.broadcast_to(slope, ends.shape)
    found = [
        (np.interp(x, *row[:2]), np.interp(x, row[0], row[2])) for x, *row in zip(z, reached.T, ends.T, by_chance.T)
    ]
    return tuple(np.array(found).T)


def _distance(t: np.ndarray | float, exponent: np.ndarray | float, curvature: np.ndarray | float) -> np.ndarray:
    """Normal quantile of the same tail probability: r + ln(u / r) / r.

    Args:
        t: tilt with which the mean equals the point whose tail is needed.
        exponent: t times that point, less the cumulant generating function: r^2 / 2.
        curvature: second derivative of that function: u = t sqrt(curvature).
    """
    r = np.sqrt(np.maximum(2 * np.asarray(exponent), _TINY))
    u = t * np.sqrt(np.maximum(curvature, _TINY))
    distance: np.ndarray = r + np.log(u / r) / r
    return distance


def _cumulants(
    factor: np.ndarray, zeroth: np.ndarray, first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cumulant generating function of a sum, and its first two derivatives, from ``_Law.moments`` (C, ...)."""
    zeroth = np.maximum(zeroth, _TINY)
    means = first / zeroth
    return (np.log(zeroth) + factor).sum(axis=0), means.sum(axis=0), (second / zeroth - means**2).sum(axis=0)


def _cumulants_with(t: float, given: Moments, own: np.ndarray, more: np.ndarray, size: int) -> np.ndarray:
    """(3, N) cumulants of N sums in which one cell of each row is larger; their means are 0 again.

    Args:
        t: tilt.
        given: moments of the unchanged cells.
        own, more: (C, N) values of these cells, and their increases.
        size: k, cells per row.
    """
    factor, *moments = (column[:, np.newaxis] for column in given)
    larger = own + more
    highest = np.maximum(factor, t * larger)  # prevents overflow for any size of the cell
    kept = np.exp(factor - highest)
    before, after = (np.exp(t * cells - highest) / size for cells in (own, larger))
    added = after - before, after * larger - before * own, after * larger**2 - before * own**2
    value, first, second = _cumulants(highest, *(moment * kept + change for moment, change in zip(moments, added)))
    mean = more.sum(axis=0) / size
    return np.array([value - t * mean, first - mean, second])


@dataclasses.dataclass(frozen=True, eq=False)
class _Law:
    """The distribution of the sum of one draw from each of C rows, which are mixtures of m normal distributions.

    Attributes:
        means: (C, m); the cells themselves where the variance is 0.
        variances: (C, m), or one for all.
        weights: natural logarithms of the mixture weights, (C, m) or (1, m).
    """

    means: np.ndarray
    variances: np.ndarray | float
    weights: np.ndarray

    @classmethod
    def of(cls, cells: np.ndarray) -> _Law:
        """The distribution of the sum of one random cell of each row, (C, k)."""
        return cls(cells, 0.0, np.full((1, cells.shape[1]), -np.log(cells.shape[1])))

    @classmethod
    def of_the_largest(cls, cells: np.ndarray) -> _Law:
        """The same, with all but the largest cells of a row approximated by one normal distribution."""
        others = max(cells.shape[1] - _LARGEST, 1)
        ordered = np.partition(cells, others, axis=1)
        rest, largest = ordered[:, :others], ordered[:, others:]
        means = np.column_stack([rest.mean(axis=1), largest])
        variances = np.column_stack([rest.var(axis=1), np.zeros_like(largest)])
        sizes = np.append(others, np.ones(largest.shape[1]))
        return cls(means, variances, np.log(sizes / cells.shape[1])[np.newaxis])

    def moments(self, t: float) -> Moments:
        """For each row, (C,): log of a scale factor, and the moment generating function and derivatives divided by
        it."""
        exponents = self.weights + t * self.means + t**2 / 2 * self.variances
        factor = exponents.max(axis=1)
        weights, slopes = np.exp(exponents - factor[:, np.newaxis]), self.means + t * self.variances
        squares = slopes**2 + self.variances
        return factor, weights.sum(axis=1), (weights * slopes).sum(axis=1), (weights * squares).sum(axis=1)

    def cumulants(self, t: float) -> tuple[float, float, float]:
        """The cumulant generating function of the sum at a tilt, and its first two derivatives."""
        value, first, second = _cumulants(*self.moments(t))
        return float(value), float(first), float(second)

    def tilt(self, x: float) -> float:
        """The tilt, above 0, at which the mean of the sum is x."""
        low, high = 0.0, np.inf
        t = x  # the tilt of a normal distribution with variance 1
        for _ in range(_STEPS):
            _, slope, curvature = self.cumulants(t)
            low, high = (t, high) if slope < x else (low, t)
            step = t + (x - slope) / max(curvature, _TINY)
            step = step if low < step < min(high, 4 * t) else min((low + high) / 2, 2 * t)
            if abs(step - t) < 1e-9 * t:
                break
            t = step
        return t
