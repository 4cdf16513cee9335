"""Days, weeks and months of a place, against a slow reference that asks zoneinfo for the local time of each moment."""

from __future__ import annotations

import datetime
import pickle
import zoneinfo
from typing import Any
from zoneinfo import _zoneinfo  # type: ignore[attr-defined]  # the one in Python, which shows what it read

import numpy as np
import pytest
from apache_beam.coders.coders import IntervalWindowCoder
from apache_beam.internal import pickler
from apache_beam.runners.pipeline_context import PipelineContext
from apache_beam.transforms.core import Windowing
from apache_beam.transforms.window import FixedWindows, IntervalWindow, WindowFn
from apache_beam.utils.timestamp import Timestamp
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.messages_cases import KRR
from uldp_transforms import CalendarWindows, JobSpec
from uldp_transforms.beam.runtime.beam_windows import CalendarWindowFn, beam_periods, beam_windows, windows_of_beam
from uldp_transforms.calendar_windows import (
    CalendarPeriods,
    _clocks,
    _day_of,
    _start_of_day,
    calendar_length,
    is_months,
)
from uldp_transforms.ldp.client_window import ClientWindow
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME, TimeGate, parse_duration, rfc3339

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
MONDAY = datetime.date(1970, 1, 5)

CHANGES = {  # days on which clocks were changed, in UTC
    "Europe/Berlin": ["2024-03-31", "2024-10-27", "1945-05-24", "8424-03-31"],
    "America/New_York": ["2024-03-10", "2024-11-03", "1918-03-31"],
    "Australia/Lord_Howe": ["2024-04-06", "2024-10-05"],  # half an hour
    "Pacific/Apia": ["2011-12-30", "2011-12-31"],  # no 30 December
    "Pacific/Kwajalein": ["1969-09-30", "1993-08-21"],  # one day twice, one left out
    "America/Sao_Paulo": ["2018-11-04", "2018-02-18"],  # midnight is left out; 23:00 comes twice
    "America/St_Johns": ["2010-11-07", "2010-03-14"],  # back at one minute past midnight
    "Africa/Casablanca": ["2024-03-10", "2087-05-11"],
    "Asia/Kathmandu": ["1985-12-31"],
    "UTC": ["1970-01-01"],
}


def moment_of(text: str) -> int:
    moment = datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.timezone.utc)
    return (moment - EPOCH) // datetime.timedelta(milliseconds=1)


def local(timezone: str, moment: int) -> datetime.datetime:
    return (EPOCH + datetime.timedelta(milliseconds=moment)).astimezone(zoneinfo.ZoneInfo(timezone))


def date_of(timezone: str, moment: int) -> datetime.date:
    """The latest date that clocks showed in the day before; they are put back by no more, and never twice a day."""
    first, last = (local(timezone, moment - minutes * MINUTE) for minutes in (1439, 0))
    if first.utcoffset() == last.utcoffset():
        return last.date()
    return max(local(timezone, moment - minutes * MINUTE).date() for minutes in range(1440))


def day_of(timezone: str, moment: int) -> int:
    return (date_of(timezone, moment) - MONDAY).days


def month_of(timezone: str, moment: int) -> int:
    date = date_of(timezone, moment)
    return 12 * (date.year - 1970) + date.month - 1


NUMBERS = {"d": day_of, "mo": month_of}

timezones = st.sampled_from(sorted(CHANGES))
zoned_moments = timezones.flatmap(
    lambda name: st.tuples(
        st.just(name),
        st.integers(MIN_EVENT_TIME, MAX_EVENT_TIME - 1)
        | st.builds(lambda day, off: moment_of(day) + off, st.sampled_from(CHANGES[name]), st.integers(-DAY, 2 * DAY))
        | st.builds(
            lambda day, hours: moment_of(day) + hours * HOUR // 2, st.sampled_from(CHANGES[name]), st.integers(-48, 96)
        ),
    )
)


