"""Kinds of reports and how often each came: all that a likelihood needs to know."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import sparse


@dataclasses.dataclass(frozen=True, eq=False)
class Outcomes:
    """Y kinds of reports. Up to factors free of p, kind i has the probability

        base_i * sum(p) + (rows p)_i

    where p are the symbol frequencies of its cohort: base 1 for a protected report, 0 for a report in clear.

    Attributes:
        counts: (Y,) float64, how often each kind came; above 0.
        cohorts: (Y,) int64.
        base: (Y,) float64.
        rows: (Y, K) sparse, float64.
    """

    counts: np.ndarray
    cohorts: np.ndarray
    base: np.ndarray
    rows: sparse.csr_array
