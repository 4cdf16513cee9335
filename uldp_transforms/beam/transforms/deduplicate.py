"""Deduplication by report id, within the base period of the event time.

A report carries its own event time, so an identical copy falls into the same base period whenever it arrives; after the
allowed lateness it is rejected. Keyed state holds the counted reports of a base period. The first copy is counted,
later copies are not. If two reports with the same id differ, the one with the smaller bytes counts, in either order of
arrival; the other one is subtracted. So the counts do not depend on the order of arrival.

By fingerprints, state holds 8 bytes of each id instead of the report (``known_ids``). The first report with an id
counts then, and a report in conflict with it is a copy.

State is an append-only log of counted reports, or of fingerprints. The worker that wrote it holds the same in memory,
where it looks up ids; it reads the log only if its memory does not match the state, for instance after a restart.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam import coders
from apache_beam.pvalue import PCollection, TaggedOutput
from apache_beam.transforms import userstate
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.timestamp import MAX_TIMESTAMP, Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from uldp_transforms.beam.runtime import metrics
from uldp_transforms.beam.runtime.coders import ReportBatchCoder, key_of_sum
from uldp_transforms.beam.runtime.worker_memory import VERSION_BYTES, Held, new_version
from uldp_transforms.collector.known_ids import SECRET_BYTES, KnownIds
from uldp_transforms.collector.known_reports import Changes, KnownReports, counts_of_changes, to_rows
from uldp_transforms.collector.ledger_entries import ACCEPTED, DUPLICATES, LedgerEntry
from uldp_transforms.collector.period_counts import Reports
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.reports import ReportBatch
from uldp_transforms.messages.mixed_reports import MixedReports
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms.spec.spec_fields import BY_FINGERPRINTS
from uldp_transforms.windows import BasePeriods, split_by_period

_BLOCK = 1 << 15
"""Bytes of rows that are appended to the log together; a shorter remainder is stored with the version, and rewritten
each time.
"""

_HELD: Held[KnownReports | KnownIds] = Held()


class CountNewReports(beam.PTransform[PCollection[ReportBatch], Any]):
    """Counts the reports that have not been counted before.

    Input: ``ReportBatch`` with report ids, in the global window.

    Output: main, pairs (``key_of_sum`` of collection and base period, counts) that add up to the counts of all
    different reports, with the start of their base period as timestamp; counts are negative where a report is
    subtracted. ``ledger``: entries of bins "accepted" and "duplicates".

    Args:
        spec: specification of the job, for this input: in a stream, the counted reports of a base period are forgotten
            when no more of its reports can arrive.
    """

    def __init__(self, spec: JobSpec):
        super().__init__()
        self._spec = spec

    def expand(self, reports: PCollection[ReportBatch]) -> Any:
        spec, keep = self._spec, None
        if not spec.bounded and spec.periods is not None:
            keep = spec.allowed_lateness + spec.slack
        # State of the one kind must never reach the other one.
        label = "CountOnceByFingerprint" if spec.deduplicate_by == BY_FINGERPRINTS else "CountOnce"
        return (
            reports
            | "ByPeriodAndId"
            >> beam.FlatMap(_split, spec.periods, spec.deduplicate_parts).with_output_types(_KEYED_REPORTS)
            | label >> beam.ParDo(_CountOnceFn(spec, keep)).with_outputs("ledger", main="counts")
        )


_KEYED_REPORTS = beam.typehints.Tuple[bytes, bytes]


def _split(reports: Reports, periods: BasePeriods | None, num_parts: int) -> Iterator[tuple[bytes, bytes]]:
    """``_split_batch`` of each collection."""
    for batch in reports.apart() if isinstance(reports, MixedReports) else (reports,):
        yield from _split_batch(batch, periods, num_parts)


def _split_batch(batch: ReportBatch, periods: BasePeriods | None, num_parts: int) -> Iterator[tuple[bytes, bytes]]:
    """Split a batch by base period and by the first bytes of the id; returns pairs of key and rows."""
    if len(batch.report_ids) < len(batch):
        raise SpecError("CountReports needs reports with ids where JobSpec.deduplicate is true, got some without")
    coder = ReportBatchCoder()
    starts, index = split_by_period(batch.event_times, periods)
    first_bytes = np.ascontiguousarray(batch.report_ids[:, :4]).view("<u4")[:, 0].astype(np.int64)
    places = index * num_parts + first_bytes % num_parts
    order = np.argsort(places, kind="stable")
    bounds = np.flatnonzero(np.diff(places[order], prepend=-1, append=len(starts) * num_parts))
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist()):
        period, part = divmod(int(places[order[start]]), num_parts)
        begin = starts[period]
        place = (begin or 0).to_bytes(8, "big", signed=True) + part.to_bytes(4, "big") + bytes([begin is not None])
        yield batch.fingerprint + place, coder.encode(batch[order[start:stop]])


class _CountOnceFn(beam.DoFn):
    """Holds the counted reports of one part, or their fingerprints, and writes them to a log."""

    RECENT = userstate.ReadModifyWriteStateSpec("recent", coders.BytesCoder())
    LOG = userstate.BagStateSpec("log", coders.BytesCoder())
    FORGET = userstate.TimerSpec("forget", TimeDomain.WATERMARK)

    def __init__(self, spec: JobSpec, keep: int | None):
        self._catalog = spec.catalog
        self._periods = spec.periods
        self._keep = keep
        self._secret_bytes = SECRET_BYTES if spec.deduplicate_by == BY_FINGERPRINTS else 0
        self._bit_patterns = spec.bit_patterns
        self._by = spec.by

    def start_bundle(self) -> None:
        metrics.start_bundle()

    def process(
        self,
        element: tuple[bytes, bytes],
        timestamp: Any = beam.DoFn.TimestampParam,
        recent: Any = beam.DoFn.StateParam(RECENT),
        log: Any = beam.DoFn.StateParam(LOG),
        forget: Any = beam.DoFn.TimerParam(FORGET),
    ) -> Iterator[Any]:
        key, encoded = element
        batch = ReportBatchCoder().decode(encoded)
        changes = _count_once(to_rows(batch), recent, log, self._secret_bytes)
        start = int.from_bytes(key[32:40], "big", signed=True)
        if len(changes.added) and self._keep is not None and self._periods is not None:
            over = int(self._periods.end_of(start)) + self._keep
            forget.set(Timestamp(micros=min(over * 1000, MAX_TIMESTAMP.micros - 1)))
        period = start if key[44] else None
        window = (GlobalWindow(),)
        for owner, counts in self._count(batch.fingerprint, changes).items():
            yield WindowedValue((key_of_sum(owner, period), counts), Timestamp(micros=start * 1000), window)
        accepted = len(changes.added) - len(changes.removed)
        for name, number in ((ACCEPTED, accepted), (DUPLICATES, changes.duplicates)):
            if number:
                metrics.count(number, name)
                entry = LedgerEntry(name, batch.fingerprint, period, number)
                yield TaggedOutput("ledger", WindowedValue(entry, timestamp, window))

    def _count(self, fingerprint: bytes, changes: Changes) -> dict[bytes, CohortCounts]:
        """Counts of the added reports minus those of the removed ones, for the collection and each group."""
        return counts_of_changes(self._catalog, fingerprint, changes, self._bit_patterns, self._by)

    @userstate.on_timer(FORGET)
    def forget(self, recent: Any = beam.DoFn.StateParam(RECENT), log: Any = beam.DoFn.StateParam(LOG)) -> Iterable[Any]:
        _HELD.take((recent.read() or b"")[:VERSION_BYTES])
        recent.clear()
        log.clear()
        return ()


def _count_once(new: np.ndarray, recent: Any, log: Any, secret_bytes: int = 0) -> Changes:
    """Add rows to the state; duplicates leave it unchanged.

    The value ``recent`` is the version, the secret of this state (none if it holds reports), and what waits for the
    next block of the log.
    """
    stored: bytes = recent.read() or b""
    version, secret, end = (
        stored[:VERSION_BYTES],
        stored[VERSION_BYTES:][:secret_bytes],
        stored[VERSION_BYTES + secret_bytes :],
    )
    secret = secret or secrets.token_bytes(secret_bytes)
    known = _HELD.take(version)
    if known is None:
        known = read_again(itertools.chain(log.read(), [end]) if version else [], new.shape[1], secret)
    changes = known.add(new)
    if len(changes.added):
        version, end = new_version(), end + known.stored(changes.added)
        if len(end) > _BLOCK:
            log.add(end)
            end = b""
        recent.write(version + secret + end)
    if version:
        _HELD.hold(version, known)
    return changes


def read_again(blocks: Iterable[bytes], width: int, secret: bytes = b"") -> KnownReports | KnownIds:
    """Rebuild what is known from the log.

    Args:
        blocks: byte rows or fingerprints, in any order.
        width: size of a row in bytes.
        secret: of the fingerprints; empty if the log has rows.
    """
    known = KnownIds(secret) if secret else KnownReports(width)
    for block in blocks:
        known.read(block)
    return known
