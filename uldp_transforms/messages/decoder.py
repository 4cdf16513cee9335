"""From messages to reports and verdicts: strict, columnar, and never an exception for bad data. No Beam.

Each report gets exactly one verdict: accepted, or the first of the checks that it fails. Well-formed bytes are the
ones that the schema and the collection allow, nothing is masked, clamped or guessed.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from uldp_transforms.ldp.collection import PREFIX_BYTES, Collection
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.ldp.reports import ID_BYTES, ReportBatch
from uldp_transforms.messages import wire
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME, TimeGate

_PADDING = 64  # zero bytes behind the messages, so that reading over an end is harmless


class Decoded(NamedTuple):
    """What messages held.

    Attributes:
        batches: accepted reports.
        rejections: everything else.
        num_received: number of reports by fingerprint (empty if never established), counted when they were taken out of
            their messages, before they were judged; a message that nothing was taken out of and that was not refused
            either counts as one report.
        off_by: largest number of milliseconds by which a report came too early or too late, by reason.
        num_messages: how many messages these verdicts are about.
        stranger: beginning of a fingerprint that no collection of the job has, if there was one.
    """

    batches: list[ReportBatch]
    rejections: list[Rejection]
    num_received: Counter[bytes]
    off_by: dict[Reason, int]
    num_messages: int
    stranger: bytes = b""


@dataclasses.dataclass(frozen=True, eq=False)
class _Columns:
    """n reports of one collection, their values not checked yet; ``message`` (n,) is where each came from."""

    collection: Collection
    cohorts: np.ndarray
    event_times: np.ndarray
    report_ids: np.ndarray
    payloads: np.ndarray
    message: np.ndarray


class MessageDecoder:
    """Decodes many messages at once.

    Args:
        catalog: the collections of the job.
        gate: judges event times against arrival times; None: messages have no arrival time (files).
        require_ids: refuse batches without report ids.
    """

    def __init__(self, catalog: CollectionCatalog, gate: TimeGate | None = None, require_ids: bool = False):
        self._catalog = catalog
        self._gate = gate
        self._require_ids = require_ids

    def decode(self, messages: Sequence[bytes], arrival_times: np.ndarray | None = None) -> Decoded:
        """Reports and verdicts of n messages.

        Args:
            messages: n messages, each a single report or a batch.
            arrival_times: (n,) int64 in ms; needed if there is a gate.

        Returns:
            Accepted reports, and everything else: every report stands in exactly one of them; and how many came.
        """
        lengths = np.fromiter(map(len, messages), dtype=np.int64, count=len(messages))
        verdicts = _Verdicts(lengths, arrival_times)
        form = np.frombuffer(b"".join([message[:1] or b"\0" for message in messages]), dtype=np.uint8).copy()
        # batches are taken apart one by one; everything else is looked at together, in one buffer
        small = form != wire.BATCH_FORM
        data = np.frombuffer(b"".join((*itertools.compress(messages, small), bytes(_PADDING))), dtype=np.uint8)
        ends = np.cumsum(lengths * small)
        starts = ends - lengths * small
        skipped = np.zeros(len(messages), dtype=np.int64)
        marked = np.flatnonzero(form == wire.SINGLE_OBJECT_MARKER[0])
        if len(marked):
            header = sliding_window_view(data, 10)[starts[marked]]
            for expected, own_form in ((wire.REPORT_HEADER, wire.REPORT_FORM), (wire.BATCH_HEADER, wire.BATCH_FORM)):
                here = marked[(header == np.frombuffer(expected, np.uint8)).all(axis=1) & (lengths[marked] > 10)]
                skipped[here] = 10
                form[here] = np.where(data[starts[here] + 10] == own_form, own_form, 0)
        too_large = lengths > wire.MAX_MESSAGE_BYTES
        single = (form == wire.REPORT_FORM) & ~too_large
        packed = (form == wire.BATCH_FORM) & ~too_large
        verdicts.refuse(np.flatnonzero(too_large), Reason.TOO_LARGE)
        verdicts.refuse(np.flatnonzero(lengths == 0), Reason.MALFORMED)
        verdicts.refuse(np.flatnonzero((lengths > 0) & ~too_large & ~single & ~packed), Reason.UNKNOWN_SCHEMA)

        batches = []
        columns = [
            *self._split_singles(data, starts + skipped, ends, np.flatnonzero(single), verdicts),
            *self._split_packed(messages, skipped, np.flatnonzero(packed), verdicts),
        ]
        for part in columns:
            batch = self._judge(part, verdicts)
            if len(batch):
                batches.append(batch)
        received = verdicts.num_received()
        return Decoded(batches, verdicts.rejections, received, verdicts.off_by, len(lengths), verdicts.stranger)

    # ---------------------------------------------------------------- single reports: all messages at once

    def _split_singles(
        self, data: np.ndarray, starts: np.ndarray, ends: np.ndarray, which: np.ndarray, verdicts: _Verdicts
    ) -> Iterator[_Columns]:
        if not len(which):
            return
        start, end = starts[which], ends[which]
        reason = np.zeros(len(which), dtype=np.uint8)

        def fail(mask: np.ndarray, why: Reason) -> None:
            reason[mask & (reason == 0)] = why

        last = len(data) - _PADDING  # positions of broken messages are held inside the buffer
        fixed = sliding_window_view(data, wire.FIXED_BYTES)[start]
        times, after_time, time_ok = wire.read_varints(data, np.minimum(start + wire.FIXED_BYTES, last))
        cohorts, after_cohort, cohort_ok = wire.read_varints(data, np.minimum(after_time, last))
        sizes, payload_at, size_ok = wire.read_varints(data, np.minimum(after_cohort, last))
        fail(payload_at > end, Reason.MALFORMED)
        fail(~(time_ok & cohort_ok & size_ok), Reason.NON_CANONICAL)
        fail((sizes < 0) | (sizes > end - payload_at), Reason.MALFORMED)
        fail(sizes < end - payload_at, Reason.TRAILING_BYTES)
        fail((cohorts < -(1 << 31)) | (cohorts >= 1 << 31), Reason.OUT_OF_RANGE)
        _refuse_each(verdicts, which, reason)

        prefixes = np.ascontiguousarray(fixed[:, 1 : 1 + PREFIX_BYTES]).view(np.uint64)[:, 0]
        strangers = reason == 0
        for prefix in prefixes[:1] if (prefixes == prefixes[:1]).all() else np.unique(prefixes):
            collection = self._catalog.find(prefix.tobytes())
            if collection is None:
                continue
            here = (prefixes == prefix) & (reason == 0)
            strangers &= ~here
            rows = np.flatnonzero(here)
            wrong = sizes[rows] != collection.mechanism.payload_size
            verdicts.refuse(which[rows[wrong]], Reason.PAYLOAD_LENGTH, collection)
            rows = rows[~wrong]
            if not len(rows):
                continue
            verdicts.take_out(which[rows], collection, len(rows))
            windows = sliding_window_view(data, collection.mechanism.payload_size)
            yield _Columns(
                collection=collection,
                cohorts=cohorts[rows],
                event_times=times[rows],
                report_ids=fixed[rows, 1 + PREFIX_BYTES :],
                payloads=windows[payload_at[rows]],
                message=which[rows],
            )
        if strangers.any():
            verdicts.stranger = prefixes[strangers][0].tobytes()
        verdicts.refuse(which[strangers], Reason.UNKNOWN_COLLECTION)

    # ---------------------------------------------------------------- packed reports: columns are joined

    def _split_packed(
        self, messages: Sequence[bytes], offsets: np.ndarray, which: np.ndarray, verdicts: _Verdicts
    ) -> Iterator[_Columns]:
        joined: dict[tuple[bytes, bool], list[tuple[int, int, list[memoryview]]]] = {}
        refused: dict[tuple[Reason, Collection | None, int], list[int]] = defaultdict(list)
        known: dict[bytes, Collection] = {}
        for index in which.tolist():
            message = messages[index]
            prefix, fields, end, reason = wire.split_batch(message, int(offsets[index]))
            collection = self._catalog.find(prefix)
            num_reports = 1
            if reason is Reason.ACCEPTED and end < len(message):
                reason = Reason.TRAILING_BYTES
            if reason is Reason.ACCEPTED:
                n = len(fields[0]) // 2
                sizes = tuple(map(len, fields))
                if n == 0 or sizes[:3] not in ((2 * n, 8 * n, ID_BYTES * n), (2 * n, 8 * n, 0)):
                    reason = Reason.MALFORMED
                else:
                    num_reports = n
                    if collection is None:
                        reason, verdicts.stranger = Reason.UNKNOWN_COLLECTION, prefix
                    elif sizes[3] != n * collection.mechanism.payload_size:
                        reason = Reason.PAYLOAD_LENGTH
                    else:
                        known[prefix] = collection
                        joined.setdefault((prefix, sizes[2] > 0), []).append((index, n, fields))
                        continue
            established = collection if reason is Reason.PAYLOAD_LENGTH else None
            refused[reason, established, num_reports].append(index)
        for (reason, established, num_reports), indexes in refused.items():
            verdicts.refuse(np.array(indexes), reason, established, num_reports)
        for (prefix, with_ids), parts in joined.items():
            counts = np.array([n for _, n, _ in parts])
            cohorts, times, ids, payloads = (b"".join(fields[i] for _, _, fields in parts) for i in range(4))
            n = int(counts.sum())
            which = np.array([index for index, _, _ in parts])
            verdicts.take_out(which, known[prefix], n)
            yield _Columns(
                collection=known[prefix],
                cohorts=np.frombuffer(cohorts, dtype="<u2"),
                event_times=np.frombuffer(times, dtype="<i8"),
                report_ids=np.frombuffer(ids, dtype=np.uint8).reshape(n if with_ids else 0, ID_BYTES),
                payloads=np.frombuffer(payloads, dtype=np.uint8).reshape(n, -1),
                message=np.repeat(which, counts),
            )

    # ---------------------------------------------------------------- what the reports say

    def _judge(self, part: _Columns, verdicts: _Verdicts) -> ReportBatch:
        """The reports that pass all checks of meaning and time; the others go to the verdicts."""
        collection = part.collection
        n = len(part.cohorts)
        reason: np.ndarray | None = None
        for why, mask in self._violations(part, verdicts):
            if mask.any():
                reason = np.zeros(n, dtype=np.uint8) if reason is None else reason
                reason[mask & (reason == 0)] = why
        batch = ReportBatch(
            fingerprint=collection.fingerprint,
            cohorts=part.cohorts.astype(np.uint16, copy=False),
            payloads=part.payloads,
            event_times=part.event_times.astype(np.int64, copy=False),
            report_ids=part.report_ids,
        )
        if reason is None:
            return batch
        for why in map(Reason, np.unique(reason[reason > 0])):
            rows = np.flatnonzero(reason == why)
            times, messages, periods = part.event_times[rows], part.message[rows], None
            if self._gate is not None and verdicts.arrival_times is not None and why in self._gate.off_by:
                periods = self._gate.periods.start_of(times)
                verdicts.note(why, self._gate.off_by[why](times, verdicts.arrival_times[messages]))
            verdicts.refuse_reports(messages, why, collection, periods)
        return batch[np.flatnonzero(reason == 0)]

    def _violations(self, part: _Columns, verdicts: _Verdicts) -> Iterator[tuple[Reason, np.ndarray]]:
        yield Reason.COHORT_RANGE, (part.cohorts < 0) | (part.cohorts >= part.collection.num_cohorts)
        yield from part.collection.mechanism.violations(part.payloads)
        if self._require_ids and len(part.report_ids) < len(part.cohorts):
            yield Reason.NO_REPORT_ID, np.ones(len(part.cohorts), dtype=bool)
        times = part.event_times
        if times.min() < MIN_EVENT_TIME or times.max() >= MAX_EVENT_TIME:
            yield Reason.TIME_RANGE, (times < MIN_EVENT_TIME) | (times >= MAX_EVENT_TIME)
            times = np.clip(times, MIN_EVENT_TIME, MAX_EVENT_TIME - 1)
        if self._gate is not None and verdicts.arrival_times is not None:
            arrived = verdicts.arrival_times[part.message]
            yield Reason.TOO_EARLY, self._gate.early_by(times, arrived) > 0
            yield Reason.TOO_OLD, self._gate.late_by(times, arrived) > 0


class _Verdicts:
    """Collects the rejections of one ``decode`` call, and counts what came."""

    def __init__(self, lengths: np.ndarray, arrival_times: np.ndarray | None):
        self.arrival_times = arrival_times
        self.off_by: dict[Reason, int] = {}
        self.stranger = b""
        self._refused: Counter[tuple[Reason, int, Collection | None, int | None, int]] = Counter()
        self._lengths = lengths
        self._settled = np.zeros(len(lengths), dtype=bool)
        self._num_received: Counter[bytes] = Counter()

    def take_out(self, messages: np.ndarray, collection: Collection, num_reports: int) -> None:
        """Count the reports of messages that are going to be judged."""
        self._settled[messages] = True
        self._num_received[collection.fingerprint] += num_reports

    def note(self, reason: Reason, off_by: np.ndarray) -> None:
        """Remember by how many milliseconds the worst of these reports missed its time."""
        self.off_by[reason] = max(int(off_by.max()), self.off_by.get(reason, 0))

    def num_received(self) -> Counter[bytes]:
        """See ``Decoded.num_received``."""
        return self._num_received + Counter({b"": int((~self._settled).sum())})

    def refuse(
        self, messages: np.ndarray, reason: Reason, collection: Collection | None = None, num_reports: int = 1
    ) -> None:
        """Refuse whole messages, of ``num_reports`` each."""
        if not len(messages):
            return
        self._settled[messages] = True
        self._num_received[collection.fingerprint if collection else b""] += len(messages) * num_reports
        self._add(messages, reason, num_reports, collection, None)

    def refuse_reports(
        self, messages: np.ndarray, reason: Reason, collection: Collection, periods: np.ndarray | None
    ) -> None:
        """Refuse single reports, given by their messages (n,) and, if these are established, base periods (n,)."""
        self._add(messages, reason, 1, collection, periods)

    def _add(
        self,
        messages: np.ndarray,
        reason: Reason,
        num_reports: int,
        collection: Collection | None,
        periods: np.ndarray | None,
    ) -> None:
        """Count by size, time of arrival and period."""
        nothing = np.zeros(len(messages), dtype=np.int64)
        keys = [
            self._lengths[messages],
            nothing if self.arrival_times is None else self.arrival_times[messages],
            nothing if periods is None else periods,
        ]
        groups, counts = np.unique(np.stack(keys, axis=1), axis=0, return_counts=True)
        for (size, arrival, period), count in zip(groups.tolist(), counts.tolist()):
            key = (reason, size, collection, None if periods is None else period, arrival)
            self._refused[key] += num_reports * count

    @property
    def rejections(self) -> list[Rejection]:
        """Everything that was refused, one for each reason, size, collection, period and time of arrival."""
        return [
            Rejection(reason, number, size, collection, period, None if self.arrival_times is None else arrival)
            for (reason, size, collection, period, arrival), number in self._refused.items()
        ]


def _refuse_each(verdicts: _Verdicts, which: np.ndarray, reason: np.ndarray) -> None:
    for why in np.unique(reason[reason > 0]):
        verdicts.refuse(which[reason == why], Reason(why))
