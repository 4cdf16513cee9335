"""Evidence that values moved, from jumps in a single window and from lasting changes; see ``alarm.judge``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from uldp_transforms.ldp.smoothing.variation import mixed

LEAST_HISTORY = 8
"""Number of windows with a value before a change can be reported: for daily windows, a week and a day."""

SUDDEN = 0.2
"""Share of the false-alarm budget for jumps in a single window; the rest is for lasting changes."""

SIZES = np.array([2.0, -2.0, 6.0, -6.0], dtype=np.float32)
"""Sizes d of lasting changes, in standard deviations of a window under each law."""

SHARES = np.array([0.4, 0.4, 0.1, 0.1], dtype=np.float32)
"""Share of each size in the evidence of lasting changes."""

_FARTHEST = np.float32(4.5)
"""Scores beyond it count as it, so that no window alone is evidence of a change that lasts, at one alarm in 1,000.

Jumps have evidence of their own. Without the limit a lognormal day of a rare value rang, since it is far likelier than
the normal likelihoods of wide laws say.
"""
_MOST = np.float32(1e18)  # maximum evidence under a law, which keeps 32 bits from overflowing


def lasting_evidence(
    evidence: np.ndarray, scores: np.ndarray, judged: np.ndarray, posterior: np.ndarray, moves: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Evidence of lasting changes after each of T windows if there is no alarm.

    Under each law the evidence of a change by d standard deviations that began in any window so far is a sum of
    likelihood ratios. The mean over laws, weighted by the posterior, is the ratio of the likelihoods in which the law
    is integrated over.

    Args:
        evidence: (D, G, S) before the first window.
        scores: (T, G, S) standard normal numbers of the changes under each law.
        judged: (T, S) bool, whether the window is evidence about the value.
        posterior: (T, G, S) weights of the laws given the window.
        moves: T matrices (G, G) of the probabilities of the law of the next window, in columns for each law now.

    Returns:
        (T, D, G, S) evidence under each law, and (D, G, S) that of the last window after laws are redrawn.
    """
    near, later = np.clip(scores, -_FARTHEST, _FARTHEST), np.empty((len(scores), *evidence.shape), dtype=np.float32)
    for place, size in enumerate(SIZES):
        np.exp(size * near - size**2 / 2, out=later[:, place])
    np.copyto(later, np.float32(1), where=~judged[:, np.newaxis, np.newaxis])
    begun = judged[:, np.newaxis, np.newaxis].astype(np.float32)
    for t in range(len(later)):
        after = later[t]
        after *= evidence + begun[t]
        np.minimum(after, _MOST, out=after)
        evidence = np.minimum(mixed(moves[t], posterior[t] * after) / mixed(moves[t], posterior[t]), _MOST)
    return later, evidence


def jumps_of(tails: np.ndarray, alarm_every: float, sudden: float) -> np.ndarray:
    """(..., S) evidence of windows alone, from their tail probabilities."""
    limit = sudden / max(tails.shape[-1], 1) / alarm_every
    jumps: np.ndarray = np.where(tails < limit, 1 / limit, 0)
    return jumps


def which_moved(
    evidence: np.ndarray, tails: np.ndarray, alarm_every: float, sudden: float
) -> tuple[np.ndarray, np.ndarray]:
    """(T,) false alarms per window of rules that would just alarm, at most 1; and (T, S) bool, which values moved."""
    size = max(tails.shape[1], 1)
    lasting = (1 - sudden) * evidence if sudden < 1 else np.zeros_like(tails)
    own = lasting + sudden * jumps_of(tails, alarm_every, sudden)
    rings = np.add.reduce(own, axis=1) >= alarm_every * size
    lasts = np.add.reduce(lasting, axis=1) / size
    rates = np.minimum(np.minimum.reduce(tails, axis=1, initial=1) * size / sudden, 1 / np.maximum(lasts, 1))
    rates = np.where((tails < 1).any(axis=1), rates, 1)
    return rates, (own >= alarm_every) & rings[:, np.newaxis]
