"""Triggers of windows, and the window, pane and completeness fields of rows.

A drain moves the watermark to the end of time. Every open window then emits a row that looks like any other; only the
clock shows that more reports would have arrived. The next run receives the rest of these windows, which are cut for it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from apache_beam.transforms import trigger
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.timestamp import Duration
from apache_beam.utils.windowed_value import PaneInfoTiming

from uldp_transforms.beam.runtime.beam_windows import as_duration
from uldp_transforms.rows.samples.sample import reason_to_withhold
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms.spec.spec_fields import FINAL
from uldp_transforms.windows import now, rfc3339

CLOCK_SKEW = 5_000
"""Milliseconds by which the clocks of two workers may differ; a drain within this time of the end goes unnoticed."""


def cadence(early_every: int | None, late_every: int) -> trigger.TriggerFn:
    """Trigger at the end of a window, with optional early and late panes.

    After the first late report of a window, the trigger waits for ``late_every``; reports that arrive meanwhile are in
    the same pane. A window without reports so far emits its first pane at once. Beam itself emits pending reports when
    the window expires or the stream is drained.

    Args:
        early_every: milliseconds of processing time between panes before the end; None: no early panes.
        late_every: milliseconds of processing time between panes after the end; 0: a pane for each bundle of late
            reports.
    """
    return trigger.AfterWatermark(
        early=trigger.AfterProcessingTime(early_every // 1000) if early_every else None,
        late=trigger.AfterProcessingTime(late_every // 1000) if late_every else trigger.AfterCount(1),
    )


def due_and_kept(spec: JobSpec) -> tuple[Duration, Duration]:
    """From the end of a window: until its panes on time have come, and until none comes any more.

    Panes on time have the last timestamp of their window, released ones that of their release.
    """
    after = spec.release_delay + 1 if spec.release == FINAL else 0
    return as_duration(after), as_duration(after + spec.allowed_lateness + spec.slack)


def place_of(window: Any, pane: Any, run: str | None = None) -> dict[str, Any]:
    """Fields of a row that identify its window, pane and run."""
    timing = PaneInfoTiming.ON_TIME if pane.timing == PaneInfoTiming.UNKNOWN else pane.timing
    windowed = window != GlobalWindow()
    return {
        "window_start": rfc3339(window.start.micros // 1000) if windowed else None,
        "window_end": rfc3339(window.end.micros // 1000) if windowed else None,
        "pane_index": max(pane.index, 0),
        "pane_timing": PaneInfoTiming.to_string(timing),
        "run": run,
    }


def is_partial(window: Any, pane: Any, complete_after: int | None) -> bool:
    """Whether a drain moved the watermark past the end of a window before the clock reached it.

    False for early panes, which do not claim to be complete, and for replayed windows of the past.

    Args:
        window: Beam's window of an element.
        pane: its pane.
        complete_after: milliseconds from the end of a window to the first row with all its reports; None: the input is
            bounded, so every row has all reports.
    """
    if complete_after is None or window == GlobalWindow() or pane.timing == PaneInfoTiming.EARLY:
        return False
    return bool(now() < window.end.micros // 1000 + complete_after - CLOCK_SKEW)


def is_cut(window: Any, partial_before: int | None) -> bool:
    """Whether an earlier run acknowledged some of the reports of a window.

    Args:
        window: Beam's window of an element.
        partial_before: milliseconds since 1970; windows that begin before this time are cut. None: no earlier run.
    """
    if partial_before is None or window == GlobalWindow():
        return False
    return bool(window.start.micros // 1000 < partial_before)


@dataclasses.dataclass(frozen=True)
class Withholding:
    """Rule that decides for which windows numbers are withheld.

    Attributes:
        min_reports: minimum number of reports in a window.
        complete_after: as for ``is_partial``.
        partial_before: as for ``is_cut``.
    """

    min_reports: int
    complete_after: int | None
    partial_before: int | None

    @classmethod
    def of(cls, spec: JobSpec) -> Withholding:
        """The rule of a job."""
        return cls(spec.min_reports, spec.complete_after, spec.partial_before)

    def reason(self, num_reports: int, window: Any, pane: Any) -> str | None:
        """Status of a window whose numbers are withheld; None if they are not."""
        return reason_to_withhold(num_reports, self.min_reports, self.is_partial(window, pane))

    def is_partial(self, window: Any, pane: Any) -> bool:
        """Whether some reports of a window are in no row of this run, or not yet."""
        return is_partial(window, pane, self.complete_after) or is_cut(window, self.partial_before)
