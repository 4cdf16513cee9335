"""The ids of counted reports, in the database of the counts; one transaction changes both.

Each base period of a collection has a log of the reports that were counted, or of 8 bytes of each id (``KnownIds``), as
a stream has it. A log is read when its period has new reports, and stays in memory while the periods that had reports
most recently need less than ``MOST_BYTES``. Ids are forgotten when a stream would forget them: ``allowed_lateness`` and
a slack after the end of their base period.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from uldp_transforms.collector.known_ids import SECRET_BYTES, KnownIds
from uldp_transforms.collector.known_reports import KnownReports, counts_of_changes, to_rows
from uldp_transforms.collector.ledger_entries import ACCEPTED, DUPLICATES, LedgerEntry
from uldp_transforms.ldp import CohortCounts
from uldp_transforms.ldp.reports import ReportBatch
from uldp_transforms.messages.mixed_reports import MixedReports
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms.spec.spec_fields import BY_FINGERPRINTS
from uldp_transforms.windows import split_by_period
from uldp_transforms_follow.state import FollowState, Period

MOST_BYTES = 1 << 28
"""Bytes of memory for what is known of base periods; a single base period may need more."""

BLOCK = 1 << 15
"""Bytes after which a block of the log is not extended any more."""

_TABLES = """
CREATE TABLE IF NOT EXISTS known_ids (start INTEGER NOT NULL, fingerprint BLOB NOT NULL, block BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS known_ids_by_period ON known_ids (start, fingerprint);
"""
_SECRET = "ids_secret"


class KnownIdsState:
    """What is known of the counted reports of a directory.

    Args:
        state: database of the directory.
        spec: specification of the job, with windows and ``deduplicate``.
    """

    def __init__(self, state: FollowState, spec: JobSpec):
        assert spec.periods is not None, "follow_job refuses a job without windows"
        self._state, self._spec, self._periods = state, spec, spec.periods
        self._database = state.database
        self._database.executescript(_TABLES)
        self._secret = b""
        if spec.deduplicate_by == BY_FINGERPRINTS:
            self._secret = bytes.fromhex(state.setting(_SECRET, secrets.token_hex(SECRET_BYTES)))
        self._held: dict[Period, KnownReports | KnownIds] = {}

    def count_new(self, reports: Iterable[MixedReports]) -> tuple[dict[Period, CohortCounts], list[LedgerEntry]]:
        """Remember reports, in the transaction that is open.

        Returns:
            The changes of the counts, negative where a report with a smaller one of the same id is subtracted; and
            entries for accepted reports and duplicates.
        """
        found: dict[Period, CohortCounts] = {}
        entries: list[LedgerEntry] = []
        for (fingerprint, start), rows in self._by_period(reports):
            known = self._known(fingerprint, start, rows.shape[1])
            changes = known.add(rows)
            if len(changes.added):
                self._append(fingerprint, start, known.stored(changes.added))
            sums = counts_of_changes(self._spec.catalog, fingerprint, changes, self._spec.bit_patterns, self._spec.by)
            found |= {(owner, start): counts for owner, counts in sums.items()}
            accepted = len(changes.added) - len(changes.removed)
            for name, number in ((ACCEPTED, accepted), (DUPLICATES, changes.duplicates)):
                if number:
                    entries.append(LedgerEntry(name, fingerprint, start, number))
        self._let_go()
        return found, entries

    def drop_memory(self) -> None:
        """Forget what memory holds, because a transaction was rolled back."""
        self._held.clear()

    def forget(self, seen_until: int) -> None:
        """Delete the ids of base periods of which no report can be accepted any more, in a transaction of its own.

        Args:
            seen_until: time before which everything that arrived is counted, in milliseconds since 1970.
        """
        kept_for = self._spec.allowed_lateness + self._spec.slack
        starts = [start for (start,) in self._database.execute("SELECT DISTINCT start FROM known_ids")]
        over = [start for start in starts if int(self._periods.end_of(start)) + kept_for <= seen_until]
        if not over:
            return
        with self._state:
            self._database.executemany("DELETE FROM known_ids WHERE start = ?", [(start,) for start in over])
            self._state.forget_until(seen_until - self._spec.slack)
        for key in [key for key in self._held if key[1] in over]:
            del self._held[key]

    def _by_period(self, reports: Iterable[MixedReports]) -> Iterable[tuple[Period, np.ndarray]]:
        """The rows of each collection and base period."""
        of: dict[bytes, list[ReportBatch]] = defaultdict(list)
        for part in reports:
            for batch in part.apart():
                of[batch.fingerprint].append(batch)
        for fingerprint, batches in of.items():
            batch = ReportBatch.concatenate(batches)
            starts, index = split_by_period(batch.event_times, self._periods)
            rows = to_rows(batch)
            for number, start in enumerate(starts):
                assert start is not None, "follow_job refuses a job without windows"
                yield (fingerprint, start), rows[index == number]

    def _known(self, fingerprint: bytes, start: int, width: int) -> KnownReports | KnownIds:
        """What is known of a base period, as the one that was used last."""
        key = (fingerprint, start)
        known = self._held.pop(key, None)
        if known is None:
            known = KnownIds(self._secret) if self._secret else KnownReports(width)
            for (block,) in self._database.execute(
                "SELECT block FROM known_ids WHERE start = ? AND fingerprint = ?", (start, fingerprint)
            ):
                known.read(block)
        self._held[key] = known
        return known

    def _append(self, fingerprint: bytes, start: int, new: bytes) -> None:
        """Extend the last block of a log, or begin another one."""
        last = self._database.execute(
            "SELECT rowid, block FROM known_ids WHERE start = ? AND fingerprint = ? ORDER BY rowid DESC LIMIT 1",
            (start, fingerprint),
        ).fetchone()
        if last is not None and len(last[1]) < BLOCK:
            self._database.execute("UPDATE known_ids SET block = ? WHERE rowid = ?", (last[1] + new, last[0]))
        else:
            self._database.execute("INSERT INTO known_ids VALUES (?, ?, ?)", (start, fingerprint, new))

    def _let_go(self) -> None:
        """Keep in memory only what fits, and what was used last."""
        left = sum(known.num_bytes for known in self._held.values())
        for key in list(self._held)[:-1]:
            if left <= MOST_BYTES:
                return
            left -= self._held.pop(key).num_bytes
