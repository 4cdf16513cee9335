"""Durations, windows, base periods, and the gate that rejects reports that arrive too early or too late.

This module does not need Beam.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import math
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.client_window import ClientWindow
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.reasons import Reason

MIN_EVENT_TIME = -2_208_988_800_000
"""1900-01-01T00:00:00Z in milliseconds since 1970."""

MAX_EVENT_TIME = 253_370_764_800_000
"""9999-01-01T00:00:00Z in milliseconds since 1970, one year (the longest window) before the end of the years with four
digits.
"""

PLAIN_FROM, PLAIN_TO = 631_152_000_000, 4_102_444_800_000
"""Milliseconds of 1990 and 2100: a number of a table whose unit nobody states is a time of these years, or refused."""

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MILLISECOND = datetime.timedelta(milliseconds=1)
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_WEEK = 7 * _UNITS["d"]
_NUMBER = "([0-9]{1,13})"
_SHORT = re.compile(f"{_NUMBER}(ms|s|m|h|d|w)")
_ISO_WEEKS = re.compile(f"P{_NUMBER}W")
_ISO = re.compile(
    rf"P(?=[0-9T])(?:{_NUMBER}D)?(?:T(?=[0-9])(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}(?:\.([0-9]{{3}}))?S)?)?"
)
_MAX_DURATION = 36_525 * _UNITS["d"]
_MAX_SIZE = 365 * _UNITS["d"]

MAX_PERIODS = 1440
"""Maximum number of base periods per window (a day in minutes), and of sliding windows that contain one report."""

FUTURE_SKEW = 300_000
"""Milliseconds by which a client's clock may be ahead."""

LATENESS_SLACK = 600_000
"""Milliseconds for which state is kept beyond the allowed lateness, if the watermark follows the messages."""


