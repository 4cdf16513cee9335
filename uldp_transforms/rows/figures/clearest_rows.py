"""The order in which differences are shown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

EXACT = 1e-15
"""Smallest p-value that is not extrapolated."""

_NAMES = ("p_value", "difference", "low", "high")
_OPEN_ENDS = {"low": -math.inf, "high": math.inf}


def clearest_rows(rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Places of rows by ``clearest_first``; an open end is None."""
    columns = ([_OPEN_ENDS.get(name) if row[name] is None else row[name] for row in rows] for name in _NAMES)
    order: list[int] = clearest_first(*(np.array(column, dtype=np.float64) for column in columns)).tolist()
    return order


def clearest_first(p_values: np.ndarray, differences: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The order (S,) of differences by their p-values. Where these are equal, or below 1e-15 and so extrapolated, by
    their size in units of their own error, which is the distance of the end of the interval towards 0.

    Args:
        p_values, differences: (S,).
        low, high: (S,), ends of intervals of one confidence; infinite where they are open.
    """
    errors = np.where(differences > 0, differences - low, high - differences)
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = np.nan_to_num(np.abs(differences) / errors, nan=0.0)
    order: np.ndarray = np.lexsort((-sizes, np.maximum(p_values, EXACT)))
    return order
