"""Differences between two windows or groups.

Intervals are those of ``compare``, which Zou and Donner (2008) make of the two single ones. Those of means, quantiles
and shares above limits are for one figure each. Single intervals of values are lengthened, so that those of the
differences hold for all values at once.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from scipy import special

from uldp_transforms.ldp.confidence import CONFIDENCE, confidence_or_default, error_rate
from uldp_transforms.rows.figures.compared_figures import difference_interval, hull
from uldp_transforms.rows.figures.figure import Figure
from uldp_transforms_report.levels import USUAL, Levels
from uldp_transforms_report.tables.axis import scale_of

_NUMBERS = ("raw_frequency", "standard_error", "ci_low", "ci_high")
_DIGITS = 7  # decimals of shares in a page: a hundred-thousandth of a percentage point


@dataclasses.dataclass(frozen=True, kw_only=True)
class Panel:
    """F shares of values, or figures of numbers, on W sides: windows in order of time, or groups.

    Attributes:
        values: texts of the values, or names of the figures.
        is_share: (F,) whether a figure is a share; others have the unit of the collection.
        sides: names of the windows or groups.
        value, low, high: (W, F) each figure with its interval; nan where it is unknown or open. Shares are unbiased, so
            they and their ends may be outside [0, 1].
        inner: (W, F) the end inside of the interval of a share at the edge, for shares outside [0, 1]; else nan.
        is_of_figures: whether each interval is for one figure, not for all values at once.
        levels: confidences of the intervals.
    """

    values: Sequence[str]
    is_share: Sequence[bool]
    sides: Sequence[str]
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    inner: np.ndarray
    is_of_figures: bool
    levels: Levels = USUAL

    def differences(self, first: int, second: int) -> list[Figure]:
        """The first minus the second side, for each figure, with the interval that ``compare`` has.

        Estimates of two windows are independent or, with memos of the same people and with hash functions, positively
        correlated, so that intervals of independent ones are long enough. Groups are different people.
        """
        (a, *ends_of_a), (b, *ends_of_b) = ([table[side] for table in self._tables] for side in (first, second))
        (near_a, *near_ends_of_a), (near_b, *near_ends_of_b) = self._moved(first), self._moved(second)
        low, high = hull(
            difference_interval(a, b, *ends_of_a, *ends_of_b),
            difference_interval(near_a, near_b, *near_ends_of_a, *near_ends_of_b),
        )
        return [
            Figure(name=name, is_share=is_share, value=_known(of), low=_known(least), high=_known(most))
            for name, is_share, of, least, most in zip(
                self.values, self.is_share, (a - b).tolist(), low.tolist(), high.tolist()
            )
        ]

    @property
    def _tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The figures with their ends, of which an open one is infinitely far away."""
        low, high = (np.where(np.isnan(table), np.inf, table) for table in (self.low, self.high))
        return self.value, low, high

    def _moved(self, side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The figures of a side, of which shares are moved into [0, 1]."""
        value, low, high = (table[side] for table in self._tables)
        shift, inner = np.where(self.is_share, np.clip(value, 0, 1) - value, 0), self.inner[side]
        return value + shift, np.where(shift < 0, inner, low + shift), np.where(shift > 0, inner, high + shift)

    def as_json(self) -> str:
        """The panel for the page's script."""
        tables = {name: _rounded(getattr(self, name)) for name in ("value", "low", "high", "inner")}
        numbers = orjson.dumps(tables, option=orjson.OPT_SERIALIZE_NUMPY).decode()  # with null for what is not finite
        named = {"values": list(self.values), "shares": list(self.is_share), "sides": list(self.sides)}
        named["scales"] = list(map(scale_of, self.values, self.is_share))
        return f"{as_json(named | {'joint': not self.is_of_figures})[:-1]},{numbers[1:]}"


class PanelRows:
    """Collects a panel from the entries of rows.

    Args:
        num_sides: number of windows or groups.
        values: the values to collect.
    """

    def __init__(self, num_sides: int, values: Sequence[str]):
        self._values = values
        self._places = {value: place for place, value in enumerate(values)}
        self._numbers = np.full((len(_NUMBERS), num_sides, len(values)), np.nan)
        self._confidences = np.full(num_sides, CONFIDENCE)

    def add(self, side: int, entries: Sequence[Mapping[str, Any]], confidence: float | None = None) -> None:
        """Take over the entries of the row of a window or group, with the confidence of the row."""
        self._confidences[side] = confidence_or_default(confidence)
        found = [one for one in entries if one["value"] in self._places and one.get("raw_frequency") is not None]
        if found:
            numbers = np.array([[one[name] for name in _NUMBERS] for one in found], dtype=float)
            self._numbers[:, side, [self._places[one["value"]] for one in found]] = numbers.T

    def panel(self, sides: Sequence[str], num_values: int, most_cells: int) -> Panel | None:
        """The panel of the last sides with numbers; None if there are fewer than two.

        Intervals of all sides get the highest confidence of any.

        Args:
            sides: names of all windows or groups.
            num_values: number of values that were estimated, among which a reader looks for differences.
            most_cells: maximum number of sides times values.
        """
        most = max(2, most_cells // max(1, len(self._values)))
        places = np.flatnonzero(np.isfinite(self._numbers[0]).any(axis=1))[-most:]
        if len(places) < 2:  # a difference is between two
            return None
        raw, error, ci_low, ci_high = self._numbers[:, places]
        confidences = self._confidences[places]
        most_confident, alone = float(confidences.max()), np.array([[reach_of(1, one)] for one in confidences.tolist()])
        low, high, inner = _ends(raw, error, ci_low, ci_high, alone, reach_of(num_values, most_confident))
        return Panel(
            values=self._values,
            is_share=[True] * len(self._values),
            sides=[sides[place] for place in places.tolist()],
            value=raw,
            low=low,
            high=high,
            inner=inner,
            is_of_figures=False,
            levels=Levels((most_confident,)),
        )


def _ends(
    raw: np.ndarray, error: np.ndarray, low: np.ndarray, high: np.ndarray, alone: np.ndarray, reach: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``Panel.low``, ``high`` and ``inner`` of the intervals of rows, whose normal quantiles become ``reach``.

    Both halves of an interval grow in proportion. Rows have cut ends at 0 and 1, and the inner ends of shares outside
    [0, 1] are those of shares at the edge; standard errors take their place.

    Args:
        raw, error, low, high: (W, F) of rows.
        alone: (W, 1) normal quantiles of the intervals.
        reach: the requested one.
    """
    normal_low, normal_high = raw - alone * error, raw + alone * error
    whole_low = np.select([raw > 1, low <= 0], [normal_low, np.minimum(low, normal_low)], low)
    whole_high = np.select([raw < 0, high >= 1], [normal_high, np.maximum(high, normal_high)], high)
    factor = reach / alone
    inner = np.where(raw < 0, factor * high, np.where(raw > 1, 1 - factor * (1 - low), np.nan))
    return raw - factor * (raw - whole_low), raw + factor * (whole_high - raw), inner


def reach_of(num_values: int, confidence: float = CONFIDENCE) -> float:
    """Normal quantile for intervals that all hold at once with this confidence (Bonferroni)."""
    return float(-special.ndtri(error_rate(confidence) / 2 / max(1, num_values)))


def as_json(content: Mapping[str, Any]) -> str:
    """JSON for a script element of a page; no text in it can end the element."""
    text = json.dumps(content, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _known(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _rounded(numbers: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.round(numbers, _DIGITS))
