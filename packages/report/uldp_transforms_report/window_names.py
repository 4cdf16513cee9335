"""Short names of windows in the time zone of the job."""

from __future__ import annotations

import datetime
import zoneinfo

UTC = "UTC"


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
    return f"{at:%a} {_day(at)}" if at.time() == datetime.time() else f"{_day(at)}, {at.time().isoformat(_unit(at))}"


def name_of_window(start: str | None, end: str | None, zone: datetime.tzinfo) -> str:
    """``Mon 5 Nov 2001``, ``5 Nov 2001 to 11 Nov 2001``, or with times of day; ``all reports`` without windows."""
    if start is None or end is None:
        return "all reports"
    first, last = local(start, zone), local(end, zone)
    midnight = datetime.time()
    if first.time() != midnight or last.time() != midnight:
        unit = _unit(first, last)
        day = "" if _day(first) == _day(last) else f"{_day(last)}, "
        return f"{_day(first)}, {first.time().isoformat(unit)} to {day}{last.time().isoformat(unit)}"
    last -= datetime.timedelta.resolution  # falls on the last day
    return f"{first:%a} {_day(first)}" if first.date() == last.date() else f"{_day(first)} to {_day(last)}"


def _unit(*moments: datetime.datetime) -> str:
    """The ``timespec`` that distinguishes the times: minutes, unless a window begins or ends within a minute."""
    if any(moment.microsecond for moment in moments):
        return "milliseconds"
    return "seconds" if any(moment.second for moment in moments) else "minutes"


def _day(moment: datetime.datetime) -> str:
    return f"{moment.day} {moment:%b %Y}"
