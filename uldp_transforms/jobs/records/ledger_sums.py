"""Ledger rows: their balance, and their sums over one run or several."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from uldp_transforms.windows import PLAIN_FROM, moment_of


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


def periods_out_of_balance(rows: Iterable[Mapping[str, Any]]) -> list[tuple[str | None, str | None, str | None, str]]:
    """Base periods whose summed ledger rows do not balance: collection, start, end, and a description of the fault."""
    periods: dict[tuple[Any, ...], list[Mapping[str, Any]]] = collections.defaultdict(list)
    for row in rows:
        key = (row["collection_id"], row["collection_version"], row["window_start"], row["window_end"])
        periods[key].append(row)
    found = [(key, ", ".join(imbalance({"collection_id": key[0]} | _added(of)))) for key, of in periods.items()]
    return [(key[0], key[2], key[3], wrong) for key, wrong in found if wrong]


_MARCH = moment_of("1970-03-01T00:00:00Z")

UNREAD_MESSAGES, UNREAD_FILES = "unread_messages", "unread_files"
"""Fields of the numbers of messages and files that could not be read, by reason."""

_BY_REASON = ("rejected", UNREAD_MESSAGES, UNREAD_FILES)


def _added(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sums of the numbers of ledger rows; rows of older jobs have no in_transit, and nothing unread."""
    names = ("received", "accepted", "duplicates", "in_transit")
    numbers: dict[str, Any] = {name: sum(row.get(name) or 0 for row in rows) for name in names}
    return numbers | _added_by_reason(rows)


def _added_by_reason(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Sums of the numbers by reason."""
    sums: dict[str, collections.Counter[str]] = {name: collections.Counter() for name in _BY_REASON}
    for row in rows:
        for name, sum_of_name in sums.items():
            sum_of_name.update(row.get(name) or {})
    return {name: dict(sorted(of_name.items())) for name, of_name in sums.items()}


def sums_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sums of all rows of a ledger, and whether they balance."""
    sums = _added(rows)
    del sums["in_transit"]  # meaningful per period only: errors of different periods could cancel
    return sums | {"balanced": not periods_out_of_balance(rows)}


def summary(sums: Mapping[str, Any]) -> str:
    """Format the sums: ``10 received = 8 accepted + 2 rejected (cohort_range 2); unread files: 1 (bad_magic 1)``."""
    rejected = sums["rejected"]
    parts = [f"{sums['accepted']} accepted", *([f"{sums['duplicates']} duplicates"] if sums["duplicates"] else [])]
    parts.append(f"{sum(rejected.values())} rejected{_reasons(rejected)}")
    return (
        f"{sums['received']} received = {' + '.join(parts)}{''.join(f'; {words}' for words in unread_in_words(sums))}"
    )


def unread_in_words(sums: Mapping[str, Any]) -> list[str]:
    """Messages and files that could not be read, apart from reports: ``["unread files: 1 (bad_magic 1)"]``."""
    return [
        f"unread {kind}: {sum(numbers.values())}{_reasons(numbers)}"
        for kind, name in (("messages", UNREAD_MESSAGES), ("files", UNREAD_FILES))
        if (numbers := sums.get(name))
    ]


def sentence_of_times(rows: Iterable[Mapping[str, Any]]) -> str | None:
    """What to do about accepted reports whose event times are rather seconds; None if there are none.

    Seconds of the years 1990 to 2099 are milliseconds of January or February 1970. Messages and Avro files say the unit
    in their schema, so such reports are counted.
    """
    bounds = (PLAIN_FROM // 1000, _MARCH)
    number = 0
    for row in rows:
        if row["window_start"] is not None and row["accepted"]:
            start, end = moment_of(row["window_start"]), moment_of(row["window_end"])
            number += row["accepted"] * (start >= 0 and bounds[0] < end <= bounds[1])
    if not number:
        return None
    return (
        f"{number:,} accepted reports are of January or February 1970, as if their event times were seconds: clients "
        "must send milliseconds since 1970"
    )


def _reasons(numbers: Mapping[str, int]) -> str:
    return f" ({', '.join(f'{reason} {number}' for reason, number in numbers.items())})" if numbers else ""


def add_up(ledgers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Sums over several runs; they balance if each run does."""
    given = list(ledgers)
    numbers = {name: sum(sums[name] for sums in given) for name in ("received", "accepted", "duplicates")}
    return numbers | _added_by_reason(given) | {"balanced": all(sums["balanced"] for sums in given)}
