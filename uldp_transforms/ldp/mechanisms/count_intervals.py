"""Intervals of frequencies whose noise depends on the frequency itself, down to counts of 0, 1 and 2.

The end towards the nearer of "none is counted" and "all are counted" excludes half of the probability of the observed
count (mid-P); the other end includes all of it (Clopper and Pearson). Clopper-Pearson ends on both sides cover rare
values far too often, mid-P ends on both sides not often enough.

Strict intervals use Clopper-Pearson ends on both sides, see ``binomial_law``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from uldp_transforms.ldp.mechanisms.binomial_law import (
    Confidence,
    clopper_pearson,
    clopper_pearson_of_law,
    normal_quantile,
)

_STEPS = 30  # of Newton's method, which needs three to five; bisection where it fails
_CLOSE = 1e-7  # relative length of a step whose square is negligible, so that no further one is needed


def binomial_intervals(
    successes: np.ndarray, trials: int | np.ndarray, confidence: Confidence, strict: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals of binomial probabilities, each the same, bit for bit, whichever are computed with it.

    Args:
        successes: (K,) int64; or (W, K), of W windows.
        trials: n, above 0; or (W, 1).
        confidence: for instance 0.95; may have the shape of ``successes``, with nan where no interval is needed.
        strict: see the module.

    Returns:
        low, high, with the shape of ``successes``.
    """
    if strict:
        return clopper_pearson(successes, trials, normal_quantile(confidence))
    levels, of_each = np.broadcast_to(confidence, successes.shape), np.full(successes.shape, trials)
    needed, ends = ~np.isnan(levels), np.full((2, *successes.shape), np.nan)
    asked = successes[needed], of_each[needed], levels[needed]
    first, which = _distinct(asked)
    counts, reports, level = (column[first] for column in asked)
    ends[:, needed] = _ends(counts.astype(np.float64), reports, (1 - level) / 2)[:, which]
    return ends[0], ends[1]


def _distinct(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The places of rows (N,) that differ from each other, one of each kind, and for all rows the place of their kind
    among these."""
    order = np.lexsort(columns)
    is_new = np.zeros(len(order), dtype=bool)
    for column in columns:
        ordered = column[order]
        is_new[1:] |= ordered[1:] != ordered[:-1]
    is_new[:1] = True
    which = np.empty(len(order), dtype=np.int64)
    which[order] = is_new.cumsum() - 1
    return order[is_new], which


def _ends(successes: np.ndarray, trials: np.ndarray, tails: np.ndarray) -> np.ndarray:
    """(2, K), lower and upper ends: the upper one is the lower one of the reports that are not counted."""
    counted = np.concatenate([successes, trials - successes])
    ends = _lower(counted, np.concatenate([trials, trials]), np.concatenate([tails, tails])).reshape(2, -1)
    ends[1] = 1 - ends[1]
    return ends


def _lower(successes: np.ndarray, trials: np.ndarray, tails: np.ndarray) -> np.ndarray:
    """The probabilities for which at least these numbers of successes have the probabilities ``tails``; (K,) each.

    Newton's method begins at the quantile of Jeffreys' posterior, which is near the mid-P end (Brown, Cai and DasGupta
    2001).
    """
    rare, often = (successes > 0) & (2 * successes <= trials), 2 * successes > trials
    low = np.zeros(len(successes))
    low[often] = scipy.special.betaincinv(successes[often], (trials - successes)[often] + 1, tails[often])
    x, n, tail = successes[rare], trials[rare], tails[rare]
    at = scipy.special.betaincinv(x + 0.5, n - x + 0.5, tail)
    moving, below, above = np.arange(len(x)), np.zeros(len(x)), np.ones(len(x))
    for _ in range(_STEPS):
        if not len(moving):
            break
        own, of, now = x[moving], n[moving], at[moving]
        so_many, more = scipy.special.betainc(own, of - own + 1, now), scipy.special.betainc(own + 1, of - own, now)
        excess = so_many + more - 2 * tail[moving]
        below, above = np.where(excess < 0, now, below), np.where(excess < 0, above, now)
        slope = (so_many - more) * (own / now + (of - own) / (1 - now))
        new = now - excess / slope
        new = np.where((below <= new) & (new <= above), new, (below + above) / 2)
        at[moving] = new
        goes_on = ~(np.abs(new - now) <= _CLOSE * new)  # each by itself: an end does not depend on the others
        moving, below, above = moving[goes_on], below[goes_on], above[goes_on]
    low[rare] = at
    return low


def score_intervals(
    raw: np.ndarray,
    null: np.ndarray,
    slope: np.ndarray | float,
    curvature: np.ndarray | float,
    jump: np.ndarray | float,
    counted: np.ndarray | float,
    *,
    confidence: Confidence,
    z: Confidence | None = None,
    strict: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of all p with |raw - shift - p| <= z sqrt(V(p)), where V(p) = null + slope p - curvature p^2.

    V(p) is the variance of ``raw`` if p is the frequency. The shift corrects the skewness of counts (Cornish and
    Fisher): (z^2 - 1) / 6 times the contribution of one report, times 1 - 2 counted; at the mid-P end, see the module,
    it is half a report smaller. Where the shift exceeds z errors at p = 0, or the interval would leave out ``raw``, the
    interval is extended to the one without a shift. If no p satisfies the inequality, the end is the p nearest to it in
    these units.

    Args:
        raw: (S,) unbiased frequencies.
        null, slope, curvature: (S,) or numbers, coefficients of V.
        jump: contribution of one more counted report to ``raw``.
        counted: share of all reports that are counted for a value.
        confidence: for instance 0.95; may be (S,).
        z: quantile of the noise, if its distribution is not normal; one per confidence.
        strict: use Clopper-Pearson ends of the binomial distribution with variance V(p) instead.

    Returns:
        low, high: (S,), not clipped to [0, 1].
    """
    normal = normal_quantile(confidence)
    if strict:
        return clopper_pearson_of_law(raw, null, slope, curvature, normal if z is None else z)
    square = np.square(normal if z is None else z)
    skew = (normal**2 - 1) / 6 * (1 - 2 * np.asarray(counted)) * jump
    often = np.asarray(counted) > 0.5
    halves = np.where(often, jump / 2, 0), np.where(often, 0, jump / 2)

    def ends(shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        below, above = raw - shift - halves[0], raw - shift + halves[1]
        possible = null + slope * below - curvature * below**2 > 0  # otherwise no p, and no root, is below
        low = np.where(possible, score_root(below, null, slope, curvature, square, -1), below)
        return low, score_root(above, null, slope, curvature, square, 1)

    low, high = ends(skew)
    beyond = np.abs(skew) > np.sqrt(np.maximum(square * null, 0))
    beside = (low > raw) | (high < raw) | beyond  # few reports and a large z: the expansion does not hold
    others = ends(np.where(beside, 0, skew))
    return np.minimum(low, others[0]), np.maximum(high, others[1])


def score_root(
    near: np.ndarray,
    null: np.ndarray,
    slope: np.ndarray | float,
    curvature: np.ndarray | float,
    square: np.ndarray,
    sign: int,
) -> np.ndarray:
    """The p below (sign -1) or above (1) for which (near - p)^2 = square (null + slope p - curvature p^2)."""
    spread, centre = 1 + square * curvature, near + square * slope / 2
    half = np.sqrt(np.maximum(centre**2 - spread * (near**2 - square * null), 0))
    end: np.ndarray = (centre + sign * half) / spread
    return end
