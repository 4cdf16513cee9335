"""Windows of whole days, weeks or months in a time zone, including daylight-saving changes.

A day begins at the first moment at which local clocks show its date or a later one, and ends where the next day begins.
So each moment is in exactly one day. A day has 23, 24 or 25 hours; a day that the time zone skipped is empty.

This module does not need Beam.
"""

from __future__ import annotations

import bisect
import dataclasses
import datetime
import functools
import re
import zoneinfo
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from uldp_transforms.ldp.checks import describe, require_int
from uldp_transforms.ldp.client_window import ClientWindow
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.windows import BasePeriods, Windows

_DAY = 86_400_000

_MONDAY = 4
"""Days from 1970-01-01 to the first Monday. Days are counted from it so that weeks begin on Mondays."""

_CYCLE_DAYS = 146_097
"""Number of days in 400 years, a whole number of weeks, after which the rules of a time zone repeat."""

_RULED_DAY = 47_482
"""2100-01-01 in days since 1970; from this day on, offsets follow the rules of the time zone only."""

_PROBES = range(-2_272_060_800, 16_756_761_600, 86_400)
"""The days from 1898 to 2500, in seconds since 1970."""

_MANY = 64
"""Minimum number of reports or periods for which a table of all periods between the first and the last one is
faster.
"""

_BEFORE_ALL = -(1 << 62)

_LENGTH = re.compile(r"([0-9]{1,13})(d|w|mo)|P([0-9]{1,13})([DWM])")
_LENGTHS = {"d": (1, "d"), "w": (7, "d"), "mo": (1, "mo"), "D": (1, "d"), "W": (7, "d"), "M": (1, "mo")}


class _Clocks(NamedTuple):
    """The S changes of a time zone's offset from UTC; all times in milliseconds.

    Attributes:
        changes: (S,) int64 moments, ascending.
        offsets: (S + 1,) int64 offsets of local time from UTC before, between and after the changes.
        shown: (S,) int64 latest local time that clocks showed before each change; never descending.
    """

    changes: np.ndarray
    offsets: np.ndarray
    shown: np.ndarray


@functools.lru_cache(maxsize=64)
def _clocks(timezone: str) -> _Clocks:
    """The offset changes of a zone until 2500; found by looking up the offset of each day, then bisecting to the
    second."""
    zone = time_zone(timezone, "timezone")

    def offset(second: int) -> int:
        ahead = datetime.datetime.fromtimestamp(second, zone).utcoffset() or datetime.timedelta(0)
        return ahead // datetime.timedelta(milliseconds=1)

    changes: list[int] = []
    offsets, last = [offset(_PROBES[0])], _PROBES[0]
    for probe in _PROBES:
        while offset(probe) != offsets[-1]:
            last = _first(range(last, probe + 1), functools.partial(_differs, offset, offsets[-1]))
            changes.append(1000 * last)
            offsets.append(offset(last))
        last = probe
    moments, ahead = np.array(changes, dtype=np.int64), np.array(offsets, dtype=np.int64)
    return _Clocks(moments, ahead, np.maximum.accumulate(moments + ahead[:-1]))


def _first(seconds: range, holds: Callable[[int], bool]) -> int:
    """The first of ``seconds`` for which a monotone condition holds."""
    return seconds[bisect.bisect_left(seconds, True, key=holds)]


def _differs(offset: Callable[[int], int], from_this: int, second: int) -> bool:
    return offset(second) != from_this


def time_zone(timezone: object, name: str) -> zoneinfo.ZoneInfo:
    """The time zone of a name such as "Europe/Berlin".

    Raises:
        SpecError: for another text, or on a machine without a time-zone database; it begins with ``name``.
    """
    try:
        if isinstance(timezone, str):
            return zoneinfo.ZoneInfo(timezone)
    except (KeyError, ValueError, OSError):  # unknown; not a valid name; a directory of zones
        if not zoneinfo.available_timezones():
            sentence = "needs a time-zone database, such as the package tzdata, got a machine without one"
            raise SpecError(f"{name} {sentence}") from None
    raise SpecError(f'{name} must be the name of a time zone such as "Europe/Berlin", got {describe(timezone)}')


