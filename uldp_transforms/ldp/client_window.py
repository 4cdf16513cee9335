"""The window of a client, in which it answers at most once: a length of time, or days of a place."""

from __future__ import annotations

import bisect
import dataclasses
import datetime
import functools
import re
import zoneinfo
from typing import Any

from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError

HOUR, DAY = 3_600_000, 86_400_000
"""Milliseconds."""

_LENGTH = re.compile(r"([1-9][0-9]{0,5})(m|h|d|w)", re.ASCII)
_UNITS = {"m": 60_000, "h": HOUR, "d": DAY, "w": 7 * DAY}
_LONGEST = 365 * DAY
_MONDAY = datetime.date(1970, 1, 5).toordinal()
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


@dataclasses.dataclass(frozen=True)
class ClientWindow:
    """Windows of one length, numbered by time. A client answers at most once in each.

    Without a time zone they begin at 1970-01-01T00:00:00Z and multiples of their length. With one they are days of the
    place, counted from Monday, 1970-01-05, as calendar windows of jobs are; a day has 23 to 25 hours there.

    Attributes:
        length: milliseconds, above 0; with a time zone 24 hours for each day.
        timezone: name of the time zone, such as ``"Europe/Berlin"``; None: lengths of time.
    """

    length: int
    timezone: str | None = None

    @classmethod
    def of(cls, text: object, timezone: object = None) -> ClientWindow:
        """The windows that a collection names: ``client_window``, such as ``"1d"``, and ``client_timezone``.

        Raises:
            SpecError: for a length or a time zone that is not allowed.
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
                "Collection.client_timezone must be the name of a time zone that this machine knows, such as "
                f'"Europe/Berlin", got {describe(timezone)}'
            )
        return cls(length, timezone)

    def number_of(self, time: int) -> int:
        """The number of the window of a time, in milliseconds since 1970 UTC."""
        if self.timezone is None:
            return time // self.length
        local = (_EPOCH + datetime.timedelta(milliseconds=time)).astimezone(_zone(self.timezone))
        return (local.toordinal() - _MONDAY) // (self.length // DAY)

    def start_of(self, time: int) -> int:
        """When the window of a time begins, in milliseconds since 1970 UTC."""
        return self._first(range(time - self.length - DAY, time + 1), self.number_of(time))

    def end_of(self, time: int) -> int:
        """When the window of a time ends and the next one begins, in milliseconds since 1970 UTC."""
        return self._first(range(time, time + self.length + 2 * DAY), self.number_of(time) + 1)

    def _first(self, times: range, number: int) -> int:
        """The first of some times that is in a window of this number or a later one."""
        return times[bisect.bisect_left(times, number, key=self.number_of)]

    def number_between(self, start: int, end: int) -> int:
        """How many windows have some of the times from ``start`` to before ``end``, in milliseconds since 1970 UTC."""
        return self.number_of(end - 1) - self.number_of(start) + 1

    def to_json(self) -> dict[str, Any]:
        """As the client's form has it."""
        return {"milliseconds": self.length, "timezone": self.timezone}


@functools.lru_cache(maxsize=64)
def _zone(timezone: str) -> datetime.tzinfo | None:
    """None for a name that this machine does not know."""
    try:
        return zoneinfo.ZoneInfo(timezone)
    except (KeyError, ValueError, OSError):  # unknown; no name of a zone; a directory of zones
        return None
