"""Checks of a ledger row: its numbers of reports must balance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def missing(row: Mapping[str, Any]) -> int:
    """Number of unaccounted reports of a row (fields by name): received - (accepted + duplicates + rejected).

    0 if the row balances; negative if more reports are accounted for than were received.
    """
    return int(row["received"] - row["accepted"] - row["duplicates"] - sum(row["rejected"].values()))


def imbalance(row: Mapping[str, Any]) -> list[str]:
    """Describe lost or repeated reports; empty if the row balances. Rows of older jobs do not have in_transit."""
    handed_on = "windows" if row["collection_id"] is not None else "files or messages"
    found = ((missing(row), "reports"), (row.get("in_transit") or 0, handed_on))
    return [f"{what} {'lost' if number > 0 else 'too many'}: {abs(number)}" for number, what in found if number]