def lengths(unit: str, most: int) -> st.SearchStrategy[tuple[str, int, int, int]]:
    return st.integers(1, most).flatmap(
        lambda size: st.integers(1, size).flatmap(
            lambda slide: st.tuples(st.just(unit), st.just(size), st.just(slide), st.integers(0, slide - 1))
        )
    )


shapes = lengths("d", 12) | lengths("mo", 12)


# ---------------------------------------------------------------------- where windows begin and end


@settings(max_examples=30, deadline=None)
@given(zoned_moments, shapes)
def test_a_moment_is_in_the_windows_that_local_time_says(where, shape):
    (timezone, moment), (unit, size, slide, offset) = where, shape
    windows = CalendarWindows(size=size, slide=slide, offset=offset, unit=unit, timezone=timezone)
    number = NUMBERS[unit]
    here = number(timezone, moment)
    expected = [first for first in range(here, here - size, -1) if (first - offset) % slide == 0]
    starts = windows.starts_around(moment)
    left_out = len(expected) - len(starts)
    assert left_out in ((0, 1) if unit == "d" and slide == 1 else (0,)), "only a day that is no day"
    assert list(starts) == sorted(set(starts), reverse=True)
    found = {}
    for start in (starts[0], starts[-1]):
        end = windows.end_of(start)
        assert start <= moment < end
        first = max(first for first in expected if number(timezone, start - 1) < first <= number(timezone, start))
        assert number(timezone, end - 1) < first + size <= number(timezone, end)
        found[first] = start
    assert found[expected[0]] == starts[0]


@settings(max_examples=40, deadline=None)
@given(zoned_moments, shapes)
def test_base_periods_divide_windows(where, shape):
    (timezone, moment), (unit, size, slide, offset) = where, shape
    windows = CalendarWindows(size=size, slide=slide, offset=offset, unit=unit, timezone=timezone)
    periods = windows.periods
    start, end = int(periods.start_of(moment)), int(periods.end_of(moment))
    assert start <= moment < end
    assert windows.starts_around(start) == windows.starts_around(end - 1) == windows.starts_around(moment)
    assert int(periods.start_of(end - 1)) == start < int(periods.start_of(end)) == end
    for first in windows.starts_around(moment):
        assert first == int(periods.start_of(first))
        assert windows.end_of(first) == int(periods.start_of(windows.end_of(first)))


@settings(max_examples=40, deadline=None)
@given(timezones, st.lists(st.integers(MIN_EVENT_TIME, MAX_EVENT_TIME - 1), min_size=1, max_size=30), shapes)
def test_periods_of_many_reports_are_those_of_each(timezone, times, shape):
    unit, size, slide, offset = shape
    periods = CalendarWindows(size=size, slide=slide, offset=offset, unit=unit, timezone=timezone).periods
    starts, index = periods.split(np.array(times, dtype=np.int64))
    assert [starts[place] for place in index.tolist()] == [int(periods.start_of(moment)) for moment in times]
    assert starts == sorted(set(starts))
    assert all(type(start) is int for start in starts)


