"""Windows of this package as Beam's, and Beam's as ours."""

from __future__ import annotations

from typing import Any

import apache_beam as beam
from apache_beam.coders.coders import Coder, IntervalWindowCoder
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.transforms import trigger
from apache_beam.transforms.core import Windowing
from apache_beam.transforms.window import (
    FixedWindows,
    GlobalWindows,
    IntervalWindow,
    NonMergingWindowFn,
    SlidingWindows,
    WindowFn,
)
from apache_beam.utils.timestamp import Duration, Timestamp

from uldp_transforms.calendar_windows import CalendarPeriods, CalendarWindows
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.windows import BasePeriods, Windows


class CalendarWindowFn(NonMergingWindowFn):
    """Days, weeks and months of a place as a window function of Beam.

    It is pickled into the graph of a job, as Beam's form of a function that only Python knows, so that workers import
    this module. Its windows are ``IntervalWindow``, which all engines know.

    Args:
        windows: that it assigns.
        shift: milliseconds by which its windows are later than these.
    """

    def __init__(self, windows: CalendarWindows, shift: int = 0):
        self.windows = windows
        self.shift = shift

    def assign(self, assign_context: WindowFn.AssignContext) -> list[IntervalWindow]:
        moment = assign_context.timestamp.micros // 1000 - self.shift
        later = as_duration(self.shift)
        found = (beam_window(self.windows, start) for start in self.windows.starts_around(moment))
        return [IntervalWindow(window.start + later, window.end + later) for window in found]

    def get_window_coder(self) -> Coder:
        return IntervalWindowCoder()

    def __eq__(self, other: object) -> bool:
        return type(other) is CalendarWindowFn and self.windows == other.windows and self.shift == other.shift

    def __hash__(self) -> int:
        return hash((self.windows, self.shift))

    def __repr__(self) -> str:
        return f"CalendarWindowFn({self.windows}{f', shift={self.shift}' if self.shift else ''})"


def windows_of_beam(window_fn: WindowFn) -> Windows | None:
    """The windows that a window function of Beam makes; None for the global window.

    Raises:
        SpecError: for windows that reports are not counted in, such as sessions, and for parts of milliseconds.
    """
    if type(window_fn) is GlobalWindows:
        return None
    if type(window_fn) is CalendarWindowFn:
        return window_fn.windows
    if type(window_fn) is FixedWindows:  # a class of somebody's own may assign other windows
        return Windows(size=_milliseconds(window_fn.size), offset=_milliseconds(window_fn.offset))
    if type(window_fn) is SlidingWindows:
        return Windows(
            size=_milliseconds(window_fn.size),
            slide=_milliseconds(window_fn.period),
            offset=_milliseconds(window_fn.offset),
        )
    raise SpecError(f"windows must be fixed or sliding, got {type(window_fn).__name__}")


def beam_windows(windows: Windows | None) -> WindowFn:
    """The window function of Beam that assigns these windows."""
    if windows is None:
        return GlobalWindows()
    if isinstance(windows, CalendarWindows):
        return CalendarWindowFn(windows)
    offset = Timestamp(micros=1000 * windows.offset)
    if not windows.overlap:
        return FixedWindows(as_duration(windows.size), offset)
    return SlidingWindows(as_duration(windows.size), as_duration(windows.step), offset)


def beam_periods(periods: BasePeriods, shift: int = 0) -> WindowFn:
    """The window function of Beam whose windows are the base periods, or these later by ``shift`` milliseconds."""
    if isinstance(periods, CalendarPeriods):
        return CalendarWindowFn(periods.windows, shift)
    return FixedWindows(as_duration(periods.length), Timestamp(micros=1000 * (periods.phase + shift)))


def beam_window(windows: Windows, start: int) -> IntervalWindow:
    """The one of these windows that begins at ``start``, in milliseconds, as Beam has it."""
    return IntervalWindow(Timestamp(micros=1000 * start), Timestamp(micros=1000 * windows.end_of(start)))


class ParDoInto(beam.ParDo):
    """A ParDo whose function puts each output into a window itself, one of those that ``windowing`` names.

    It does what ``WindowInto`` does, for elements that know their window.
    """

    def __init__(self, fn: beam.DoFn, windowing: Windowing):
        super().__init__(fn)  # type: ignore[no-untyped-call]  # Beam's
        self._windowing = windowing

    def get_windowing(self, inputs: Any) -> Windowing:
        return self._windowing


class QuietWindowing(Windowing):
    """Windows that expire without a pane that says again what the last one said.

    Beam's Python asks engines for one (``EMIT_ALWAYS``, with a note in its source that the other is to be supported),
    and those that are written in Java obey: each window had a row more when its lateness was over.
    """

    def to_runner_api(self, context: Any) -> Any:
        strategy = super().to_runner_api(context)
        strategy.closing_behavior = beam_runner_api_pb2.ClosingBehavior.EMIT_IF_NONEMPTY
        return strategy


def window_into(
    window_fn: WindowFn, when: trigger.TriggerFn, *, accumulating: bool, allowed_lateness: int
) -> beam.WindowInto:
    """Beam's ``WindowInto`` with a ``QuietWindowing``.

    Args:
        window_fn: that assigns windows.
        when: they give panes.
        accumulating: whether a pane has what was in those before.
        allowed_lateness: milliseconds.
    """
    modes = trigger.AccumulationMode
    mode = modes.ACCUMULATING if accumulating else modes.DISCARDING
    lateness: Any = as_duration(allowed_lateness)  # Beam takes a Duration and declares a number
    into = beam.WindowInto(window_fn, when, mode, allowed_lateness=lateness)
    into.windowing = QuietWindowing(window_fn, when, mode, allowed_lateness=lateness)
    return into


def as_duration(milliseconds: int) -> Duration:
    """Beam's form of a number of milliseconds."""
    return Duration(micros=1000 * milliseconds)


def _milliseconds(time: Any) -> int:
    """Milliseconds of a Beam Duration or Timestamp."""
    if time.micros % 1000:
        raise SpecError(f"windows must be whole milliseconds, got {time.micros} microseconds")
    return int(time.micros // 1000)
