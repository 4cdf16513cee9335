"""ReleaseOnce: one result per window, when nothing of it can arrive any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam import coders
from apache_beam.pvalue import PCollection
from apache_beam.transforms import userstate
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.utils.timestamp import Duration

from uldp_transforms.inputs import mark, require_spec, spec_for
from uldp_transforms.ldp.counts import CohortCounts
from uldp_transforms.runtime import metrics
from uldp_transforms.runtime.beam_windows import as_duration
from uldp_transforms.runtime.coders import KEYED_COUNTS, CohortCountsCoder
from uldp_transforms.spec import JobSpec

_RELEASED = b"released"


class ReleaseOnce(beam.PTransform[PCollection[tuple[bytes, CohortCounts]], PCollection[tuple[bytes, CohortCounts]]]):
    """Holds the panes of each window back and lets the last one pass; of bounded input every pane is the last one.

    Windows are released at their end plus the allowed lateness plus a margin of at most a minute (half the slack for
    which the runner keeps state, if that is less), by the watermark: after that the gate refuses every report of the
    window. A pane that comes later nevertheless is dropped; the counter ``after_release`` and the ledger, which then
    has more accepted reports than the row, show it.

    Input and output: windowed pairs (fingerprint, counts), as ``CountReports`` makes them.

    Args:
        spec: of the job.
    """

    def __init__(self, spec: JobSpec):
        super().__init__()
        self._spec = require_spec("ReleaseOnce", spec)

    def expand(self, panes: PCollection[tuple[bytes, CohortCounts]]) -> PCollection[tuple[bytes, CohortCounts]]:
        spec = spec_for("ReleaseOnce", self._spec, panes, KEYED_COUNTS, windowed=True)
        if spec.bounded:
            return panes
        delay = as_duration(spec.release_delay)
        released = panes | "Hold" >> beam.ParDo(_HoldFn(delay)).with_output_types(KEYED_COUNTS)
        mark(spec, released)
        return released


class _HoldFn(beam.DoFn):
    LATEST = userstate.ReadModifyWriteStateSpec("latest", coders.BytesCoder())
    RELEASE = userstate.TimerSpec("release", TimeDomain.WATERMARK)

    def __init__(self, delay: Duration):
        self._delay = delay

    def start_bundle(self) -> None:
        metrics.start_bundle()

    def process(
        self,
        element: tuple[bytes, CohortCounts],
        window: Any = beam.DoFn.WindowParam,
        pane: Any = beam.DoFn.PaneInfoParam,
        latest: Any = beam.DoFn.StateParam(LATEST),
        release: Any = beam.DoFn.TimerParam(RELEASE),
    ) -> Iterable[Any]:
        held = latest.read() or b""
        index = max(pane.index, 0)
        if held == _RELEASED:
            metrics.count(1, metrics.AFTER_RELEASE)
        elif not held or index >= int.from_bytes(held[:8], "big"):
            latest.write(index.to_bytes(8, "big") + CohortCountsCoder().encode(element[1]))
            release.set(window.end + self._delay)
        return ()

    @userstate.on_timer(RELEASE)
    def release(self, key: Any = beam.DoFn.KeyParam, latest: Any = beam.DoFn.StateParam(LATEST)) -> Iterator[Any]:
        held = latest.read()
        if held and held != _RELEASED:
            latest.write(_RELEASED)
            yield key, CohortCountsCoder().decode(held[8:])