@pytest.mark.parametrize("timezone", sorted(CHANGES))
@pytest.mark.parametrize("spread", [DAY // 4, 3 * DAY, 60 * DAY, 70 * DAY, 40_000 * DAY])
@pytest.mark.parametrize(("size", "slide", "unit"), [(1, 1, "d"), (7, 3, "d"), (14, 14, "d"), (1, 1, "mo")])
def test_periods_of_thousands_of_reports_are_those_of_each(timezone, spread, size, slide, unit):
    """By a table of the periods between, and one by one."""
    periods = CalendarWindows(size=size, slide=slide, unit=unit, timezone=timezone).periods
    times = moment_of(CHANGES[timezone][0]) + np.linspace(-spread, spread, 999).astype(np.int64)
    starts, ends = [[int(find(moment)) for moment in times.tolist()] for find in (periods.start_of, periods.end_of)]
    assert periods.start_of(times).tolist() == starts
    assert periods.end_of(times).tolist() == ends
    found, index = periods.split(times)
    assert [found[place] for place in index.tolist()] == starts
    assert [len(find(times[:0])) for find in (periods.start_of, periods.end_of)] == [0, 0]


@pytest.mark.parametrize(
    ("timezone", "moment", "start", "hours"),
    [
        ("Europe/Berlin", "2024-03-31T12", "2024-03-30T23:00:00Z", 23),
        ("Europe/Berlin", "2024-10-27T12", "2024-10-26T22:00:00Z", 25),
        ("America/New_York", "2024-03-10T12", "2024-03-10T05:00:00Z", 23),
        ("Australia/Lord_Howe", "2024-04-06T16", "2024-04-06T13:00:00Z", 24.5),
        ("Australia/Lord_Howe", "2024-10-05T16", "2024-10-05T13:30:00Z", 23.5),
        ("Pacific/Apia", "2011-12-30T09:59:59", "2011-12-29T10:00:00Z", 24),  # the 29th
        ("Pacific/Apia", "2011-12-30T10", "2011-12-30T10:00:00Z", 24),  # the 31st
        ("America/Sao_Paulo", "2018-11-04T12", "2018-11-04T03:00:00Z", 23),  # begins at one o'clock
        ("America/Sao_Paulo", "2018-02-17T12", "2018-02-17T02:00:00Z", 25),
        ("America/St_Johns", "2010-11-07T03", "2010-11-07T02:30:00Z", 25),  # the date goes back for an hour
        ("Europe/Berlin", "8424-03-31T12", "8424-03-30T23:00:00Z", 23),
        ("UTC", "2024-03-31T12", "2024-03-31T00:00:00Z", 24),
    ],
)
def test_days_whose_length_is_known(timezone, moment, start, hours):
    windows = CalendarWindows(size=1, unit="d", timezone=timezone)
    (begin,) = windows.starts_around(moment_of(moment))
    assert (rfc3339(begin), (windows.end_of(begin) - begin) / HOUR) == (start, hours)


def test_a_day_that_was_left_out_begins_no_window_of_its_own():
    """A week that slides by days: 30 December would begin where 31 December begins, and its sum be added to that."""
    apia = CalendarWindows(size=7, slide=1, unit="d", timezone="Pacific/Apia")
    new_year = moment_of("2012-01-01")
    assert [rfc3339(start)[:10] for start in apia.starts_around(new_year)] == [
        *("2011-12-31", "2011-12-30", "2011-12-29", "2011-12-28", "2011-12-27", "2011-12-26")
    ]
    fixed = CalendarWindows(size=2, offset=0, unit="d", timezone="Pacific/Apia")
    starts = {start for hour in range(96) for start in fixed.starts_around(moment_of("2011-12-29") + hour * HOUR)}
    assert sorted((fixed.end_of(start) - start) // HOUR for start in starts) == [24, 48, 48]


@pytest.mark.parametrize(
    ("values", "moment", "start", "end"),
    [
        ({"window": "1w"}, "2024-04-03", "2024-03-31T22:00:00Z", "2024-04-07T22:00:00Z"),  # Monday
        ({"window": "7d"}, "2024-04-03", "2024-03-31T22:00:00Z", "2024-04-07T22:00:00Z"),
        ({"window": "P1W"}, "2024-03-27", "2024-03-24T23:00:00Z", "2024-03-31T22:00:00Z"),  # of 167 hours
        ({"window": "1w", "window_offset": "6d"}, "2024-04-03", "2024-03-30T23:00:00Z", "2024-04-06T22:00:00Z"),
        ({"window": "1mo"}, "2024-10-31T23:30", "2024-10-31T23:00:00Z", "2024-11-30T23:00:00Z"),
        ({"window": "P3M"}, "2024-02-29", "2023-12-31T23:00:00Z", "2024-03-31T22:00:00Z"),
        ({"window": "12mo", "window_offset": "3mo"}, "2024-02-29", "2023-03-31T22:00:00Z", "2024-03-31T22:00:00Z"),
        ({"window": datetime.timedelta(days=1)}, "2024-02-29", "2024-02-28T23:00:00Z", "2024-02-29T23:00:00Z"),
    ],
)
def test_weeks_begin_on_mondays_and_months_on_the_first(values, moment, start, end):
    windows = JobSpec.of(collections=[KRR], timezone="Europe/Berlin", **values).windows
    assert windows is not None
    (begin,) = windows.starts_around(moment_of(moment))
    assert (rfc3339(begin), rfc3339(windows.end_of(begin))) == (start, end)


def test_without_a_time_zone_months_are_those_of_utc_and_days_are_what_they_were():
    months = JobSpec.of(collections=[KRR], window="1mo").windows
    assert months == CalendarWindows(size=1, unit="mo", timezone="UTC")
    for day in ("1d", "P1D", "PT24H", "24h"):
        assert JobSpec.of(collections=[KRR], window=day).windows == JobSpec.of(collections=[KRR], window="1d").windows
    thursdays = JobSpec.of(collections=[KRR], window="1w").windows
    assert thursdays == JobSpec.of(collections=[KRR], window="7d").windows
    assert thursdays is not None
    assert rfc3339(thursdays.starts_around(0)[0]) == "1970-01-01T00:00:00Z"


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(sorted(CHANGES), id="some"),
        pytest.param(sorted(zoneinfo.available_timezones()), id="all", marks=pytest.mark.slow),
    ],
)
def test_the_changes_of_zones_are_those_in_the_files_of_the_database(names):
    """None of them is so short that asking once a day would miss it, and all irregular ones are before 2100.

    Of zones whose files have the same changes one is asked: many names are other names of a zone.
    """
    asked = set()
    for name in names:
        file: Any = _zoneinfo.ZoneInfo.no_cache(name)
        first, ahead = -2_272_060_800, [file._tti_before, *file._ttinfos]
        offsets = [info.utcoff // datetime.timedelta(milliseconds=1) for info in ahead if info is not None]
        changes = list(file._trans_utc)
        if (rules := (*changes, *offsets)) in asked:
            continue
        asked.add(rules)
        expected = [
            (1000 * second, then)
            for second, before, then in zip(changes, offsets, offsets[1:])
            if before != then and second > first
        ]
        clocks = _clocks(name)
        found = list(zip(clocks.changes.tolist(), clocks.offsets[1:].tolist()))
        assert found[: len(expected)] == expected, name
        assert all(second < 4_102_444_800 for second in changes), name


@given(timezones, st.integers(-10_000_000, 10_000_000))
def test_days_far_outside_of_all_event_times_are_counted_on(timezone, day):
    """Arrival times can be anything; and rules repeat after 400 years."""
    start = int(_start_of_day(timezone, day))
    here = int(_day_of(timezone, start))
    assert here == day or (here == day + 1 and timezone.startswith("Pacific"))
    assert int(_day_of(timezone, start - 1)) < day
    if day > 50_000:
        assert int(_start_of_day(timezone, day + 146_097)) == start + 146_097 * DAY


# ---------------------------------------------------------------------- lengths


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1d", (1, "d")),
        ("2w", (14, "d")),
        ("3mo", (3, "mo")),
        ("P7D", (7, "d")),
        ("P2W", (14, "d")),
        ("P1M", (1, "mo")),
    ],
)
def test_lengths_of_a_calendar(text, expected):
    assert calendar_length(text, "here") == expected
    assert is_months(text) == (expected[1] == "mo")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT1H", HOUR),
        ("PT90S", 90 * SECOND),
        ("PT0.500S", 500),
        ("PT1H30M", 90 * MINUTE),
        ("P1D", DAY),
        ("P7D", 7 * DAY),
        ("P1W", 7 * DAY),
        ("1w", 7 * DAY),
        ("P1DT12H", 36 * HOUR),
    ],
)
def test_iso_durations(text, expected):
    assert parse_duration(text) == expected


