"""Differences between two windows or groups.

Those of shares have intervals that hold for all values at once. Those of means, quantiles and shares above limits have
one interval each, which Zou and Donner (2008) make of the two single ones.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special

from uldp_transforms.ldp.comparisons.compare import difference_interval

_MISS = 0.05  # probability that any of the intervals of one comparison misses
_DIGITS = 7  # decimals of shares in a page: a hundred-thousandth of a percentage point


def is_without_zero(low: float | None, high: float | None) -> bool:
    """Whether an interval, whose ends may be open, does not contain 0."""
    return (low is not None and low > 0) or (high is not None and high < 0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Difference:
    """A share or figure on one side minus that on another one.

    Attributes:
        name: the value, or the name of the figure.
        is_share: whether the difference is one of shares.
        difference: the first side minus the second; None if one of them lacks it.
        low, high: its interval; None where an end is open.
    """

    name: str
    is_share: bool
    difference: float | None
    low: float | None
    high: float | None

    @property
    def told_apart(self) -> bool:
        """Whether the interval excludes 0."""
        return is_without_zero(self.low, self.high)

    @property
    def half(self) -> float | None:
        """Half the length of the interval; of one with an open end, the distance of the other one."""
        if self.difference is None:
            return None
        ends = [end for end in (self.low, self.high) if end is not None]
        distances = [abs(end - self.difference) for end in ends]
        return sum(distances) / len(distances) if distances else None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Panel:
    """Raw estimates of S values on W sides: windows in order of time, or groups.

    Attributes:
        values: texts of the values.
        sides: names of the windows or groups.
        raw: (W, S) unbiased shares; nan where a row lacks the value.
        error: (W, S) their standard errors.
        reach: number of standard errors of a difference on each side of it.
    """

    values: Sequence[str]
    sides: Sequence[str]
    raw: np.ndarray
    error: np.ndarray
    reach: float

    is_of_figures = False

    def differences(self, first: int, second: int) -> list[Difference]:
        """The first minus the second side, for each value.

        Estimates of two windows are independent or, with memos of the same people and with hash functions, positively
        correlated, so that the sum of their variances is an upper bound. Groups are different people.
        """
        difference = self.raw[first] - self.raw[second]
        half = self.reach * np.hypot(self.error[first], self.error[second])
        return [
            Difference(name=value, is_share=True, difference=_known(of), low=_known(of - by), high=_known(of + by))
            for value, of, by in zip(self.values, difference.tolist(), half.tolist())
        ]

    def as_json(self) -> str:
        """The panel for the page's script."""
        return as_json(
            {
                "values": list(self.values),
                "sides": list(self.sides),
                "raw": _rounded(self.raw),
                "error": _rounded(self.error),
                "reach": self.reach,
            }
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class FigurePanel:
    """F figures of numbers on W sides: windows in order of time, or groups.

    Attributes:
        values: names of the figures.
        is_share: (F,) whether a figure is a share; others have the unit of the collection.
        sides: names of the windows or groups.
        value, low, high: (W, F) each figure with its 95 % interval; nan where it is unknown or open.
    """

    values: Sequence[str]
    is_share: Sequence[bool]
    sides: Sequence[str]
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray

    is_of_figures = True

    def differences(self, first: int, second: int) -> list[Difference]:
        """The first minus the second side, for each figure."""
        ends = [  # an open one is infinitely far away
            np.where(np.isnan(table[side]), np.inf, table[side])
            for side in (first, second)
            for table in (self.low, self.high)
        ]
        a, b = self.value[first], self.value[second]
        low, high = difference_interval(a, b, *ends)
        return [
            Difference(name=name, is_share=is_share, difference=_known(of), low=_known(least), high=_known(most))
            for name, is_share, of, least, most in zip(
                self.values, self.is_share, (a - b).tolist(), low.tolist(), high.tolist()
            )
        ]

    def as_json(self) -> str:
        """The panel for the page's script."""
        tables = {name: _rounded(getattr(self, name)) for name in ("value", "low", "high")}
        return as_json({"values": list(self.values), "shares": list(self.is_share), "sides": list(self.sides)} | tables)


class PanelRows:
    """Collects a panel from the entries of rows.

    Args:
        num_sides: number of windows or groups.
        values: the values to collect.
    """

    def __init__(self, num_sides: int, values: Sequence[str]):
        self._values = values
        self._places = {value: place for place, value in enumerate(values)}
        self._raw, self._error = (np.full((num_sides, len(values)), np.nan) for _ in range(2))

    def add(self, side: int, entries: Sequence[Mapping[str, Any]]) -> None:
        """Take over the entries of the row of a window or group."""
        for entry in entries:
            place = self._places.get(entry["value"])
            if place is not None and entry.get("raw_frequency") is not None:
                self._raw[side, place] = entry["raw_frequency"]
                self._error[side, place] = entry["standard_error"]

    def panel(self, sides: Sequence[str], num_values: int, most_cells: int) -> Panel | None:
        """The panel of the last sides with numbers; None if there are fewer than two.

        Args:
            sides: names of all windows or groups.
            num_values: number of values that were estimated, among which a reader looks for differences.
            most_cells: maximum number of sides times values.
        """
        most = max(2, most_cells // max(1, len(self._values)))
        places = np.flatnonzero(np.isfinite(self._raw).any(axis=1))[-most:]
        if len(places) < 2:  # a difference is between two
            return None
        return Panel(
            values=self._values,
            sides=[sides[place] for place in places.tolist()],
            raw=self._raw[places],
            error=self._error[places],
            reach=reach_of(num_values),
        )


def reach_of(num_values: int) -> float:
    """Normal quantile for intervals that all hold at once with 95 % confidence (Bonferroni)."""
    return float(-special.ndtri(_MISS / 2 / max(1, num_values)))


def as_json(content: Mapping[str, Any]) -> str:
    """JSON for a script element of a page; no text in it can end the element."""
    text = json.dumps(content, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _known(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _rounded(numbers: np.ndarray) -> list[list[float | None]]:
    return [
        [number if math.isfinite(number) else None for number in row] for row in np.round(numbers, _DIGITS).tolist()
    ]
