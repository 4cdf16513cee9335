"""Labels of an axis of time: a whole date where it begins, then few and round moments."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator, Sequence

_ROOM, _ROOM_WITH_TIME = 0.34, 0.45  # of the axis, for the whole date
_DAY = datetime.timedelta(days=1)
_STEPS = (
    *(("minutes", number) for number in (1, 2, 5, 10, 20, 30)),
    *(("hours", number) for number in (1, 2, 3, 4, 6, 8, 12)),
    *(("days", number) for number in (1, 2, 3, 7, 14)),
    *(("months", number) for number in (1, 2, 3, 6)),
    *(("years", number) for number in (1, 2, 3, 5, 10, 20, 50)),
)
_LENGTHS = {"months": 30 * _DAY, "years": 365 * _DAY}


def labels_of(moments: Sequence[datetime.datetime]) -> dict[datetime.datetime, str]:
    """Moment -> its label, such as ``14 Feb 2001``, then ``28 Feb``; at most four.

    Args:
        moments: of the windows in order of time, all without a time zone. Labels are no closer than the windows.
    """
    if not moments:
        return {}
    first, last = moments[0], moments[-1]
    has_times = any(moment.time() != datetime.time() for moment in moments)
    found = {first: f"{_date(first)}{f', {first:%H:%M}' if has_times else ''}"}
    shortest = min((after - before for before, after in itertools.pairwise(moments)), default=_DAY)
    room = (_ROOM_WITH_TIME if has_times else _ROOM) * (last - first)
    kind, number = next((step for step in _STEPS if _length(*step) >= max(room, shortest)), _STEPS[-1])
    before = first
    for moment in _steps(first, last, kind, number):
        if moment - first >= room:
            found[moment] = _short(moment, before, kind)
            before = moment
    return found


def _length(kind: str, number: int) -> datetime.timedelta:
    return number * _LENGTHS[kind] if kind in _LENGTHS else datetime.timedelta(**{kind: number})


def _steps(first: datetime.datetime, last: datetime.datetime, kind: str, number: int) -> Iterator[datetime.datetime]:
    """The moments after the first one: days are counted from it, all others are round."""
    if kind in _LENGTHS:
        months = number * (12 if kind == "years" else 1)
        place = 12 * first.year + (first.month - 1 if kind == "months" else 0)
        while (place := place + months) // 12 < datetime.MAXYEAR:
            moment = datetime.datetime(place // 12, place % 12 + 1, 1)
            if moment > last:
                return
            yield moment
        return
    step = _length(kind, number)
    moment = first if kind == "days" else datetime.datetime(first.year, first.month, first.day)
    while (moment := moment + step) <= last:
        if moment > first:
            yield moment


def _short(moment: datetime.datetime, before: datetime.datetime, kind: str) -> str:
    """Without what the label before has said."""
    if kind in ("minutes", "hours"):
        return f"{moment:%H:%M}" if moment.date() == before.date() else f"{moment.day} {moment:%b}"
    if kind == "years":
        return f"{moment.year}"
    if moment.year != before.year:
        return _date(moment) if kind == "days" else f"{moment:%b %Y}"
    return f"{moment.day} {moment:%b}" if kind == "days" else f"{moment:%b}"


def _date(moment: datetime.datetime) -> str:
    return f"{moment.day} {moment:%b %Y}"
