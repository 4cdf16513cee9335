"""How often chance alone gives a value so large a score: the tail of a sum of cells that are drawn at random."""

from __future__ import annotations

import numpy as np
from scipy import special

_STEPS = 60
_NEAR = 0.5  # standard deviations from the mean, where the formula divides by almost nothing and is not needed
_LOWEST = 1e-300


def tail(cells: np.ndarray, score: float) -> float:
    """The probability that one random cell of each row, all rows together, sum to a score or more.

    The buckets of a text that nobody holds are independent of the counts, so this is its p-value whatever the cells
    are: few reports, or a heavy text elsewhere that a few collisions bring in, make the tail longer than the normal
    one. Saddlepoint approximation; from the largest sum on, its own probability.

    Args:
        cells: (R, k), each row with mean 0.
        score: above 0 for a tail.

    Source: Lugannani and Rice 1980.
    """
    deviation = float(np.sqrt((cells**2).mean(axis=1).sum()))
    if deviation == 0:
        return 1.0
    scaled, x = cells / deviation, score / deviation
    if x < _NEAR:
        return float(special.ndtr(-x)) if x > 0 else 1.0
    most = float(scaled.max(axis=1).sum())
    if x >= most * (1 - 1e-9):
        return float(max(cells.shape[1] ** -float(len(cells)), _LOWEST))
    low, high = 0.0, 1.0
    while _cumulants(scaled, high)[1] < x and high < 1 << 20:
        low, high = high, 2 * high
    t = (low + high) / 2
    for _ in range(_STEPS):
        _, slope, curvature = _cumulants(scaled, t)
        low, high = (t, high) if slope < x else (low, t)
        step = t + (x - slope) / max(curvature, _LOWEST)
        step = step if low < step < high else (low + high) / 2
        if abs(step - t) < 1e-9 * t:
            break
        t = step
    value, _, curvature = _cumulants(scaled, t)
    w = np.sqrt(max(2 * (t * x - value), _LOWEST))
    u = t * np.sqrt(max(curvature, _LOWEST))
    density = np.exp(-(w**2) / 2) / np.sqrt(2 * np.pi)
    return float(np.clip(special.ndtr(-w) + density * (1 / u - 1 / w), _LOWEST, 1.0))


def _cumulants(cells: np.ndarray, t: float) -> tuple[float, float, float]:
    """The cumulant generating function of the sum, and its first two derivatives."""
    largest = cells.max(axis=1, keepdims=True)
    weights = np.exp(t * (cells - largest))
    sums = weights.sum(axis=1)
    first = (weights * cells).sum(axis=1) / sums
    second = (weights * cells**2).sum(axis=1) / sums
    value = np.log(sums / cells.shape[1]) + t * largest[:, 0]
    return float(value.sum()), float(first.sum()), float((second - first**2).sum())
