"""Evidence that values moved, from jumps in a single window and from lasting changes; see ``alarm.judge``."""

from __future__ import annotations

import numpy as np
from scipy import special

LEAST_HISTORY = 8
"""Number of windows with a value before a change can be reported: for daily windows, a week and a day."""

SUDDEN = 0.9
"""Share of the false-alarm budget for jumps in a single window; the rest is for lasting changes.

The evidence of lasting changes grows by a factor with each window, so a tenth delays them by only a window or two.
"""

SIZES = np.array([1.0, -1.0, 2.0, -2.0, 4.0, -4.0])[:, np.newaxis]
"""Sizes of lasting changes, in standard deviations."""

_LEAST_TAIL = 1e-300  # its normal quantile is 37


def lasting_evidence(evidence: np.ndarray, tails: np.ndarray, sign: np.ndarray) -> np.ndarray:
    """(T, 6, S) evidence of lasting changes after each of T windows if there is no alarm, from (6, S) ``evidence``.

    It is unchanged where (T, S) ``tails`` are 1, that is, not judged.
    """
    normal = -sign * special.ndtri(np.maximum(tails / 2, _LEAST_TAIL))
    judged = (tails < 1)[:, np.newaxis]
    factors = np.where(judged, np.exp(SIZES * normal[:, np.newaxis] - SIZES**2 / 2), 1)
    kept = np.empty_like(factors)
    with np.errstate(over="ignore", invalid="ignore"):  # in the windows after an alarm
        for t in range(len(kept)):
            evidence = np.add(evidence, judged[t], out=kept[t])
            evidence *= factors[t]
    return kept


def which_moved(
    evidence: np.ndarray, tails: np.ndarray, alarm_every: float, sudden: float
) -> tuple[np.ndarray, np.ndarray]:
    """(T,) false alarms per window of rules that would just alarm, at most 1; and (T, S) bool, which values moved."""
    size = max(tails.shape[1], 1)
    lasting = np.add.reduce(evidence, axis=1) * ((1 - sudden) / len(SIZES)) if sudden < 1 else np.zeros_like(tails)
    own = lasting + sudden * np.where(tails * size * alarm_every < sudden, size * alarm_every / sudden, 0)
    rings = np.add.reduce(own, axis=1) >= alarm_every * size
    lasts = np.add.reduce(lasting, axis=1) / size
    rates = np.minimum(np.minimum.reduce(tails, axis=1, initial=1) * size / sudden, 1 / np.maximum(lasts, 1))
    return rates, (own >= alarm_every) & rings[:, np.newaxis]
