"""Counted kinds of reports: the input of the likelihood."""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy


@dataclasses.dataclass(frozen=True, eq=False)
class Outcomes:
    """Y kinds of reports. Up to factors that do not depend on p, kind i has the probability

        base_i * sum(p) + (rows p)_i

    where p are the symbol frequencies of its cohort: base is 1 for a protected report and 0 for a clear report.

    Attributes:
        counts: (Y,) float64, number of reports of each kind; above 0.
        cohorts: (Y,) int64.
        base: (Y,) float64.
        rows: (Y, K) sparse, float64.
    """

    counts: np.ndarray
    cohorts: np.ndarray
    base: np.ndarray
    rows: scipy.sparse.csr_array
