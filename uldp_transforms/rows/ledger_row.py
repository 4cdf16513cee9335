"""What became of the reports of one collection and base period, and the law that holds between its numbers.

Annotations are real objects here, and ``Optional`` is spelled out: Beam makes schemas of nothing else.
"""

# ruff: noqa: UP045
from collections.abc import Mapping
from typing import Any, NamedTuple, Optional

from uldp_transforms.schemas import load

LEDGER_SCHEMA = load("ledger.avsc")


class LedgerRow(NamedTuple):
    """Numbers of reports of one collection and period; the fields are those of the Avro schema."""

    collection_id: Optional[str]
    collection_version: Optional[int]
    fingerprint: Optional[str]
    window_start: Optional[str]
    window_end: Optional[str]
    received: int
    accepted: int
    duplicates: int
    rejected: Mapping[str, int]
    run: Optional[str] = None
    in_transit: Optional[int] = None


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
