"""Windows in words: in the time zone of the job, and as short as they can be."""

from __future__ import annotations

import datetime
import zoneinfo

UTC = "UTC"


def clock(zone: str | None) -> datetime.tzinfo:
    """The time zone of a job; UTC for one that is unknown here."""
    try:
        return zoneinfo.ZoneInfo(zone or UTC)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return datetime.timezone.utc


def local(moment: str, zone: datetime.tzinfo) -> datetime.datetime:
    """RFC 3339 -> the time on the clocks of a place."""
    return datetime.datetime.fromisoformat(moment.removesuffix("Z") + "+00:00").astimezone(zone)


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
    last -= datetime.timedelta(hours=12)  # the last day itself
    return f"{first:%a} {_day(first)}" if first.date() == last.date() else f"{_day(first)} to {_day(last)}"


def _unit(*moments: datetime.datetime) -> str:
    """The ``timespec`` that tells times apart: minutes, unless a window begins or ends within one."""
    if any(moment.microsecond for moment in moments):
        return "milliseconds"
    return "seconds" if any(moment.second for moment in moments) else "minutes"


def _day(moment: datetime.datetime) -> str:
    return f"{moment.day} {moment:%b %Y}"