def now() -> int:
    """The current time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def are_seconds(times: np.ndarray) -> np.ndarray:
    """Whether numbers that should be milliseconds since 1970 are rather seconds of the years 1990 to 2099.

    As milliseconds they would lie in January or February 1970. Microseconds and nanoseconds of these years lie beyond
    ``MAX_EVENT_TIME``.

    Args:
        times: (n,) int64.

    Returns:
        (n,) bool.
    """
    seconds: np.ndarray = (times >= PLAIN_FROM // 1000) & (times < PLAIN_TO // 1000)
    return seconds


def parse_duration(text: str, where: str = "duration") -> int:
    """Milliseconds of a duration such as ``90s``, ``15m``, ``1h``, ``1d`` or ``1w``, or in ISO 8601: ``PT1H``.

    A day is 24 hours and a week is seven days; months and years have no fixed length and are refused.

    Raises:
        SpecError: if it is not such a duration; ``where`` names the field.
    """
    if match := _SHORT.fullmatch(text):
        return int(match[1]) * (_UNITS | {"w": _WEEK})[match[2]]
    if match := _ISO_WEEKS.fullmatch(text):
        return int(match[1]) * _WEEK
    if match := _ISO.fullmatch(text):
        lengths = (_UNITS[unit] for unit in ("d", "h", "m", "s", "ms"))
        return sum(int(number or 0) * length for number, length in zip(match.groups(), lengths))
    raise SpecError(f"{where} must be a number with a unit such as 90s, 15m, 1h or 1d, got {describe(text)}")


def duration_text(milliseconds: int) -> str:
    """The shortest text that ``parse_duration`` converts to this number of milliseconds."""
    unit = next(unit for unit in reversed(_UNITS) if milliseconds % _UNITS[unit] == 0)
    return f"{milliseconds // _UNITS[unit]}{unit}"


def rfc3339(milliseconds: int) -> str:
    """Format a time as ``2001-01-31T00:00:00Z``; with milliseconds only if they are not 0."""
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=milliseconds)
    return moment.isoformat(timespec="milliseconds" if milliseconds % 1000 else "seconds") + "Z"


@functools.lru_cache(maxsize=4096)  # collections share their windows
def moment_of(text: str) -> int:
    """Milliseconds since 1970 of a time in the form of ``rfc3339``, or with another offset from UTC.

    Raises:
        ValueError, TypeError: if it is not such a time.
    """
    return (datetime.datetime.fromisoformat(re.sub("[Zz]$", "+00:00", text)) - _EPOCH) // _MILLISECOND


def milliseconds(value: str | datetime.timedelta, where: str) -> int:
    """Milliseconds of a text such as ``1h`` or of a ``timedelta``; numbers without a unit are refused.

    Raises:
        SpecError: if it is not such a duration; ``where`` names the field.
    """
    if isinstance(value, datetime.timedelta) and not value % _MILLISECOND:
        return value // _MILLISECOND
    if not isinstance(value, str):
        raise SpecError(f"{where} must be a text with a unit such as 90s, 15m, 1h or 1d, got {describe(value)}")
    return parse_duration(value, where)


@dataclasses.dataclass(frozen=True)
class BasePeriods:
    """Consecutive periods of equal length in which reports are counted; a window consists of whole periods.

    Attributes:
        length: milliseconds.
        phase: offset of the periods from multiples of ``length``, in milliseconds, in [0, length).
    """

    length: int
    phase: int = 0

    def number_of(self, event_times: Any) -> Any:
        """(n,) int64 numbers of the periods that contain the event times (n,); an integer for a single time."""
        return (event_times - self.phase) // self.length

    def start(self, numbers: Any) -> Any:
        """(n,) int64 starts of the periods with these numbers (n,), in milliseconds; an integer for a single number."""
        return numbers * self.length + self.phase

    def start_of(self, event_times: Any) -> Any:
        """(n,) int64 starts of the periods of the event times (n,), in milliseconds; an integer for a single time."""
        return self.start(self.number_of(event_times))

    def end_of(self, event_times: Any) -> Any:
        """(n,) int64 ends of the periods of the event times (n,), in milliseconds; an integer for a single time."""
        return self.start(self.number_of(event_times) + 1)

    def split(self, event_times: np.ndarray) -> tuple[list[int], np.ndarray]:
        """The periods that contain reports, in order, and the position of each report's period among them.

        Args:
            event_times: (n,) int64 milliseconds, n >= 1.

        Returns:
            Starts of P periods; (n,) int64 positions.
        """
        first, last = (int(self.number_of(int(end))) for end in (event_times.min(), event_times.max()))
        if first == last:
            return [int(self.start(first))], np.zeros(len(event_times), dtype=np.int64)
        present, index = _distinct(self.number_of(event_times) - first, last - first + 1)
        return self.start(present + first).tolist(), index


def split_by_period(event_times: np.ndarray, periods: BasePeriods | None) -> tuple[Sequence[int | None], np.ndarray]:
    """``BasePeriods.split``; without periods, all reports are in one period with start None."""
    return ([None], np.zeros(len(event_times), dtype=np.int64)) if periods is None else periods.split(event_times)


def split_by_owner_and_period(
    owners: np.ndarray, event_times: np.ndarray, periods: BasePeriods | None
) -> tuple[list[int], list[int | None], np.ndarray]:
    """``split_by_period`` for reports of several owners at once.

    Args:
        owners: (n,) int64 small integers from 0, for instance numbers of collections; n >= 1.
        event_times: (n,) int64 milliseconds.
        periods: None: all reports are in one period with start None.

    Returns:
        Owners and starts of the G pairs that occur, in order; (n,) int64 positions of the reports among them.
    """
    return _pairs(owners, *split_by_period(event_times, periods))


def split_runs_by_period(
    sizes: np.ndarray, event_times: np.ndarray, periods: BasePeriods | None
) -> tuple[list[int], list[int | None], np.ndarray]:
    """``split_by_owner_and_period`` for runs of reports, of sizes (R,), whose owners are 0 to R - 1; faster if all are
    in one period."""
    starts, index = split_by_period(event_times, periods)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    if len(starts) == 1:
        return list(range(len(sizes))), [starts[0]] * len(sizes), owners
    return _pairs(owners, starts, index)


def _pairs(
    owners: np.ndarray, starts: Sequence[int | None], index: np.ndarray
) -> tuple[list[int], list[int | None], np.ndarray]:
    present, positions = _distinct(owners * len(starts) + index, (int(owners.max()) + 1) * len(starts))
    of, places = np.divmod(present, len(starts))
    return of.tolist(), [starts[place] for place in places.tolist()], positions


def _distinct(numbers: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The different ones of n numbers in [0, size), in order, and the position of each number among them (n,)."""
    if size < 4 * len(numbers) + 1024:  # a small table of all is faster than sorting
        seen = np.bincount(numbers) > 0
        return np.flatnonzero(seen), (np.cumsum(seen) - 1)[numbers]
    return np.unique(numbers, return_inverse=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Windows:
    """Fixed or sliding windows of event time.

    Reports are counted once per *base period*; every window consists of whole base periods. So a sliding window costs
    no more per report than a fixed one.

    Examples:
        >>> from uldp_transforms import Windows
        >>> sliding = Windows(size=3_600_000, slide=600_000)  # 1h, every 10m
        >>> sliding.base
        600000
        >>> len(sliding.starts_around(0))
        6

    Attributes:
        size: milliseconds, at most 365 days and at most MAX_PERIODS base periods.
        slide: milliseconds between the starts of two windows; None: ``size``.
        offset: offset of the windows from 1970-01-01T00:00:00Z, in milliseconds, in [0, slide).
    """

    size: int
    slide: int | None = None
    offset: int = 0

    def __post_init__(self) -> None:
        _require_duration("Windows.size", self.size, 1, _MAX_SIZE)
        if self.slide is not None:
            _require_duration("Windows.slide", self.slide, 1, self.size)
        _require_duration("Windows.offset", self.offset, 0, self.step, below=True)
        if self.size > MAX_PERIODS * self.base:
            size, step, base = map(duration_text, (self.size, self.step, self.base))
            raise SpecError(
                f"Windows.size must be at most {MAX_PERIODS} base periods (the longest time that divides size and "
                f"slide), got {size} every {step}, which is {self.size // self.base} periods of {base}"
            )

    @property
    def step(self) -> int:
        """Milliseconds between the starts of two windows."""
        return self.size if self.slide is None else self.slide

    @property
    def base(self) -> int:
        """Milliseconds of a base period: the longest one that divides all windows."""
        return math.gcd(self.size, self.step)

    @property
    def overlap(self) -> bool:
        """Whether a report is in several windows, or a window has several base periods."""
        return self.size != self.base

    @property
    def periods(self) -> BasePeriods:
        """The base periods of these windows."""
        return BasePeriods(self.base, self.offset % self.base)

    def starts_around(self, moment: int) -> Sequence[int]:
        """Starts of the windows that contain a time, in milliseconds, in descending order."""
        last = (moment - self.offset) // self.step * self.step + self.offset
        return range(last, moment - self.size, -self.step)

    def end_of(self, start: int) -> int:
        """End of the window that starts at ``start``, both in milliseconds."""
        return start + self.size

    def most_open(self, span: int) -> int:
        """Maximum number of windows that can have reports from ``span`` milliseconds of event time."""
        return -(-(self.size + span) // self.step)

    def are_whole(self, asked: ClientWindow) -> bool:
        """Whether each of these windows consists of whole client windows."""
        lengths = (self.size, self.step, self.offset)
        return asked.timezone is None and not any(length % asked.length for length in lengths)

    def text(self, length: int) -> str:
        """A size, slide or offset as a duration text."""
        return duration_text(length)

    def to_json(self) -> dict[str, str | None]:
        """The plain values for which ``JobSpec.of`` builds equal windows."""
        lengths = {"window": self.size, "slide": self.slide, "window_offset": self.offset}
        return {name: None if length is None else f"{length}ms" for name, length in lengths.items()} | {
            "timezone": None
        }


@dataclasses.dataclass(frozen=True, kw_only=True)
class TimeGate:
    """Compares event time with arrival time and rejects reports that are too early or too late.

    A report is too late if it arrives after the end of its base period plus the allowed lateness, so it is counted in
    all its windows or in none. The runner must not drop late data before this check, because dropped data are not
    reported.

    Attributes:
        periods: base periods of the windows.
        allowed_lateness: milliseconds.
        future_skew: milliseconds by which a client's clock may be ahead.
    """

    periods: BasePeriods
    allowed_lateness: int
    future_skew: int = FUTURE_SKEW

    def early_by(self, event_times: Any, arrival_times: Any) -> Any:
        """(n,) int64 milliseconds by which reports are too early, at most 0 if they are not; an integer for a single
        report. No report is too early if the latest one is not, on the arrival of the first."""
        return event_times - arrival_times - self.future_skew

    def late_by(self, event_times: Any, arrival_times: Any) -> Any:
        """(n,) int64 milliseconds by which reports are too late, from the last accepted one on, at most 0 if they are
        not; an integer for a single report. No report is too late if the earliest one is not, on the arrival of the
        last."""
        return arrival_times - self.periods.end_of(event_times) - self.allowed_lateness + 1

    @property
    def off_by(self) -> dict[Reason, Callable[[Any, Any], Any]]:
        """Functions that return the milliseconds by which reports miss the limit, for each reason to refuse them."""
        return {Reason.TOO_EARLY: self.early_by, Reason.TOO_OLD: self.late_by}


def checked_milliseconds(where: str, value: object, low: int = 0) -> None:
    """Require a number of milliseconds from ``low`` to a hundred years; raises SpecError."""
    _require_duration(where, value, low, _MAX_DURATION)


def _require_duration(where: str, value: object, low: int, high: int, *, below: bool = False) -> None:
    """Require a number of milliseconds, from low to high, or ``below`` high; refusals have the forms of a command
    line."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise SpecError(f"{where} must be a whole number of milliseconds, got {describe(value)}")
    if not low <= value <= high - below:
        least, most, got = (duration_text(each) if each else "0s" for each in (low, high, value))
        raise SpecError(f"{where} must be a duration from {least} to {'less than ' * below}{most}, got {got}")
