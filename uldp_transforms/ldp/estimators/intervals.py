"""Intervals from estimates whose variance depends on what is estimated."""

from __future__ import annotations

import numpy as np
from scipy import special

from uldp_transforms.ldp.estimators.observation import Solution


def quantile(solution: Solution, confidence: float) -> float:
    """Of the standard normal law, or of Student's law if the noise level is known from residuals only."""
    level = (1 + confidence) / 2
    return float(special.stdtrit(solution.spare, level) if np.isfinite(solution.spare) else special.ndtri(level))


def score_intervals(solution: Solution, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """All p with (raw - p)^2 <= z^2 (V(p) + jump^2 / 2), where V(p) is the variance of raw if p is the frequency.

    Of rare values few reports are counted, each of which moves the estimate by ``jump``: at raw itself, V would be far
    too small where none or one has come. Half a jump squared is the continuity correction of such counts;
    docs/estimation.md. Where no p is near enough, the nearest in these units is both ends.

    Returns:
        low, high: (S,), not cut to [0, 1].
    """
    z, raw, own = quantile(solution, confidence), solution.frequencies, solution.own
    if own is None:
        half = z * np.sqrt(np.maximum(solution.variances, 0))
        return raw - half, raw + half
    spread = 1 + z**2 * own.curvature
    centre = raw + z**2 * own.slope / 2
    least = z**2 * (own.null + solution.jump**2 / 2)
    half = np.sqrt(np.maximum(centre**2 - spread * (raw**2 - least), 0))
    return (centre - half) / spread, (centre + half) / spread
