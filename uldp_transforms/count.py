"""CountReports: batches of reports in, counts per collection and window out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import PCollection, TaggedOutput
from apache_beam.transforms import trigger
from apache_beam.transforms.window import (
    GlobalWindow,
    GlobalWindows,
    TimestampedValue,
    WindowFn,
)
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from uldp_transforms.deduplicate import CountNewReports
from uldp_transforms.inputs import mark, require_spec, spec_for
from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.counts import CohortCounts
from uldp_transforms.ldp.reports import ReportBatch
from uldp_transforms.ledger import ACCEPTED, LedgerEntry
from uldp_transforms.runtime import metrics
from uldp_transforms.runtime.beam_windows import as_duration, beam_periods, beam_windows
from uldp_transforms.runtime.coders import KEYED_COUNTS, CohortCountsCoder
from uldp_transforms.spec import JobSpec
from uldp_transforms.windows import BasePeriods, split_by_period

_MAX_CELLS = 1 << 22
"""Counters that one worker holds before it hands them on."""


class CountedReports(NamedTuple):
    """Outputs of ``CountReports``."""

    counts: PCollection[tuple[bytes, CohortCounts]]
    ledger: PCollection[LedgerEntry]


class CountReports(beam.PTransform[PCollection[ReportBatch], CountedReports]):
    """Counts reports per collection, cohort and window of event time.

    Input: ``ReportBatch`` in the global window, for instance from ``DecodeReports``.

    Output: ``counts``, pairs of a collection's fingerprint and the counts of *all* its reports in the window so far
    (a later pane replaces an earlier one); ``ledger``, what was accepted and what was there already.

    A worker adds up the reports of a bundle per base period with array operations; Beam's windows are applied to
    these few sums. For sliding windows the sums of base periods are added per window. In bounded input nothing is late:
    each window has one pane, and Beam has less to do.

    Args:
        spec: of the job.
    """

    def __init__(self, spec: JobSpec):
        super().__init__()
        self._spec = require_spec("CountReports", spec)

    def expand(self, reports: PCollection[ReportBatch]) -> CountedReports:
        spec = spec_for("CountReports", self._spec, reports, ReportBatch)
        if spec.deduplicate:
            sums = reports | "CountNewReports" >> CountNewReports(spec)
        else:
            sums = reports | "CountBundle" >> beam.ParDo(_CountBundleFn(spec)).with_outputs("ledger", main="counts")
        counts, ledger = sums.counts, sums.ledger
        ledger.element_type = LedgerEntry
        counts.element_type = KEYED_COUNTS
        windows = spec.windows
        if windows is not None and windows.overlap:
            periods = beam_periods(windows.periods)
            counts = (
                counts
                | "BasePeriods" >> _into(spec, periods, accumulating=False)
                | "SumBasePeriods" >> beam.CombinePerKey(SumCountsFn())
                | "AtPeriodStart" >> beam.FlatMap(_at_period_start).with_output_types(KEYED_COUNTS)
            )
        if windows is not None:
            counts = counts | "Windows" >> _into(spec, beam_windows(windows), accumulating=True)
        totals = counts | "SumWindows" >> beam.CombinePerKey(SumCountsFn())
        totals.element_type = KEYED_COUNTS
        if spec.bounded and (windows is None or not windows.overlap):
            ledger = _with_what_was_counted(ledger, totals)
        mark(spec, totals, ledger)
        return CountedReports(totals, ledger)

    def display_data(self) -> dict[str, Any]:
        shown = ("window", "slide", "window_offset", "allowed_lateness", "deduplicate", "bit_patterns")
        values = self._spec.to_json()
        return {name: values[name] for name in shown if values[name] is not None}


def _into(spec: JobSpec, window_fn: WindowFn, *, accumulating: bool) -> beam.WindowInto:
    if spec.bounded:
        return beam.WindowInto(window_fn)
    early = trigger.AfterProcessingTime(spec.early_every // 1000) if spec.early_every else None
    mode = trigger.AccumulationMode.ACCUMULATING if accumulating else trigger.AccumulationMode.DISCARDING
    return beam.WindowInto(
        window_fn,
        trigger=trigger.AfterWatermark(early=early, late=trigger.AfterCount(1)),
        accumulation_mode=mode,
        allowed_lateness=as_duration(spec.allowed_lateness + spec.slack),
    )


def _with_what_was_counted(
    ledger: PCollection[LedgerEntry], totals: PCollection[tuple[bytes, CohortCounts]]
) -> PCollection[LedgerEntry]:
    """Take what was accepted from the finished windows, where each report is in one: what is lost there shows."""
    others = ledger | "NotAccepted" >> beam.Filter(_is_not_accepted).with_output_types(LedgerEntry)
    counted = totals | "Counted" >> beam.Map(_counted).with_output_types(LedgerEntry)
    return (others, counted | "InNoWindow" >> beam.WindowInto(GlobalWindows())) | "LedgerOfCounts" >> beam.Flatten()


def _is_not_accepted(entry: LedgerEntry) -> bool:
    return entry.bin != ACCEPTED


def _counted(sums: tuple[bytes, CohortCounts], window: Any = beam.DoFn.WindowParam) -> LedgerEntry:
    start = None if window == GlobalWindow() else window.start.micros // 1000
    return LedgerEntry(ACCEPTED, sums[0], start, sums[1].total)


def _at_period_start(
    sums: tuple[bytes, CohortCounts | None], window: Any = beam.DoFn.WindowParam
) -> list[TimestampedValue[Any]]:
    """Stamp the sum of a base period with its start; a pane without reports has no sum.

    Beam stamps it with the last microsecond, which, before 1970, is rounded into the next period on its way.
    """
    return [] if sums[1] is None else [TimestampedValue(sums, window.start)]


class SumCountsFn(beam.CombineFn):
    """Adds counts. The accumulator is the sum so far, None before the first; nothing is changed in place."""

    def create_accumulator(self) -> CohortCounts | None:
        return None

    def add_input(self, accumulator: CohortCounts | None, element: CohortCounts) -> CohortCounts:
        return element if accumulator is None else accumulator + element

    def merge_accumulators(self, accumulators: Iterable[CohortCounts | None]) -> CohortCounts | None:
        total = None
        for accumulator in accumulators:
            total = total if accumulator is None else self.add_input(total, accumulator)
        return total

    def extract_output(self, accumulator: CohortCounts | None) -> CohortCounts | None:
        return accumulator

    def get_accumulator_coder(self) -> CohortCountsCoder:
        return CohortCountsCoder()


class _CountBundleFn(beam.DoFn):
    """Adds up the reports of a bundle per collection and base period."""

    def __init__(self, spec: JobSpec):
        self._catalog = spec.catalog
        self._periods = spec.periods
        self._bit_patterns = spec.bit_patterns

    def start_bundle(self) -> None:
        metrics.start_bundle()
        self._forget()

    def _forget(self) -> None:
        self._sums: dict[tuple[bytes, int | None], CohortCounts] = {}
        self._cells = 0

    def process(self, batch: ReportBatch, timestamp: Any = beam.DoFn.TimestampParam) -> Iterator[Any]:
        self._arrival = timestamp
        collection = self._catalog[batch.fingerprint]
        for start, counts in count_periods(collection, batch, self._periods, self._bit_patterns):
            key = (batch.fingerprint, start)
            if key in self._sums:
                self._sums[key] += counts
            else:
                self._sums[key] = counts
                self._cells += counts.cells.size + counts.patterns.size
            if self._cells > _MAX_CELLS:
                yield from self.finish_bundle()

    def finish_bundle(self) -> Iterator[Any]:
        sums = self._sums
        self._forget()
        for (fingerprint, start), counts in sums.items():
            window = (GlobalWindow(),)
            metrics.count(counts.total, metrics.ACCEPTED)
            yield WindowedValue((fingerprint, counts), Timestamp(micros=(start or 0) * 1000), window)
            accepted = LedgerEntry(ACCEPTED, fingerprint, start, counts.total)
            yield TaggedOutput("ledger", WindowedValue(accepted, self._arrival, window))


def count_periods(
    collection: Collection, batch: ReportBatch, periods: BasePeriods | None, bit_patterns: bool = False
) -> Iterator[tuple[int | None, CohortCounts]]:
    """Counts of each base period that occurs in a batch, in one pass over the reports where memory allows.

    Args:
        collection: of the batch.
        batch: n >= 1 reports.
        periods: None: all reports belong to one, which has no start.
        bit_patterns: look inside the reports too, see ``Collection.count``.

    Yields:
        (start in milliseconds, counts) of each period.
    """
    cohorts = batch.cohorts
    starts, index = split_by_period(batch.event_times, periods)
    if len(starts) == 1:
        yield starts[0], collection.count_groups(batch.payloads, cohorts, 1, bit_patterns)[0]
        return
    counters = collection.num_cohorts * collection.num_cells + collection.mechanism.num_patterns * bit_patterns
    at_once = max(1, _MAX_CELLS // counters)
    for first in range(0, len(starts), at_once):
        last = min(first + at_once, len(starts))
        rows, payloads, groups = index - first, batch.payloads, cohorts
        if at_once < len(starts):
            here = np.flatnonzero((index >= first) & (index < last))
            rows, payloads, groups = rows[here], payloads[here], cohorts[here]
        rows = rows * collection.num_cohorts + groups
        yield from zip(starts[first:last], collection.count_groups(payloads, rows, last - first, bit_patterns))
