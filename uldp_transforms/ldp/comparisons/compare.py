"""Differences and ratios of two estimates, value by value.

With the interval (l, u) of each of two independent shares, a difference has the interval

    d - sqrt((p_a - l_a)^2 + (u_b - p_b)^2)  to  d + sqrt((u_a - p_a)^2 + (p_b - l_b)^2)

(Zou and Donner 2008), and a ratio the one of Donner and Zou (2012). They inherit what single intervals do for rare
values.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators.estimator import Estimate
from uldp_transforms.ldp.solvers.linear import CONFIDENCE

if TYPE_CHECKING:
    import pandas

_GRID = np.linspace(0.05, 8.2, 164)
"""Normal quantiles for p-values; beyond the last one a confidence is 1 in floating point."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """The first estimate compared with the second; arrays have one entry for each of the S values.

    Examples:
        >>> import numpy as np
        >>> from uldp_transforms.ldp import Collection, compare
        >>> collection = Collection.from_json("C.json")
        >>> rng = np.random.default_rng(1)
        >>> arms = (["flu"] * 6000 + ["cold"] * 4000, ["flu"] * 3000 + ["cold"] * 7000)
        >>> new, control = (
        ...     collection.estimate(collection.count(collection.perturb(arm, rng)), "eb")
        ...     for arm in arms
        ... )
        >>> lift = compare(new, control).lifts[0]
        >>> bool(1.5 < lift < 2.7)
        True

    Attributes:
        values: the values, in the order of the first estimate.
        differences: first minus second raw frequency, unbiased.
        low, high: ends of the intervals of the differences, each at the requested confidence.
        p_values: 1 minus the largest confidence at which the interval of the difference does not contain 0.
        q_values: p-values adjusted for all S values (Benjamini and Hochberg 1995): of the values with a q-value of at
            most .05, at most 5 % are expected not to differ, if their errors are independent.
        lifts: ratio of the raw frequencies; NaN where the second is not above 0.
        lift_low, lift_high: ends of the intervals of the ratios. NaN where ``lifts`` is; ``lift_high`` is infinite
            where the second share may be 0.
    """

    values: tuple[str, ...]
    differences: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p_values: np.ndarray
    q_values: np.ndarray
    lifts: np.ndarray
    lift_low: np.ndarray
    lift_high: np.ndarray

    def to_frame(self) -> pandas.DataFrame:
        """A pandas frame with one row per value, smallest p-value first.

        Raises:
            ImportError: if pandas is not installed.
        """
        import pandas as pd  # noqa: PLC0415  # of the extra notebook

        columns = {name: getattr(self, attribute) for name, attribute in _COLUMNS.items()}
        frame = pd.DataFrame({"value": list(self.values), **columns})
        return frame.sort_values("p_value", kind="stable", ignore_index=True)


_COLUMNS = {
    "difference": "differences",
    "low": "low",
    "high": "high",
    "p_value": "p_values",
    "q_value": "q_values",
    "lift": "lifts",
    "lift_low": "lift_low",
    "lift_high": "lift_high",
}


def compare(first: Estimate, second: Estimate, confidence: float = CONFIDENCE) -> Comparison:
    """Compare two estimates of the same values from different people.

    The people of both must be different, because their errors are taken as independent. If the same people report in
    both, as in two windows of a collection with memos, intervals are too long or, for a value that people swap, too
    short.

    Examples:
        >>> import numpy as np
        >>> from uldp_transforms.ldp import Collection, compare
        >>> collection = Collection.from_json("C.json")
        >>> rng = np.random.default_rng(1)
        >>> arms = (["flu"] * 6000 + ["cold"] * 4000, ["flu"] * 3000 + ["cold"] * 7000)
        >>> new, control = (
        ...     collection.estimate(collection.count(collection.perturb(arm, rng)), "eb")
        ...     for arm in arms
        ... )
        >>> comparison = compare(new, control)
        >>> comparison.values[0], bool(comparison.low[0] > 0), bool(comparison.q_values[0] < 0.01)
        ('flu', True, True)

    Args:
        first, second: estimates, whose values may be in different orders.
        confidence: of each interval of a difference or lift.

    Raises:
        SpecError: if the values differ, or the confidence is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise SpecError(f"compare.confidence must be between 0 and 1, got {confidence!r}")
    order = _order(first.values, second.values)
    a, b = first.raw_frequencies, second.raw_frequencies[order]

    def ends(level: float) -> tuple[np.ndarray, ...]:
        low, high = second.unclipped(level)
        return *first.unclipped(level), low[order], high[order]

    low, high = difference_interval(a, b, *ends(confidence))
    p_values = _p_values(lambda level: difference_interval(a, b, *ends(level)))
    lifts, lift_low, lift_high = lift_interval(a, b, *ends(confidence))
    return Comparison(
        values=first.values,
        differences=a - b,
        low=low,
        high=high,
        p_values=p_values,
        q_values=q_values(p_values),
        lifts=lifts,
        lift_low=lift_low,
        lift_high=lift_high,
    )


