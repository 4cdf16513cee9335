"""Anytime-valid intervals: confidence intervals that stay valid at every look while reports arrive."""

from __future__ import annotations

import numpy as np
from scipy import special

from uldp_transforms.ldp.mechanisms.binomial_law import Confidence

_FARTHEST = 8.0  # standard errors: even a million looks miss such an interval with probability 2e-9


def anytime_confidence(confidence: Confidence, num_reports: float | np.ndarray, scale: float) -> np.ndarray:
    """Fixed-sample confidence level whose intervals, checked after every report, ever miss with 1 - ``confidence``.

    With r = scale / n and alpha = 1 - confidence the half width is sqrt((1 + r) ln((1 + 1 / r) / alpha^2)) standard
    errors. That is Robbins's boundary: exp(S^2 / (2 (n + scale)) / sqrt(1 + 1 / r)), the likelihood ratio of a sum S
    of n standardised reports against a normal law of its drift, is a martingale of mean 1, and so exceeds 1 / alpha in
    a share alpha of cases at most (Ville). The boundary holds for all n; intervals are shortest around n = 8 scale.

    Args:
        confidence: joint confidence of all looks, for instance 0.95; of any shape.
        num_reports: n, at least 1; may be one for each level.
        scale: tuning constant in reports, above 0, chosen before the data are seen.

    Returns:
        Confidence levels in [confidence, 1), with the shape of ``confidence``.

    Source: Robbins 1970, Statistical methods related to the law of the iterated logarithm.
    """
    ratio = scale / num_reports
    square = (1 + ratio) * (np.log1p(1 / ratio) - 2 * np.log1p(-np.asarray(confidence)))
    larger: np.ndarray = np.maximum(confidence, 1 - 2 * special.ndtr(-np.minimum(np.sqrt(square), _FARTHEST)))
    return larger


def confidence_of_look(
    confidence: Confidence, num_reports: float | np.ndarray, scale: float, planned: bool | None = None
) -> np.ndarray:
    """Confidence level of one look, such that all looks together miss with probability at most 1 - ``confidence``.

    Args:
        confidence, num_reports, scale: as for ``anytime_confidence``.
        planned: True: this is the single planned look, at a time that does not depend on the reported values; it gets
            half of the error probability. False: an unplanned look; all unplanned looks share the other half. None: no
            look is planned.
    """
    if planned is None:
        return anytime_confidence(confidence, num_reports, scale)
    half = np.asarray((1 + np.asarray(confidence)) / 2)
    return half if planned else anytime_confidence(half, num_reports, scale)
