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
from apache_beam.pvalue import PCollection, TaggedOutput
from apache_beam.transforms import userstate
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.timestamp import MAX_TIMESTAMP, Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.counts import CohortCounts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.reports import ID_BYTES, ReportBatch
from uldp_transforms.ledger import ACCEPTED, DUPLICATES, LedgerEntry
from uldp_transforms.runtime import metrics
from uldp_transforms.runtime.coders import ReportBatchCoder, key_of_sum
from uldp_transforms.spec import JobSpec
from uldp_transforms.windows import BasePeriods, split_by_period

_HEAD = ID_BYTES + 8 + 2  # id, event time, cohort; the payload follows


class CountNewReports(beam.PTransform[PCollection[ReportBatch], Any]):
    """Counts the reports that were not counted before.

    Input: ``ReportBatch`` with report ids, in the global window.

    Output: main, pairs (``key_of_sum`` of collection and base period, counts) that add up to the counts of all
    different reports, stamped with the start of their base period; counts are negative where a report is taken back.
    ``ledger``: entries of bins "accepted" and "duplicates".

    Args:
        spec: of the job, for this input: in a stream, what was counted is forgotten when nothing of its base period can
            arrive any more.
    """

    def __init__(self, spec: JobSpec):
        super().__init__()
        self._spec = spec

    def expand(self, reports: PCollection[ReportBatch]) -> Any:
        spec, keep = self._spec, None
        if not spec.bounded and spec.periods is not None:
            keep = spec.allowed_lateness + spec.slack
        return (
            reports
            | "ByPeriodAndId"
            >> beam.FlatMap(_split, spec.periods, spec.deduplicate_parts).with_output_types(_KEYED_REPORTS)
            | "CountNew" >> beam.ParDo(_CountNewFn(spec, keep)).with_outputs("ledger", main="counts")
        )


_KEYED_REPORTS = beam.typehints.Tuple[bytes, bytes]


def _split(batch: ReportBatch, periods: BasePeriods | None, num_parts: int) -> Iterator[tuple[bytes, bytes]]:
    """Parts of a batch by base period and by the first bytes of the id, keyed by these."""
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


class _CountNewFn(beam.DoFn):
    """Holds the reports of one part that were counted, as rows of bytes sorted by id."""

    COUNTED = userstate.ReadModifyWriteStateSpec("counted", coders.BytesCoder())
    FORGET = userstate.TimerSpec("forget", TimeDomain.WATERMARK)

    def __init__(self, spec: JobSpec, keep: int | None):
        self._catalog = spec.catalog
        self._periods = spec.periods
        self._keep = keep
        self._bit_patterns = spec.bit_patterns

    def start_bundle(self) -> None:
        metrics.start_bundle()

    def process(
        self,
        element: tuple[bytes, bytes],
        timestamp: Any = beam.DoFn.TimestampParam,
        counted: Any = beam.DoFn.StateParam(COUNTED),
        forget: Any = beam.DoFn.TimerParam(FORGET),
    ) -> Iterator[Any]:
        key, encoded = element
        batch = ReportBatchCoder().decode(encoded)
        collection = self._catalog[batch.fingerprint]
        old = _from_state(counted.read(), collection)
        kept, removed, added, duplicates = merge(old, to_rows(batch))
        counted.write(kept.tobytes())
        start = int.from_bytes(key[32:40], "big", signed=True)
        if self._keep is not None and self._periods is not None:
            over = int(self._periods.end_of(start)) + self._keep
            forget.set(Timestamp(micros=min(over * 1000, MAX_TIMESTAMP.micros - 1)))
        period = start if key[44] else None
        window = (GlobalWindow(),)
        if len(added):
            counts = self._count(collection, added)
            if len(removed):
                counts = counts + -self._count(collection, removed)
            yield WindowedValue((key_of_sum(batch.fingerprint, period), counts), Timestamp(micros=start * 1000), window)
        for name, number in ((ACCEPTED, len(added) - len(removed)), (DUPLICATES, duplicates)):
            if number:
                metrics.count(number, name)
                entry = LedgerEntry(name, batch.fingerprint, period, number)
                yield TaggedOutput("ledger", WindowedValue(entry, timestamp, window))

    def _count(self, collection: Collection, rows: np.ndarray) -> CohortCounts:
        cohorts = np.ascontiguousarray(rows[:, _HEAD - 2 : _HEAD]).view("<u2")[:, 0]
        count = collection.count_groups if collection.are_many(len(rows)) else collection.count_few
        return count(np.ascontiguousarray(rows[:, _HEAD:]), cohorts, 1, self._bit_patterns)[0]

    @userstate.on_timer(FORGET)
    def forget(self, counted: Any = beam.DoFn.StateParam(COUNTED)) -> Iterable[Any]:
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
        old: (m, R) uint8 with different ids, sorted.
        new: (n, R) uint8.

    Returns:
        kept: the smallest row of each id, sorted; removed: rows of ``old`` that are not among them; added: rows of
        ``new`` that are, and were not in ``old``; the number of duplicates, n minus the number of new ids.
    """
    ordered = new[np.argsort(_as_bytes(new))]
    first = np.ones(len(ordered), dtype=bool)
    first[1:] = (ordered[1:, :ID_BYTES] != ordered[:-1, :ID_BYTES]).any(axis=1)
    best = ordered[first]
    old_ids, ids = _as_bytes(old[:, :ID_BYTES]), _as_bytes(best[:, :ID_BYTES])
    at = np.searchsorted(old_ids, ids)
    known = np.append(old_ids, np.zeros(1, old_ids.dtype))[at] == ids
    known &= at < len(old)
    smaller = np.zeros(len(best), dtype=bool)
    smaller[known] = _as_bytes(best[known]) < _as_bytes(old[at[known]])
    kept = np.insert(old, at[~known], best[~known], axis=0)
    kept[(at + np.cumsum(~known))[smaller]] = best[smaller]
    removed, added = old[at[smaller]], best[~known | smaller]
    return kept, removed, added, len(new) - (len(added) - len(removed))


def _as_bytes(rows: np.ndarray) -> np.ndarray:
    """(n, R) uint8 as (n,) strings of R bytes, which compare byte by byte, the first one first."""
    return np.ascontiguousarray(rows).view(f"S{rows.shape[1]}")[:, 0]


def _from_state(stored: bytes | None, collection: Collection) -> np.ndarray:
    width = _HEAD + collection.mechanism.payload_size
    return np.frombuffer(stored or b"", dtype=np.uint8).reshape(-1, width)
