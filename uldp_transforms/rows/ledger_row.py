"""What became of the reports of one collection and base period, and the law that holds between its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def missing(row: Mapping[str, Any]) -> int:
    """Reports of a row (of fields by name) that nothing became of: received - (accepted + duplicates + rejected).

    0 if the row balances; negative if more became of the reports than came in.
    """
    return int(row["received"] - row["accepted"] - row["duplicates"] - sum(row["rejected"].values()))


def imbalance(row: Mapping[str, Any]) -> list[str]:
    """Describe lost or repeated reports; empty if the row balances. Rows of older jobs have no in_transit."""
    handed_on = "windows" if row["collection_id"] is not None else "files or messages"
    found = ((missing(row), "reports"), (row.get("in_transit") or 0, handed_on))
    return [f"{what} {'lost' if number > 0 else 'too many'}: {abs(number)}" for number, what in found if number]
