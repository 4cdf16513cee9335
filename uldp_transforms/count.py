"""CountReports: batches of reports in, counts per collection and window out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.transforms import trigger
from apache_beam.transforms.window import FixedWindows, GlobalWindow, GlobalWindows, SlidingWindows, TimestampedValue
from apache_beam.utils.timestamp import Duration, Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from uldp_transforms.coders import CohortCountsCoder
from uldp_transforms.deduplicate import MAX_PARTS, PARTS, CountNewReports
from uldp_transforms.ldp.checks import require_int
from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.counts import CohortCounts
from uldp_transforms.ldp.reports import ReportBatch
from uldp_transforms.ledger import ACCEPTED, LedgerEntry
from uldp_transforms.registry import CollectionRegistry
from uldp_transforms.windows import Windows, number_periods

_MAX_CELLS = 1 << 22
"""Counters that one worker holds before it hands them on."""


class CountedReports(NamedTuple):
    """Outputs of ``CountReports``."""

    counts: beam.PCollection[tuple[bytes, CohortCounts]]
    ledger: beam.PCollection[LedgerEntry]


class CountReports(beam.PTransform):
    """Counts reports per collection, cohort and window of event time.

    Input: ``ReportBatch`` in the global window, for instance from ``DecodeReports``.

    Output: ``counts``, pairs of a collection's fingerprint and the counts of *all* its reports in the window so far
    (a later pane replaces an earlier one); ``ledger``, what was accepted and what was there already.

    A worker adds up the reports of a bundle per base period with array operations; Beam's windows are applied to
    these few sums. For sliding windows the sums of base periods are added per window.

    Args:
        collections: those that the job counts.
        windows: None puts all reports into one global window (bounded input only).
        unbounded: False for files, where nothing is late: each window then has one pane, and Beam has less to do.
        deduplicate: count each report id once per base period; costs a shuffle and state per report.
        deduplicate_parts: of a base period, each held by a worker; 1 to 2**32. A running job cannot change it.
        bit_patterns: look inside reports of independent bits too, for two more sentinels; costs time per report.
    """

    def __init__(
        self,
        collections: Iterable[Collection],
        windows: Windows | None = None,
        unbounded: bool = True,
        deduplicate: bool = False,
        bit_patterns: bool = False,
        deduplicate_parts: int = PARTS,
    ):
        super().__init__()
        self._unbounded = unbounded
        self._deduplicate = deduplicate
        require_int("CountReports.deduplicate_parts", deduplicate_parts, 1, MAX_PARTS)
        self._parts = deduplicate_parts
        self._bit_patterns = bit_patterns
        self._registry = CollectionRegistry(collections)
        self._windows = windows

    def expand(self, reports: beam.PCollection[ReportBatch]) -> CountedReports:
        windows = self._windows
        base = None if windows is None else windows.base
        if self._deduplicate:
            sums = reports | "CountNewReports" >> CountNewReports(
                self._registry, windows, self._unbounded, self._bit_patterns, self._parts
            )
        else:
            sums = reports | "CountBundle" >> beam.ParDo(
                _CountBundleFn(self._registry, base, self._bit_patterns)
            ).with_outputs("ledger", main="counts")
        counts = sums.counts
        sums.ledger.element_type = LedgerEntry
        counts.element_type = _KEYED_COUNTS
        if windows is not None and windows.size != windows.base:
            counts = (
                counts
                | "BasePeriods" >> self._into(FixedWindows(_seconds(windows.base)), accumulating=False)
                | "SumBasePeriods" >> beam.CombinePerKey(SumCountsFn())
                | "AtPeriodStart" >> beam.FlatMap(_at_period_start).with_output_types(_KEYED_COUNTS)
                | "Windows"
                >> self._into(SlidingWindows(_seconds(windows.size), _seconds(windows.step)), accumulating=True)
            )
        elif windows is not None:
            counts = counts | "Windows" >> self._into(FixedWindows(_seconds(windows.size)), accumulating=True)
        totals = counts | "SumWindows" >> beam.CombinePerKey(SumCountsFn())
        totals.element_type = _KEYED_COUNTS
        ledger = sums.ledger
        if not self._unbounded and (windows is None or windows.size == windows.base):
            ledger = self._with_what_was_counted(ledger, totals)
        return CountedReports(totals, ledger)

    def _with_what_was_counted(
        self, ledger: beam.PCollection[LedgerEntry], totals: beam.PCollection[tuple[bytes, CohortCounts]]
    ) -> beam.PCollection[LedgerEntry]:
        """Take what was accepted from the finished windows, where each report is in one: what is lost there shows."""
        others = ledger | "NotAccepted" >> beam.Filter(_is_not_accepted).with_output_types(LedgerEntry)
        counted = totals | "Counted" >> beam.Map(_counted).with_output_types(LedgerEntry)
        return (others, counted | "InNoWindow" >> beam.WindowInto(GlobalWindows())) | "LedgerOfCounts" >> beam.Flatten()

    def _into(self, window_fn: Any, accumulating: bool) -> beam.WindowInto:
        windows = self._windows
        if not self._unbounded or windows is None:
            return beam.WindowInto(window_fn)
        early = trigger.AfterProcessingTime(windows.early_every // 1000) if windows.early_every else None
        mode = trigger.AccumulationMode.ACCUMULATING if accumulating else trigger.AccumulationMode.DISCARDING
        return beam.WindowInto(
            window_fn,
            trigger=trigger.AfterWatermark(early=early, late=trigger.AfterCount(1)),
            accumulation_mode=mode,
            allowed_lateness=_seconds(windows.allowed_lateness + windows.lateness_slack),
        )

    def display_data(self) -> dict[str, Any]:
        return {
            "windows": str(self._windows),
            "deduplicate": self._deduplicate,
            "bit_patterns": self._bit_patterns,
        }


def _is_not_accepted(entry: LedgerEntry) -> bool:
    return entry.bin != ACCEPTED


def _counted(sums: tuple[bytes, CohortCounts], window: Any = beam.DoFn.WindowParam) -> LedgerEntry:
    start = None if window == GlobalWindow() else window.start.micros // 1000
    return LedgerEntry(ACCEPTED, sums[0], start, sums[1].total)


_KEYED_COUNTS = beam.typehints.Tuple[bytes, CohortCounts]


def _at_period_start(
    sums: tuple[bytes, CohortCounts | None], window: Any = beam.DoFn.WindowParam
) -> list[TimestampedValue]:
    """Stamp the sum of a base period with its start; a pane without reports has no sum.

    Beam stamps it with the last microsecond, which, before 1970, is rounded into the next period on its way.
    """
    return [] if sums[1] is None else [TimestampedValue(sums, window.start)]


def _seconds(milliseconds: int) -> Duration:
    return Duration(micros=milliseconds * 1000)


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

    def __init__(self, registry: CollectionRegistry, base: int | None, bit_patterns: bool = False):
        self._registry = registry
        self._base = base
        self._bit_patterns = bit_patterns

    def start_bundle(self) -> None:
        self._sums: dict[tuple[bytes, int], CohortCounts] = {}
        self._cells = 0

    def process(self, batch: ReportBatch, timestamp=beam.DoFn.TimestampParam) -> Iterator[Any]:
        self._arrival = timestamp
        collection = self._registry[batch.fingerprint]
        for period, counts in count_periods(collection, batch, self._base, self._bit_patterns):
            key = (batch.fingerprint, period)
            if key in self._sums:
                self._sums[key] += counts
            else:
                self._sums[key] = counts
                self._cells += counts.cells.size + counts.patterns.size
            if self._cells > _MAX_CELLS:
                yield from self.finish_bundle()

    def finish_bundle(self) -> Iterator[Any]:
        sums = self._sums
        self.start_bundle()
        for (fingerprint, period), counts in sums.items():
            start = None if self._base is None else period * self._base
            timestamp = Timestamp(micros=(start or 0) * 1000)
            window = (GlobalWindow(),)
            yield WindowedValue((fingerprint, counts), timestamp, window)
            accepted = LedgerEntry(ACCEPTED, fingerprint, start, counts.total)
            yield beam.pvalue.TaggedOutput("ledger", WindowedValue(accepted, self._arrival, window))


def count_periods(
    collection: Collection, batch: ReportBatch, base: int | None, bit_patterns: bool = False
) -> Iterator[tuple[int, CohortCounts]]:
    """Counts of each base period that occurs in a batch, in one pass over the reports where memory allows.

    Args:
        collection: of the batch.
        batch: n >= 1 reports.
        base: milliseconds; None: all reports belong to period 0.
        bit_patterns: look inside the reports too, see ``Collection.count``.

    Yields:
        (period, counts), where a period starts at ``period * base``.
    """
    times, cohorts = batch.event_times, batch.cohorts
    first, last = (0, 0) if base is None else (int(times.min()) // base, int(times.max()) // base)
    if first == last:
        yield first, collection.count_groups(batch.payloads, cohorts, 1, bit_patterns)[0]
        return
    periods, index = number_periods(times, base)
    counters = collection.num_cohorts * collection.num_cells + collection.mechanism.num_patterns * bit_patterns
    at_once = max(1, _MAX_CELLS // counters)
    for start in range(0, len(periods), at_once):
        stop = min(start + at_once, len(periods))
        rows, payloads = index - start, batch.payloads
        groups = cohorts
        if at_once < len(periods):
            here = np.flatnonzero((index >= start) & (index < stop))
            rows, payloads, groups = rows[here], payloads[here], cohorts[here]
        rows = rows * collection.num_cohorts + groups
        yield from zip(periods[start:stop], collection.count_groups(payloads, rows, stop - start, bit_patterns))
