"""Differences as all programs show them: what they are about, their intervals, which are found, and their order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from uldp_transforms.ldp.confidence import CONFIDENCE, confidence_or_default, error_rate

MEAN, QUANTILE, SHARE_ABOVE = "mean", "quantile", "share_above"
"""Figures of numbers."""

SUM, WEIGHTED_SUM = "sum", "weighted_sum"
"""Sums over chosen values: shares of sets, and sums with other weights."""

WITH_UNIT = (MEAN, QUANTILE, WEIGHTED_SUM)
"""Those that are no shares."""

Ends = tuple[np.ndarray, np.ndarray]
"""Lower and upper ends of intervals, infinite where they are open."""

MAX_PAIRS = 1_000
"""Maximum number of pairs of groups of a collection that are compared."""

FOUND = error_rate(CONFIDENCE)
"""Largest p-value or q-value of what is called found, at the default confidence."""

EXACT = 1e-15
"""Smallest p-value that is not extrapolated."""

_MOST_DIGITS = 6
_NAMES = ("p_value", "difference", "low", "high")
_OPEN_ENDS = {"low": -math.inf, "high": math.inf}


def difference_interval(
    a: np.ndarray, b: np.ndarray, low_a: np.ndarray, high_a: np.ndarray, low_b: np.ndarray, high_b: np.ndarray
) -> Ends:
    """Interval of a - b, from the estimates and their intervals, all of one shape.

    Source: Zou and Donner 2008.
    """
    difference = a - b
    return difference - np.hypot(a - low_a, high_b - b), difference + np.hypot(high_a - a, b - low_b)


def hull(first: Ends, second: Ends) -> Ends:
    """The shortest intervals that contain both; an end that is nan does not count."""
    return np.fmin(first[0], second[0]), np.fmax(first[1], second[1])


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


def is_found(q_value: float, confidence: float | None) -> bool:
    """Whether a difference is called found: its q-value is at most 1 minus the confidence (None: the default).

    Then its interval after the selection, which has this confidence, does not contain 0.
    """
    return q_value <= error_rate(confidence_or_default(confidence))


def p_text(p_value: float, digits: int = 2, found: float = FOUND) -> str:
    """A p-value or q-value with as many digits as show on which side of ``found`` it is.

    Below 1e-15 there is only the bound: the approximations of tests and rounding are larger than such numbers.
    """
    if p_value < EXACT:
        return f"< {EXACT:.0e}"
    texts = [f"{p_value:.{number}g}" for number in range(digits, _MOST_DIGITS + 1)]
    return next((text for text in texts if (float(text) <= found) == (p_value <= found)), texts[-1])


def rate_text(rate: float) -> str:
    """A rate below 1 as text, such as ``.05``."""
    return f"{rate:.6g}".removeprefix("0")
