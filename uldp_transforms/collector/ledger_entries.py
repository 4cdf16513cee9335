"""Entries of the ledger, and the rows that they add up to; ``beam.transforms.ledger`` says what they mean."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from uldp_transforms.ldp.collection import PREFIX_BYTES
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.decoder import Decoded
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.rows.row_identity import name_of, span_of_period
from uldp_transforms.rows.row_types import LedgerRow
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms.windows import BasePeriods, split_runs_by_period

RECEIVED, ACCEPTED, DUPLICATES = "received", "accepted", "duplicates"

IN_TRANSIT = "in_transit"
"""Number of files, messages or windows that one step handed on, minus those that the next step took over."""

_NOT_REASONS = (RECEIVED, ACCEPTED, DUPLICATES, IN_TRANSIT)

_UNREAD_MESSAGES, _UNREAD_FILES = "unread_messages/", "unread_files/"
"""Beginnings of the bins of messages and files that could not be read; the rest is the reason."""


class LedgerEntry(NamedTuple):
    """Number of reports in one bin of the ledger, for one collection and base period."""

    bin: str
    fingerprint: bytes
    period_start: int | None
    num_reports: int


def handed_on(number: int) -> LedgerEntry:
    """Ledger entry for files or messages that a step hands on, or (negative) that the next step took over."""
    return LedgerEntry(IN_TRANSIT, b"", None, number)


def received_entries(decoded: Decoded, periods: BasePeriods | None) -> Iterator[LedgerEntry]:
    """Received reports per collection and base period, where these are known.

    Verdicts identify collections and periods, but the numbers are counted separately: received reports without a
    verdict, or with two, are entered without a period, so that the ledger does not balance.
    """
    catalog, unaccounted = decoded.catalog, decoded.received.copy()
    for part in decoded.parts:
        numbers = part.numbers_in(catalog)
        of, starts, index = split_runs_by_period(part.sizes, part.reports.event_times, periods)
        of_entries, num_reports = numbers[of], part.reports.times * np.bincount(index)
        np.subtract.at(unaccounted, of_entries, num_reports)
        for owner, start, number in zip(of_entries.tolist(), starts, num_reports.tolist()):
            yield LedgerEntry(RECEIVED, catalog.fingerprints[owner], start, number)
    for found in decoded.rejections:
        fingerprint = found.collection.fingerprint if found.collection else b""
        unaccounted[catalog.number(fingerprint[:PREFIX_BYTES])] -= found.num_reports
        if found.num_reports:
            yield LedgerEntry(RECEIVED, fingerprint, found.period_start, found.num_reports)
    for owner in unaccounted.nonzero()[0].tolist():
        yield LedgerEntry(RECEIVED, catalog.fingerprints[owner], None, int(unaccounted[owner]))


def ledger_rows(found: Iterable[LedgerEntry | Rejection], spec: JobSpec) -> list[LedgerRow]:
    """The rows of entries and rejections, in the order of collections and base periods."""
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for one in found:
        key, by_bin = entry_of(one)
        sums[key].update(by_bin)
    present = [(key, dict(by_bin)) for key, by_bin in sorted(sums.items()) if any(by_bin.values())]
    return [ledger_row(one, spec.catalog, spec.periods, spec.run) for one in present]


def _key(fingerprint: str, period_start: int | None) -> str:
    return f"{fingerprint}/{'' if period_start is None else period_start}"


def entry_of(found: LedgerEntry | Rejection) -> tuple[str, dict[str, int]]:
    if isinstance(found, Rejection):
        fingerprint = found.collection.fingerprint if found.collection else b""
        bins = ("", found.num_reports), (_UNREAD_MESSAGES, found.num_messages), (_UNREAD_FILES, found.num_files)
        code = found.reason.code
        return _key(fingerprint.hex(), found.period_start), {f"{bin}{code}": number for bin, number in bins if number}
    return _key(found.fingerprint.hex(), found.period_start), {found.bin: found.num_reports}


def ledger_row(
    sums: tuple[str, dict[str, int]], catalog: CollectionCatalog, periods: BasePeriods | None, run: str | None
) -> LedgerRow:
    key, by_bin = sums
    fingerprint, _, start = key.partition("/")
    rejected = {name: n for name, n in sorted(by_bin.items()) if name not in _NOT_REASONS and "/" not in name}
    return LedgerRow(
        **name_of(catalog[bytes.fromhex(fingerprint)] if fingerprint else None),
        **span_of_period(int(start) if start else None, periods),
        received=by_bin.get(RECEIVED, 0),
        accepted=by_bin.get(ACCEPTED, 0),
        duplicates=by_bin.get(DUPLICATES, 0),
        rejected=rejected,
        run=run,
        in_transit=by_bin.get(IN_TRANSIT, 0),
        unread_messages=_of_kind(by_bin, _UNREAD_MESSAGES),
        unread_files=_of_kind(by_bin, _UNREAD_FILES),
    )


def _of_kind(by_bin: dict[str, int], kind: str) -> dict[str, int]:
    """The numbers of the bins that begin with ``kind``, by reason."""
    return {name.removeprefix(kind): n for name, n in sorted(by_bin.items()) if name.startswith(kind)}
