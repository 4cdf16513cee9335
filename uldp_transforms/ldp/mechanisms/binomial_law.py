"""Intervals of Clopper and Pearson, each with its own confidence, for counts and for what has the variance of counts.

They hold every frequency at least as often as they say, out to the confidence that the largest of a million values
needs, and cost a few array operations: the ends are quantiles of Beta laws, here by a formula.
"""

from __future__ import annotations

import numpy as np
from scipy import special

_MOST_STEPS = 100  # of Newton's method, which needs six or seven
_NEAR = 1e-9  # in logits
# Standard units from the mode within which r is 0 but for rounding: this, and this times the scale.
_AT_MODE, _ROUNDED = 1e-3, 5e-7
_FEWEST = 0.5  # counts below are none
_LEAST_CURVATURE = 1e-18
_LEAST_ROOT = 1e-150

Confidence = float | np.ndarray
"""In (0, 1), for instance 0.95. Strict intervals also take one for each; nan where no interval is wanted."""


def normal_quantile(confidence: Confidence) -> np.ndarray:
    """z of a normal law with the confidence between -z and z."""
    z: np.ndarray = special.ndtri((1 + np.asarray(confidence)) / 2)
    return z


def clopper_pearson(
    successes: np.ndarray, trials: float | np.ndarray, z: float | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals of binomial probabilities that leave nothing of the observed count out.

    Args:
        successes: (K,); need not be whole numbers.
        trials: n, above 0.
        z: above 0, a number or (K,): the ends leave out what a normal law has beyond z.

    Returns:
        low (K,), high (K,).
    """
    found = np.clip(successes, 0, trials)
    low = np.where(found < _FEWEST, 0.0, _beta_quantile(np.maximum(found, _FEWEST), trials - found + 1, -z))
    missing = trials - found
    high = np.where(missing < _FEWEST, 1.0, _beta_quantile(found + 1, np.maximum(missing, _FEWEST), z))
    return np.where(np.isnan(z), np.nan, low), np.where(np.isnan(z), np.nan, high)


def clopper_pearson_of_law(
    raw: np.ndarray,
    null: np.ndarray | float,
    slope: np.ndarray | float,
    curvature: np.ndarray | float,
    z: float | np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The same of the binomial law whose variance is V(p) = null + slope p - curvature p^2 where its mean is p.

    V is 0 at two points, and 1 / curvature trials give one or the other. No other natural exponential family has such
    a V, so that its skewness, and all that is behind it, follows from V (Morris 1982).

    Args:
        raw: (S,) unbiased frequencies.
        null, slope, curvature: (S,) or numbers, of V; as for ``score_intervals``.
        z: as for ``clopper_pearson``.

    Returns:
        low, high: (S,), not cut to [0, 1].
    """
    curvature = np.maximum(curvature, _LEAST_CURVATURE)
    root = np.maximum(np.sqrt(np.square(slope) + 4 * curvature * np.maximum(null, 0)), _LEAST_ROOT)
    first, length = (slope - root) / (2 * curvature), root / curvature
    low, high = clopper_pearson((raw - first) / root, 1 / curvature, z)
    return first + length * low, first + length * high


def _beta_quantile(a: np.ndarray, b: np.ndarray, z: float | np.ndarray) -> np.ndarray:
    """The p below which a Beta(a, b) law has what a normal law has below z.

    The signed root r of twice the logarithm of the density of logit p, relative to its mode, is nearly normal after
    the correction r + ln(u / r) / r, u being the score in standard units. From a = 0.5 on this leaves out up to 14 %
    less than it may, and at most 0.2 % more, for z from 0.5 to 8 (tests/ldp/mechanisms/test_binomial_law.py).

    Source: Barndorff-Nielsen 1986; DiCiccio and Martin 1991 for the tail of a density.
    """
    total, mode = a + b, np.log(a) - np.log(b)
    scale = np.sqrt(a * (b / total))
    skew = (b / total - a / total) / (3 * scale)  # what ln(u / r) / r is at the mode
    at_mode = a * special.log_expit(mode) + b * special.log_expit(-mode)
    at = mode + z / scale
    for _ in range(_MOST_STEPS):
        away = scale * (at - mode)
        near = np.abs(away) < _AT_MODE + _ROUNDED * scale
        fallen = at_mode - a * special.log_expit(at) - b * special.log_expit(-at)
        r = np.where(near, 1, np.copysign(np.sqrt(2 * np.maximum(fallen, 0)), away))
        u = np.where(near, 1, (total * special.expit(at) - a) / scale)
        excess = np.where(near, away + skew, r + np.log(u / r) / r) - z
        most = (np.abs(away) / 2 + 1) / scale  # from far out a whole step may lead far beyond the mode
        step = np.clip(excess * r / (u * scale), -most, most)
        at = at - step
        if not (np.abs(step) > _NEAR).any():
            break
    quantiles: np.ndarray = special.expit(at)
    return quantiles
