"""The unbiased, unclipped estimate without post-processing."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from uldp_transforms.ldp.estimators.estimator import PostProcessed, Problem


@dataclasses.dataclass(frozen=True, kw_only=True)
class Empirical(PostProcessed):
    """No post-processing: frequencies may be negative and need not sum to 1; averages over windows stay unbiased.

    Source: Kairouz, Bonawitz and Ramage 2016, sections 4.1 and 4.2 (empirical estimate).
    """

    id: ClassVar[str] = "empirical"
    is_continuous: ClassVar[bool] = True

    def post_process(self, raw: np.ndarray) -> np.ndarray:
        return raw

    def decode(self, problem: Problem) -> np.ndarray:
        """Raw shares, including that of the unlisted values even if its error is large, so that averages stay
        unbiased."""
        raw = problem.linear.joint
        return np.append(raw, 1 - raw.sum()) if problem.open else raw
