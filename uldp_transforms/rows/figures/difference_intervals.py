"""Intervals of differences, from the intervals of both sides."""

from __future__ import annotations

import numpy as np

Ends = tuple[np.ndarray, np.ndarray]
"""Lower and upper ends of intervals, infinite where they are open."""

MAX_PAIRS = 1_000
"""Maximum number of pairs of groups of a collection that are compared."""


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
