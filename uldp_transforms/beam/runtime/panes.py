"""When a window gives a pane, and what Beam's windows and panes mean for a row: which it is, and whether it is whole.

A drain moves the watermark to the end of time. Every open window then gives a row that looks like any other; only the
clock tells that more reports would have come. The run that follows has the rest of these windows: to it they are cut.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from apache_beam.transforms import trigger
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import PaneInfoTiming

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.rows.windowed_estimate import reason_to_withhold
from uldp_transforms.windows import now, rfc3339

CLOCK_SKEW = 5_000
"""Milliseconds by which the clocks of two workers may differ; a drain so shortly before the end goes unnoticed."""


def cadence(early_every: int | None, late_every: int) -> trigger.TriggerFn:
    """A pane when the watermark passes the end of a window, and panes before and after it.

    The first late report of a window waits for ``late_every``; what comes meanwhile is in the same pane. A window that
    nobody had reports of gives its first pane at once. What waits when the window expires is Beam's to fire, as are the
    windows of a stream that is drained.

    Args:
        early_every: milliseconds of the clock between panes before the end; None: there are none.
        late_every: milliseconds of the clock between panes after the end; 0: a pane for each bundle of late reports.
    """
    return trigger.AfterWatermark(
        early=trigger.AfterProcessingTime(early_every // 1000) if early_every else None,
        late=trigger.AfterProcessingTime(late_every // 1000) if late_every else trigger.AfterCount(1),
    )


def place_of(window: Any, pane: Any, run: str | None = None) -> dict[str, Any]:
    """The fields of a row that say which window and pane it stands for, and which run of the job made it."""
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
    """Whether the watermark passed the end of a window before the clock did.

    Early panes are not: they do not claim to be complete. Replayed windows of the past are not either, whatever
    happened to them.

    Args:
        window: Beam's window of an element.
        pane: its pane.
        complete_after: milliseconds from the end of a window to the first row that has all its reports; None: the input
            is bounded, where every row has.
    """
    if complete_after is None or window == GlobalWindow() or pane.timing == PaneInfoTiming.EARLY:
        return False
    return bool(now() < window.end.micros // 1000 + complete_after - CLOCK_SKEW)


def is_cut(window: Any, partial_before: int | None) -> bool:
    """Whether an earlier run, which acknowledged them, has some of the reports of a window.

    Args:
        window: Beam's window of an element.
        partial_before: milliseconds since 1970; windows that begin before are cut. None: no run came before.
    """
    if partial_before is None or window == GlobalWindow():
        return False
    return bool(window.start.micros // 1000 < partial_before)


@dataclasses.dataclass(frozen=True)
class Withholding:
    """Which windows must not have numbers, in all rows that could have some.

    Attributes:
        min_reports: that a window must have.
        complete_after: as for ``is_partial``.
        partial_before: as for ``is_cut``.
    """

    min_reports: int
    complete_after: int | None
    partial_before: int | None

    def reason(self, counts: CohortCounts, window: Any, pane: Any) -> str | None:
        """The status of a window without numbers; None if it may have them."""
        partial = is_partial(window, pane, self.complete_after) or is_cut(window, self.partial_before)
        return reason_to_withhold(counts, self.min_reports, partial)
