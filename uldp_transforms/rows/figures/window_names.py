"""Short names of windows in the time zone of the job.

The windows of one list are called alike: by their days if all begin and end at midnight, and otherwise with times.
"""

from __future__ import annotations

import dataclasses
import datetime
import re
import zoneinfo
from collections.abc import Iterable

UTC = "UTC"
_WINDOW = re.compile(r"window=(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)(?= |$)")
_UNITS = ("minutes", "seconds", "milliseconds")


def clock(zone: str | None) -> datetime.tzinfo:
    """The time zone of a job; UTC if it is unknown on this machine."""
    try:
        return zoneinfo.ZoneInfo(zone or UTC)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return datetime.timezone.utc


def local(moment: str, zone: datetime.tzinfo) -> datetime.datetime:
    """Convert RFC 3339 to local time in a time zone."""
    return datetime.datetime.fromisoformat(moment.removesuffix("Z") + "+00:00").astimezone(zone)


@dataclasses.dataclass(frozen=True)
class WindowNames:
    """The names of the windows of one list.

    Attributes:
        zone: time zone of the names.
        unit: ``timespec`` of the times of day, which distinguishes them; None: all windows begin and end at midnight.
    """

    zone: datetime.tzinfo
    unit: str | None

    @classmethod
    def among(cls, moments: Iterable[str | None], zone: datetime.tzinfo) -> WindowNames:
        """Of windows that begin and end at these moments, in RFC 3339; None: of a window for everything."""
        found = {local(moment, zone) for moment in moments if moment is not None}
        if all(moment.time() == datetime.time() for moment in found):
            return cls(zone, None)
        return cls(zone, max(map(_unit, found), key=_UNITS.index))

    def window(self, start: str | None, end: str | None) -> str:
        """``Mon 5 Nov 2001``, ``5 Nov 2001 to 11 Nov 2001``, or with times of day; ``all reports`` without windows."""
        if start is None or end is None:
            return "all reports"
        first, last = local(start, self.zone), local(end, self.zone)
        if self.unit is not None:
            day = "" if _day(first) == _day(last) else f"{_day(last)}, "
            return f"{_day(first)}, {_time(first, self.unit)} to {day}{_time(last, self.unit)}"
        last -= datetime.timedelta.resolution  # falls on the last day
        return f"{first:%a} {_day(first)}" if first.date() == last.date() else f"{_day(first)} to {_day(last)}"

    def moment(self, moment: str) -> str:
        """``Mon 5 Nov 2001``, or with the time of day: the name of a window of which only the beginning is known."""
        at = local(moment, self.zone)
        return f"{at:%a} {_day(at)}" if self.unit is None else f"{_day(at)}, {_time(at, self.unit)}"

    def text(self, text: str) -> str:
        """A text that begins with ``window=`` and the start of a window, as comparisons call it, with its name."""
        return _WINDOW.sub(lambda found: self.moment(found[1]), text) if _WINDOW.match(text) else text


def starts_in(texts: Iterable[str]) -> list[str]:
    """The starts of the windows that texts begin with, see ``WindowNames.text``."""
    return [found[1] for found in map(_WINDOW.match, texts) if found is not None]


def name_of_moment(moment: str, zone: datetime.tzinfo) -> str:
    """``5 Nov 2001, 13:00:05``: a moment, rounded down to seconds."""
    at = local(moment, zone).replace(microsecond=0)
    return f"{_day(at)}, {_time(at, 'seconds')}"


def moment_in_zone(moment: str, zone: datetime.tzinfo) -> str:
    """A moment and its time zone, for texts that name no other."""
    return f"{name_of_moment(moment, zone)} ({zone})"


def _unit(moment: datetime.datetime) -> str:
    """The ``timespec`` that a time of day needs."""
    return _UNITS[2] if moment.microsecond else _UNITS[1] if moment.second else _UNITS[0]


def _time(moment: datetime.datetime, unit: str) -> str:
    """The time of day; in the hour that comes twice when clocks are put back, with the name of the clock."""
    twice = moment.replace(fold=0).utcoffset() != moment.replace(fold=1).utcoffset()
    return moment.time().isoformat(unit) + f" {moment:%Z}" * twice


def _day(moment: datetime.datetime) -> str:
    return f"{moment.day} {moment:%b %Y}"
