"""ReleaseOnce: emit one result per window, once no more reports can arrive for it.

Each pane counts the reports since the previous pane, and this transform adds the panes up: on Prism, a window that
accumulates its panes would hold the watermark until it expires.

Pending sums are stored in state of the global window, under a key that names collection and window. Prism would discard
state of the window itself at the end of the window. Flink would hold the watermark of all later steps at the end of the
window until it expires, so files and ledger, which wait for the watermark, would be ten minutes late.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam import coders
from apache_beam.pvalue import PCollection
from apache_beam.transforms import userstate
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.windowed_value import WindowedValue

from uldp_transforms.beam.runtime import metrics
from uldp_transforms.beam.runtime.beam_windows import ParDoInto, as_duration, in_window, key_and_window
from uldp_transforms.beam.runtime.coders import KEYED_COUNTS, CohortCountsCoder
from uldp_transforms.beam.runtime.inputs import mark, require_spec, spec_for
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.spec.job_spec import JobSpec

_RELEASED = b"released"


class ReleaseOnce(beam.PTransform[PCollection[tuple[bytes, CohortCounts]], PCollection[tuple[bytes, CohortCounts]]]):
    """Hold back the panes of each window and emit their sum once; in bounded input every window has one pane.

    A window is released when the watermark reaches its end plus the allowed lateness plus a margin of at most a minute
    (half the lateness slack, if that is less). From then on every report of the window is rejected as too late. If a
    pane arrives after that nevertheless, it is dropped: the counter ``after_release`` counts it, and the ledger then
    has more accepted reports than the row.

    Input and output: windowed pairs (fingerprint, counts), as ``CountReports`` produces them.

    Examples:
        >>> import apache_beam as beam
        >>> from uldp_transforms import CountReports, JobSpec, ReleaseOnce
        >>> from uldp_transforms.ldp import Collection
        >>> spec = JobSpec.of(collections=["C.json"], window="1d")
        >>> batch = Collection.from_json("C.json").perturb(["flu"] * 3)
        >>> with beam.Pipeline() as pipeline:
        ...     counted = pipeline | beam.Create([batch]) | CountReports(spec)
        ...     once = counted.counts | ReleaseOnce(spec)
        ...     _ = once | beam.Map(lambda pair: print(pair[1].total))
        3

    Args:
        spec: specification of the job.
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
    """Emit the counts of a pane under the name of its key and window; nothing for an empty pane."""
    if pane[1] is not None:
        yield in_window(pane[0], window), CohortCountsCoder().encode(pane[1])


def _added(held: bytes, pane: bytes) -> bytes:
    coder = CohortCountsCoder()
    one, other = coder.decode(held), coder.decode(pane)
    assert one is not None and other is not None, "_named"
    return coder.encode(one + other)


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
        held, end = total.read(), key_and_window(name)[1].end
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
            fingerprint, window = key_and_window(name)
            pair = fingerprint, CohortCountsCoder().decode(held)
            yield WindowedValue(pair, window.end + self._delay, (window,))

    @userstate.on_timer(FORGET)
    def forget(self, total: Any = beam.DoFn.StateParam(SUM)) -> Iterable[Any]:
        if total.read() == _RELEASED:
            total.clear()
        return ()
