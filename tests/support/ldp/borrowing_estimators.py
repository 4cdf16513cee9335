"""Estimators of groups that borrow, and a group in which all signs occur."""

from __future__ import annotations

import itertools

import numpy as np

from uldp_transforms.ldp.estimators import ESTIMATORS

EB, EMPIRICAL, PROJECTED = (ESTIMATORS[name]() for name in ("eb", "empirical", "projected"))


def all_signs(size: int) -> np.ndarray:
    return np.array(list(itertools.product((-1.0, 1.0), repeat=size)))
