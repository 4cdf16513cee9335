"""Normalization: clip at zero and divide by the sum."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from uldp_transforms.ldp.estimators.estimator import PostProcessed
from uldp_transforms.ldp.solvers.simplex import clip_and_normalize


@dataclasses.dataclass(frozen=True, kw_only=True)
class Normalized(PostProcessed):
    """Set negative frequencies to 0 and divide the rest by its sum; uniform if no frequency is positive.

    Source: Kairouz, Bonawitz and Ramage 2016, section 4.3 (normalized decoder).
    """

    id: ClassVar[str] = "normalized"
    is_continuous: ClassVar[bool] = True

    def post_process(self, raw: np.ndarray) -> np.ndarray:
        return clip_and_normalize(raw)
