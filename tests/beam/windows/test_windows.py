"""Time: durations, windows, the gate, and counting per base period."""

from __future__ import annotations

import datetime
import re
from collections import defaultdict
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.messages_cases import KNOWN, KRR, NOON, RAPPOR, URAP, collection
from tests.support.tolerance import generator
from uldp_transforms.collector.period_counts import count_periods
from uldp_transforms.ldp import CohortCounts, Collection, ReportBatch, SpecError
from uldp_transforms.ldp.client_window import ClientWindow
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.windows import (
    MAX_EVENT_TIME,
    MIN_EVENT_TIME,
    BasePeriods,
    TimeGate,
    Windows,
    duration_text,
    milliseconds,
    moment_of,
    parse_duration,
    rfc3339,
    split_by_owner_and_period,
    split_by_period,
    split_runs_by_period,
)

PERIODS = "Windows.size must be at most 1440 base periods (the longest time that divides size and slide), got"
SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
CENTURY = 36_525 * DAY
YEAR = 365 * DAY

# ---------------------------------------------------------------------- durations and names of moments


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1ms", 1),
        ("90s", 90 * SECOND),
        ("15m", 15 * MINUTE),
        ("1h", HOUR),
        ("1d", DAY),
        ("0s", 0),
        ("007d", 7 * DAY),
        ("999999999999d", 999_999_999_999 * DAY),
    ],
)
def test_durations(text, expected):
    assert parse_duration(text) == expected


@given(st.integers(0, 10**13) | st.integers(0, 10**6).map(lambda days: days * DAY))
def test_a_duration_is_named_by_the_text_that_it_is_read_from(length):
    assert parse_duration(duration_text(length)) == length


@pytest.mark.parametrize(("length", "text"), [(1, "1ms"), (1500, "1500ms"), (90 * SECOND, "90s"), (DAY, "1d")])
def test_a_duration_is_named_in_its_largest_unit(length, text):
    assert duration_text(length) == text


@pytest.mark.parametrize("slide", [MINUTE, 7 * MINUTE, DAY])
def test_a_window_of_as_many_periods_as_a_day_has_minutes(slide):
    windows = Windows(size=DAY, slide=slide)
    assert windows.size // windows.base <= 1440
    assert len(windows.starts_around(NOON)) == len(windows.starts_around(NOON + 1)) <= 1440


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "h",
        "5x",
        "-5s",
        "+5s",
        "1.5h",
        "1 h",
        " 1h",
        "1h ",
        "1h\n",
        "1h30m",
        "1H",
        "\u0663h",
        "1_0s",
        "9" * 14 + "s",
    ],
)
def test_other_durations_are_refused(text):
    sentence = f"--window must be a number with a unit such as 90s, 15m, 1h or 1d, got {text!r}"
    with pytest.raises(SpecError, match=f"^{re.escape(sentence)}$"):
        parse_duration(text, "--window")


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1h", HOUR), ("0ms", 0), (timedelta(hours=1), HOUR), (timedelta(0), 0), (timedelta(days=-1), -24 * HOUR)],
)
def test_milliseconds_are_texts_or_time_deltas(value, expected):
    assert milliseconds(value, "here") == expected


@pytest.mark.parametrize("value", [1.0, True, 7, 3600, b"1h", None, timedelta(microseconds=1)])
def test_other_milliseconds_are_refused(value):
    sentence = f"here must be a text with a unit such as 90s, 15m, 1h or 1d, got {value!r}"
    with pytest.raises(SpecError, match=f"^{re.escape(sentence)}$"):
        milliseconds(value, "here")


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (NOON, "2001-09-09T01:46:40Z"),
        (NOON + 7, "2001-09-09T01:46:40.007Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (-SECOND, "1969-12-31T23:59:59Z"),
        (951_782_400_000, "2000-02-29T00:00:00Z"),
        (MIN_EVENT_TIME, "1900-01-01T00:00:00Z"),
        (MAX_EVENT_TIME, "9999-01-01T00:00:00Z"),
        (MAX_EVENT_TIME - 1, "9998-12-31T23:59:59.999Z"),
    ],
)
def test_names_of_moments(moment, text):
    assert rfc3339(moment) == text
    assert moment_of(text) == moment


