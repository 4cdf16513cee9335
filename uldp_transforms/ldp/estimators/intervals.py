"""Intervals of hashed values, whose variance depends on what is estimated."""

from __future__ import annotations

import numpy as np
from scipy import special

from uldp_transforms.ldp.estimators.observation import Solution
from uldp_transforms.ldp.mechanisms import count_intervals


def quantile(spare: float, confidence: float) -> float:
    """Of the standard normal law, or of Student's law if the noise level is known from ``spare`` residuals only."""
    level = (1 + confidence) / 2
    return float(special.stdtrit(spare, level) if np.isfinite(spare) else special.ndtri(level))


def score_intervals(solution: Solution, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """All p that raw is not too far away from, with the variance that raw has if p is the frequency.

    Returns:
        low, high: (S,), not cut to [0, 1].
    """
    z, raw, own = quantile(solution.spare, confidence), solution.frequencies, solution.own
    if own is None:
        half = z * np.sqrt(np.maximum(solution.variances, 0))
        return raw - half, raw + half
    return count_intervals.score_intervals(
        raw, own.null, own.slope, own.curvature, solution.jump, solution.counted, confidence=confidence, z=z
    )
