"""Time: durations, windows, the gate, and counting per base period."""

from __future__ import annotations

import datetime
import re
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.messages_cases import KNOWN, KRR, NOON, RAPPOR, URAP, collection
from tests.support.tolerance import generator
from uldp_transforms.count import count_periods
from uldp_transforms.ldp import CohortCounts, Collection, ReportBatch, SpecError
from uldp_transforms.windows import (
    MAX_EVENT_TIME,
    MIN_EVENT_TIME,
    BasePeriods,
    TimeGate,
    Windows,
    number_periods,
    parse_duration,
    rfc3339,
)

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
CENTURY = 36_525 * DAY
YEAR = 365 * DAY

# ---------------------------------------------------------------------- durations and names of moments


@pytest.mark.parametrize(
    ("text", "milliseconds"),
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
def test_durations(text, milliseconds):
    assert parse_duration(text) == milliseconds


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
        "9" * 13 + "s",
    ],
)
def test_other_durations_are_refused(text):
    sentence = f"--window must be a number with a unit such as 90s, 15m, 1h or 1d, got {text!r}"
    with pytest.raises(SpecError, match=f"^{re.escape(sentence)}$"):
        parse_duration(text, "--window")


@pytest.mark.parametrize(
    ("milliseconds", "text"),
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
def test_names_of_moments(milliseconds, text):
    assert rfc3339(milliseconds) == text


@given(st.integers(MIN_EVENT_TIME, MAX_EVENT_TIME))
def test_names_of_moments_are_exact_and_sorted_like_them(milliseconds):
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    moment = datetime.datetime.fromisoformat(rfc3339(milliseconds).replace("Z", "+00:00"))
    assert (moment - epoch) // datetime.timedelta(milliseconds=1) == milliseconds
    assert rfc3339(milliseconds // SECOND * SECOND) < rfc3339(milliseconds // SECOND * SECOND + SECOND)


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
        ({"size": 0}, f"Windows.size must be an integer in [1, {YEAR}], got 0"),
        ({"size": YEAR + 1}, f"Windows.size must be an integer in [1, {YEAR}], got {YEAR + 1}"),
        ({"size": 1.0}, f"Windows.size must be an integer in [1, {YEAR}], got 1.0"),
        ({"size": True}, f"Windows.size must be an integer in [1, {YEAR}], got True"),
        ({"slide": 0}, "Windows.slide must be an integer in [1, 10000], got 0"),
        ({"slide": 10_001}, "Windows.slide must be an integer in [1, 10000], got 10001"),
        ({"allowed_lateness": -1}, f"Windows.allowed_lateness must be an integer in [0, {CENTURY}], got -1"),
        ({"early_every": 999}, f"Windows.early_every must be an integer in [1000, {CENTURY}], got 999"),
        ({"lateness_slack": 0}, f"Windows.lateness_slack must be an integer in [1, {10 * CENTURY}], got 0"),
    ],
)
def test_windows_that_cannot_be(fields, sentence):
    with pytest.raises(SpecError, match=f"^{re.escape(sentence)}$"):
        Windows(**{"size": 10_000} | fields)


def test_slack_is_never_zero():
    """Else the runner, which leaves no trace, would drop reports before the gate does."""
    assert Windows(size=1).lateness_slack > 0


# ---------------------------------------------------------------------- the gate


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"base": 0}, f"TimeGate.base must be an integer in [1, {CENTURY}], got 0"),
        ({"allowed_lateness": -1}, f"TimeGate.allowed_lateness must be an integer in [0, {CENTURY}], got -1"),
        ({"future_skew": -1}, f"TimeGate.future_skew must be an integer in [0, {CENTURY}], got -1"),
    ],
)
def test_gates_that_cannot_be(fields, sentence):
    with pytest.raises(SpecError, match=f"^{re.escape(sentence)}$"):
        TimeGate(**{"base": 1, "allowed_lateness": 0} | fields)


moments = st.integers(MIN_EVENT_TIME, MAX_EVENT_TIME - 1)


@given(moments, st.sampled_from([1, 7, MINUTE, HOUR, DAY]), st.integers(0, DAY), st.integers(0, HOUR))
def test_the_gate_opens_and_closes_to_the_millisecond(moment, base, lateness, skew):
    gate = TimeGate(periods=BasePeriods(base), allowed_lateness=lateness, future_skew=skew)
    closes = moment - moment % base + base + lateness
    arrivals = np.array([moment - skew - 1, moment - skew, closes - 1, closes])
    times = np.full(4, moment)
    assert gate.too_early(times, arrivals).tolist() == [True, False, False, False]
    assert gate.too_old(times, arrivals).tolist() == [False, False, False, True]