@given(st.integers(MIN_EVENT_TIME, MAX_EVENT_TIME))
def test_names_of_moments_are_exact_and_sorted_like_them(number):
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    moment = datetime.datetime.fromisoformat(rfc3339(number).replace("Z", "+00:00"))
    assert (moment - epoch) // datetime.timedelta(milliseconds=1) == number == moment_of(rfc3339(number))
    assert rfc3339(number // SECOND * SECOND) < rfc3339(number // SECOND * SECOND + SECOND)


# ---------------------------------------------------------------------- windows


@pytest.mark.parametrize(
    ("size", "slide", "step", "base"),
    [
        (HOUR, None, HOUR, HOUR),
        (HOUR, HOUR, HOUR, HOUR),
        (DAY, HOUR, HOUR, HOUR),
        (90 * MINUTE, HOUR, HOUR, 30 * MINUTE),
        (7, 5, 5, 1),
        (1, 1, 1, 1),
        (YEAR, DAY, DAY, DAY),
    ],
)
def test_base_periods_divide_all_windows(size, slide, step, base):
    windows = Windows(size=size, slide=slide)
    assert (windows.step, windows.base) == (step, base)
    assert size % base == step % base == 0


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"size": 0}, "Windows.size must be a duration from 1ms to 365d, got 0s"),
        ({"size": YEAR + 1}, "Windows.size must be a duration from 1ms to 365d, got 31536000001ms"),
        ({"size": 1.0}, "Windows.size must be a whole number of milliseconds, got 1.0"),
        ({"size": True}, "Windows.size must be a whole number of milliseconds, got True"),
        ({"slide": 0}, "Windows.slide must be a duration from 1ms to 10s, got 0s"),
        ({"slide": 10_001}, "Windows.slide must be a duration from 1ms to 10s, got 10001ms"),
        ({"slide": "5m"}, "Windows.slide must be a whole number of milliseconds, got '5m'"),
        ({"offset": -1}, "Windows.offset must be a duration from 0s to less than 10s, got -1ms"),
        ({"offset": 10_000}, "Windows.offset must be a duration from 0s to less than 10s, got 10s"),
        ({"slide": 4_000, "offset": 4_000}, "Windows.offset must be a duration from 0s to less than 4s, got 4s"),
        ({"offset": None}, "Windows.offset must be a whole number of milliseconds, got None"),
        ({"size": DAY, "slide": 10 * SECOND}, f"{PERIODS} 1d every 10s, which is 8640 periods of 10s"),
        ({"size": YEAR, "slide": SECOND}, f"{PERIODS} 365d every 1s, which is 31536000 periods of 1s"),
        ({"size": DAY, "slide": DAY - SECOND}, f"{PERIODS} 1d every 86399s, which is 86400 periods of 1s"),
        ({"size": 1441, "slide": 1440}, f"{PERIODS} 1441ms every 1440ms, which is 1441 periods of 1ms"),
    ],
)
def test_windows_that_cannot_be(fields, sentence):
    with pytest.raises(SpecError, match=f"^{re.escape(sentence)}$"):
        Windows(**{"size": 10_000} | fields)


@pytest.mark.parametrize(
    ("size", "slide", "offset", "phase"),
    [
        (HOUR, None, 0, 0),
        (HOUR, None, 7, 7),
        (DAY, HOUR, HOUR - 1, HOUR - 1),
        (90 * MINUTE, HOUR, 45 * MINUTE, 15 * MINUTE),  # base periods of half an hour
        (7, 5, 4, 0),
    ],
)
def test_base_periods_start_where_windows_start(size, slide, offset, phase):
    windows = Windows(size=size, slide=slide, offset=offset)
    assert windows.periods == BasePeriods(windows.base, phase)
    starts = np.arange(-3, 4) * windows.step + offset
    for edges in (starts, starts + size):
        assert (windows.periods.start_of(edges) == edges).all()


@pytest.mark.parametrize("fields", [{"size": 90}, {"size": 120, "slide": 90}, {"size": 120, "offset": 30}])
def test_windows_of_half_a_client_window_are_not_whole(fields):
    asked = ClientWindow(length=60)
    assert not Windows(**fields).are_whole(asked)
    assert Windows(**{name: 2 * length for name, length in fields.items()}).are_whole(asked)
    assert not Windows(size=DAY).are_whole(ClientWindow.of("1d", "Europe/Berlin"))


@pytest.mark.parametrize(
    ("fields", "span", "number"),
    [({"size": 10}, 0, 1), ({"size": 10}, 1, 2), ({"size": 10, "slide": 5}, 10, 4), ({"size": 10, "slide": 4}, 1, 3)],
)
def test_so_many_windows_can_be_open(fields, span, number):
    """Windows that begin up to a moment and end after the beginning of the span before it."""
    windows = Windows(**fields)
    assert windows.most_open(span) == number
    for last in range(20):
        assert len({start for moment in (last - span, last) for start in windows.starts_around(moment)}) <= number


