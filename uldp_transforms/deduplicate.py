"""Counting each report once: by report id, inside the base period of its event time, exactly.

A report carries its own event time, so an identical copy falls into the same base period, whenever it arrives; after
that it is too old. Keyed state holds the reports of a base period that were counted. The first copy is counted, later
ones are not. If two reports with one id differ, the one whose bytes are smaller counts, whichever came first; the
other one is taken back. So the counts do not depend on the order of arrival.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
import numpy as np
from apache_beam import coders
from apache_beam.transforms import userstate
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.timestamp import MAX_TIMESTAMP, Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from uldp_transforms.coders import ReportBatchCoder
from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.counts import CohortCounts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.reports import ID_BYTES, ReportBatch
from uldp_transforms.ledger import LedgerEntry
from uldp_transforms.registry import CollectionRegistry
from uldp_transforms.windows import Windows, number_periods

SHARDS = 16
"""Parts of a base period that workers hold separately, by the first bits of the report id."""

_HEAD = ID_BYTES + 8 + 2  # id, event time, cohort; the payload follows


class CountNewReports(beam.PTransform):
    """Counts the reports that were not counted before.

    Input: ``ReportBatch`` with report ids, in the global window.

    Output: main, pairs (fingerprint, counts) that add up to the counts of all different reports, stamped with the
    start of their base period; counts are negative where a report is taken back. ``ledger``: entries of bins
    "accepted" and "duplicates".

    Args:
        registry: the collections of the job.
        windows: of the job; None without windows.
        unbounded: True in a stream: what was counted is forgotten when nothing of its base period can arrive any more.
    """

    def __init__(self, registry: CollectionRegistry, windows: Windows | None, unbounded: bool):
        super().__init__()
        self._registry = registry
        self._windows = windows
        self._unbounded = unbounded

    def expand(self, reports: beam.PCollection[ReportBatch]) -> Any:
        base = None if self._windows is None else self._windows.base
        keep = None
        if self._unbounded and self._windows is not None:
            keep = self._windows.base + self._windows.allowed_lateness + self._windows.lateness_slack
        return (
            reports
            | "ByPeriodAndId" >> beam.FlatMap(_split, base).with_output_types(_KEYED_REPORTS)
            | "CountNew" >> beam.ParDo(_CountNewFn(self._registry, keep)).with_outputs("ledger", main="counts")
        )


_KEYED_REPORTS = beam.typehints.Tuple[bytes, bytes]


def _split(batch: ReportBatch, base: int | None) -> Iterator[tuple[bytes, bytes]]:
    """Parts of a batch by base period and by the first bits of the id, keyed by these."""
    if len(batch.report_ids) < len(batch):
        raise SpecError("CountReports.deduplicate needs reports with ids (DecodeReports.require_ids), got some without")
    coder = ReportBatchCoder()
    shards = batch.report_ids[:, 0] % SHARDS
    periods, index = number_periods(batch.event_times, base)
    part = index * SHARDS + shards
    order = np.argsort(part, kind="stable")
    bounds = np.flatnonzero(np.diff(part[order], prepend=-1, append=len(periods) * SHARDS))
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist()):
        period, shard = divmod(int(part[order[start]]), SHARDS)
        begin = periods[period] * (base or 0)
        key = batch.fingerprint + begin.to_bytes(8, "big", signed=True) + bytes([shard, base is not None])
        yield key, coder.encode(batch[order[start:stop]])


class _CountNewFn(beam.DoFn):
    """Holds the reports of one part that were counted, as rows of bytes sorted by id."""

    COUNTED = userstate.ReadModifyWriteStateSpec("counted", coders.BytesCoder())
    FORGET = userstate.TimerSpec("forget", TimeDomain.WATERMARK)

    def __init__(self, registry: CollectionRegistry, keep: int | None):
        self._registry = registry
        self._keep = keep

    def process(
        self,
        element: tuple[bytes, bytes],
        timestamp=beam.DoFn.TimestampParam,
        counted=beam.DoFn.StateParam(COUNTED),
        forget=beam.DoFn.TimerParam(FORGET),
    ) -> Iterator[Any]:
        key, encoded = element
        batch = ReportBatchCoder().decode(encoded)
        collection = self._registry[batch.fingerprint]
        old = _from_state(counted.read(), collection)
        kept, removed, added, duplicates = merge(old, to_rows(batch))
        counted.write(kept.tobytes())
        start = int.from_bytes(key[32:40], "big", signed=True)
        if self._keep is not None:
            forget.set(Timestamp(micros=min((start + self._keep) * 1000, MAX_TIMESTAMP.micros - 1)))
        period = start if key[41] else None
        window = (GlobalWindow(),)
        if len(added):
            counts = _count(collection, added) + _negative(_count(collection, removed))
            yield WindowedValue((batch.fingerprint, counts), Timestamp(micros=start * 1000), window)
        for name, number in (("accepted", len(added) - len(removed)), ("duplicates", duplicates)):
            if number:
                entry = LedgerEntry(name, batch.fingerprint, period, number)
                yield beam.pvalue.TaggedOutput("ledger", WindowedValue(entry, timestamp, window))

    @userstate.on_timer(FORGET)
    def forget(self, counted=beam.DoFn.StateParam(COUNTED)) -> Iterable[Any]:
        counted.clear()
        return ()


def to_rows(batch: ReportBatch) -> np.ndarray:
    """Reports as rows of bytes, (n, 26 + W) uint8: id, event time, cohort, payload."""
    times = batch.event_times.astype("<i8")[:, np.newaxis].view(np.uint8)
    cohorts = batch.cohorts.astype("<u2")[:, np.newaxis].view(np.uint8)
    return np.concatenate([batch.report_ids, times, cohorts, batch.payloads], axis=1)


def merge(old: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Add reports to those that were counted, as rows of bytes.

    Args:
        old: (m, R) uint8 with different ids.
        new: (n, R) uint8.

    Returns:
        kept: the smallest row of each id; removed: rows of ``old`` that are not among them; added: rows of ``new`` that
        are, and were not in ``old``; the number of duplicates, n minus the number of new ids.
    """
    everything = np.concatenate([old, new])
    as_bytes = everything.view(f"V{everything.shape[1]}")[:, 0]  # compared byte by byte, the first one first
    order = np.argsort(as_bytes, kind="stable")  # equal rows stay in order, old ones first
    sorted_rows = everything[order]
    ids = sorted_rows[:, :ID_BYTES]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (ids[1:] != ids[:-1]).any(axis=1)
    chosen = np.zeros(len(everything), dtype=bool)
    chosen[order[first]] = True
    removed = old[~chosen[: len(old)]]
    added = new[chosen[len(old) :]]
    return sorted_rows[first], removed, added, len(new) - (len(added) - len(removed))


def _from_state(stored: bytes | None, collection: Collection) -> np.ndarray:
    width = _HEAD + collection.mechanism.payload_size
    return np.frombuffer(stored or b"", dtype=np.uint8).reshape(-1, width)


def _count(collection: Collection, rows: np.ndarray) -> CohortCounts:
    cohorts = np.ascontiguousarray(rows[:, _HEAD - 2 : _HEAD]).view("<u2")[:, 0]
    return collection.count_groups(np.ascontiguousarray(rows[:, _HEAD:]), cohorts, 1)[0]


def _negative(counts: CohortCounts) -> CohortCounts:
    return CohortCounts(-counts.num_reports, -counts.cells)
