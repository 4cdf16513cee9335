"""CountReports: turn batches of reports into counts per collection and window."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.pvalue import PCollection, TaggedOutput
from apache_beam.transforms.core import Windowing
from apache_beam.transforms.window import GlobalWindow, WindowFn
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp
from apache_beam.utils.windowed_value import PaneInfo, PaneInfoTiming, WindowedValue

from uldp_transforms.beam.runtime import metrics
from uldp_transforms.beam.runtime.beam_windows import ParDoInto, beam_periods, beam_window, beam_windows, window_into
from uldp_transforms.beam.runtime.coders import (
    KEYED_COUNTS,
    Accumulator,
    RunningSumCoder,
    StoredSum,
    key_of_sum,
    owner_and_start,
)
from uldp_transforms.beam.runtime.inputs import NamedOutputs, mark, require_spec, spec_for
from uldp_transforms.beam.runtime.panes import cadence
from uldp_transforms.beam.transforms.deduplicate import CountNewReports
from uldp_transforms.collector.ledger_entries import ACCEPTED, LedgerEntry
from uldp_transforms.collector.period_counts import Reports, count_strata, split_strata
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.counts.running_sum import RunningSum
from uldp_transforms.ldp.reports import ReportBatch
from uldp_transforms.messages.group_keys import is_total
from uldp_transforms.messages.mixed_reports import MixedReports
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms.spec.spec_fields import FINAL
from uldp_transforms.windows import Windows

_MAX_CELLS = 1 << 22
"""Maximum number of counters that a worker holds before it emits them."""

_OF_A_SUM = 64
"""Memory overhead of a sum, expressed as a number of counters."""

_LONG = 1 << 12
"""Number of reports of a collection from which on a batch is counted at once."""

_WAITING_BYTES = 1 << 21
"""Number of reports up to which batches are collected before counting, so that many collections need few passes."""

_NO_WINDOW = (GlobalWindow(),)

_ONLY_PANE = PaneInfo(is_first=True, is_last=True, timing=PaneInfoTiming.ON_TIME, index=0, nonspeculative_index=0)


class _CountedReports(NamedTuple):
    counts: PCollection[tuple[bytes, CohortCounts]]
    ledger: PCollection[LedgerEntry]


class CountedReports(NamedOutputs, _CountedReports):
    """Outputs of ``CountReports``."""

    __slots__ = ()

    owner, example = "CountReports", "counted.counts"


def kind_of_reports(elements: object) -> type:
    """``MixedReports`` for a PCollection of them, otherwise ``ReportBatch``."""
    return MixedReports if getattr(elements, "element_type", None) is MixedReports else ReportBatch


class CountReports(beam.PTransform[PCollection[ReportBatch], CountedReports]):
    """Counts reports per collection, cohort and window of event time.

    Input: ``ReportBatch`` in the global window, for instance from ``DecodeReports``, or ``MixedReports``.

    Output: ``counts`` has pairs of a collection's fingerprint and the counts of *all* its reports in the window so
    far. With ``JobSpec.by`` it also has the counts of each group, under the key ``owner_of_group``, and the counts of
    all groups add up to those of the collection. A later pane replaces an earlier one; with ``release="final"`` a pane
    counts only the reports since the previous pane, and ``ReleaseOnce`` adds the panes up. ``ledger`` has the numbers
    of accepted and duplicate reports.

    A worker adds up the reports of a bundle per base period with array operations; Beam's windows are applied to
    these few sums. For sliding windows the sums of base periods are added per window. Bounded input has no late data,
    so each window has one pane.

    Examples:
        >>> import apache_beam as beam
        >>> from uldp_transforms import CountReports, JobSpec
        >>> from uldp_transforms.ldp import Collection
        >>> spec = JobSpec.of(collections=["C.json"])
        >>> batch = Collection.from_json("C.json").perturb(["flu"] * 3)
        >>> with beam.Pipeline() as pipeline:
        ...     counted = pipeline | beam.Create([batch]) | CountReports(spec)
        ...     _ = counted.counts | beam.Map(lambda pair: print(pair[1].total))
        3

    Args:
        spec: specification of the job.
    """

    def __init__(self, spec: JobSpec):
        super().__init__()
        self._spec = require_spec("CountReports", spec)

    def expand(self, reports: PCollection[ReportBatch]) -> CountedReports:
        spec = spec_for("CountReports", self._spec, reports, kind_of_reports(reports))
        if spec.deduplicate:
            sums = reports | "CountNewReports" >> CountNewReports(spec)
        else:
            sums = reports | "CountBundle" >> beam.ParDo(_CountBundleFn(spec)).with_outputs("ledger", main="counts")
        sums.ledger.element_type = LedgerEntry
        sums.counts.element_type = KEYED_COUNTS
        counts, ledger = (_of_files if spec.bounded else _of_stream)(spec, sums.counts, sums.ledger)
        counts.element_type = KEYED_COUNTS
        mark(spec, counts, ledger)
        return CountedReports(counts, ledger)

    def display_data(self) -> dict[str, Any]:
        shown = ("window", "slide", "window_offset", "timezone", "allowed_lateness", "deduplicate", "bit_patterns")
        values = self._spec.to_json()
        return {name: values[name] for name in shown if values[name] is not None}


def _of_files(
    spec: JobSpec, sums: PCollection[tuple[bytes, CohortCounts]], ledger: PCollection[LedgerEntry]
) -> tuple[PCollection[tuple[bytes, CohortCounts]], PCollection[LedgerEntry]]:
    """Add everything up in the global window, without waiting for a watermark; then assign sums to their windows."""
    windows = spec.windows
    # Beam's performance_runtime_type_check holds the ledger's entries, the other output of that step, against the type
    # of pairs that are added up, unless a step is between them
    totals = sums = sums | "Sums" >> beam.Map(_same).with_output_types(KEYED_COUNTS)
    if windows is not None and windows.overlap:
        periods = _added_up("SumPeriods", sums)
        totals = periods | "ToWindows" >> beam.FlatMap(_of_windows, windows).with_output_types(KEYED_COUNTS)
    totals = _added_up("SumEachWindow", totals)
    if windows is None or not windows.overlap:
        ledger = _with_what_was_counted(ledger, totals)
    if windows is not None:
        totals = totals | "InWindows" >> ParDoInto(_InWindowFn(windows), Windowing(beam_windows(windows)))
    return totals, ledger


def _of_stream(
    spec: JobSpec, sums: PCollection[tuple[bytes, CohortCounts]], ledger: PCollection[LedgerEntry]
) -> tuple[PCollection[tuple[bytes, CohortCounts]], PCollection[LedgerEntry]]:
    """Add up by Beam's windows and triggers. Each key has one window, because some engines scan all windows of a
    key."""
    windows = spec.windows
    assert windows is not None, "JobSpec.for_input"
    # with only one row per window, sums must not wait for the clock before the release; and Prism holds the watermark
    # of an accumulating window until the window expires
    once = spec.release == FINAL
    into = _into(spec, beam_windows(windows), 0 if once else spec.late_every, accumulating=not once)
    if windows.overlap:
        parts = sums | "BasePeriods" >> _into(spec, beam_periods(windows.periods), 0, accumulating=False)
        counts = _added_up("SumPeriods", parts)
        counts = counts | "ToWindows" >> ParDoInto(_ToWindowsFn(windows), into.windowing)
        counts.element_type = KEYED_COUNTS
    else:
        counts = sums | "Windows" >> into
    return _added_up("SumEachWindow", counts) | "WithoutStart" >> beam.Map(_without_start), ledger


def _same(sums: tuple[bytes, CohortCounts]) -> tuple[bytes, CohortCounts]:
    return sums


def _added_up(label: str, sums: PCollection[tuple[bytes, CohortCounts]]) -> PCollection[tuple[bytes, CohortCounts]]:
    totals: PCollection[tuple[bytes, CohortCounts]] = sums | label >> beam.CombinePerKey(SumCountsFn())
    totals.element_type = KEYED_COUNTS
    return totals


def _into(spec: JobSpec, window_fn: WindowFn, late_every: int, *, accumulating: bool) -> beam.WindowInto:
    lateness = spec.allowed_lateness + spec.slack
    when = cadence(spec.early_every, late_every)
    return window_into(window_fn, when, accumulating=accumulating, allowed_lateness=lateness)


def _with_what_was_counted(
    ledger: PCollection[LedgerEntry], totals: PCollection[tuple[bytes, CohortCounts]]
) -> PCollection[LedgerEntry]:
    """Take the accepted numbers from the finished sums, which contain each report once, so that any loss shows."""
    others = ledger | "NotAccepted" >> beam.Filter(_is_not_accepted).with_output_types(LedgerEntry)
    counted = totals | "Counted" >> beam.FlatMap(_counted).with_output_types(LedgerEntry)
    return (others, counted) | "LedgerOfCounts" >> beam.Flatten()


def _is_not_accepted(entry: LedgerEntry) -> bool:
    return entry.bin != ACCEPTED


def _counted(sums: tuple[bytes, CohortCounts]) -> Iterator[LedgerEntry]:
    """The accepted reports of a total; those of groups are among them."""
    owner, start = owner_and_start(sums[0])
    if is_total(owner):
        yield LedgerEntry(ACCEPTED, owner, start, sums[1].total)


def _without_start(sums: tuple[bytes, CohortCounts]) -> tuple[bytes, CohortCounts]:
    return owner_and_start(sums[0])[0], sums[1]


def _of_windows(sums: tuple[bytes, CohortCounts], windows: Windows) -> Iterator[tuple[bytes, CohortCounts]]:
    """Emit the sum of a base period once for each window that contains the period, under the key of that window."""
    owner, start = owner_and_start(sums[0])
    for window_start in windows.starts_around(start or 0):
        yield key_of_sum(owner, window_start), sums[1]


class _ToWindowsFn(beam.DoFn):
    """``_of_windows`` for a stream: assigns each sum to its window; panes without reports are skipped."""

    def __init__(self, windows: Windows):
        self._windows = windows

    def process(self, sums: tuple[bytes, CohortCounts | None]) -> Iterator[WindowedValue]:
        key, counts = sums
        if counts is not None:
            period_start = Timestamp(micros=1000 * (owner_and_start(key)[1] or 0))
            for element in _of_windows((key, counts), self._windows):
                window = beam_window(self._windows, owner_and_start(element[0])[1] or 0)
                yield WindowedValue(element, period_start, (window,))


class _InWindowFn(beam.DoFn):
    """Assigns the sum of a window to that window, as Beam's own grouping would: at its end, as its only pane."""

    def __init__(self, windows: Windows):
        self._windows = windows

    def process(self, sums: tuple[bytes, CohortCounts]) -> Iterator[WindowedValue]:
        owner, start = owner_and_start(sums[0])
        window = beam_window(self._windows, start or 0)
        yield WindowedValue((owner, sums[1]), window.max_timestamp(), (window,), _ONLY_PANE)


