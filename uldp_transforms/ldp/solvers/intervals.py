"""Intervals of hashed values, whose variance depends on what is estimated, and what all intervals have in common."""

from __future__ import annotations

import numpy as np
from scipy import special

from uldp_transforms.ldp.mechanisms import count_intervals
from uldp_transforms.ldp.mechanisms.binomial_law import Confidence
from uldp_transforms.ldp.solvers.observation import OwnNoise, Solution


def quantile(spare: float, confidence: Confidence) -> np.ndarray:
    """Of the standard normal law, or of Student's law if the noise level is known from ``spare`` residuals only."""
    level = (1 + np.asarray(confidence)) / 2
    quantiles: np.ndarray = special.stdtrit(spare, level) if np.isfinite(spare) else special.ndtri(level)
    return quantiles


def reaching(low: np.ndarray, high: np.ndarray, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The intervals, made longer where they do not hold the number that is shown with them.

    What is shown is often not the estimate that an interval is of, but nearer to the other values, or to the windows
    around. An interval that holds the truth still does when it is longer.
    """
    return np.minimum(low, numbers), np.maximum(high, numbers)


def score_intervals(solution: Solution, confidence: Confidence, strict: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """All p that raw is not too far away from, with the variance that raw has if p is the frequency.

    Args:
        solution: with S frequencies.
        confidence: of all; of strict intervals maybe (S,).
        strict: hold rare values too with this confidence, by the binomial law that has this variance, and below by
            what chance does with heavy texts that nobody listed.

    Returns:
        low, high: (S,), not cut to [0, 1].
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
    """Of counts whose variances are jump (raw + 2 jump), as if two more reports had come: jump p."""
    seen, zeros = np.maximum(raw, 0), np.zeros(len(raw))
    jumps = (np.sqrt(seen**2 + 8 * np.maximum(variances, 0)) - seen) / 4
    return OwnNoise(null=zeros, slope=jumps, curvature=zeros, least=zeros)