# ---------------------------------------------------------------------- the gate


moments = st.integers(MIN_EVENT_TIME, MAX_EVENT_TIME - 1)


some_periods = st.sampled_from([1, 7, MINUTE, HOUR, DAY, CENTURY]).flatmap(
    lambda length: st.builds(BasePeriods, st.just(length), st.just(0) | st.integers(0, length - 1))
)


def start_of(moment: int, periods: BasePeriods) -> int:
    """Start of the base period of a moment; Python's integers, and its division that rounds down."""
    return (moment - periods.phase) // periods.length * periods.length + periods.phase


@given(moments, some_periods, st.integers(0, DAY), st.integers(0, HOUR))
def test_the_gate_opens_and_closes_to_the_millisecond(moment, periods, lateness, skew):
    gate = TimeGate(periods=periods, allowed_lateness=lateness, future_skew=skew)
    closes = start_of(moment, periods) + periods.length + lateness
    arrivals = np.array([moment - skew - 1, moment - skew, closes - 1, closes])
    times = np.full(4, moment)
    assert (gate.early_by(times, arrivals) > 0).tolist() == [True, False, False, False]
    assert (gate.late_by(times, arrivals) > 0).tolist() == [False, False, False, True]


def test_the_gate_says_by_how_much():
    gate = TimeGate(periods=BasePeriods(HOUR, 7), allowed_lateness=MINUTE, future_skew=SECOND)
    times, arrivals = np.array([HOUR, HOUR, HOUR]), np.array([0, HOUR + 7 + MINUTE, HOUR + 6 + MINUTE])
    assert gate.early_by(times, arrivals).tolist()[0] == HOUR - SECOND
    assert gate.late_by(times, arrivals).tolist()[1:] == [1, 0]
    assert gate.off_by == {Reason.TOO_EARLY: gate.early_by, Reason.TOO_OLD: gate.late_by}


def test_all_reports_of_a_period_are_too_old_at_the_same_moment():
    gate = TimeGate(periods=BasePeriods(HOUR), allowed_lateness=MINUTE)
    times = np.array([0, 1, HOUR - 1, HOUR, -1, -HOUR])
    too_old = gate.late_by(times, np.full(6, HOUR + MINUTE)) > 0
    assert too_old.tolist() == [True, True, True, False, True, True]
    assert not (gate.late_by(times[:4], np.full(4, HOUR + MINUTE - 1)) > 0).any()


# ---------------------------------------------------------------------- base periods of reports


@settings(max_examples=80)
@given(
    st.lists(moments | st.integers(-5 * MINUTE, 5 * MINUTE), min_size=1, max_size=80),
    some_periods,
)
def test_periods_are_found_in_order(times, periods):
    """Times close together and millennia apart: by a table and by sorting."""
    starts, index = split_by_period(np.array(times, np.int64), periods)
    expected = [start_of(moment, periods) for moment in times]
    assert starts == sorted(set(expected))
    assert [starts[position] for position in index.tolist()] == expected
    assert all(type(start) is int for start in starts)
    assert periods.start_of(np.array(times, np.int64)).tolist() == expected


@given(st.lists(moments, min_size=1, max_size=5))
def test_without_periods_all_reports_are_in_one(times):
    starts, index = split_by_period(np.array(times, np.int64), None)
    assert (starts, index.tolist()) == ([None], [0] * len(times))


@pytest.mark.parametrize("spread", [1, 4 + 1024 - 1, 4 + 1024, 1 << 40])
@pytest.mark.parametrize("periods", [BasePeriods(1), BasePeriods(7, 5)])
def test_periods_are_found_alike_by_a_table_and_by_sorting(spread, periods):
    starts, index = periods.split(np.array([0, -spread, 0], np.int64) * periods.length + 5)
    assert starts == [5 - spread * periods.length, 5]
    assert index.tolist() == [1, 0, 1]


