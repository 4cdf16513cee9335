"""Short names of windows in the time zone of the job."""

from __future__ import annotations

import datetime
import re
import zoneinfo

UTC = "UTC"
_WINDOW = re.compile(r"window=(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)(?= |$)")


def clock(zone: str | None) -> datetime.tzinfo:
    """The time zone of a job; UTC if it is unknown on this machine."""
    try:
        return zoneinfo.ZoneInfo(zone or UTC)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return datetime.timezone.utc


def local(moment: str, zone: datetime.tzinfo) -> datetime.datetime:
    """Convert RFC 3339 to local time in a time zone."""
    return datetime.datetime.fromisoformat(moment.removesuffix("Z") + "+00:00").astimezone(zone)


def name_of_moment(moment: str, zone: datetime.tzinfo) -> str:
    """``Mon 5 Nov 2001`` for the beginning of a day, or with the time of day."""
    at = local(moment, zone)
    return f"{at:%a} {_day(at)}" if at.time() == datetime.time() else f"{_day(at)}, {_time(at, _unit(at))}"


def with_name_of_window(text: str, zone: datetime.tzinfo) -> str:
    """A text that begins with ``window=`` and the start of a window, as comparisons call it, with its name instead."""
    return _WINDOW.sub(lambda found: name_of_moment(found[1], zone), text) if _WINDOW.match(text) else text


def name_of_window(start: str | None, end: str | None, zone: datetime.tzinfo) -> str:
    """``Mon 5 Nov 2001``, ``5 Nov 2001 to 11 Nov 2001``, or with times of day; ``all reports`` without windows."""
    if start is None or end is None:
        return "all reports"
    first, last = local(start, zone), local(end, zone)
    midnight = datetime.time()
    if first.time() != midnight or last.time() != midnight:
        unit = _unit(first, last)
        day = "" if _day(first) == _day(last) else f"{_day(last)}, "
        return f"{_day(first)}, {_time(first, unit)} to {day}{_time(last, unit)}"
    last -= datetime.timedelta.resolution  # falls on the last day
    return f"{first:%a} {_day(first)}" if first.date() == last.date() else f"{_day(first)} to {_day(last)}"


def _unit(*moments: datetime.datetime) -> str:
    """The ``timespec`` that distinguishes the times: minutes, unless a window begins or ends within a minute."""
    if any(moment.microsecond for moment in moments):
        return "milliseconds"
    return "seconds" if any(moment.second for moment in moments) else "minutes"


def _time(moment: datetime.datetime, unit: str) -> str:
    """The time of day; in the hour that comes twice when clocks are put back, with the name of the clock."""
    twice = moment.replace(fold=0).utcoffset() != moment.replace(fold=1).utcoffset()
    return moment.time().isoformat(unit) + f" {moment:%Z}" * twice


def _day(moment: datetime.datetime) -> str:
    return f"{moment.day} {moment:%b %Y}"
