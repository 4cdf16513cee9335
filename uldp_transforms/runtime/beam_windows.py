"""Windows of this package as Beam's, and Beam's as ours."""

from __future__ import annotations

from typing import Any

import apache_beam as beam
from apache_beam.transforms.core import Windowing
from apache_beam.transforms.window import FixedWindows, GlobalWindows, IntervalWindow, SlidingWindows, WindowFn
from apache_beam.utils.timestamp import Duration, Timestamp

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.windows import BasePeriods, Windows


def windows_of_beam(window_fn: WindowFn) -> Windows | None:
    """The windows that a window function of Beam makes; None for the global window.

    Raises:
        SpecError: for windows that reports are not counted in, such as sessions, and for parts of milliseconds.
    """
    if type(window_fn) is GlobalWindows:
        return None
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
    offset = Timestamp(micros=1000 * windows.offset)
    if not windows.overlap:
        return FixedWindows(as_duration(windows.size), offset)
    return SlidingWindows(as_duration(windows.size), as_duration(windows.step), offset)


def beam_periods(periods: BasePeriods) -> WindowFn:
    """The window function of Beam whose windows are the base periods."""
    return FixedWindows(as_duration(periods.length), Timestamp(micros=1000 * periods.phase))


def beam_window(start: int, size: int) -> IntervalWindow:
    """The window of Beam that begins at ``start`` and lasts ``size``, both in milliseconds."""
    return IntervalWindow(Timestamp(micros=1000 * start), Timestamp(micros=1000 * (start + size)))


class ParDoInto(beam.ParDo):
    """A ParDo whose function puts each output into a window itself, one of those that ``windowing`` names.

    It does what ``WindowInto`` does, for elements that know their window.
    """

    def __init__(self, fn: beam.DoFn, windowing: Windowing):
        super().__init__(fn)  # type: ignore[no-untyped-call]  # Beam's
        self._windowing = windowing

    def get_windowing(self, inputs: Any) -> Windowing:
        return self._windowing


def as_duration(milliseconds: int) -> Duration:
    """Beam's form of a number of milliseconds."""
    return Duration(micros=1000 * milliseconds)


def _milliseconds(time: Any) -> int:
    """Of a Duration or Timestamp of Beam."""
    if time.micros % 1000:
        raise SpecError(f"windows must be whole milliseconds, got {time.micros} microseconds")
    return int(time.micros // 1000)