@pytest.mark.parametrize("last", [3, 5000])
@pytest.mark.parametrize("periods", [BasePeriods(1), BasePeriods(7, 5)])
def test_pairs_of_owners_and_periods_are_found_in_order(last, periods):
    """By a table, and by sorting if there are many owners."""
    owners, times = [0, 0, 2, 2, 2, last], [5, -9, 5, 5, -99, 5]
    pairs = [(owner, start_of(time, periods)) for owner, time in zip(owners, times)]
    of_owners = split_by_owner_and_period(np.array(owners), np.array(times), periods)
    of_runs = split_runs_by_period(np.bincount(owners), np.array(times), periods)
    for of, starts, positions in (of_owners, of_runs):
        assert list(zip(of, starts)) == sorted(set(pairs))
        assert [(of[position], starts[position]) for position in positions.tolist()] == pairs
    of, starts, positions = split_by_owner_and_period(np.array(owners), np.array(times), None)
    assert (of, starts, positions.tolist()) == ([0, 2, last], [None] * 3, [0, 0, 1, 1, 1, 2])


def test_runs_in_one_period_keep_those_without_reports():
    """Each run is an owner of its own, because that needs no table."""
    of, starts, positions = split_runs_by_period(np.array([2, 0, 1]), np.array([3, 4, 5]), BasePeriods(10))
    assert (of, starts, positions.tolist()) == ([0, 1, 2], [0, 0, 0], [0, 0, 2])


# ---------------------------------------------------------------------- counting per base period

WIDE = collection("wide", {"id": "hashed", "num_buckets": 1 << 15}, "krr", num_cohorts=64)  # 2 periods at once
SAMPLES = {item.id: item.perturb(["0", "1", "2"] * 40, generator("periods", item.id)) for item in (*KNOWN, WIDE)}


def with_times(item: Collection, times: list[int]) -> ReportBatch:
    return ReportBatch(**vars(SAMPLES[item.id][: len(times)]) | {"event_times": np.array(times, np.int64)})


def by_dictionary(item: Collection, batch: ReportBatch, periods: BasePeriods | None) -> dict[int | None, CohortCounts]:
    """Each period counted alone, from a dictionary of its reports."""
    groups: dict[int | None, list[int]] = defaultdict(list)
    for i, moment in enumerate(batch.event_times.tolist()):
        groups[None if periods is None else start_of(moment, periods)].append(i)
    return {period: item.count(batch[np.array(rows)]) for period, rows in sorted(groups.items())}


@settings(max_examples=80)
@given(
    st.sampled_from(KNOWN),
    st.lists(moments | st.integers(-5 * MINUTE, 5 * MINUTE), min_size=1, max_size=120),
    st.none() | some_periods,
)
def test_counts_per_period_are_those_of_each_period_alone(item, times, periods):
    """Times close together and millennia apart, before and after 1970."""
    batch = with_times(item, times)
    counted = list(count_periods(item, batch, periods))
    expected = by_dictionary(item, batch, periods)
    assert [start for start, _ in counted] == list(expected)
    assert [counts for _, counts in counted] == list(expected.values())
    assert {type(start) for start, _ in counted} == {type(None) if periods is None else int}


@pytest.mark.parametrize("spread", [1, HOUR, CENTURY])
@pytest.mark.parametrize("item", [KRR, WIDE, URAP], ids=lambda item: item.id)
def test_more_periods_than_memory_allows_at_once(item, spread, monkeypatch):
    monkeypatch.setattr("uldp_transforms.collector.period_counts._MAX_CELLS", 4 * item.num_cohorts * item.num_cells + 1)
    times = [(i * i % 17 - 8) * spread for i in range(120)]
    batch, periods = with_times(item, times), BasePeriods(spread, spread // 3)
    assert dict(count_periods(item, batch, periods)) == by_dictionary(item, batch, periods)


def test_a_collection_as_large_as_the_memory_is_counted_period_by_period():
    batch = with_times(WIDE, [i % 5 * DAY for i in range(50)])
    assert WIDE.num_cohorts * WIDE.num_cells * 5 > 1 << 22
    periods = BasePeriods(DAY)
    assert dict(count_periods(WIDE, batch, periods)) == by_dictionary(WIDE, batch, periods)


@pytest.mark.parametrize("item", [KRR, RAPPOR], ids=lambda item: item.id)
@pytest.mark.parametrize(("periods", "start"), [(None, None), (BasePeriods(CENTURY), 0), (BasePeriods(CENTURY, 9), 9)])
def test_one_period_is_the_whole_count(item, periods, start):
    batch = with_times(item, [NOON + i for i in range(120)])
    assert list(count_periods(item, batch, periods)) == [(start, item.count(batch))]


def test_counting_changes_no_report():
    batch = with_times(KRR, [i * DAY for i in range(120)])
    before = with_times(KRR, [i * DAY for i in range(120)])
    list(count_periods(KRR, batch, BasePeriods(DAY)))
    assert batch == before