# ---------------------------------------------------------------------- the gate


@settings(max_examples=40, deadline=None)
@given(zoned_moments, shapes, st.integers(0, DAY))
def test_the_gate_closes_when_the_day_of_the_place_and_the_lateness_are_over(where, shape, lateness):
    (timezone, moment), (unit, size, slide, offset) = where, shape
    periods = CalendarWindows(size=size, slide=slide, offset=offset, unit=unit, timezone=timezone).periods
    gate = TimeGate(periods=periods, allowed_lateness=lateness)
    closes = int(periods.end_of(moment)) + lateness
    times, arrivals = np.full(2, moment), np.array([closes - 1, closes])
    assert gate.late_by(times, arrivals).tolist() == [0, 1]


@pytest.mark.parametrize(("timezone", "day"), [(name, day) for name in sorted(CHANGES) for day in CHANGES[name]])
@pytest.mark.parametrize(("size", "slide", "unit"), [(1, 1, "d"), (7, 1, "d"), (7, 7, "d"), (12, 5, "d"), (2, 1, "mo")])
def test_no_more_windows_are_open_than_the_bound_says(timezone, day, size, slide, unit):
    windows = CalendarWindows(size=size, slide=slide, unit=unit, timezone=timezone)
    for span in (0, DAY, 40 * DAY):
        for last in range(moment_of(day) - DAY, moment_of(day) + span + 2 * DAY, 31 * HOUR):
            times = [*range(last - span, last, 23 * HOUR), last]
            assert len({start for moment in times for start in windows.starts_around(moment)}) <= windows.most_open(
                span
            )


