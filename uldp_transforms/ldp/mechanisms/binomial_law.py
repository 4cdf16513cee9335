"""Clopper-Pearson intervals, each with its own confidence, for counts and for estimates with the variance of counts.

They have at least their nominal coverage for every frequency, up to the confidence that the largest of a million values
needs, and cost a few array operations: the ends are quantiles of Beta distributions, computed by a formula.
"""

from __future__ import annotations

import numpy as np
import scipy

_MOST_STEPS = 100  # of Newton's method, which needs about five
_NEAR = 1e-6  # in logits: length of a step whose square is negligible, so that no further one is needed
# Standard units from the mode within which r is 0 but for rounding: this, and this times the scale.
_AT_MODE, _ROUNDED = 1e-3, 5e-7
_FEWEST = 0.5  # smaller counts are treated as 0
_LEAST_CURVATURE = 1e-18
_LEAST_ROOT = 1e-150

Confidence = float | np.ndarray
"""Confidence in (0, 1), for example 0.95. Or one for each interval, with nan to skip one."""


def normal_quantile(confidence: Confidence) -> np.ndarray:
    """The z for which a standard normal variable lies between -z and z with this probability."""
    z: np.ndarray = scipy.special.ndtri((1 + np.asarray(confidence)) / 2)
    return z


def clopper_pearson(
    successes: np.ndarray, trials: float | np.ndarray, z: float | np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals of binomial probabilities that include the full probability of the observed count.

    Args:
        successes: (K,); may be fractional.
        trials: n, above 0.
        z: above 0, a number or (K,): each end excludes the probability of a normal variable beyond z.

    Returns:
        low (K,), high (K,).
    """
    found = np.clip(successes, 0, trials)
    missing, z = trials - found, np.broadcast_to(z, found.shape)
    low, high = _beta_quantile(
        np.stack([np.maximum(found, _FEWEST), found + 1]),
        np.stack([missing + 1, np.maximum(missing, _FEWEST)]),
        np.stack([-z, z]),
    )
    low, high = np.where(found < _FEWEST, 0.0, low), np.where(missing < _FEWEST, 1.0, high)
    return np.where(np.isnan(z), np.nan, low), np.where(np.isnan(z), np.nan, high)


def clopper_pearson_of_law(
    raw: np.ndarray,
    null: np.ndarray | float,
    slope: np.ndarray | float,
    curvature: np.ndarray | float,
    z: float | np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals for the binomial distribution with variance V(p) = null + slope p - curvature p^2 at mean p.

    V is 0 at two points, which are the outcomes of each of 1 / curvature trials. No other natural exponential family
    has this V, so its skewness and all higher moments follow from V (Morris 1982).

    Args:
        raw: (S,) unbiased frequencies.
        null, slope, curvature: (S,) or numbers, coefficients of V; as for ``score_intervals``.
        z: as for ``clopper_pearson``.

    Returns:
        low, high: (S,), not clipped to [0, 1].
    """
    curvature = np.maximum(curvature, _LEAST_CURVATURE)
    root = np.maximum(np.sqrt(np.square(slope) + 4 * curvature * np.maximum(null, 0)), _LEAST_ROOT)
    first, length = (slope - root) / (2 * curvature), root / curvature
    low, high = clopper_pearson((raw - first) / root, 1 / curvature, z)
    return first + length * low, first + length * high


def _beta_quantile(a: np.ndarray, b: np.ndarray, z: float | np.ndarray) -> np.ndarray:
    """Quantile of Beta(a, b) at the probability that a normal variable is below z.

    The signed root r of twice the logarithm of the density of logit p, relative to its mode, is nearly normal after the
    correction r + ln(u / r) / r, u being the score in standard units. From a = 0.5 on the excluded probability is at
    most 14 % below the nominal one, and at most 0.2 % above it, for z from 0.5 to 8
    (tests/ldp/mechanisms/test_binomial_law.py).

    Source: Barndorff-Nielsen 1986; DiCiccio and Martin 1991 for the tail of a density.
    """
    total, mode = a + b, np.log(a) - np.log(b)
    scale = np.sqrt(a * (b / total))
    skew = (b / total - a / total) / (3 * scale)  # limit of ln(u / r) / r at the mode
    at_mode = a * scipy.special.log_expit(mode) + b * scipy.special.log_expit(-mode)
    at = mode + z / scale
    moving = ~np.isnan(at)  # each by itself, so that a quantile does not depend on those that are found with it
    for _ in range(_MOST_STEPS):
        away = scale * (at - mode)
        near = np.abs(away) < _AT_MODE + _ROUNDED * scale
        fallen = at_mode - a * scipy.special.log_expit(at) - b * scipy.special.log_expit(-at)
        r = np.where(near, 1, np.copysign(np.sqrt(2 * np.maximum(fallen, 0)), away))
        share = scipy.special.expit(at)
        u = np.where(near, 1, (total * share - a) / scale)
        turn = np.log(u / r)
        excess = np.where(near, away + skew, r + turn / r) - z
        slope = np.where(near, 1, 1 + total * share * (1 - share) / (u * scale) ** 2 - (1 + turn) / r**2)
        most = (np.abs(away) / 2 + 1) / scale  # from far out a full step could overshoot the mode
        step = np.where(moving, np.clip(excess * r / (u * scale * slope), -most, most), 0)
        at = at - step
        moving &= np.abs(step) > _NEAR
        if not moving.any():
            break
    quantiles: np.ndarray = scipy.special.expit(at)
    return quantiles
