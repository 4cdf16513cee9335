"""How far chance alone raises the estimate of a hashed value: by texts that nobody listed, whose buckets it may share.

Where few cohorts hash a heavy text, a value that shares its bucket in one of them is off by a large step: the law of
what hash functions add is far from normal. But it is known, since the buckets of a value are independent of the counts:
it is that of the sum of one cell of each cohort, drawn at random.
"""

from __future__ import annotations

import numpy as np

_LARGEST = 64  # cells of a cohort whose law is taken as it is; that of the others is taken as normal
_TILTS = np.geomspace(0.05, 16, 48)  # in units of 1 / standard deviation


class Chance:
    """The upper tail of the sum of one random cell of each row.

    Args:
        cells: (C, k), what each bucket adds to an estimate.
    """

    def __init__(self, cells: np.ndarray):
        self._cells = cells

    def deviations(self, z: np.ndarray) -> np.ndarray:
        """What the sum exceeds as often as a normal number exceeds z; of any shape, z above 0.

        Saddlepoint approximation at some tilts t: at the sum K'(t) the density, times e^(t sum), is flat.

        Source: Lugannani and Rice 1980, in the form of Barndorff-Nielsen 1986.
        """
        centred = self._cells - self._cells.mean(axis=1, keepdims=True)
        deviation = float(np.sqrt((centred**2).mean(axis=1).sum()))
        if deviation == 0:
            return np.zeros_like(z)
        others = max(centred.shape[1] - _LARGEST, 1)
        ordered = np.partition(centred / deviation, others, axis=1)
        largest, rest = ordered[:, others:], ordered[:, :others]
        law = largest, others, rest.mean(axis=1), rest.var(axis=1)
        values, sums, curvatures = np.array([_cumulants(*law, t) for t in _TILTS.tolist()]).T
        r = np.sqrt(np.maximum(2 * (_TILTS * sums - values), 1e-300))
        u = _TILTS * np.sqrt(np.maximum(curvatures, 1e-300))
        reached = np.maximum.accumulate(r + np.log(u / r) / r)
        deviations: np.ndarray = deviation * np.interp(z, reached, sums)
        return deviations


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
