"""From messages to reports and verdicts: strict, columnar, and without exceptions for bad data. No Beam.

Messages of all collections are first converted to columns. Reports whose payloads have the same size are checked
together, and separated by collection at the end. So a thousand mixed collections cost little more than one.

Each report gets exactly one verdict: accepted, or the first check that it fails. Only bytes that the schema and the
collection allow are accepted; the decoder never masks, clamps or guesses a value.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import operator
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from uldp_transforms.ldp.collection import PREFIX_BYTES
from uldp_transforms.ldp.mechanisms.integer_reports import IntegerReportMechanism
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.ldp.reports import ID_BYTES, ReportBatch
from uldp_transforms.messages import wire
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.compiled import Split, Splitter
from uldp_transforms.messages.joined_messages import JoinedMessages, RepeatedMessages
from uldp_transforms.messages.mixed_reports import Batches, MixedReports
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.messages.verdicts import NOBODY, Verdicts
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME, TimeGate

_FIRST_BYTE = operator.itemgetter(0)

_HEADER_BYTES = len(wire.REPORT_HEADER)
_PADDING = 64  # zero bytes after the messages, so that reading past an end is harmless


class Decoded(NamedTuple):
    """Content of messages, with verdicts.

    Attributes:
        batches: accepted reports.
        rejections: rejected reports and messages.
        received: (N + 1,) int64, number of reports by the number of their collection (last: unknown), counted when they
            were taken out of their messages, before any check; a message without extracted reports that was not
            rejected counts as one report, so that the loss shows.
        off_by: largest number of milliseconds by which a report was too early or too late, by reason.
        num_messages: number of messages.
        catalog: the collections of the job.
        stranger: beginning of an unknown fingerprint, if there was one.
    """

    batches: Batches
    rejections: list[Rejection]
    received: np.ndarray
    off_by: dict[Reason, int]
    num_messages: int
    catalog: CollectionCatalog
    stranger: bytes = b""

    @property
    def parts(self) -> list[MixedReports]:
        """The accepted reports of all collections together."""
        return self.batches.parts

    def times(self, number: int) -> Decoded:
        """The same verdicts if each report stands for this number of reports."""
        return self._replace(
            batches=Batches([part.times(number) for part in self.parts]),
            rejections=[dataclasses.replace(one, num_reports=one.num_reports * number) for one in self.rejections],
            received=self.received * number,
        )

    @property
    def num_received(self) -> Counter[bytes]:
        """Number of received reports by fingerprint (empty if unknown)."""
        present = self.received.nonzero()[0].tolist()
        return Counter({self.catalog.fingerprints[number]: int(self.received[number]) for number in present})


class _Columns(NamedTuple):
    """n >= 1 reports with payloads of one size, with unchecked values, sorted by collection.

    Attributes:
        owners: (R,) int64, numbers of their collections in the catalog, increasing.
        sizes: (R,) int64, number of reports of each collection; their sum is n.
        message: (n,) position of the message that contained each report.
        lowest, highest: earliest and latest event time, or limits beyond them.
        checked: whether all cohorts and event times are known to be in range, and payloads to be valid if the ``tail``
            of their collection says which are.
    """

    owners: np.ndarray
    sizes: np.ndarray
    cohorts: np.ndarray
    event_times: np.ndarray
    report_ids: np.ndarray
    payloads: np.ndarray
    message: np.ndarray
    lowest: int
    highest: int
    checked: bool = False

    @property
    def numbers(self) -> np.ndarray:
        """(n,) int64, the number of the collection of each report."""
        return self.of_each(self.owners)

    def of_each(self, values: np.ndarray) -> np.ndarray:
        """(n,) entries of ``values`` (R,), repeated for each report of the collection."""
        return np.repeat(values, self.sizes)


class _Frames(NamedTuple):
    """Positions of the datums of n messages.

    Attributes:
        form: (n,) uint8, first byte of each datum; 0 for an empty message and for a header with another datum.
        data: (N,) uint8, all messages in one buffer; plain batches, which are decoded one by one, may be missing.
        starts, ends: (n,) int64, bounds of each message in the buffer.
        skipped: (n,) int64, number of bytes of a message before its datum.
        at: (n,) int64, position of each among all messages.
    """

    form: np.ndarray
    data: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    skipped: np.ndarray
    at: np.ndarray


def _frames_of(messages: Sequence[bytes], lengths: np.ndarray, at: np.ndarray) -> _Frames:
    """The datums of plain messages, and of those in single-object encoding."""
    if isinstance(messages, JoinedMessages):
        data = np.frombuffer(messages.data + bytes(_PADDING), dtype=np.uint8)
        starts, ends = messages.bounds[:-1], messages.bounds[1:]
        form = np.where(lengths > 0, data[starts], np.uint8(0))
    else:
        form = np.zeros(len(messages), dtype=np.uint8)
        form[lengths > 0] = np.frombuffer(bytes(map(_FIRST_BYTE, filter(None, messages))), dtype=np.uint8)
        small = form != wire.BATCH_FORM
        data = np.frombuffer(b"".join((*itertools.compress(messages, small), bytes(_PADDING))), dtype=np.uint8)
        ends = np.cumsum(lengths * small)
        starts = ends - lengths * small
    skipped = np.zeros(len(messages), dtype=np.int64)
    marked = np.flatnonzero(form == wire.SINGLE_OBJECT_MARKER[0])
    if len(marked):
        header = sliding_window_view(data, _HEADER_BYTES)[starts[marked]]
        for expected, own_form in ((wire.REPORT_HEADER, wire.REPORT_FORM), (wire.BATCH_HEADER, wire.BATCH_FORM)):
            same = (header == np.frombuffer(expected, np.uint8)).all(axis=1)
            here = marked[same & (lengths[marked] > _HEADER_BYTES)]
            skipped[here] = _HEADER_BYTES
            form[here] = np.where(data[starts[here] + _HEADER_BYTES] == own_form, own_form, 0)
    return _Frames(form, data, starts, ends, skipped, at)


class MessageDecoder:
    """Decodes many messages at once.

    Args:
        catalog: the collections of the job.
        gate: checks event times against arrival times; None: messages have no arrival time (files).
        require_ids: whether to refuse batches without report ids.
    """

    def __init__(self, catalog: CollectionCatalog, gate: TimeGate | None = None, require_ids: bool = False):
        self._catalog = catalog
        self._gate = gate
        self._require_ids = require_ids
        self._splitter = Splitter(catalog)
        self._have_tails = bool(catalog.tails[:, 0].all())

    def with_gate(self, gate: TimeGate) -> MessageDecoder:
        """The same decoder with another gate."""
        other = copy.copy(self)
        other._gate = gate
        return other

    def decode(self, messages: Sequence[bytes], arrival_times: np.ndarray | None = None) -> Decoded:
        """Decode n messages to reports and verdicts.

        Args:
            messages: n messages, each a single report or a batch; a list, or ``JoinedMessages``, is not copied.
            arrival_times: (n,) int64 in ms; required if there is a gate.

        Returns:
            Accepted reports and rejections, with every report in exactly one of them; and the numbers received.
        """
        if isinstance(messages, RepeatedMessages):
            return self.decode(messages.messages, arrival_times).times(messages.times)
        messages = messages if isinstance(messages, (list, JoinedMessages)) else list(messages)
        verdicts = Verdicts(self._catalog, messages, arrival_times)
        split = self._splitter.split(messages)
        columns: Iterable[_Columns] = () if split is None else self._taken(split, verdicts)
        if split is None or len(split.rest):
            rest = np.arange(len(messages)) if split is None else split.rest
            columns = itertools.chain(columns, self._split(messages, rest, verdicts))
        parts = [judged for part in columns if len(judged := self._judge(part, verdicts))]
        received, off_by = verdicts.num_received(), verdicts.off_by
        return Decoded(
            Batches(parts), verdicts.rejections, received, off_by, len(messages), self._catalog, verdicts.stranger
        )

    def _taken(self, split: Split, verdicts: Verdicts) -> Iterable[_Columns]:
        """The reports that the compiled splitter accepted, by size of their payloads."""
        owners, sizes, cohorts, times, ids, payloads, message, rest, lowest, highest = split
        if len(rest):
            verdicts.take_out(message, owners, sizes)
        else:
            verdicts.take_out_all(owners, sizes)
        payload_sizes = self._catalog.payload_sizes[owners]
        if len(owners) and payload_sizes[0] == payload_sizes[-1]:
            payloads = payloads.reshape(len(cohorts), -1)
            return (_Columns(owners, sizes, cohorts, times, ids, payloads, message, lowest, highest, True),)
        return self._by_size(split, payload_sizes)

    @staticmethod
    def _by_size(split: Split, payload_sizes: np.ndarray) -> Iterator[_Columns]:
        """The same by size of their payloads; ``payload_sizes`` (R,) is that of each collection."""
        owners, sizes, first, begin = split.owners, split.sizes, 0, 0
        for start, stop in _runs_of(payload_sizes):
            last = first + int(np.add.reduce(sizes[start:stop]))
            end = begin + (last - first) * int(payload_sizes[start])
            yield _Columns(
                owners=owners[start:stop],
                sizes=sizes[start:stop],
                cohorts=split.cohorts[first:last],
                event_times=split.event_times[first:last],
                report_ids=split.report_ids[first:last],
                payloads=split.payloads[begin:end].reshape(last - first, -1),
                message=split.message[first:last],
                lowest=split.lowest,
                highest=split.highest,
                checked=True,
            )
            first, begin = last, end

    def _split(self, messages: Sequence[bytes], rest: np.ndarray, verdicts: Verdicts) -> Iterator[_Columns]:
        """The reports in the messages at ``rest``."""
        if len(rest) < len(messages):
            messages = [messages[index] for index in rest.tolist()]
        lengths = verdicts.lengths[rest]
        frames = _frames_of(messages, lengths, rest)
        too_large = lengths > wire.MAX_MESSAGE_BYTES
        single = (frames.form == wire.REPORT_FORM) & ~too_large
        packed = (frames.form == wire.BATCH_FORM) & ~too_large
        reason = np.zeros(len(rest), dtype=np.uint8)
        reason[~single & ~packed] = Reason.UNKNOWN_SCHEMA
        reason[lengths == 0] = Reason.MALFORMED
        reason[too_large] = Reason.TOO_LARGE
        verdicts.refuse_each(rest, reason)
        yield from self._split_singles(frames, np.flatnonzero(single), verdicts)
        yield from self._split_packed(messages, frames, np.flatnonzero(packed), verdicts)

    # ---------------------------------------------------------------- single reports: all messages at once

    def _split_singles(self, frames: _Frames, which: np.ndarray, verdicts: Verdicts) -> Iterator[_Columns]:
        if not len(which):
            return
        data, start, end = frames.data, frames.starts[which] + frames.skipped[which], frames.ends[which]
        which = frames.at[which]
        reason = np.zeros(len(which), dtype=np.uint8)

        def fail(mask: np.ndarray, why: Reason) -> None:
            reason[mask & (reason == 0)] = why

        last = len(data) - _PADDING  # positions of broken messages are limited to the buffer
        fixed = sliding_window_view(data, wire.FIXED_BYTES)[start]
        times, after_time, time_ok = wire.read_varints(data, np.minimum(start + wire.FIXED_BYTES, last))
        cohorts, after_cohort, cohort_ok = wire.read_varints(data, np.minimum(after_time, last))
        sizes, payload_at, size_ok = wire.read_varints(data, np.minimum(after_cohort, last))
        fail(payload_at > end, Reason.MALFORMED)
        fail(~(time_ok & cohort_ok & size_ok), Reason.NON_CANONICAL)
        fail((sizes < 0) | (sizes > end - payload_at), Reason.MALFORMED)
        fail(sizes < end - payload_at, Reason.TRAILING_BYTES)
        fail((cohorts < -(1 << 31)) | (cohorts >= 1 << 31), Reason.OUT_OF_RANGE)
        verdicts.refuse_each(which, reason)

        prefixes = np.ascontiguousarray(fixed[:, 1 : 1 + PREFIX_BYTES]).view("<u8")[:, 0]
        numbers = self._catalog.numbers(prefixes)
        strangers = (numbers < 0) & (reason == 0)
        if strangers.any():
            verdicts.stranger = prefixes[strangers][0].tobytes()
            verdicts.refuse(which[strangers], Reason.UNKNOWN_COLLECTION)
        rows = np.flatnonzero((numbers >= 0) & (reason == 0))
        numbers = numbers[rows]
        wrong = sizes[rows] != self._catalog.payload_sizes[numbers]
        if wrong.any():
            verdicts.refuse(which[rows[wrong]], Reason.PAYLOAD_LENGTH, numbers[wrong])
            rows, numbers = rows[~wrong], numbers[~wrong]
        order = _order_of(numbers)
        rows, numbers = rows[order], numbers[order]
        verdicts.take_out(which[rows], numbers)
        for first, last in _runs_of(self._catalog.payload_sizes[numbers]):
            here = rows[first:last]
            windows = sliding_window_view(data, int(self._catalog.payload_sizes[numbers[first]]))
            owners, sizes_of_owners = _runs(numbers[first:last])
            own_times = times[here]
            yield _Columns(
                owners=owners,
                sizes=sizes_of_owners,
                cohorts=cohorts[here],
                event_times=own_times,
                report_ids=fixed[here, 1 + PREFIX_BYTES :],
                payloads=windows[payload_at[here]],
                message=which[here],
                lowest=int(own_times.min()),
                highest=int(own_times.max()),
            )

    # ---------------------------------------------------------------- packed reports: columns are joined

    def _split_packed(
        self, messages: Sequence[bytes], frames: _Frames, which: np.ndarray, verdicts: Verdicts
    ) -> Iterator[_Columns]:
        joined: dict[bool, list[tuple[int, int, int, list[memoryview]]]] = defaultdict(list)
        refused: dict[tuple[Reason, int, int], list[int]] = defaultdict(list)
        payload_sizes = self._catalog.payload_sizes
        for place, index, offset in zip(which.tolist(), frames.at[which].tolist(), frames.skipped[which].tolist()):
            message = messages[place]
            prefix, fields, end, reason = wire.split_batch(message, offset)
            number, num_reports = self._catalog.number(prefix), 0
            if reason is Reason.ACCEPTED and end < len(message):
                reason = Reason.TRAILING_BYTES
            if reason is Reason.ACCEPTED:
                n = len(fields[0]) // 2
                sizes = tuple(map(len, fields))
                if n == 0 or sizes[:3] not in ((2 * n, 8 * n, ID_BYTES * n), (2 * n, 8 * n, 0)):
                    reason = Reason.MALFORMED
                else:
                    num_reports = n
                    if number < 0:
                        reason, verdicts.stranger = Reason.UNKNOWN_COLLECTION, prefix
                    elif sizes[3] != n * payload_sizes[number]:
                        reason = Reason.PAYLOAD_LENGTH
                    else:
                        joined[sizes[2] > 0].append((number, index, n, fields))
                        continue
            established = number if reason is Reason.PAYLOAD_LENGTH else NOBODY
            refused[reason, established, num_reports].append(index)
        for (reason, established, num_reports), indexes in refused.items():
            verdicts.refuse(np.array(indexes), reason, established, num_reports)
        for with_ids, parts in joined.items():
            yield from self._join(sorted(parts, key=lambda part: part[:2]), with_ids, verdicts)

    def _join(
        self, parts: list[tuple[int, int, int, list[memoryview]]], with_ids: bool, verdicts: Verdicts
    ) -> Iterator[_Columns]:
        """Columns of messages: collection number, position, number of reports and fields of each message, in order."""
        numbers, which, counts = (np.array([part[i] for part in parts]) for i in range(3))
        verdicts.take_out(which, numbers, counts)
        for first, last in _runs_of(self._catalog.payload_sizes[numbers]):
            here = slice(first, last)
            cohorts, times, ids, payloads = (b"".join([part[3][i] for part in parts[here]]) for i in range(4))
            n = int(counts[here].sum())
            owners, sizes = _runs(numbers[here], counts[here])
            event_times = np.frombuffer(times, dtype="<i8")
            yield _Columns(
                owners=owners,
                sizes=sizes,
                cohorts=np.frombuffer(cohorts, dtype="<u2"),
                event_times=event_times,
                report_ids=np.frombuffer(ids, dtype=np.uint8).reshape(n if with_ids else 0, ID_BYTES),
                payloads=np.frombuffer(payloads, dtype=np.uint8).reshape(n, -1),
                message=np.repeat(which[here], counts[here]),
                lowest=int(event_times.min()),
                highest=int(event_times.max()),
            )

    # ---------------------------------------------------------------- content of the reports

    def _judge(self, part: _Columns, verdicts: Verdicts) -> MixedReports:
        """The reports that pass all checks of content and time; the others are added to the verdicts."""
        found = [violation for violation in self._violations(part, verdicts) if violation[2].any()]
        if not found:
            return self._mixed(part)
        reason = np.zeros(len(part.cohorts), dtype=np.uint8)
        for looked_at, why, mask in found:
            here = reason[looked_at]
            here[mask & (here == 0)] = why
        for why in map(Reason, np.unique(reason[reason > 0])):
            rows = np.flatnonzero(reason == why)
            times, messages, periods = part.event_times[rows], part.message[rows], None
            if self._gate is not None and verdicts.arrival_times is not None and why in self._gate.off_by:
                periods = self._gate.periods.start_of(times)
                verdicts.note(why, self._gate.off_by[why](times, verdicts.arrival_times[messages]))
            verdicts.refuse_reports(messages, why, part.numbers[rows], periods)
        return self._mixed(part, np.flatnonzero(reason == 0))

    def _mixed(self, part: _Columns, rows: np.ndarray | None = None) -> MixedReports:
        """All reports, or those at increasing ``rows``."""

        owners, sizes = part.owners, part.sizes
        cohorts, payloads, times, ids = part.cohorts, part.payloads, part.event_times, part.report_ids
        if rows is not None:
            owners, sizes = _runs(part.numbers[rows])
            cohorts, payloads, times, ids = cohorts[rows], payloads[rows], times[rows], ids[rows] if len(ids) else ids
        if not part.checked:
            cohorts, times = cohorts.astype(np.uint16, copy=False), times.astype(np.int64, copy=False)
        reports = ReportBatch.of_columns(b"", cohorts, payloads, times, ids)
        return MixedReports(self._catalog.table, owners, sizes, reports)

    def _violations(self, part: _Columns, verdicts: Verdicts) -> Iterator[tuple[slice, Reason, np.ndarray]]:
        """For each check, in order: the checked rows, the reason, and a mask of the rows that fail."""
        every = slice(None)
        if not part.checked:
            strata = self._catalog.strata[part.owners]
            most = int(strata[0]) if (strata == strata[0]).all() else part.of_each(strata)
            yield every, Reason.COHORT_RANGE, (part.cohorts < 0) | (part.cohorts >= most)
        if not (part.checked and self._have_tails):
            yield from self._violations_of_payloads(part)
        if self._require_ids and len(part.report_ids) < len(part.cohorts):
            yield every, Reason.NO_REPORT_ID, np.ones(len(part.cohorts), dtype=bool)
        times, lowest, highest = part.event_times, part.lowest, part.highest
        if lowest < MIN_EVENT_TIME or highest >= MAX_EVENT_TIME:
            yield every, Reason.TIME_RANGE, (times < MIN_EVENT_TIME) | (times >= MAX_EVENT_TIME)
            times = np.clip(times, MIN_EVENT_TIME, MAX_EVENT_TIME - 1)
            lowest, highest = int(times.min()), int(times.max())
        if self._gate is None or verdicts.arrival_times is None:
            return
        first, last = verdicts.arrival_range
        if self._gate.early_by(highest, first) > 0:  # else none is too early, and mostly none is
            yield every, Reason.TOO_EARLY, self._gate.early_by(times, verdicts.arrival_times[part.message]) > 0
        if self._gate.late_by(lowest, last) > 0:
            yield every, Reason.TOO_OLD, self._gate.late_by(times, verdicts.arrival_times[part.message]) > 0

    def _violations_of_payloads(self, part: _Columns) -> Iterator[tuple[slice, Reason, np.ndarray]]:
        """``_violations`` of payloads: one layout at a time, but integers that name cells are compared all together."""
        catalog, begin = self._catalog, 0
        for first, last in _runs_of(catalog.passes[part.owners]):
            sizes, owners = part.sizes[first:last], part.owners[first:last]
            rows = slice(begin, begin := begin + int(np.add.reduce(sizes)))
            if part.checked and catalog.tails[owners, 0].all():
                continue
            mechanism = catalog.numbered[owners[0]].mechanism
            if catalog.layouts[owners[0]] == catalog.layouts[owners[-1]]:
                for why, mask in mechanism.violations(part.payloads[rows]):
                    yield rows, why, mask
                continue
            assert isinstance(mechanism, IntegerReportMechanism), "CollectionCatalog.passes"
            num_cells = np.repeat(catalog.shapes[owners, 1], sizes)
            yield rows, Reason.VALUE_DOMAIN, mechanism.integers(part.payloads[rows]) >= num_cells


def _order_of(numbers: np.ndarray) -> np.ndarray | slice:
    """Stable sort order of numbers (n,)."""
    if not len(numbers) or (numbers == numbers[0]).all():
        return slice(None)
    short = numbers.astype(np.uint16) if numbers.max() < 1 << 16 else numbers  # radix sort: linear
    return np.argsort(short, kind="stable")


def _bounds_of_runs(numbers: np.ndarray) -> np.ndarray:
    """Start positions of runs of equal numbers (n,), followed by n: (R + 1,) int64."""
    n = len(numbers)
    if not n or numbers[0] == numbers[-1]:  # numbers do not decrease
        return np.array([0, n] if n else [0])
    return np.concatenate([[0], np.flatnonzero(np.diff(numbers)) + 1, [n]])


def _runs_of(numbers: np.ndarray) -> Iterable[tuple[int, int]]:
    """Start and end positions of each run of equal numbers, which do not decrease."""
    if len(numbers) == 1:
        return ((0, 1),)
    return itertools.pairwise(_bounds_of_runs(numbers).tolist())


def _runs(numbers: np.ndarray, sizes: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Owners and sizes, as in ``_Columns``, of numbers (n,) that do not decrease, of 1 report each or of ``sizes``."""
    bounds = _bounds_of_runs(numbers)
    lengths = np.diff(bounds) if sizes is None or not len(sizes) else np.add.reduceat(sizes, bounds[:-1])
    return numbers[bounds[:-1]], lengths
