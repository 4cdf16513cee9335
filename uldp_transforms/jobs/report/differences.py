"""Differences between two windows, with intervals that hold for all values at once."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special

_MISS = 0.05  # probability that any of the intervals of one comparison misses
_DIGITS = 7  # decimals of shares in a page: a hundred-thousandth of a percentage point


@dataclasses.dataclass(frozen=True, kw_only=True)
class Panel:
    """Raw estimates of S values in W windows with numbers, in order of time.

    Attributes:
        values: texts of the values.
        windows: names of the windows.
        raw: (W, S) unbiased shares; nan where a row lacks the value.
        error: (W, S) their standard errors.
        reach: number of standard errors of a difference on each side of it.
    """

    values: Sequence[str]
    windows: Sequence[str]
    raw: np.ndarray
    error: np.ndarray
    reach: float

    def difference(self, earlier: int, later: int) -> tuple[np.ndarray, np.ndarray]:
        """Later minus earlier share, and half the length of its interval; both (S,).

        Estimates of two windows are independent or, with memos of the same people and with hash functions, positively
        correlated, so that the sum of their variances is an upper bound.
        """
        half = self.reach * np.hypot(self.error[earlier], self.error[later])
        return self.raw[later] - self.raw[earlier], half

    def as_json(self) -> str:
        """The panel for the page's script."""
        return as_json(
            {
                "values": list(self.values),
                "windows": list(self.windows),
                "raw": _rounded(self.raw),
                "error": _rounded(self.error),
                "reach": self.reach,
            }
        )


class PanelRows:
    """Collects a panel from the entries of rows.

    Args:
        num_windows: number of windows.
        values: the values to collect.
    """

    def __init__(self, num_windows: int, values: Sequence[str]):
        self._values = values
        self._places = {value: place for place, value in enumerate(values)}
        self._raw, self._error = (np.full((num_windows, len(values)), np.nan) for _ in range(2))

    def add(self, window: int, entries: Sequence[Mapping[str, Any]]) -> None:
        """Take over the entries of the row of a window."""
        for entry in entries:
            place = self._places.get(entry["value"])
            if place is not None and entry.get("raw_frequency") is not None:
                self._raw[window, place] = entry["raw_frequency"]
                self._error[window, place] = entry["standard_error"]

    def panel(self, windows: Sequence[str], num_values: int, most_cells: int) -> Panel | None:
        """The panel of the latest windows with numbers; None if there are fewer than two.

        Args:
            windows: names of all windows.
            num_values: number of values that were estimated, among which a reader looks for differences.
            most_cells: maximum number of windows times values.
        """
        most = max(2, most_cells // max(1, len(self._values)))
        places = np.flatnonzero(np.isfinite(self._raw).any(axis=1))[-most:]
        if len(places) < 2:  # a difference is between two
            return None
        return Panel(
            values=self._values,
            windows=[windows[place] for place in places.tolist()],
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


def _rounded(numbers: np.ndarray) -> list[list[float | None]]:
    return [
        [number if math.isfinite(number) else None for number in row] for row in np.round(numbers, _DIGITS).tolist()
    ]
