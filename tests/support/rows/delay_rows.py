"""Rows of windows of delays, which are numbers."""

from __future__ import annotations

import numpy as np

from tests.support.estimated import estimate_window
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.rows.row_identity import span_of
from uldp_transforms.rows.row_types import WindowedEstimate

DAY = 86_400_000
LOW, HIGH, BINS = -60, 180, 16


def delays(epsilon: float = 2.0, **alphabet: object) -> Collection:
    spec = {"id": "ordered", "low": LOW, "high": HIGH, "num_bins": BINS} | alphabet
    return Collection.from_json(
        {"id": "delays", "version": 1, "alphabet": spec, "mechanism": {"id": "sw", "epsilon": epsilon}}
    )


def shares_of(middle: float) -> np.ndarray:
    """A population of numbers around a bin."""
    shares = np.exp(-(((np.arange(BINS) - middle) / 2) ** 2) / 2)
    found: np.ndarray = shares / shares.sum()
    return found


def row_of(
    item: Collection,
    day: int,
    held: np.ndarray,
    rng: np.random.Generator,
    limits: tuple[float, ...] | None = (15.0, 20.0),
) -> WindowedEstimate:
    """The row of a day on which so many people hold each symbol."""
    channel = item.mechanism.response(np.eye(len(held)))
    cells = sum(rng.multinomial(number, law / law.sum()) for number, law in zip(held, channel))
    place = span_of(day * DAY, DAY) | {"pane_index": 0, "pane_timing": "ON_TIME", "run": None}
    counts = CohortCounts(np.array([held.sum()]), np.asarray(cells)[np.newaxis])
    return estimate_window(
        item, counts, place, ESTIMATORS["projected"](), None, None, limits=limits, quantiles=(0.1, 0.5, 0.9)
    )
