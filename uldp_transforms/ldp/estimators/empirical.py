"""The unbiased, unclipped estimate without post-processing."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from uldp_transforms.ldp.estimators.estimator import PostProcessed
from uldp_transforms.ldp.solvers.linear import LinearEstimate
from uldp_transforms.ldp.solvers.question import Question


@dataclasses.dataclass(frozen=True, kw_only=True)
class Empirical(PostProcessed):
    """No post-processing: frequencies may be negative and need not sum to 1; averages over windows stay unbiased.

    Source: Kairouz, Bonawitz and Ramage 2016, sections 4.1 and 4.2 (empirical estimate).
    """

    id: ClassVar[str] = "empirical"

    def post_process(self, raw: np.ndarray) -> np.ndarray:
        return raw

    def shares(self, question: Question, linear: LinearEstimate) -> tuple[np.ndarray, float | None]:
        """Raw shares, including that of the unlisted values even if its error is large, so that averages stay
        unbiased."""
        raw = linear.joint
        return np.append(raw, 1 - raw.sum()) if question.open else raw, None
