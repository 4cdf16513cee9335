"""ReleaseOnce: one result per window, when nothing of it can arrive any more.

Panes have what came since the one before, and are added up here: whatever accumulates in its own window holds the
watermark of Prism until that window expires.

What waits is state of the global window, under a key that names collection and window. As state of the window itself it
would end with that window on Prism; and Flink would hold the watermark of all steps behind at the end of the window
until it has expired, so that files and ledger, which wait for the watermark, came ten minutes late.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam import coders
from apache_beam.pvalue import PCollection
from apache_beam.transforms import userstate
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.window import GlobalWindows, IntervalWindow
from apache_beam.utils.timestamp import Timestamp
from apache_beam.utils.windowed_value import WindowedValue

from uldp_transforms.beam.runtime import metrics
from uldp_transforms.beam.runtime.beam_windows import ParDoInto, as_duration
from uldp_transforms.beam.runtime.coders import KEYED_COUNTS, CohortCountsCoder
from uldp_transforms.beam.spec.inputs import mark, require_spec, spec_for
from uldp_transforms.beam.spec.job_spec import JobSpec
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts

_RELEASED = b"released"
_TIME = 8
"""Bytes of a moment in a key."""


class ReleaseOnce(beam.PTransform[PCollection[tuple[bytes, CohortCounts]], PCollection[tuple[bytes, CohortCounts]]]):
    """Holds the panes of each window back and lets their sum pass; of bounded input every window has one pane.

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
        named = panes | "NameWindows" >> beam.FlatMap(_named).with_output_types(tuple[bytes, bytes])
        waiting = named | "InNoWindow" >> beam.WindowInto(GlobalWindows())
        released = waiting | "HoldInNoWindow" >> ParDoInto(_HoldFn(spec), panes.windowing)
        released.element_type = KEYED_COUNTS
        mark(spec, released)
        return released


def _named(
    pane: tuple[bytes, CohortCounts | None], window: Any = beam.DoFn.WindowParam
) -> Iterator[tuple[bytes, bytes]]:
    """The name of a key and window, and the counts of a pane; none for a pane in which nothing came."""
    name = pane[0] + b"".join(end.micros.to_bytes(_TIME, "big", signed=True) for end in (window.start, window.end))
    if pane[1] is not None:
        yield name, CohortCountsCoder().encode(pane[1])


def _added(held: bytes, pane: bytes) -> bytes:
    coder = CohortCountsCoder()
    one, other = coder.decode(held), coder.decode(pane)
    assert one is not None and other is not None, "_named"
    return coder.encode(one + other)


def _window_of(name: bytes) -> IntervalWindow:
    ends = (name[-2 * _TIME : -_TIME], name[-_TIME:])
    return IntervalWindow(*(Timestamp(micros=int.from_bytes(end, "big", signed=True)) for end in ends))


class _HoldFn(beam.DoFn):
    SUM = userstate.ReadModifyWriteStateSpec("sum", coders.BytesCoder())
    RELEASE = userstate.TimerSpec("release", TimeDomain.WATERMARK)
    FORGET = userstate.TimerSpec("forget", TimeDomain.WATERMARK)

    def __init__(self, spec: JobSpec):
        self._delay = as_duration(spec.release_delay)
        self._keep = as_duration(spec.allowed_lateness + spec.slack)

    def start_bundle(self) -> None:
        metrics.start_bundle()

    def process(
        self,
        element: tuple[bytes, bytes],
        total: Any = beam.DoFn.StateParam(SUM),
        release: Any = beam.DoFn.TimerParam(RELEASE),
        forget: Any = beam.DoFn.TimerParam(FORGET),
    ) -> Iterable[Any]:
        name, pane = element
        held, end = total.read(), _window_of(name).end
        if held == _RELEASED:
            metrics.count(1, metrics.AFTER_RELEASE)
        else:
            total.write(_added(held, pane) if held else pane)
            release.set(end + self._delay)
            forget.set(end + self._keep)
        return ()

    @userstate.on_timer(RELEASE)
    def release(self, name: Any = beam.DoFn.KeyParam, total: Any = beam.DoFn.StateParam(SUM)) -> Iterator[Any]:
        held = total.read()
        if held and held != _RELEASED:
            total.write(_RELEASED)
            window = _window_of(name)
            pair = name[: -2 * _TIME], CohortCountsCoder().decode(held)
            yield WindowedValue(pair, window.end + self._delay, (window,))

    @userstate.on_timer(FORGET)
    def forget(self, total: Any = beam.DoFn.StateParam(SUM)) -> Iterable[Any]:
        if total.read() == _RELEASED:
            total.clear()
        return ()
