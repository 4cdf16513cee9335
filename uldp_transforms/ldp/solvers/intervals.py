"""Intervals of hashed values, whose variance depends on the estimated frequency, and functions for all intervals."""

from __future__ import annotations

import numpy as np
from scipy import special

from uldp_transforms.ldp.mechanisms import count_intervals
from uldp_transforms.ldp.mechanisms.binomial_law import Confidence
from uldp_transforms.ldp.solvers.observation import OwnNoise, Solution


def quantile(spare: float, confidence: Confidence) -> np.ndarray:
    """Quantile of the standard normal distribution, or of Student's with ``spare`` degrees of freedom if it is
    finite."""
    level = (1 + np.asarray(confidence)) / 2
    quantiles: np.ndarray = special.stdtrit(spare, level) if np.isfinite(spare) else special.ndtri(level)
    return quantiles


def reaching(low: np.ndarray, high: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Intervals, extended where they do not contain the displayed numbers.

    The displayed number is often a shrunk or smoothed estimate, not the one on which the interval is based. Extending
    an interval keeps its coverage.
    """
    return np.minimum(low, numbers), np.maximum(high, numbers)


def score_intervals(solution: Solution, confidence: Confidence, strict: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Score intervals: all p whose distance from ``raw`` is acceptable under the variance of raw at frequency p.

    Args:
        solution: with S frequencies.
        confidence: of all intervals; strict intervals may have one each, (S,).
        strict: give rare values this coverage too, with a binomial distribution of the same variance, and at the lower
            end with the distribution of collisions with frequent unlisted texts.

    Returns:
        low, high: (S,), not clipped to [0, 1].
    """
    z, raw, own = quantile(solution.spare, confidence), solution.frequencies, solution.own
    if own is None and not strict:
        half = z * np.sqrt(np.maximum(solution.variances, 0))
        return raw - half, raw + half
    own = own or _law_of_counts(raw, solution.variances)
    low, high = count_intervals.score_intervals(
        raw,
        own.null,
        own.slope,
        own.curvature,
        solution.jump,
        solution.counted,
        confidence=confidence,
        z=z,
        strict=strict,
    )
    if strict and solution.chance is not None:
        z = np.broadcast_to(z, raw.shape)
        low = np.minimum(low, solution.chance.lower_ends(raw - solution.jump / 2, own.slope, z))
    return low, high


def _law_of_counts(raw: np.ndarray, variances: np.ndarray) -> OwnNoise:
    """Variance of counts: jump (raw + 2 jump), as if two more reports had been counted, with slope ``jump``."""
    seen, zeros = np.maximum(raw, 0), np.zeros(len(raw))
    jumps = (np.sqrt(seen**2 + 8 * np.maximum(variances, 0)) - seen) / 4
    return OwnNoise(null=zeros, slope=jumps, curvature=zeros, least=zeros)