@pytest.mark.parametrize(
    ("size", "slide", "unit", "span", "number"),
    [
        (1, 1, "d", 0, 3),  # a day, cut at both ends, and a skipped one
        (1, 1, "d", 1, 4),
        (1, 1, "d", DAY, 4),
        (1, 1, "d", DAY + 1, 5),
        (7, 7, "d", 5 * DAY, 2),
        (7, 7, "d", 5 * DAY + 1, 3),
        (7, 3, "d", 0, 3),
        (7, 3, "d", 1, 4),
        (12, 5, "mo", 28 * DAY, 3),
        (12, 5, "mo", 28 * DAY + 1, 4),
    ],
)
def test_the_bound_of_open_windows_by_hand(size, slide, unit, span, number):
    assert CalendarWindows(size=size, slide=slide, unit=unit, timezone="UTC").most_open(span) == number


# ---------------------------------------------------------------------- whole client windows


@pytest.mark.parametrize(
    ("timezone", "length", "whole"),
    [
        ("UTC", "1d", True),
        ("UTC", "2d", False),
        ("UTC", "7m", False),  # no part of a day
        ("Europe/Berlin", "1h", True),
        ("Europe/Berlin", "2h", False),  # midnight at 23:00 UTC
        ("Asia/Kathmandu", "15m", True),  # 5:30 ahead until 1985, and then 5:45
        ("Asia/Kathmandu", "30m", False),
        ("America/Caracas", "30m", True),  # 4:30 behind from 2007 to 2016
        ("America/Caracas", "1h", False),
        ("Africa/Monrovia", "1h", False),  # 44 minutes and 30 seconds behind until 1972
        ("Pacific/Honolulu", "1h", True),  # half an hour less before 1970 only
    ],
)
def test_client_windows_of_fixed_length_are_whole_if_they_begin_at_all_midnights_since_1970(timezone, length, whole):
    asked = ClientWindow.of(length)
    assert CalendarWindows(size=1, unit="d", timezone=timezone).are_whole(asked) is whole
    assert CalendarWindows(size=1, unit="mo", timezone=timezone).are_whole(asked) is whole


