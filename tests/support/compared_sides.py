"""Estimates of two groups of any collection."""

from __future__ import annotations

import numpy as np

from tests.support.cases import VALUES
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.estimators import Estimate


def sides_of(of: Collection, number: int, rng: np.random.Generator) -> tuple[Estimate, Estimate]:
    """Estimates of two groups, the second one smaller, with other values in front."""
    values = of.alphabet.known_values
    names = np.array(values or VALUES, dtype=object)
    falling = np.arange(len(names), 0, -1.0) ** 2 / (np.arange(len(names), 0, -1.0) ** 2).sum()
    reports = (
        of.perturb(rng.choice(names, size, p=np.roll(falling, turned)).tolist(), rng)
        for size, turned in ((number, 0), (number // 3, 1))
    )
    first, second = (of.estimate(of.count(each), "empirical", None if values else tuple(VALUES)) for each in reports)
    return first, second