class SumCountsFn(beam.CombineFn):
    """Combiner of counts of one collection: the counts of all their reports, None if there are none.

    The accumulator is None before the first counts, then their bytes (most sums of a job over files are of one bundle),
    then a sum that grows in place. Inputs and accumulators that are merged are not modified.

    Examples:
        >>> import apache_beam as beam
        >>> from uldp_transforms import SumCountsFn
        >>> from uldp_transforms.ldp import Collection
        >>> collection = Collection.from_json("C.json")
        >>> parts = [
        ...     collection.count(collection.perturb(["flu"] * n)) for n in (600, 400)
        ... ]
        >>> with beam.Pipeline() as pipeline:
        ...     counts = pipeline | beam.Create(parts)
        ...     summed = counts | beam.CombineGlobally(SumCountsFn())
        ...     _ = summed | beam.Map(lambda total: print(total.total))
        1000
    """

    def create_accumulator(self) -> Accumulator | None:
        return None

    def add_input(self, accumulator: Accumulator | None, element: CohortCounts) -> Accumulator:
        if accumulator is None:
            return StoredSum.of(element)
        running = RunningSum(accumulator.snapshot()) if isinstance(accumulator, StoredSum) else accumulator
        running.add(element)
        return running

    def merge_accumulators(self, accumulators: Iterable[Accumulator | None]) -> RunningSum | None:
        given = (accumulator.snapshot() for accumulator in accumulators if accumulator is not None)
        first = next(given, None)
        if first is None:
            return None
        total = RunningSum(first)
        for counts in given:
            total.add(counts)
        return total

    def extract_output(self, accumulator: Accumulator | None) -> CohortCounts | None:
        return None if accumulator is None else accumulator.snapshot()

    def get_accumulator_coder(self) -> RunningSumCoder:
        return RunningSumCoder()