@pytest.mark.parametrize(
    ("size", "slide", "offset", "unit", "length", "whole"),
    [
        (4, 4, 0, "d", "2d", True),
        (4, 2, 0, "d", "2d", True),
        (6, 4, 2, "d", "2d", True),
        (5, 4, 0, "d", "2d", False),
        (4, 3, 0, "d", "2d", False),
        (4, 4, 1, "d", "2d", False),
        (2, 2, 0, "d", "4d", False),
        (2, 1, 0, "mo", "1d", True),
        (2, 2, 0, "mo", "2d", False),
    ],
)
def test_client_windows_of_days_are_whole_if_they_divide_lengths_and_starts(size, slide, offset, unit, length, whole):
    windows = CalendarWindows(size=size, slide=slide, offset=offset, unit=unit, timezone="Europe/Berlin")
    assert windows.are_whole(ClientWindow.of(length, "Europe/Berlin")) is whole
    assert not windows.are_whole(ClientWindow.of(length, "Europe/Paris"))


# ---------------------------------------------------------------------- as Beam has them

WINDOWS = [
    CalendarWindows(size=1, unit="d", timezone="Europe/Berlin"),
    CalendarWindows(size=7, slide=1, unit="d", timezone="Pacific/Apia"),
    CalendarWindows(size=1, unit="mo", timezone="America/Sao_Paulo"),
]


@pytest.mark.parametrize("windows", WINDOWS, ids=str)
def test_the_window_function_goes_to_workers_and_back(windows):
    window_fn = beam_windows(windows)
    assert windows_of_beam(window_fn) == windows
    context = PipelineContext()
    copies = [
        pickle.loads(pickle.dumps(window_fn)),
        pickler.loads(pickler.dumps(window_fn)),
        WindowFn.from_runner_api(window_fn.to_runner_api(context), context),
        Windowing.from_runner_api(Windowing(window_fn).to_runner_api(context), context).windowfn,
    ]
    for copy in copies:
        assert type(copy) is CalendarWindowFn
        assert (copy == window_fn, hash(copy) == hash(window_fn), copy.windows == windows) == (True, True, True)
        assert str(copy) == str(window_fn) == f"CalendarWindowFn({windows})"
    others = [other for other in WINDOWS if other != windows]
    assert all(window_fn != beam_windows(other) for other in others)
    assert window_fn != FixedWindows(86_400)


@pytest.mark.parametrize("windows", WINDOWS, ids=str)
def test_windows_are_beams_intervals_and_survive_their_coder(windows):
    window_fn = CalendarWindowFn(windows)
    moment = moment_of("2011-12-31T23:59:59.999")
    assigned = window_fn.assign(WindowFn.AssignContext(Timestamp(micros=1000 * moment + 999)))
    assert [window.start.micros // 1000 for window in assigned] == list(windows.starts_around(moment))
    assert [window.end.micros // 1000 for window in assigned] == [
        windows.end_of(start) for start in windows.starts_around(moment)
    ]
    coder = window_fn.get_window_coder()
    assert isinstance(coder, IntervalWindowCoder)
    assert [coder.decode(coder.encode(window)) for window in assigned] == assigned
    assert all(type(window) is IntervalWindow for window in assigned)
    assert not window_fn.is_merging()


def test_base_periods_are_windows_of_beam():
    periods = WINDOWS[1].periods
    assert type(periods) is CalendarPeriods
    assert beam_periods(periods) == CalendarWindowFn(CalendarWindows(size=1, unit="d", timezone="Pacific/Apia"))


@pytest.mark.parametrize("windows", WINDOWS, ids=str)
def test_plain_values_and_back(windows):
    spec = JobSpec(collections=(KRR,), windows=windows)
    assert JobSpec.from_json(spec.to_json()) == spec
    assert JobSpec.of(collections=[KRR], window=windows) == JobSpec.of(collections=[KRR], window=beam_windows(windows))
