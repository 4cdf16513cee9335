"""The nearest distribution to the unbiased estimate."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from uldp_transforms.ldp.estimators.base import Estimator


@dataclasses.dataclass(frozen=True, kw_only=True)
class Projected(Estimator):
    """Euclidean projection onto the simplex: subtract one constant, clip at zero, such that the sum is 1.

    Source: Kairouz, Bonawitz and Ramage 2016, section 4.3 (projected decoder); algorithm: Wang and
    Carreira-Perpinan 2013.
    """

    id: ClassVar[str] = "projected"

    def post_process(self, raw: np.ndarray) -> np.ndarray:
        return project_onto_simplex(raw)


def project_onto_simplex(point: np.ndarray) -> np.ndarray:
    """The distribution nearest to a point, in the Euclidean norm.

    Example:
        >>> project_onto_simplex(np.array([0.6, 0.5, -0.2, 0.1])).round(6).tolist()
        [0.533333, 0.433333, 0.0, 0.033333]
    """
    descending = np.sort(point)[::-1]
    shifts = (1 - np.cumsum(descending)) / np.arange(1, len(point) + 1)
    active = np.flatnonzero(descending + shifts > 0)[-1]
    return np.maximum(point + shifts[active], 0)
