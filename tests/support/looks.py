"""Rows of streams and rows of one look: alike in all but how long their intervals are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OF_ROW = ("interval", "unexplained_low", "unexplained_high", "unexplained_status", "unexplained_mass")
OF_ENTRY = ("ci_low", "ci_high", "display_low", "display_high")


def without_intervals(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row without intervals, and without what is known only where an interval is short."""
    entries = [{name: entry[name] for name in entry if name not in OF_ENTRY} for entry in row["estimates"]]
    return {name: row[name] for name in row if name not in OF_ROW} | {"estimates": entries}