def test_all_reports_of_a_period_are_too_old_at_the_same_moment():
    gate = TimeGate(periods=BasePeriods(HOUR), allowed_lateness=MINUTE)
    times = np.array([0, 1, HOUR - 1, HOUR, -1, -HOUR])
    assert gate.too_old(times, np.full(6, HOUR + MINUTE)).tolist() == [True, True, True, False, True, True]
    assert not gate.too_old(times[:4], np.full(4, HOUR + MINUTE - 1)).any()


# ---------------------------------------------------------------------- base periods of reports


@settings(max_examples=200, deadline=None)
@given(
    st.lists(moments | st.integers(-5 * MINUTE, 5 * MINUTE), min_size=1, max_size=80),
    st.sampled_from([None, 1, 7, MINUTE, DAY, CENTURY]),
)
def test_periods_are_numbered_in_order(times, base):
    """Times close together and millennia apart: by a table and by sorting."""
    periods, index = number_periods(np.array(times, np.int64), base)
    expected = [0 if base is None else moment // base for moment in times]
    assert periods == sorted(set(expected))
    assert [periods[position] for position in index.tolist()] == expected
    assert all(type(period) is int for period in periods)


@pytest.mark.parametrize("spread", [1, 4 + 1024 - 1, 4 + 1024, 1 << 40])
def test_periods_are_numbered_alike_by_a_table_and_by_sorting(spread):
    periods, index = number_periods(np.array([0, -spread, 0], np.int64) + 5, 1)
    assert periods == [5 - spread, 5]
    assert index.tolist() == [1, 0, 1]


# ---------------------------------------------------------------------- counting per base period

WIDE = collection("wide", {"id": "hashed", "num_buckets": 1 << 15}, "krr", num_cohorts=64)  # 2 periods at once
SAMPLES = {item.id: item.perturb(["0", "1", "2"] * 40, generator("periods", item.id)) for item in (*KNOWN, WIDE)}


def with_times(item: Collection, times: list[int]) -> ReportBatch:
    return ReportBatch(**vars(SAMPLES[item.id][: len(times)]) | {"event_times": np.array(times, np.int64)})


def by_dictionary(item: Collection, batch: ReportBatch, base: int | None) -> dict[int, CohortCounts]:
    """Each period counted alone, from a dictionary of its reports."""
    groups: dict[int, list[int]] = defaultdict(list)
    for i, moment in enumerate(batch.event_times.tolist()):
        groups[0 if base is None else moment // base].append(i)
    return {period: item.count(batch[np.array(rows)]) for period, rows in sorted(groups.items())}


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(KNOWN),
    st.lists(moments | st.integers(-5 * MINUTE, 5 * MINUTE), min_size=1, max_size=120),
    st.sampled_from([None, 1, 7, MINUTE, DAY, CENTURY]),
)
def test_counts_per_period_are_those_of_each_period_alone(item, times, base):
    """Times close together and millennia apart, before and after 1970."""
    batch = with_times(item, times)
    counted = list(count_periods(item, batch, base))
    expected = by_dictionary(item, batch, base)
    assert [period for period, _ in counted] == list(expected)
    assert [counts for _, counts in counted] == list(expected.values())
    assert all(type(period) is int for period, _ in counted)


@pytest.mark.parametrize("spread", [1, HOUR, CENTURY])
@pytest.mark.parametrize("item", [KRR, WIDE, URAP], ids=lambda item: item.id)
def test_more_periods_than_memory_allows_at_once(item, spread, monkeypatch):
    monkeypatch.setattr("uldp_transforms.count._MAX_CELLS", 4 * item.num_cohorts * item.num_cells + 1)
    times = [(i * i % 17 - 8) * spread for i in range(120)]
    batch = with_times(item, times)
    assert dict(count_periods(item, batch, spread)) == by_dictionary(item, batch, spread)


def test_a_collection_as_large_as_the_memory_is_counted_period_by_period():
    batch = with_times(WIDE, [i % 5 * DAY for i in range(50)])
    assert WIDE.num_cohorts * WIDE.num_cells * 5 > 1 << 22
    assert dict(count_periods(WIDE, batch, DAY)) == by_dictionary(WIDE, batch, DAY)


@pytest.mark.parametrize("item", [KRR, RAPPOR], ids=lambda item: item.id)
@pytest.mark.parametrize("base", [None, CENTURY])
def test_one_period_is_the_whole_count(item, base):
    batch = with_times(item, [NOON + i for i in range(120)])
    assert list(count_periods(item, batch, base)) == [(0, item.count(batch))]


def test_counting_changes_no_report():
    batch = with_times(KRR, [i * DAY for i in range(120)])
    before = with_times(KRR, [i * DAY for i in range(120)])
    list(count_periods(KRR, batch, DAY))
    assert batch == before
