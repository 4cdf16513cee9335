"""Intervals that may be looked at again and again while reports come in: those of a larger confidence."""

from __future__ import annotations

import math

from scipy import special

_FARTHEST = 7.0  # standard errors: even a million looks miss such an interval in 3 cases of a million


def anytime_confidence(confidence: float, num_reports: int, scale: float) -> float:
    """The confidence whose interval, looked at after every report, misses at any look in 1 - ``confidence`` of cases.

    With r = scale / n and alpha = 1 - confidence the half width is sqrt((1 + r) ln((1 + 1 / r) / alpha^2)) standard
    errors. That is Robbins's boundary: exp(S^2 / (2 (n + scale)) / sqrt(1 + 1 / r)), the likelihood ratio of a sum S
    of n standardised reports against a normal law of its drift, is a martingale of mean 1, and so exceeds 1 / alpha in
    a share alpha of cases at most (Ville). The boundary holds for all n; intervals are shortest around n = 8 scale.

    Args:
        confidence: of all looks together, for instance 0.95.
        num_reports: n, at least 1.
        scale: reports, above 0, chosen before the data are seen.

    Returns:
        a number in [confidence, 1).

    Source: Robbins 1970, Statistical methods related to the law of the iterated logarithm.
    """
    ratio = scale / num_reports
    square = (1 + ratio) * (math.log1p(1 / ratio) - 2 * math.log(1 - confidence))
    return max(confidence, float(1 - 2 * special.ndtr(-min(math.sqrt(square), _FARTHEST))))
