"""Durations, windows, base periods, and the gate that rejects reports that arrive too early or too late.

No Beam.
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

from uldp_transforms.ldp.checks import describe, require_int
from uldp_transforms.ldp.client_window import ClientWindow
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.reasons import Reason

MIN_EVENT_TIME = -2_208_988_800_000
"""1900-01-01T00:00:00Z in milliseconds since 1970."""

MAX_EVENT_TIME = 253_370_764_800_000
"""9999-01-01T00:00:00Z, a year (the longest window) before the last that has a name of four digits."""

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
"""Base periods of the longest window: a day by minutes. Each report is in so many sliding windows, at most."""

FUTURE_SKEW = 300_000
"""Milliseconds by which the clock of a client may be ahead."""

LATENESS_SLACK = 600_000
"""Milliseconds for which state outlives the allowed lateness, where the watermark follows the messages."""


def now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def parse_duration(text: str, where: str = "duration") -> int:
    """Milliseconds of a text such as ``90s``, ``15m``, ``1h``, ``1d`` or ``1w``, or as ISO 8601 writes it: ``PT1H``.

    A day is 24 hours here, and a week seven of them; months and years have no length.

    Raises:
        SpecError: for anything else; ``where`` names the field.
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
    """The shortest text from which ``parse_duration`` makes so many milliseconds."""
    unit = next(unit for unit in reversed(_UNITS) if milliseconds % _UNITS[unit] == 0)
    return f"{milliseconds // _UNITS[unit]}{unit}"


def rfc3339(milliseconds: int) -> str:
    """``2001-01-31T00:00:00Z``; with milliseconds only if there are any."""
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=milliseconds)
    return moment.isoformat(timespec="milliseconds" if milliseconds % 1000 else "seconds") + "Z"


@functools.lru_cache(maxsize=4096)  # collections share their windows
def moment_of(text: str) -> int:
    """Milliseconds since 1970 of a time as ``rfc3339`` writes it, or with another offset from UTC.

    Raises:
        ValueError, TypeError: for anything else.
    """
    return (datetime.datetime.fromisoformat(re.sub("[Zz]$", "+00:00", text)) - _EPOCH) // _MILLISECOND


def milliseconds(value: str | datetime.timedelta, where: str) -> int:
    """Milliseconds of a text such as ``1h`` or of a ``timedelta``; plain numbers have no unit and are refused.

    Raises:
        SpecError: for anything else; ``where`` names the field.
    """
    if isinstance(value, datetime.timedelta) and not value % _MILLISECOND:
        return value // _MILLISECOND
    if not isinstance(value, str):
        raise SpecError(f"{where} must be a text with a unit such as 90s, 15m, 1h or 1d, got {describe(value)}")
    return parse_duration(value, where)


@dataclasses.dataclass(frozen=True)
class BasePeriods:
    """Consecutive periods of equal length in which reports are counted; a window is a whole number of them.

    Attributes:
        length: milliseconds.
        phase: milliseconds in [0, length) by which periods start after multiples of ``length``.
    """

    length: int
    phase: int = 0

    def number_of(self, event_times: Any) -> Any:
        """(n,) int64 number of the period of each event time (n,); a number of one time."""
        return (event_times - self.phase) // self.length

    def start(self, numbers: Any) -> Any:
        """(n,) int64 start of the periods with these numbers (n,), in milliseconds; one of one number."""
        return numbers * self.length + self.phase

    def start_of(self, event_times: Any) -> Any:
        """(n,) int64 start of the period of each event time (n,), in milliseconds; one of one time."""
        return self.start(self.number_of(event_times))

    def end_of(self, event_times: Any) -> Any:
        """(n,) int64 end of the period of each event time (n,), in milliseconds; one of one time."""
        return self.start(self.number_of(event_times) + 1)

    def split(self, event_times: np.ndarray) -> tuple[list[int], np.ndarray]:
        """The periods in which reports fall, in order, and the position of each report's period among them.

        Args:
            event_times: (n,) int64 milliseconds, n >= 1.

        Returns:
            starts of P periods; (n,) int64 positions.
        """
        first, last = (int(self.number_of(int(end))) for end in (event_times.min(), event_times.max()))
        if first == last:
            return [int(self.start(first))], np.zeros(len(event_times), dtype=np.int64)
        numbers = self.number_of(event_times)
        if last - first < 4 * len(numbers) + 1024:  # no sorting where a table of all periods is small
            seen = np.bincount(numbers - first)
            present = np.flatnonzero(seen) + first
            index = (np.cumsum(seen > 0) - 1)[numbers - first]
        else:
            present, index = np.unique(numbers, return_inverse=True)
        return self.start(present).tolist(), index


def split_by_period(event_times: np.ndarray, periods: BasePeriods | None) -> tuple[Sequence[int | None], np.ndarray]:
    """``BasePeriods.split``; without periods all reports are in one, which has no start."""
    return ([None], np.zeros(len(event_times), dtype=np.int64)) if periods is None else periods.split(event_times)