def moments_of_local(timezone: str, local: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Convert times that local clocks show to moments.

    Args:
        timezone: name of the time zone.
        local: (n,) int64 milliseconds from 1970-01-01 on these clocks, of the years 1900 to 9998.

    Returns:
        (n,) int64 milliseconds since 1970 UTC, and (n,) bool: whether clocks showed this time exactly once.

    Raises:
        SpecError: as ``time_zone``, with the name "timezone".
    """
    clocks = _clocks(timezone)
    cycles = np.maximum((local - _RULED_DAY * _DAY) // (_CYCLE_DAYS * _DAY), 0) * (_CYCLE_DAYS * _DAY)
    local = local - cycles
    farthest = np.abs(clocks.offsets).max()
    first, last = (np.searchsorted(clocks.changes, local + ahead, side="right") for ahead in (-farthest, farthest))
    found, number = np.zeros_like(local), np.zeros_like(local)
    for step in range(int((last - first).max(initial=0)) + 1):  # offsets that are possible: hardly ever more than two
        at = np.minimum(first + step, last)
        moments = local - clocks.offsets[at]
        holds = (np.searchsorted(clocks.changes, moments, side="right") == at) & (first + step <= last)
        found[holds] = moments[holds]
        number += holds
    return found + cycles, number == 1


def _day_of(timezone: str, moments: Any) -> Any:
    """(n,) int64 days since 1970-01-01 that contain the moments (n,), in milliseconds."""
    clocks = _clocks(timezone)
    cycles = np.maximum((moments - _RULED_DAY * _DAY) // (_CYCLE_DAYS * _DAY), 0)
    moments = moments - cycles * (_CYCLE_DAYS * _DAY)
    after = np.searchsorted(clocks.changes, moments, side="right")
    earlier = np.append(_BEFORE_ALL, clocks.shown - 1)[after]
    return np.maximum(moments + clocks.offsets[after], earlier) // _DAY + cycles * _CYCLE_DAYS


def _start_of_day(timezone: str, days: Any) -> Any:
    """(n,) int64 milliseconds at which the days (n,), counted from 1970-01-01, begin."""
    clocks = _clocks(timezone)
    cycles = np.maximum((days - _RULED_DAY) // _CYCLE_DAYS, 0)
    midnights = (days - cycles * _CYCLE_DAYS) * _DAY
    after = np.searchsorted(clocks.shown, midnights, side="right")
    earliest = np.append(_BEFORE_ALL, clocks.changes)[after]
    return np.maximum(midnights - clocks.offsets[after], earliest) + cycles * (_CYCLE_DAYS * _DAY)


def _month_of_day(days: Any) -> Any:
    return np.asarray(days).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def _first_day(months: Any) -> Any:
    return np.asarray(months).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


class _Unit(NamedTuple):
    """A calendar unit; the length of a window is a whole number of units.

    Attributes:
        name: name of the unit in messages.
        most: maximum number per window: a year.
        shortest: minimum length in days.
        number_of: function from a day, counted from 1970-01-01, to the number of its unit.
        first_day: function from the number of a unit to its first day.
    """

    name: str
    most: int
    shortest: int
    number_of: Callable[[Any], Any]
    first_day: Callable[[Any], Any]


_UNITS = {
    "d": _Unit("days", 365, 1, lambda days: days - _MONDAY, lambda numbers: numbers + _MONDAY),
    "mo": _Unit("months", 12, 28, _month_of_day, _first_day),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class CalendarPeriods(BasePeriods):
    """Base periods of whole days or months in a time zone; only periods of skipped days are empty.

    Attributes:
        length: number of units.
        phase: offset of the periods from multiples of ``length``, in units, in [0, length).
        unit: "d" or "mo".
        timezone: name of the time zone.
    """

    unit: str
    timezone: str

    def number_of(self, event_times: Any) -> Any:
        if np.size(event_times) > _MANY:  # most of them in few periods, which are found by their starts
            first, last = self._number_of(event_times.min()), self._number_of(event_times.max())
            if last - first <= _MANY:
                starts = self._start(np.arange(first + 1, last + 1))
                return first + np.searchsorted(starts, event_times, side="right")
        return self._number_of(event_times)

    def start(self, numbers: Any) -> Any:
        if np.size(numbers) > _MANY and np.ptp(numbers) <= _MANY:
            first = numbers.min()
            return self._start(np.arange(first, numbers.max() + 1))[numbers - first]
        return self._start(numbers)

    def _number_of(self, event_times: Any) -> Any:
        units = _UNITS[self.unit].number_of(_day_of(self.timezone, event_times))
        return (units - self.phase) // self.length

    def _start(self, numbers: Any) -> Any:
        return _start_of_day(self.timezone, _UNITS[self.unit].first_day(numbers * self.length + self.phase))

    @property
    def windows(self) -> CalendarWindows:
        """Windows of one base period each."""
        return CalendarWindows(size=self.length, offset=self.phase, unit=self.unit, timezone=self.timezone)


@dataclasses.dataclass(frozen=True, kw_only=True)
class CalendarWindows(Windows):
    """Fixed or sliding windows of whole days or months in a time zone. A week is seven days.

    If two windows begin at the same moment because a day was skipped, only the later one exists.

    Examples:
        >>> from uldp_transforms import CalendarWindows
        >>> days = CalendarWindows(size=1, unit="d", timezone="Europe/Berlin")
        >>> noon = 1_711_882_800_000  # 2024-03-31T11:00:00Z, a Sunday
        >>> [start] = days.starts_around(noon)
        >>> (days.end_of(start) - start) // 3_600_000  # clocks were put forward
        23

    Attributes:
        size: number of units, at most 365 days or 12 months.
        slide: units between the starts of two windows; None: ``size``.
        offset: offset of the windows from Monday, 1970-01-05, or January 1970, in units, in [0, slide).
        unit: "d" or "mo".
        timezone: name of the time zone, such as "Europe/Berlin".

    Raises:
        SpecError: for a value that is not allowed, and on machines without a time zone database.
    """

    unit: str
    timezone: str

    def __post_init__(self) -> None:
        if self.unit not in _UNITS:
            raise SpecError(f"CalendarWindows.unit must be one of {', '.join(_UNITS)}, got {describe(self.unit)}")
        time_zone(self.timezone, "CalendarWindows.timezone")
        require_int("CalendarWindows.size", self.size, 1, _UNITS[self.unit].most)
        if self.slide is not None:
            require_int("CalendarWindows.slide", self.slide, 1, self.size)
        require_int("CalendarWindows.offset", self.offset, 0, self.step - 1)

    @property
    def periods(self) -> CalendarPeriods:
        return CalendarPeriods(length=self.base, phase=self.offset % self.base, unit=self.unit, timezone=self.timezone)

    @property
    def _units(self) -> CalendarPeriods:
        return CalendarPeriods(length=1, phase=0, unit=self.unit, timezone=self.timezone)

    def _last(self, moment: int) -> int:
        """Number of the first unit of the last window that contains a time."""
        return (int(self._units.number_of(moment)) - self.offset) // self.step * self.step + self.offset

    def starts_around(self, moment: int) -> Sequence[int]:
        units = self._units
        numbers = np.arange(self._last(moment), int(units.number_of(moment)) - self.size, -self.step)
        return list(dict.fromkeys(units.start(numbers).tolist()))

    def end_of(self, start: int) -> int:
        return int(self._units.start(self._last(start) + self.size))

    def most_open(self, span: int) -> int:
        units = self.size + -(-span // (_UNITS[self.unit].shortest * _DAY)) + 2  # cut at both ends, and skipped days
        return -(-units // self.step)

    def are_whole(self, asked: ClientWindow) -> bool:
        if asked.timezone is None:  # local midnights are at full or half hours of UTC
            ahead = _clocks(self.timezone)
            offsets = ahead.offsets[np.searchsorted(ahead.changes, 0) :]
            return not _DAY % asked.length and not (offsets % asked.length).any()
        days = asked.length // _DAY
        whole = (
            not any(length % days for length in (self.size, self.step, self.offset)) if self.unit == "d" else days == 1
        )
        return asked.timezone == self.timezone and whole

    def text(self, length: int) -> str:
        return f"{length}{self.unit}"

    def to_json(self) -> dict[str, str | None]:
        lengths = {"window": self.size, "slide": self.slide, "window_offset": self.offset}
        texts = {name: None if length is None else self.text(length) for name, length in lengths.items()}
        return texts | {"timezone": self.timezone}


def calendar_windows(
    window: object, slide: object = None, window_offset: object = None, timezone: str = "UTC"
) -> CalendarWindows:
    """Calendar windows from plain values such as ``"1d"``, ``"1w"``, ``"1mo"``, ``"P1M"`` or a ``timedelta``.

    Raises:
        SpecError: if a length is not in days, weeks or months, or if the units differ.
    """
    size, unit = calendar_length(window, "JobSpec.window")
    lengths = {}
    for name, given in (("slide", slide), ("window_offset", window_offset)):
        if given is not None:
            lengths[name], other = calendar_length(given, f"JobSpec.{name}")
            if other != unit:
                raise SpecError(f"JobSpec.{name} must be in {_UNITS[unit].name} if window is, got {describe(given)}")
    return CalendarWindows(
        size=size, slide=lengths.get("slide"), offset=lengths.get("window_offset", 0), unit=unit, timezone=timezone
    )


def calendar_length(value: object, where: str) -> tuple[int, str]:
    """Number and unit of a length such as ``1d``, ``2w``, ``P1M`` or a ``timedelta`` of whole days.

    Raises:
        SpecError: if it is not such a length; ``where`` names the field.
    """
    if isinstance(value, datetime.timedelta) and not value % datetime.timedelta(days=1):
        return value.days, "d"
    if isinstance(value, str) and (match := _LENGTH.fullmatch(value)):
        factor, unit = _LENGTHS[match[2] or match[4]]
        return factor * int(match[1] or match[3]), unit
    raise SpecError(
        f"{where} must be days, weeks or months such as 1d, 1w or 1mo if windows follow a calendar, got "
        f"{describe(value)}"
    )


def is_months(value: object) -> bool:
    """Whether a length is a number of months, which requires calendar windows."""
    return isinstance(value, str) and re.fullmatch(r"[0-9]{1,13}mo|P[0-9]{1,13}M", value) is not None