def _order(first: tuple[str, ...], second: tuple[str, ...]) -> np.ndarray:
    """Positions of the first estimate's values in the second."""
    places = {value: place for place, value in enumerate(second)}
    alone = set(first) ^ set(second)
    if alone:
        raise SpecError(f"compare needs estimates of the same values, got {len(alone)} value(s) that only one has")
    return np.array([places[value] for value in first], dtype=np.int64)


def difference_interval(
    a: np.ndarray, b: np.ndarray, low_a: np.ndarray, high_a: np.ndarray, low_b: np.ndarray, high_b: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Interval of a - b, from the estimates and their intervals, all of one shape.

    Source: Zou and Donner 2008.
    """
    difference = a - b
    return difference - np.hypot(a - low_a, high_b - b), difference + np.hypot(high_a - a, b - low_b)


def lift_interval(
    a: np.ndarray, b: np.ndarray, low_a: np.ndarray, high_a: np.ndarray, low_b: np.ndarray, high_b: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ratio a / b and its interval; NaN where b is not above 0.

    Source: Donner and Zou 2012. The lower end is written without a difference of large numbers.
    """
    known, product = b > 0, a * b
    low_a, low_b = np.maximum(low_a, 0), np.maximum(low_b, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        root = np.sqrt(np.maximum(product**2 - low_a * high_b * (2 * a - low_a) * (2 * b - high_b), 0))
        low = np.where((low_a > 0) & (a > 0), low_a * (2 * a - low_a) / (product + root), 0.0)
        root = np.sqrt(np.maximum(product**2 - high_a * low_b * (2 * a - high_a) * (2 * b - low_b), 0))
        high = np.where(low_b > 0, (product + root) / (low_b * (2 * b - low_b)), np.inf)
        lift = np.where(known, a / b, np.nan)
    return lift, np.where(known, low, np.nan), np.where(known, high, np.nan)


def _p_values(interval: Callable[[float], tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """P-values (S,) from a function from a confidence to the intervals."""
    return p_values_at(lambda z: interval(float(1 - 2 * special.ndtr(-z))))


def p_values_at(interval: Callable[[float], tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """P-values from the normal quantile z at which each interval touches 0: longer ones contain it.

    The distance of an interval from 0 is nearly linear in z, and is interpolated between the quantiles ``_GRID``.

    Args:
        interval: function from z to both ends (S,) of the intervals.
    """
    ends = [interval(z) for z in _GRID.tolist()]
    gaps = np.array([np.maximum(low, -high) for low, high in ends])  # above 0: the interval does not contain 0
    first = np.argmax(gaps <= 0, axis=0)
    never = (gaps > 0).all(axis=0)
    columns, before = np.arange(gaps.shape[1]), np.maximum(first - 1, 0)
    outside, inside = gaps[before, columns], gaps[first, columns]
    steps = np.where(first > 0, outside / np.where(first > 0, outside - inside, 1), 0)
    touching = np.where(never, _GRID[-1], _GRID[before] + steps * (_GRID[first] - _GRID[before]))
    p_values: np.ndarray = np.where((first > 0) | never, 2 * special.ndtr(-touching), 1.0)
    return p_values


def q_values(p_values: np.ndarray) -> np.ndarray:
    """Adjusted p-values (S,): the least false discovery rate at which each is still a discovery.

    Source: Benjamini and Hochberg 1995.
    """
    size = len(p_values)
    order = np.argsort(p_values)[::-1]
    adjusted = np.minimum.accumulate(p_values[order] * size / np.arange(size, 0, -1))
    found = np.empty(size)
    found[order] = np.minimum(adjusted, 1)
    return found
