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


_SECONDS, _MARCH = PLAIN_FROM // 1000, moment_of("1970-03-01T00:00:00Z")

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
    """What is wrong with the event times of accepted reports of 1970; None if nothing is.

    Seconds of the years 1990 to 2099 are milliseconds of January or February 1970. Messages and Avro files say the unit
    in their schema, so such reports are counted. The first days of 1970 are those of clocks that are not set, if there
    are windows of 1990 or later beside them.
    """
    of_seconds, of_unset, is_now = 0, 0, False
    for row in rows:
        if row["window_start"] is not None and row["accepted"]:
            start, end = moment_of(row["window_start"]), moment_of(row["window_end"])
            of_seconds += row["accepted"] * (start >= 0 and _SECONDS < end <= _MARCH)
            of_unset += row["accepted"] * (0 < end <= _SECONDS)
            is_now |= start >= PLAIN_FROM
    found = []
    if of_seconds:
        found.append(
            f"{of_seconds:,} accepted reports are of January or February 1970, as if their event times were seconds: "
            "clients must send milliseconds since 1970"
        )
    if of_unset and is_now:
        found.append(
            f"{of_unset:,} accepted reports are of the first days of 1970, as if clocks of clients were not set"
        )
    return "; ".join(found) or None


def _reasons(numbers: Mapping[str, int]) -> str:
    return f" ({', '.join(f'{reason} {number}' for reason, number in numbers.items())})" if numbers else ""


def add_up(ledgers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Sums over several runs; they balance if each run does."""
    given = list(ledgers)
    numbers = {name: sum(sums[name] for sums in given) for name in ("received", "accepted", "duplicates")}
    return numbers | _added_by_reason(given) | {"balanced": all(sums["balanced"] for sums in given)}
