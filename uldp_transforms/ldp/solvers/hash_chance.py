"""How small the share of a hashed value may be, texts that nobody listed having raised its estimate by chance.

Where few cohorts hash a heavy text, a value that shares its bucket in one of them is off by a large step: the law of
what hash functions add is far from normal. But it is known, since the buckets of a value are independent of what all
others send: it is that of the sum of one cell of each cohort, drawn at random. The value's own reports come on top, few
of them if it is rare, so that the tail of both together matters.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_LARGEST = 64  # cells of a cohort whose law is taken as it is; that of the others is taken as normal
_TILTS = np.geomspace(0.002, 16, 72)  # in units of 1 / standard deviation
_ROWS = 4096  # values that are looked at together
_TINY = 1e-300


class Chance:
    """The law of the sum of one random cell of each row.

    Args:
        cells: (C, k), what each bucket adds to an estimate.
        least: standard deviation of the sum; cells are made larger until it is reached (default: 0, they stay).
    """

    def __init__(self, cells: np.ndarray, least: float = 0.0):
        self.cells = cells * max(1.0, least / max(float(np.sqrt(cells.var(axis=1).sum())), _TINY))

    def lower_ends(self, raw: np.ndarray, steps: np.ndarray, z: np.ndarray) -> np.ndarray:
        """(S,): shares for which chance and a value's own reports exceed raw as often as a normal number exceeds z.

        Chance alone says how far raw is above an end that is below 0.

        Args:
            raw: (S,) estimates.
            steps: (S,) what one report of its own adds to each; their number has a Poisson law. 0: it has no noise.
            z: (S,), above 0; nan where no end is wanted.
        """
        centred = self.cells - self.cells.mean(axis=1, keepdims=True)
        deviation = float(np.sqrt((centred**2).mean(axis=1).sum()))
        if deviation == 0:
            return np.where(np.isnan(z), np.nan, raw)
        others = max(centred.shape[1] - _LARGEST, 1)
        ordered = np.partition(centred / deviation, others, axis=1)
        largest, rest = ordered[:, others:], ordered[:, :others]
        law = largest, others, rest.mean(axis=1), rest.var(axis=1)
        cumulants = np.array([_cumulants(*law, t) for t in _TILTS.tolist()]).T
        wanted, ends = np.flatnonzero(~np.isnan(z)), np.full(len(raw), np.nan)
        for start in range(0, len(wanted), _ROWS):
            some = wanted[start : start + _ROWS]
            scaled = raw[some] / deviation, np.maximum(steps[some], 0) / deviation
            ends[some] = deviation * _ends(cumulants, *scaled, z[some])
        return ends


class ChanceOfMeans:
    """The same of means of several estimates, which are of different cohorts.

    Args:
        parts: of each estimate its law.
        shares: (P, S) with which they are in the mean of each value.
    """

    def __init__(self, parts: Sequence[Chance], shares: np.ndarray):
        kinds, self._kinds = np.unique(shares, axis=1, return_inverse=True)
        self._chances = [
            Chance(np.concatenate([share * part.cells for share, part in zip(kind, parts)])) for kind in kinds.T
        ]

    def lower_ends(self, raw: np.ndarray, steps: np.ndarray, z: np.ndarray) -> np.ndarray:
        """As of ``Chance``."""
        ends = np.empty(len(raw))
        for kind, chance in enumerate(self._chances):
            those = self._kinds.ravel() == kind
            ends[those] = chance.lower_ends(raw[those], steps[those], z[those])
        return ends


def _ends(cumulants: np.ndarray, raw: np.ndarray, steps: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The same in units of the standard deviation of chance.

    Saddlepoint approximation at some tilts t. There is one share for which the tilted mean is raw, and the tail beyond
    raw is that of a normal law beyond r + ln(u / r) / r.

    Args:
        cumulants: (3, T), the cumulant generating function of chance at the tilts and its first two derivatives.
        raw, steps, z: (S,).

    Source: Lugannani and Rice 1980, in the form of Barndorff-Nielsen 1986.
    """
    value, slope, curvature = cumulants[:, :, np.newaxis]
    t = _TILTS[:, np.newaxis]
    left, tilted = raw - slope, np.exp(np.minimum(t * steps, 700))
    ends = left / np.where(left > 0, tilted, 1)  # below 0 there are no own reports
    seen = np.maximum(ends, 0)
    reports = np.divide(seen, steps, out=np.zeros_like(seen), where=steps > 0)
    added = np.where(steps > 0, reports * (tilted - 1), t * seen) + t * np.minimum(ends, 0)
    r = np.sqrt(np.maximum(2 * (t * raw - value - added), _TINY))
    u = t * np.sqrt(np.maximum(curvature + seen * steps * tilted, _TINY))
    reached = np.maximum.accumulate(r + np.log(u / r) / r, axis=0)
    found: np.ndarray = np.array([np.interp(*row) for row in zip(z, reached.T, ends.T)])
    return found


def _cumulants(
    largest: np.ndarray, others: int, mean: np.ndarray, variance: np.ndarray, t: float
) -> tuple[float, float, float]:
    """The cumulant generating function of the sum, and its first two derivatives.

    Args:
        largest: (C, m) cells.
        others: how many more a row has.
        mean, variance: (C,) of these.
        t: tilt.
    """
    slope = mean + t * variance
    exponents = np.column_stack([t * largest, np.log(others) + t * mean + t**2 * variance / 2])
    slopes = np.column_stack([largest, slope])
    squares = np.column_stack([largest**2, slope**2 + variance])
    most = exponents.max(axis=1, keepdims=True)
    weights = np.exp(exponents - most)
    sums = weights.sum(axis=1)
    first, second = (weights * slopes).sum(axis=1) / sums, (weights * squares).sum(axis=1) / sums
    value = np.log(sums / (largest.shape[1] + others)) + most[:, 0]
    return float(value.sum()), float(first.sum()), float((second - first**2).sum())
