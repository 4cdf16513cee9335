"""Client windows, in which a client answers at most once: fixed lengths of time, or calendar days of a time zone."""

from __future__ import annotations

import bisect
import dataclasses
import datetime
import functools
import re
import zoneinfo
from typing import Any

import numpy as np

from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError

HOUR, DAY = 3_600_000, 86_400_000
"""Lengths in milliseconds."""

_LENGTH = re.compile(r"([1-9][0-9]{0,5})(m|h|d|w)", re.ASCII)
_UNITS = {"m": 60_000, "h": HOUR, "d": DAY, "w": 7 * DAY}
_LONGEST = 365 * DAY
_MONDAY = datetime.date(1970, 1, 5).toordinal()
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


@dataclasses.dataclass(frozen=True)
class ClientWindow:
    """Consecutive, numbered windows of equal length. A client answers at most once in each.

    Without a time zone, windows begin at 1970-01-01T00:00:00Z and multiples of their length. With one, they are whole
    days of the time zone, counted from Monday, 1970-01-05, like the calendar windows of jobs; such days have 23 to 25
    hours.

    Attributes:
        length: milliseconds, above 0; with a time zone, 24 hours per day.
        timezone: name of the time zone, such as ``"Europe/Berlin"``; None: windows of fixed length.
    """

    length: int
    timezone: str | None = None

    @classmethod
    def of(cls, text: object, timezone: object = None) -> ClientWindow:
        """The windows of a collection with ``client_window``, such as ``"1d"``, and ``client_timezone``.

        Raises:
            SpecError: if the length or the time zone is not allowed.
        """
        match = _LENGTH.fullmatch(text) if isinstance(text, str) else None
        length = int(match[1]) * _UNITS[match[2]] if match else 0
        if not 0 < length <= _LONGEST or (timezone is not None and length % DAY):
            allowed = "minutes, hours, days or weeks" if timezone is None else "days or weeks with client_timezone"
            raise SpecError(
                f"Collection.client_window must be a number of {allowed}, such as 1d, at most 365d, got "
                f"{describe(text)}"
            )
        if timezone is not None and not (isinstance(timezone, str) and _zone(timezone)):
            raise SpecError(
                "Collection.client_timezone must be the name of a time zone in this machine's database, such as "
                f'"Europe/Berlin", got {describe(timezone)}'
            )
        return cls(length, timezone)

    def number_of(self, time: int) -> int:
        """The number of the window that contains a time, in milliseconds since 1970 UTC."""
        if self.timezone is None:
            return time // self.length
        local = (_EPOCH + datetime.timedelta(milliseconds=time)).astimezone(_zone(self.timezone))
        return (local.toordinal() - _MONDAY) // (self.length // DAY)

    def start_of(self, time: int) -> int:
        """The start of the window that contains a time; both in milliseconds since 1970 UTC."""
        return self._first(range(time - self.length - DAY, time + 1), self.number_of(time))

    def starts_of(self, times: np.ndarray) -> np.ndarray:
        """The starts of the windows that contain times; both (n,) int64, in milliseconds since 1970 UTC."""
        if self.timezone is None:
            return times // self.length * self.length
        unique, inverse = np.unique(times, return_inverse=True)
        starts, at = np.empty_like(unique), 0
        while at < len(unique):  # window by window
            start = self.start_of(int(unique[at]))
            after = int(np.searchsorted(unique, self.end_of(int(unique[at]))))
            starts[at:after], at = start, after
        return starts[inverse]

    def end_of(self, time: int) -> int:
        """The end of the window that contains a time, which is the start of the next; both in milliseconds since 1970
        UTC."""
        return self._first(range(time, time + self.length + DAY), self.number_of(time) + 1)

    def _first(self, times: range, number: int) -> int:
        """The first of the times that is in window ``number`` or later."""
        return times[bisect.bisect_left(times, number, key=self.number_of)]

    def number_between(self, start: int, end: int) -> int:
        """Number of windows that overlap the times from ``start`` to before ``end``, in milliseconds since 1970 UTC."""
        return self.number_of(end - 1) - self.number_of(start) + 1

    def to_json(self) -> dict[str, Any]:
        """The JSON object for the client form."""
        return {"milliseconds": self.length, "timezone": self.timezone}


@functools.lru_cache(maxsize=64)
def _zone(timezone: str) -> datetime.tzinfo | None:
    """The time zone; None if this machine does not know the name."""
    try:
        return zoneinfo.ZoneInfo(timezone)
    except (KeyError, ValueError, OSError):  # unknown; not a valid name; a directory of zones
        return None
