"""Intervals that may be looked at again and again while reports come in: those of a larger confidence."""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from uldp_transforms.ldp.mechanisms.binomial_law import Confidence

_FARTHEST = 8.0  # standard errors: even a million looks miss such an interval in 2 cases of a thousand million


def anytime_confidence(confidence: Confidence, num_reports: int, scale: float) -> np.ndarray:
    """The confidence whose interval, looked at after every report, misses at any look in 1 - ``confidence`` of cases.

    With r = scale / n and alpha = 1 - confidence the half width is sqrt((1 + r) ln((1 + 1 / r) / alpha^2)) standard
    errors. That is Robbins's boundary: exp(S^2 / (2 (n + scale)) / sqrt(1 + 1 / r)), the likelihood ratio of a sum S
    of n standardised reports against a normal law of its drift, is a martingale of mean 1, and so exceeds 1 / alpha in
    a share alpha of cases at most (Ville). The boundary holds for all n; intervals are shortest around n = 8 scale.

    Args:
        confidence: of all looks together, for instance 0.95; of any shape.
        num_reports: n, at least 1.
        scale: reports, above 0, chosen before the data are seen.

    Returns:
        in [confidence, 1), of that shape.

    Source: Robbins 1970, Statistical methods related to the law of the iterated logarithm.
    """
    ratio = scale / num_reports
    square = (1 + ratio) * (math.log1p(1 / ratio) - 2 * np.log1p(-np.asarray(confidence)))
    larger: np.ndarray = np.maximum(confidence, 1 - 2 * special.ndtr(-np.minimum(np.sqrt(square), _FARTHEST)))
    return larger


def confidence_of_look(
    confidence: Confidence, num_reports: int, scale: float, planned: bool | None = None
) -> np.ndarray:
    """The confidence of the intervals of one look, so that those of all looks together miss in 1 - ``confidence``.

    Args:
        confidence, num_reports, scale: as for ``anytime_confidence``.
        planned: True: half of what may miss is for this look, of which there is one, at a time that does not depend on
            what people hold. False: the other half is for all looks but that one. None: no look is planned.
    """
    if planned is None:
        return anytime_confidence(confidence, num_reports, scale)
    half = np.asarray((1 + np.asarray(confidence)) / 2)
    return half if planned else anytime_confidence(half, num_reports, scale)
