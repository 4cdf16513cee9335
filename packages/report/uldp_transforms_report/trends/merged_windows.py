"""Neighbouring windows as one, where a chart has more windows than its width can show."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

MOST = 400
"""Maximum number of points of a chart, which is 330 pixels wide."""


def step_of(number: int) -> int:
    """Number of windows in each point of a chart of this many windows."""
    return -(-number // MOST) or 1


def merged(columns: Mapping[str, np.ndarray], step: int) -> dict[str, np.ndarray]:
    """Columns of points that stand for ``step`` windows: means of numbers, and bands that span all intervals.

    Args:
        columns: (W,) each; those whose names end with ``low`` or ``high`` are ends of intervals. NaN is left out.
        step: number of windows in a point, from 1.
    """
    return {name: _merged(name, column, step) for name, column in columns.items()}


def _merged(name: str, column: np.ndarray, step: int) -> np.ndarray:
    starts = np.arange(0, len(column), step)
    if name.endswith(("low", "high")):
        ends: np.ndarray = (np.fmin if name.endswith("low") else np.fmax).reduceat(column, starts)
        return ends
    known = np.isfinite(column)
    totals, counts = (np.add.reduceat(of, starts) for of in (np.where(known, column, 0.0), known.astype(float)))
    means: np.ndarray = np.divide(totals, counts, out=np.full(len(starts), np.nan), where=counts > 0)
    return means
