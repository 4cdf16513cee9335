"""Significance threshold: significant frequencies are kept, and the remaining mass is shared equally."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np
from scipy import special

from uldp_transforms.ldp.estimators.estimator import Decoder, Problem, everybody

SIGNIFICANCE = 0.05
"""Maximum probability that a value that nobody holds is kept (Bonferroni)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Threshold(Decoder):
    """Keep frequencies above the noise threshold; the others share the remaining mass equally.

    The threshold of a value is z_{1 - 0.05 / V} standard errors under the hypothesis that nobody holds it, V being the
    number of noisy values. Noise-free values (non-sensitive ones with clear reports) are kept if they were observed. If
    the kept frequencies exceed 1, or no other entry is left, they are divided by their sum. The unlisted values of an
    open alphabet are one more entry, which is never significant.

    Source: Erlingsson, Pihur and Korolova 2014; Wang et al. 2017; Murakami and Kawamoto 2019, section 6.
    """

    id: ClassVar[str] = "threshold"

    def decode(self, problem: Problem) -> np.ndarray:
        return problem.in_blocks(_significant)


def _significant(problem: Problem) -> np.ndarray:
    errors = problem.linear.null_errors
    return keep_significant(everybody(problem), np.append(errors, np.inf) if problem.open else errors)


def keep_significant(raw: np.ndarray, null_errors: np.ndarray) -> np.ndarray:
    """Keep significant entries; the other entries share the remaining mass equally.

    Args:
        raw: (S,) unbiased frequencies.
        null_errors: (S,) standard errors if the entry were 0; infinity for an entry that is never kept.

    Returns:
        (S,), a distribution.
    """
    noisy = max(int(np.count_nonzero((null_errors > 0) & np.isfinite(null_errors))), 1)
    limit = special.ndtri(1 - SIGNIFICANCE / noisy) * null_errors
    kept = (raw > 0) & (raw >= limit)
    shares = np.where(kept, raw, 0.0)
    missing = 1 - shares.sum()
    if missing < 0 or kept.all():
        normalized: np.ndarray = shares / shares.sum()
        return normalized
    shares[~kept] = missing / np.count_nonzero(~kept)
    return shares