def split_by_owner_and_period(
    owners: np.ndarray, event_times: np.ndarray, periods: BasePeriods | None
) -> tuple[list[int], list[int | None], np.ndarray]:
    """``split_by_period`` for reports of several owners at once.

    Args:
        owners: (n,) int64 small integers from 0 on, for instance numbers of collections; n >= 1.
        event_times: (n,) int64 milliseconds.
        periods: None: all reports are in one, which has no start.

    Returns:
        owners and starts of the G pairs that occur, in order; (n,) int64 positions of the reports among them.
    """
    starts, index = split_by_period(event_times, periods)
    pairs = owners * len(starts) + index
    if (int(owners.max()) + 1) * len(starts) < 4 * len(pairs) + 1024:  # no sorting where a table of all is small
        seen = np.bincount(pairs) > 0
        present, positions = np.flatnonzero(seen), (np.cumsum(seen) - 1)[pairs]
    else:
        present, positions = np.unique(pairs, return_inverse=True)
    of, places = np.divmod(present, len(starts))
    return of.tolist(), [starts[place] for place in places.tolist()], positions


@dataclasses.dataclass(frozen=True, kw_only=True)
class Windows:
    """Fixed or sliding windows of event time.

    Reports are counted once, per *base period*; every window is a whole number of base periods. So a sliding window
    costs no more per report than a fixed one.

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
        offset: milliseconds in [0, slide) by which windows start after 1970-01-01T00:00:00Z and its multiples.
    """

    size: int
    slide: int | None = None
    offset: int = 0

    def __post_init__(self) -> None:
        require_int("Windows.size", self.size, 1, _MAX_SIZE)
        if self.slide is not None:
            require_int("Windows.slide", self.slide, 1, self.size)
        require_int("Windows.offset", self.offset, 0, self.step - 1)
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
        """Milliseconds of a base period: the longest that divides all windows."""
        return math.gcd(self.size, self.step)

    @property
    def overlap(self) -> bool:
        """Whether a report is in several windows, or in windows of several base periods."""
        return self.size != self.base

    @property
    def periods(self) -> BasePeriods:
        """The base periods of these windows."""
        return BasePeriods(self.base, self.offset % self.base)

    def starts_around(self, moment: int) -> Sequence[int]:
        """Starts of the windows that a time is in, in milliseconds, the last one first."""
        last = (moment - self.offset) // self.step * self.step + self.offset
        return range(last, moment - self.size, -self.step)

    def end_of(self, start: int) -> int:
        """End of the window that begins at ``start``, both in milliseconds."""
        return start + self.size

    def most_open(self, span: int) -> int:
        """How many windows can have reports, at most, if these come from so many milliseconds of event time."""
        return -(-(self.size + span) // self.step)

    def are_whole(self, asked: ClientWindow) -> bool:
        """Whether each of these windows is made of whole windows of a client."""
        lengths = (self.size, self.step, self.offset)
        return asked.timezone is None and not any(length % asked.length for length in lengths)

    def text(self, length: int) -> str:
        """A size, step or offset as people write it."""
        return duration_text(length)

    def to_json(self) -> dict[str, str | None]:
        """The plain values from which ``JobSpec.of`` makes equal windows."""
        lengths = {"window": self.size, "slide": self.slide, "window_offset": self.offset}
        return {name: None if length is None else f"{length}ms" for name, length in lengths.items()} | {
            "timezone": None
        }


@dataclasses.dataclass(frozen=True, kw_only=True)
class TimeGate:
    """Compares event time and arrival time, and rejects reports that are too early or too late.

    A report is too old if it arrives after the end of its base period plus the allowed lateness, so it is counted in
    all its windows or in none. The runner must never drop late data first, because that leaves no trace.

    Attributes:
        periods: base periods of the windows.
        allowed_lateness: milliseconds.
        future_skew: milliseconds by which the clock of a client may be ahead.
    """

    periods: BasePeriods
    allowed_lateness: int
    future_skew: int = FUTURE_SKEW

    def early_by(self, event_times: np.ndarray, arrival_times: np.ndarray) -> np.ndarray:
        """(n,) int64 milliseconds by which reports come too early; 0 or less if they do not."""
        early: np.ndarray = event_times - arrival_times - self.future_skew
        return early

    def late_by(self, event_times: np.ndarray, arrival_times: np.ndarray) -> np.ndarray:
        """(n,) int64 milliseconds by which reports come too late, counted from the last good one; 0 or less if not."""
        ends = self.periods.end_of(event_times)
        late: np.ndarray = arrival_times - ends - self.allowed_lateness + 1
        return late

    @property
    def off_by(self) -> dict[Reason, Callable[[np.ndarray, np.ndarray], np.ndarray]]:
        """How many milliseconds a report misses its time by, for each reason to refuse it."""
        return {Reason.TOO_EARLY: self.early_by, Reason.TOO_OLD: self.late_by}


def checked_milliseconds(where: str, value: object, low: int = 0) -> None:
    """Refuse what is no number of milliseconds from ``low`` to a hundred years; raises SpecError."""
    require_int(where, value, low, _MAX_DURATION)
