"""A collection of numbers, with counts of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from uldp_transforms.ldp import CohortCounts, Collection

COUNTS = (900, 950, 1000, 1010, 980, 900, 840, 800, 720, 680, 630, 590)
P = np.array([0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.05, 0.05])


def collection(mechanism: str = "sw", epsilon: float = 1.0, **alphabet: Any) -> Collection:
    spec = {"id": "ordered", "low": 0, "high": 1, "num_bins": 8} | alphabet
    return Collection.from_json(
        {"id": "numbers", "version": 1, "alphabet": spec, "mechanism": {"id": mechanism, "epsilon": epsilon}}
    )


def one(cells: Any) -> CohortCounts:
    cells = np.asarray(cells, dtype=np.int64)[np.newaxis]
    return CohortCounts(cells.sum(axis=1), cells)