class _CountBundleFn(beam.DoFn):
    """Adds up the reports of a bundle per collection and base period."""

    def __init__(self, spec: JobSpec):
        self._catalog = spec.catalog
        self._periods = spec.periods
        self._bit_patterns = spec.bit_patterns
        self._by = spec.by
        self._arrivals = None if spec.bounded else spec.periods
        self._arrival = MIN_TIMESTAMP

    def start_bundle(self) -> None:
        metrics.start_bundle()
        self._forget()

    def _forget(self) -> None:
        self._sums: dict[tuple[bytes, int | None], RunningSum] = {}
        self._held = 0
        self._waiting: list[MixedReports] = []
        self._bytes_waiting = 0

    def process(self, batch: Reports, timestamp: Any = beam.DoFn.TimestampParam) -> Iterator[Any]:
        if self._is_of_another_period(timestamp):
            yield from self.finish_bundle()
        self._arrival = timestamp
        part = batch if isinstance(batch, MixedReports) else MixedReports.of(batch)
        if len(part) >= _LONG * len(part.owners):
            yield from self._count([part])
            return
        self._waiting.append(part)
        self._bytes_waiting += part.reports.num_bytes
        if self._bytes_waiting >= _WAITING_BYTES:
            yield from self._count_waiting()

    def _is_of_another_period(self, timestamp: Timestamp) -> bool:
        """Whether a batch arrived in another base period than the previous one; ledger rows are per period of
        arrival."""
        if self._arrivals is None or timestamp == self._arrival:
            return False
        now, before = timestamp.micros // 1000, self._arrival.micros // 1000
        return bool(self._arrivals.number_of(now) != self._arrivals.number_of(before))

    def _count_waiting(self) -> Iterator[Any]:
        yield from self._count(self._taken())

    def _taken(self) -> list[MixedReports]:
        waiting, self._waiting, self._bytes_waiting = self._waiting, [], 0
        return waiting

    def _counted(self, batches: list[MixedReports]) -> Iterator[_Sum]:
        return count_strata(self._catalog, batches, self._periods, self._bit_patterns, self._by)

    def _count(self, batches: list[MixedReports]) -> Iterator[Any]:
        for key, counts in self._counted(batches):
            known = self._sums.get(key)
            if known is None:
                self._sums[key] = RunningSum(counts)
                self._held += counts.num_held + _OF_A_SUM
            else:
                before = known.num_held
                known.add(counts)
                self._held += known.num_held - before
            if self._held > _MAX_CELLS:
                yield from self._hand_on()

    def finish_bundle(self) -> Iterator[Any]:
        if self._sums:
            yield from self._count_waiting()
            yield from self._hand_on()
        else:  # nothing to add to: each sum is handed on as it is counted, so that they are not all objects at once
            yield from self._as_elements(self._counted(self._taken()))

    def _hand_on(self) -> Iterator[Any]:
        sums, self._sums, self._held = self._sums, {}, 0
        yield from self._as_elements((key, running.snapshot()) for key, running in sums.items())

    def _as_elements(self, sums: Iterable[_Sum]) -> Iterator[Any]:
        """The counts of totals and of their groups, with the start of their period as timestamp; and ledger entries."""
        accepted = 0
        for (owner, start), counts in itertools.chain.from_iterable(map(self._split, sums)):
            yield WindowedValue((key_of_sum(owner, start), counts), Timestamp(micros=(start or 0) * 1000), _NO_WINDOW)
            if not is_total(owner):
                continue
            total = counts.total
            accepted += total
            entry = LedgerEntry(ACCEPTED, owner, start, total)
            yield TaggedOutput("ledger", WindowedValue(entry, self._arrival, _NO_WINDOW))
        metrics.count(accepted, metrics.ACCEPTED)

    def _split(self, one: _Sum) -> Iterable[_Sum]:
        return split_strata(self._catalog, *one, self._by) if self._by else (one,)


_Sum = tuple[tuple[bytes, int | None], CohortCounts]
"""Counts, with their collection or group and the start of their base period."""
