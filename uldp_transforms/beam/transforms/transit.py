"""Reports in transit between two steps: the first step adds them to the ledger, and the second subtracts them.

Each step counts independently, and the first one in a step that does little else: files after the matching of names,
messages where they are gathered for the decoder, panes of windows before the estimator. They are subtracted when the
work is complete: every byte of a file is accounted for, the decoder has given its verdicts, the row of an estimate
exists. A sum other than 0 therefore reveals any loss between the two steps.
"""

from __future__ import annotations

from typing import Any

import apache_beam as beam
from apache_beam.pvalue import PCollection
from apache_beam.transforms.window import GlobalWindow, GlobalWindows
from apache_beam.utils.timestamp import MAX_TIMESTAMP, Duration, Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from uldp_transforms.beam.runtime.beam_windows import as_duration
from uldp_transforms.collector.ledger_entries import IN_TRANSIT, LedgerEntry
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.messages.group_keys import fingerprint_of
from uldp_transforms.rows.row_types import WindowedEstimate
from uldp_transforms.spec.job_spec import JobSpec


class WindowsInTransit(beam.PTransform[Any, PCollection[LedgerEntry]]):
    """Compare the estimator's inputs with its rows, per collection, window and pane.

    Input: the counts and the rows of their estimates.

    Args:
        spec: specification of the job, for this input.
    """

    def __init__(self, spec: JobSpec):
        super().__init__()
        # also for late panes, the entries must arrive while the ledger still accepts them
        self._delay = as_duration(spec.allowed_lateness)

    def expand(
        self, both: tuple[PCollection[tuple[bytes, CohortCounts]], PCollection[WindowedEstimate]]
    ) -> PCollection[LedgerEntry]:
        counts, estimates = both
        entries = (
            counts | "HandedOn" >> beam.Map(_counts_entry, self._delay).with_output_types(LedgerEntry),
            estimates | "TakenOver" >> beam.Map(_row_entry, self._delay).with_output_types(LedgerEntry),
        ) | "Both" >> beam.Flatten()
        in_no_window: PCollection[LedgerEntry] = entries | "InNoWindow" >> beam.WindowInto(GlobalWindows())
        return in_no_window


def _counts_entry(
    sums: tuple[bytes, CohortCounts],
    delay: Duration,
    window: Any = beam.DoFn.WindowParam,
    timestamp: Any = beam.DoFn.TimestampParam,
) -> WindowedValue:
    return _window_entry(fingerprint_of(sums[0]), 1, window, max(timestamp, window.max_timestamp() + delay))


def _row_entry(
    row: WindowedEstimate,
    delay: Duration,
    window: Any = beam.DoFn.WindowParam,
    timestamp: Any = beam.DoFn.TimestampParam,
) -> WindowedValue:
    return _window_entry(bytes.fromhex(row.fingerprint), -1, window, max(timestamp, window.max_timestamp() + delay))


def _window_entry(fingerprint: bytes, number: int, window: Any, moment: Timestamp) -> WindowedValue:
    """An entry in the window of its element, also where the interactive runner replays a windowed input as global."""
    start = None if window == GlobalWindow() else window.start.micros // 1000
    return WindowedValue(LedgerEntry(IN_TRANSIT, fingerprint, start, number), min(moment, MAX_TIMESTAMP), (window,))
