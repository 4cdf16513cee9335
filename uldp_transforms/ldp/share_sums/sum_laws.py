"""The variance of the estimated share of a set as a function of that share, for intervals of rare and of frequent sets.

With the weights a = 1 - c of the set's symbols and -c of all others, the sum has n times the variance

    V(t) = V_0 + t (V_1 - V_0 + 1) - t^2

if a share t of the people is in the set, and people within it, and outside, are distributed as they seem to be: n times
the variance is linear in the frequencies but for the square of the mean, t - c. V_1 and V_0 are the variances if
everybody is in the set, and nobody. Both depend on how people divide
among symbols of which a report counts differently, such as those of several levels. That division is estimated by sums
of unbiased shares: if each were cut at 0, noisy ones would outweigh precise ones.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from uldp_transforms.ldp.mechanisms import count_intervals
from uldp_transforms.ldp.mechanisms.binomial_law import Confidence
from uldp_transforms.ldp.solvers.intervals import quantile
from uldp_transforms.ldp.solvers.question import Question
from uldp_transforms.ldp.solvers.simplex import clip_and_normalize


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class SumLaws:
    """What the variances of M sums are as functions of the sums; arrays are (M,).

    Attributes:
        variances: at the estimate.
        is_known: bool, whether the other attributes are known: of sets, where each value has a symbol.
        null, slope: coefficients of the variance null + slope t - t^2 / n.
        jump: contribution of one more counted report to the sum.
        counted: share of all counted reports that are counted for the set.
        num_reports: n.
        spare: degrees of freedom of ``variances``.
    """

    variances: np.ndarray
    is_known: np.ndarray
    null: np.ndarray
    slope: np.ndarray
    jump: np.ndarray
    counted: np.ndarray
    num_reports: int
    spare: float

    def intervals(self, totals: np.ndarray, confidence: Confidence, strict: bool) -> tuple[np.ndarray, np.ndarray]:
        """Intervals of the sums around ``totals``, not cut; ``confidence`` and ``strict`` as for ``Intervals``."""
        half = quantile(self.spare, confidence) * np.sqrt(self.variances)
        low, high = totals - half, totals + half
        if not self.is_known.any():
            return low, high
        ends = count_intervals.score_intervals(
            totals,
            self.null,
            self.slope,
            1 / self.num_reports,
            self.jump,
            self.counted,
            confidence=np.broadcast_to(confidence, totals.shape),
            strict=strict,
        )
        return np.where(self.is_known, ends[0], low), np.where(self.is_known, ends[1], high)


def laws_of(
    question: Question, moved: np.ndarray, is_share: np.ndarray, variances: np.ndarray, jumps: np.ndarray, spare: float
) -> SumLaws:
    """The laws of M sums.

    Args:
        question: with U unknowns.
        moved: (M, U) weights of the unknowns.
        is_share: (M,) bool, whether the sum is that of a set.
        variances: (M,) of the sums.
        jumps: (M,) contribution of one more counted report.
        spare: degrees of freedom of ``variances``.
    """
    n, counts = question.counts.total, question.counts.pooled()
    null, slope, counted = np.zeros((3, len(moved)))
    is_known = is_share & moved.any(axis=1)
    if question.of_symbols:
        raw = question.model.mechanism.invert(counts)[0]
        plausible = clip_and_normalize(raw)
        is_known &= question.model.alphabet.redistribution(plausible) is None
        cells = counts.cells[0, : len(plausible)]
        for at in np.flatnonzero(is_known):
            inside = moved[at] > moved[at].min()
            full, empty = (_variance(question, moved[at], raw, part) for part in (inside, ~inside))
            null[at], slope[at] = empty / n, (full - empty + 1) / n
            counted[at] = cells[inside].sum() / max(cells.sum(), 1)
    else:
        is_known = np.zeros(len(moved), dtype=bool)
    return SumLaws(
        variances=variances,
        is_known=is_known,
        null=null,
        slope=slope,
        jump=jumps,
        counted=counted,
        num_reports=n,
        spare=spare,
    )


def _variance(question: Question, weights: np.ndarray, raw: np.ndarray, part: np.ndarray) -> float:
    """n times the variance of a sum if everybody has a symbol of this part, (K,) bool.

    Symbols of equal ``jumps`` are one kind. As with ``jump``, one more report of each kind counts.
    """
    mechanism = question.model.mechanism
    jumps, kinds = np.unique(mechanism.jumps, return_inverse=True)
    sizes, sums = (np.bincount(kinds, of) for of in (part, np.where(part, raw, 0.0)))
    of_kinds = np.where(sizes > 0, np.maximum(sums, 0) + jumps / question.counts.total, 0.0)
    within = np.where(part, np.maximum(raw, 0), 0.0)
    seen = np.bincount(kinds, within)[kinds]
    within = np.where(seen > 0, within / np.where(seen > 0, seen, 1.0), part / np.maximum(sizes, 1)[kinds])
    held = of_kinds[kinds] * within
    return max(float(mechanism.variance_of(weights, held / held.sum())), 0.0)
