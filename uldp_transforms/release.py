"""ReleaseOnce: one result per window, when nothing of it can arrive any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam import coders
from apache_beam.metrics import Metrics
from apache_beam.transforms import userstate
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.utils.timestamp import Duration

from uldp_transforms.coders import CohortCountsCoder
from uldp_transforms.ldp.counts import CohortCounts
from uldp_transforms.windows import Windows

_MARGIN = 60_000
"""Longest time in ms between the end of the allowed lateness and the release."""

_RELEASED = b"released"


class ReleaseOnce(beam.PTransform):
    """Holds the panes of each window back and lets the last one pass.

    Windows are released at their end plus the allowed lateness plus a margin of at most a minute (half the slack for
    which the runner keeps state, if that is less), by the watermark: after that the gate refuses every report of the
    window. A pane that comes later nevertheless is dropped; the counter ``after_release`` and the ledger, which then
    has more accepted reports than the row, show it.

    Input and output: windowed pairs (fingerprint, counts), as ``CountReports`` makes them in a stream.

    Args:
        windows: of the job.
    """

    def __init__(self, windows: Windows):
        super().__init__()
        self.delay = windows.allowed_lateness + min(_MARGIN, windows.lateness_slack // 2)
        """Milliseconds from the end of a window to its release."""

    def expand(self, panes: beam.PCollection[tuple[bytes, CohortCounts]]) -> beam.PCollection[Any]:
        return panes | "Hold" >> beam.ParDo(_HoldFn(Duration(micros=1000 * self.delay))).with_output_types(
            beam.typehints.Tuple[bytes, CohortCounts]
        )


class _HoldFn(beam.DoFn):
    LATEST = userstate.ReadModifyWriteStateSpec("latest", coders.BytesCoder())
    RELEASE = userstate.TimerSpec("release", TimeDomain.WATERMARK)

    def __init__(self, delay: Duration):
        self._delay = delay
        self._after_release = Metrics.counter("uldp", "after_release")

    def process(
        self,
        element: tuple[bytes, CohortCounts],
        window=beam.DoFn.WindowParam,
        pane=beam.DoFn.PaneInfoParam,
        latest=beam.DoFn.StateParam(LATEST),
        release=beam.DoFn.TimerParam(RELEASE),
    ) -> Iterable[Any]:
        held = latest.read() or b""
        index = max(pane.index, 0)
        if held == _RELEASED:
            self._after_release.inc()
        elif not held or index >= int.from_bytes(held[:8], "big"):
            latest.write(index.to_bytes(8, "big") + CohortCountsCoder().encode(element[1]))
            release.set(window.end + self._delay)
        return ()

    @userstate.on_timer(RELEASE)
    def release(self, key=beam.DoFn.KeyParam, latest=beam.DoFn.StateParam(LATEST)) -> Iterator[Any]:
        held = latest.read()
        if held and held != _RELEASED:
            latest.write(_RELEASED)
            yield key, CohortCountsCoder().decode(held[8:])
