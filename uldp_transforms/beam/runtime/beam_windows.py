"""Conversion between the windows of this package and Beam's windows."""

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

_TIME = 8  # bytes


def in_window(key: bytes, window: IntervalWindow) -> bytes:
    """Name of a key and its window, for state that outlives the window."""
    return key + b"".join(end.micros.to_bytes(_TIME, "big", signed=True) for end in (window.start, window.end))


def key_and_window(name: bytes) -> tuple[bytes, IntervalWindow]:
    """Reverse ``in_window``."""
    ends = (name[-2 * _TIME : -_TIME], name[-_TIME:])
    start, end = (Timestamp(micros=int.from_bytes(each, "big", signed=True)) for each in ends)
    return name[: -2 * _TIME], IntervalWindow(start, end)


class CalendarWindowFn(NonMergingWindowFn):
    """Beam window function for calendar days, weeks and months of a time zone.

    It is pickled into the graph of a job as a Python-only function, so workers import this module. Its windows are
    ``IntervalWindow``, which all engines support.

    Args:
        windows: windows to assign.
        shift: milliseconds by which the assigned windows are delayed.
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
    """Convert a Beam window function to windows of this package; None for the global window.

    Raises:
        SpecError: for windows in which reports cannot be counted, such as sessions, and for fractions of milliseconds.
    """
    if type(window_fn) is GlobalWindows:
        return None
    if type(window_fn) is CalendarWindowFn:
        return window_fn.windows
    if type(window_fn) is FixedWindows:  # a subclass may assign other windows
        return Windows(size=_milliseconds(window_fn.size), offset=_milliseconds(window_fn.offset))
    if type(window_fn) is SlidingWindows:
        return Windows(
            size=_milliseconds(window_fn.size),
            slide=_milliseconds(window_fn.period),
            offset=_milliseconds(window_fn.offset),
        )
    raise SpecError(f"windows must be fixed or sliding, got {type(window_fn).__name__}")


def beam_windows(windows: Windows | None) -> WindowFn:
    """Convert windows to a Beam window function."""
    if windows is None:
        return GlobalWindows()
    if isinstance(windows, CalendarWindows):
        return CalendarWindowFn(windows)
    offset = Timestamp(micros=1000 * windows.offset)
    if not windows.overlap:
        return FixedWindows(as_duration(windows.size), offset)
    return SlidingWindows(as_duration(windows.size), as_duration(windows.step), offset)


def beam_periods(periods: BasePeriods, shift: int = 0) -> WindowFn:
    """Beam window function of the base periods, delayed by ``shift`` milliseconds."""
    if isinstance(periods, CalendarPeriods):
        return CalendarWindowFn(periods.windows, shift)
    return FixedWindows(as_duration(periods.length), Timestamp(micros=1000 * (periods.phase + shift)))


def beam_window(windows: Windows, start: int) -> IntervalWindow:
    """Beam window that starts at ``start`` milliseconds."""
    return IntervalWindow(Timestamp(micros=1000 * start), Timestamp(micros=1000 * windows.end_of(start)))


class ParDoInto(beam.ParDo):
    """ParDo whose function assigns each output to a window of ``windowing``.

    It replaces ``WindowInto`` for elements that know their window.
    """

    def __init__(self, fn: beam.DoFn, windowing: Windowing):
        super().__init__(fn)  # type: ignore[no-untyped-call]  # Beam's
        self._windowing = windowing

    def get_windowing(self, inputs: Any) -> Windowing:
        return self._windowing


class QuietWindowing(Windowing):
    """Windowing strategy that emits no final pane if nothing changed since the last one.

    Beam's Python SDK requests a final pane (``EMIT_ALWAYS``; a comment in its source says that the other option is to
    be supported), and engines written in Java emit it: each window would have one more row after its lateness.
    """

    def to_runner_api(self, context: Any) -> Any:
        strategy = super().to_runner_api(context)
        strategy.closing_behavior = beam_runner_api_pb2.ClosingBehavior.EMIT_IF_NONEMPTY
        return strategy


class _Into(beam.WindowInto):
    """``WindowInto`` without a type hint for its input.

    With ``--performance_runtime_type_check`` Beam holds every output of a step against the hint of the step behind its
    main output, so that entries of the ledger would have to be counts.
    """

    def expand(self, elements: Any) -> Any:
        assigned = super().expand(elements)  # type: ignore[no-untyped-call]  # Beam's
        self.with_input_types(beam.typehints.Any)  # type: ignore[no-untyped-call]  # Beam's
        return assigned


def window_into(
    window_fn: WindowFn, when: trigger.TriggerFn, *, accumulating: bool, allowed_lateness: int
) -> beam.WindowInto:
    """Beam's ``WindowInto`` with a ``QuietWindowing``.

    Args:
        window_fn: function that assigns windows.
        when: trigger of their panes.
        accumulating: whether a pane includes the content of earlier panes.
        allowed_lateness: milliseconds.
    """
    modes = trigger.AccumulationMode
    mode = modes.ACCUMULATING if accumulating else modes.DISCARDING
    lateness: Any = as_duration(allowed_lateness)  # Beam expects a Duration but declares a number
    into = _Into(window_fn, when, mode, allowed_lateness=lateness)
    into.windowing = QuietWindowing(window_fn, when, mode, allowed_lateness=lateness)
    return into


def as_duration(milliseconds: int) -> Duration:
    """Convert milliseconds to a Beam Duration."""
    return Duration(micros=1000 * milliseconds)


def _milliseconds(time: Any) -> int:
    """Convert a Beam Duration or Timestamp to milliseconds."""
    if time.micros % 1000:
        raise SpecError(f"windows must be whole milliseconds, got {time.micros} microseconds")
    return int(time.micros // 1000)
