"""Projection: the distribution nearest to the unbiased estimate."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from uldp_transforms.ldp.estimators.estimator import PostProcessed
from uldp_transforms.ldp.solvers.simplex import project_onto_simplex


@dataclasses.dataclass(frozen=True, kw_only=True)
class Projected(PostProcessed):
    """Euclidean projection onto the simplex: subtract a constant and clip at zero, such that the sum is 1.

    Source: Kairouz, Bonawitz and Ramage 2016, section 4.3 (projected decoder); algorithm: Wang and
    Carreira-Perpinan 2013.
    """

    id: ClassVar[str] = "projected"
    is_continuous: ClassVar[bool] = True

    def post_process(self, raw: np.ndarray) -> np.ndarray:
        return project_onto_simplex(raw)
