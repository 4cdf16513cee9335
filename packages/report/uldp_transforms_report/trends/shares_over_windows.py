"""The shares of some values over the windows, as arrays: what ``share_of`` makes of an entry, for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_FIELDS = (
    "frequency", "ci_low", "ci_high", "display_low", "display_high",
    "smoothed_frequency", "smoothed_low", "smoothed_high",
)  # fmt: skip


class SharesOverWindows:
    """Shares of S values in W windows, which are added one by one.

    Args:
        num_windows: W.
        values: the S values.
    """

    def __init__(self, num_windows: int, values: Sequence[str]):
        self._places = {value: place for place, value in enumerate(values)}
        self._numbers = np.full((len(_FIELDS), num_windows, len(values)), np.nan)
        self._truth = np.full((num_windows, len(values)), np.nan)

    def add(self, window: int, entries: Sequence[Mapping[str, Any]], truth: np.ndarray | None = None) -> None:
        """Take over the entries of the row of a window, with their (S,) true shares if they are known."""
        found = [(self._places[one["value"]], at) for at, one in enumerate(entries) if one["value"] in self._places]
        if not found:
            return
        places, chosen = (list(part) for part in zip(*found))
        numbers = [[entries[at].get(name) for name in _FIELDS] for at in chosen]
        self._numbers[:, window, places] = np.array(numbers, dtype=float).T
        if truth is not None:
            self._truth[window, places] = truth[chosen]

    def table(self) -> np.ndarray:
        """(W, S, 9) ``Figure.numbers`` of each share; NaN in windows without the value."""
        share, ci_low, ci_high, display_low, display_high, *over_windows = self._numbers
        has_display = np.isfinite(display_low)
        ends = np.where(has_display, display_low, ci_low), np.where(has_display, display_high, ci_high)
        value, low, high = _with_ends(share, *ends)
        other, other_low, other_high = _with_ends(*over_windows)
        columns = (value, other, self._truth, low, high, low, high, other_low, other_high)  # in the order of COLUMNS
        return np.stack(columns, axis=-1)


def _with_ends(share: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shares and their intervals, which contain them; all NaN where one of them is."""
    value = np.where(np.isnan(low + high), np.nan, share)
    return value, np.minimum(np.minimum(low, high), value), np.maximum(np.maximum(low, high), value)
