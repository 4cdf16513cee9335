"""Ledger rows added up: what became of all reports of a run, or of several, and whether it balances."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from uldp_transforms.rows.ledger_row import imbalance


def periods_out_of_balance(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str | None, str | None, str | None, str]]:
    """Collection, start and end of the base periods whose ledger rows, added up, do not balance; and what is wrong."""
    periods: dict[tuple[Any, ...], list[Mapping[str, Any]]] = collections.defaultdict(list)
    for row in rows:
        key = (row["collection_id"], row["collection_version"], row["window_start"], row["window_end"])
        periods[key].append(row)
    found = [(key, ", ".join(imbalance({"collection_id": key[0]} | _added(of)))) for key, of in periods.items()]
    return [(key[0], key[2], key[3], wrong) for key, wrong in found if wrong]


def _added(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The numbers of ledger rows, added up; rows of older jobs had no in_transit."""
    rejected: collections.Counter[str] = collections.Counter()
    for row in rows:
        rejected.update(row["rejected"])
    names = ("received", "accepted", "duplicates", "in_transit")
    numbers: dict[str, Any] = {name: sum(row.get(name) or 0 for row in rows) for name in names}
    return numbers | {"rejected": dict(sorted(rejected.items()))}


def sums_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sums of all rows of a ledger, and whether they balance."""
    sums = _added(rows)
    del sums["in_transit"]  # of periods, not of the whole: what one lost another may have twice
    return sums | {"balanced": not periods_out_of_balance(rows)}


def summary(sums: Mapping[str, Any]) -> str:
    """The sums in words: ``10 received = 8 accepted + 2 rejected (malformed 2)``."""
    rejected = sums["rejected"]
    reasons = ", ".join(f"{reason} {number}" for reason, number in rejected.items())
    parts = [f"{sums['accepted']} accepted", *([f"{sums['duplicates']} duplicates"] if sums["duplicates"] else [])]
    parts.append(f"{sum(rejected.values())} rejected{reasons and f' ({reasons})'}")
    return f"{sums['received']} received = {' + '.join(parts)}"


def add_up(ledgers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The sums of several runs together; they balance if each of them does."""
    given = list(ledgers)
    rejected = sum((collections.Counter(sums["rejected"]) for sums in given), collections.Counter())
    numbers = {name: sum(sums[name] for sums in given) for name in ("received", "accepted", "duplicates")}
    return numbers | {"rejected": dict(sorted(rejected.items())), "balanced": all(sums["balanced"] for sums in given)}
