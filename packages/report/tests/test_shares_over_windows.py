"""Shares over the windows as arrays, against the figures that are made of single entries."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from uldp_transforms.rows.figures.figure import share_of, table_of
from uldp_transforms_report.trends.shares_over_windows import SharesOverWindows

FIELDS = ("frequency", "ci_low", "ci_high", "display_low", "display_high")
SMOOTHED = ("smoothed_frequency", "smoothed_low", "smoothed_high")


def entries_of(value: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Entries with any numbers, and with each of the fields unknown or left out."""
    found = []
    for missing, how in itertools.product((None, *FIELDS, *SMOOTHED, FIELDS[3:], SMOOTHED), ("none", "absent")):
        entry: dict[str, Any] = {"value": value} | dict(zip((*FIELDS, *SMOOTHED), rng.uniform(0, 1, 8).tolist()))
        for name in [missing] if isinstance(missing, str) else missing or ():
            entry[name] = None
            if how == "absent":
                del entry[name]
        found.append(entry)
    return found


def test_arrays_have_the_numbers_of_figures() -> None:
    """In any order of values, with and without the truth; a window without a value has no numbers of it."""
    rng = np.random.default_rng(3)
    windows = [*zip(*(entries_of(value, rng) for value in ("b", "x", "a")))]
    rows = SharesOverWindows(len(windows) + 1, ["a", "b", "c"])
    truth = rng.uniform(0, 1, (len(windows), 3))
    for at, entries in enumerate(windows):
        rows.add(at, entries[::-1] if at % 2 else entries, truth[at][::-1] if at % 2 else truth[at])
    table = rows.table()
    assert table.shape == (len(windows) + 1, 3, 9)
    for at, (b, _, a) in enumerate(windows):
        expected = table_of([share_of(a, truth=truth[at, 2]), share_of(b, truth=truth[at, 0]), None])
        assert table[at] == pytest.approx(expected, abs=0, nan_ok=True)
    assert np.isnan(table[-1]).all()


def test_without_the_truth_there_is_none() -> None:
    rows, entry = SharesOverWindows(1, ["a"]), {"value": "a", "frequency": 0.5, "ci_low": 0.4, "ci_high": 0.6}
    rows.add(0, [entry])
    rows.add(0, [entry | {"value": "b"}])
    assert rows.table()[0] == pytest.approx(table_of([share_of(entry)]), nan_ok=True)
