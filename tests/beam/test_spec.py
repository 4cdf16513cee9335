"""The specification of a job: from plain values and back, what it refuses, and what transforms derive from it."""

from __future__ import annotations

import dataclasses
import datetime
import gzip
import json
import math
import sys
import tracemalloc
import zoneinfo
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from apache_beam.transforms.window import FixedWindows, GlobalWindows, Sessions, SlidingWindows
from apache_beam.utils.timestamp import Duration, Timestamp
from hypothesis import given
from hypothesis import strategies as st

from tests.support.messages_cases import KRR, RAPPOR, URAP, collection, write_files
from uldp_transforms import CalendarWindows, EstimateDistribution, JobSpec, Windows
from uldp_transforms.beam.runtime.beam_windows import as_duration, beam_periods, beam_windows, windows_of_beam
from uldp_transforms.beam.runtime.panes import Withholding
from uldp_transforms.files.collection_files import read_collection
from uldp_transforms.files.text_files import read_text
from uldp_transforms.ldp import Collection, SpecError
from uldp_transforms.messages.refusal_causes import REJECTED_SHARE_OF_FILES, REJECTED_SHARE_OF_STREAMS
from uldp_transforms.spec.job_spec import MAX_OPEN_WINDOWS
from uldp_transforms.spec.plain_values import SpecValues, fields_of
from uldp_transforms.spec.spec_fields import (
    CORRECTED,
    FINAL,
    LATE_EVERY,
    MAX_PARTS,
    MIN_REPORTS,
    PARTS,
    SPEC_FIELDS,
)
from uldp_transforms.windows import (
    FUTURE_SKEW,
    LATENESS_SLACK,
    MAX_EVENT_TIME,
    MAX_PERIODS,
    MIN_EVENT_TIME,
    BasePeriods,
    TimeGate,
)

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
CENTURY, YEAR = 36_525 * DAY, 365 * DAY
TEN_YEARS = 10 * 365 * DAY
OPEN = collection("open", {"id": "hashed", "num_buckets": 4}, "krr")
WORDS = collection(
    "words", {"id": "prefixes", "num_buckets": 4, "tokens": ["a"], "lengths": [1, None]}, "krr", num_cohorts=4
)
DELAYS = collection("delays", {"id": "ordered", "low": 0, "high": 60, "num_bins": 4}, "sw")

BY_ARM = Collection.from_json(KRR.to_json() | {"dimensions": [{"name": "arm", "values": ["new"]}]})

ALL_VALUES: dict[str, Any] = {
    "collections": [KRR.to_json(), OPEN.to_json(), WORDS.to_json(), DELAYS.to_json()],
    "window": "1w",
    "slide": "P2D",
    "window_offset": "1d",
    "timezone": "Europe/Berlin",
    "allowed_lateness": "PT2H",
    "early_every": "30s",
    "late_every": "PT2M",
    "release": "corrected",
    "deduplicate": True,
    "deduplicate_parts": 3,
    "deduplicate_by": "fingerprints",
    "bit_patterns": True,
    "by": None,
    "smooth": False,
    "alarm_every": None,
    "candidates": ["a", "e\N{COMBINING ACUTE ACCENT}"],
    "limits": [15, 30.5],
    "quantiles": "0.5,0.9",
    "discover": True,
    "estimator": "em",
    "min_reports": 7,
    "show": 20,
    "liars": None,
    "confidence": 0.9,
    "borrow": None,
    "max_rejected_share": 0.75,
    "bounded": False,
    "future_skew": "1s",
    "lateness_slack": "1m",
    "run": "20261122T081503Z-4f2a9c",
    "partial_before": "2026-11-22T08:15:03.250Z",
}
ALL_FIELDS = JobSpec(
    collections=(KRR, OPEN, WORDS, DELAYS),
    windows=CalendarWindows(size=7, slide=2, offset=1, unit="d", timezone="Europe/Berlin"),
    allowed_lateness=2 * HOUR,
    early_every=30_000,
    late_every=2 * MINUTE,
    release=CORRECTED,
    deduplicate=True,
    deduplicate_parts=3,
    deduplicate_by="fingerprints",
    bit_patterns=True,
    candidates=("a", "é"),
    limits=(15.0, 30.5),
    quantiles=(0.5, 0.9),
    discover=True,
    estimator="em",
    min_reports=7,
    show=20,
    confidence=0.9,
    max_rejected_share=0.75,
    bounded=False,
    future_skew=1_000,
    lateness_slack=MINUTE,
    run="20261122T081503Z-4f2a9c",
    partial_before=1_795_335_303_250,
)


def of(**values: Any) -> JobSpec:
    return JobSpec.of(**{"collections": [KRR], "window": "1h"} | values)


ASKED = {
    name: dataclasses.replace(KRR, client_window=window, client_timezone=zone)
    for name, window, zone in (
        ("1h", "1h", None),
        ("1d", "1d", None),
        ("2w", "2w", None),
        ("berlin", "1d", "Europe/Berlin"),
        ("weeks", "1w", "Europe/Berlin"),
    )
}
BERLIN = {"timezone": "Europe/Berlin"}


@pytest.mark.parametrize(
    ("name", "values", "whole"),
    [
        ("1d", {"window": "1d"}, True),
        ("1d", {"window": "7d", "slide": "1d"}, True),
        ("1d", {"window": "1d", "slide": "12h"}, False),
        ("1d", {"window": "1d", "window_offset": "1h"}, False),
        ("1d", {"window": "36h"}, False),
        ("1d", {"window": "1mo"}, True),
        ("1d", {"window": "1d", "timezone": "UTC"}, True),
        ("1d", {"window": "1d"} | BERLIN, False),
        ("1h", {"window": "1d"} | BERLIN, True),
        ("1h", {"window": "1mo", "timezone": "Asia/Kathmandu"}, False),
        ("2w", {"window": "1w"}, False),
        ("2w", {"window": "2w"}, True),
        ("berlin", {"window": "1d"} | BERLIN, True),
        ("berlin", {"window": "1mo"} | BERLIN, True),
        ("berlin", {"window": "1w", "slide": "1d"} | BERLIN, True),
        ("berlin", {"window": "1d", "timezone": "Europe/London"}, False),
        ("berlin", {"window": "24h"}, False),
        ("weeks", {"window": "1w"} | BERLIN, True),
        ("weeks", {"window": "1w", "slide": "1d"} | BERLIN, False),
        ("weeks", {"window": "1mo"} | BERLIN, False),
    ],
)
def test_windows_are_made_of_those_of_clients(name: str, values: dict[str, Any], whole: bool) -> None:
    """All windows that are taken begin and end where windows of clients do."""
    if not whole:
        with pytest.raises(SpecError, match="must consist of whole client windows of collection 'krr'"):
            of(collections=[ASKED[name]], **values)
        return
    windows, asked = of(collections=[ASKED[name]], **values).windows, ASKED[name].asked
    assert windows is not None and asked is not None
    for day in range(19_000, 19_800, 3):
        for start in windows.starts_around(day * 86_400_000):
            assert asked.start_of(start) == start
            assert asked.start_of(windows.end_of(start)) == windows.end_of(start)


def test_one_window_for_everything_is_refused_where_clients_have_windows() -> None:
    """When it would be estimated: what stored counts are windows of is not known before."""
    with pytest.raises(SpecError, match=r"such as window 1d and timezone Europe/Berlin, got none$"):
        EstimateDistribution(of(collections=[ASKED["berlin"]], window=None))


def without_time_zones(call: Callable[[], Any]) -> Any:
    """What happens on a machine that has no database of time zones, nor the package tzdata."""
    known = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "tzdata"}
    sys.modules["tzdata"] = None  # type: ignore[assignment]  # so that it cannot be imported
    zoneinfo.reset_tzpath(to=())
    zoneinfo.ZoneInfo.clear_cache()
    try:
        return call()
    finally:
        zoneinfo.reset_tzpath()
        del sys.modules["tzdata"]
        sys.modules.update(known)


def fields(**values: Any) -> JobSpec:
    return JobSpec(**{"collections": (KRR,), "windows": Windows(size=HOUR)} | values)


def refusal(call: Callable[[], Any]) -> str:
    with pytest.raises(SpecError) as error:
        call()
    return str(error.value)


def ms(number: int) -> datetime.timedelta:
    return datetime.timedelta(milliseconds=number)


# ---------------------------------------------------------------------- from plain values and back


def test_every_value_has_a_place() -> None:
    """Values are named as in the command line; all of them are used here."""
    assert set(ALL_VALUES) == set(SpecValues.__annotations__)
    assert JobSpec.of(**ALL_VALUES) == JobSpec.from_json(ALL_VALUES) == ALL_FIELDS


def test_only_collections_are_needed() -> None:
    assert JobSpec.of(collections=[KRR]) == JobSpec(collections=(KRR,))
    assert JobSpec.of(**dict.fromkeys(ALL_VALUES) | {"collections": [KRR]}) == JobSpec(collections=(KRR,))
    assert JobSpec(collections=(KRR,)).to_json() == {
        "collections": [KRR.to_json()],
        "window": None,
        "slide": None,
        "window_offset": None,
        "timezone": None,
        "allowed_lateness": f"{HOUR}ms",
        "early_every": None,
        "late_every": "60000ms",
        "release": "corrected",
        "deduplicate": False,
        "deduplicate_parts": None,
        "deduplicate_by": None,
        "bit_patterns": False,
        "by": None,
        "smooth": False,
        "alarm_every": None,
        "candidates": None,
        "limits": None,
        "quantiles": None,
        "discover": False,
        "estimator": "eb",
        "min_reports": 100,
        "show": 10_000,
        "liars": None,
        "confidence": 0.95,
        "borrow": None,
        "max_rejected_share": None,
        "bounded": None,
        "future_skew": f"{FUTURE_SKEW}ms",
        "lateness_slack": None,
        "run": None,
        "partial_before": None,
    }


def test_a_collection_may_come_as_itself_its_json_or_its_file(tmp_path: Path) -> None:
    write_files(tmp_path, {"urap.json": URAP, "rappor.json": RAPPOR})
    given = [KRR, OPEN.to_json(), tmp_path / "urap.json", str(tmp_path / "rappor.json")]
    assert JobSpec.of(collections=given).collections == (KRR, OPEN, URAP, RAPPOR)


def test_a_specification_may_stand_in_a_file(tmp_path: Path) -> None:
    write_files(tmp_path, {"krr.json": KRR, "candidates.txt": "b\r\n\na\n"})
    values = {"collections": [str(tmp_path / "krr.json")], "candidates": str(tmp_path / "candidates.txt")}
    (tmp_path / "job.json").write_text(json.dumps(values), encoding="utf-8-sig")
    expected = JobSpec(collections=(KRR,), candidates=("b", "a"))
    for path in (tmp_path / "job.json", str(tmp_path / "job.json")):
        assert JobSpec.from_json(path) == expected


windows = st.builds(
    lambda base, size, slide, offset: Windows(
        size=base * size,
        slide=None if slide is None else base * (1 + slide % size),
        offset=offset % (base * (size if slide is None else 1 + slide % size)),
    ),
    st.integers(1, YEAR // MAX_PERIODS),
    st.integers(1, MAX_PERIODS),
    st.none() | st.integers(0, MAX_PERIODS),
    st.integers(0, YEAR),
)


def unless_too_many(bounded: bool | None, **values: Any) -> JobSpec:
    """A stream only if no more windows are open than may be."""
    spec = fields(**values)
    too_many = bounded is False and spec.open_windows > MAX_OPEN_WINDOWS
    return dataclasses.replace(spec, bounded=None if too_many else bounded)


specs = st.builds(
    unless_too_many,
    windows=windows,
    allowed_lateness=st.integers(0, CENTURY),
    deduplicate=st.booleans(),
    bit_patterns=st.booleans(),
    candidates=st.none() | st.just(("a", "b")),
    estimator=st.sampled_from(["eb", "em", "ml"]),
    min_reports=st.integers(1, 1 << 62),
    show=st.integers(1, 1 << 20),
    bounded=st.sampled_from([None, True, False]),
    release=st.sampled_from([CORRECTED, FINAL]),
    future_skew=st.integers(0, CENTURY),
    lateness_slack=st.none() | st.integers(1, CENTURY),
    run=st.none() | st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", fullmatch=True),
)


@given(specs)
def test_json_comes_back(spec: JobSpec) -> None:
    assert JobSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


@pytest.mark.parametrize(
    "spec", [ALL_FIELDS, JobSpec(collections=(KRR,)), fields(release=FINAL), fields(smooth=True, alarm_every=99)]
)
def test_json_of_special_ones_comes_back(spec: JobSpec) -> None:
    assert JobSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    assert set(spec.to_json()) == set(SpecValues.__annotations__)


# ---------------------------------------------------------------------- Beam's windows


@pytest.mark.parametrize(
    ("window_fn", "expected"),
    [
        (FixedWindows(60), Windows(size=MINUTE)),
        (FixedWindows(60, 10), Windows(size=MINUTE, offset=10_000)),
        (FixedWindows(60, -10), Windows(size=MINUTE, offset=50_000)),
        (FixedWindows(Duration(micros=7_000)), Windows(size=7)),
        (SlidingWindows(60, 20), Windows(size=MINUTE, slide=20_000)),
        (SlidingWindows(60, 20, 5), Windows(size=MINUTE, slide=20_000, offset=5_000)),
        (SlidingWindows(60, 20, 65), Windows(size=MINUTE, slide=20_000, offset=5_000)),
        (SlidingWindows(60, 60, 5), Windows(size=MINUTE, slide=MINUTE, offset=5_000)),
        (GlobalWindows(), None),
    ],
)
def test_windows_of_beam_are_understood(window_fn: Any, expected: Windows | None) -> None:
    assert windows_of_beam(window_fn) == expected
    assert of(window=window_fn).windows == expected
    if expected is None or expected.overlap or isinstance(window_fn, FixedWindows):
        assert beam_windows(expected) == window_fn


def test_windows_that_touch_are_fixed_windows_of_beam() -> None:
    assert beam_windows(Windows(size=MINUTE, slide=MINUTE, offset=7)) == FixedWindows(60, 0.007)
    assert beam_periods(BasePeriods(7, 3)) == FixedWindows(0.007, 0.003)
    assert as_duration(1) == Duration(micros=1_000)


@given(windows)
def test_windows_go_to_beam_and_back(ours: Windows) -> None:
    again = windows_of_beam(beam_windows(ours))
    assert again is not None
    assert (again.size, again.step, again.offset) == (ours.size, ours.step, ours.offset)


def test_windows_may_come_as_windows() -> None:
    assert of(window=Windows(size=7, slide=5)).windows == Windows(size=7, slide=5)


# ---------------------------------------------------------------------- what is refused

DURATION = "must be a number with a unit such as 90s, 15m, 1h or 1d, got"
LENGTH = "must be days, weeks or months such as 1d, 1w or 1mo if windows follow a calendar, got"
TIMEZONE = 'CalendarWindows.timezone must be the name of a time zone such as "Europe/Berlin", got'
BERLIN = "Europe/Berlin"
KEYS = ", ".join(SPEC_FIELDS)

REFUSED = [
    (lambda: of(window=3600), "JobSpec.window must be a text with a unit such as 90s, 15m, 1h or 1d, got 3600"),
    (
        lambda: of(window=datetime.timedelta(microseconds=1500)),
        "JobSpec.window must be a text with a unit such as 90s, 15m, 1h or 1d, got "
        "datetime.timedelta(microseconds=1500)",
    ),
    (JobSpec.of, "JobSpec needs the key 'collections', got no keys"),
    (lambda: JobSpec.of(window="1h"), "JobSpec needs the key 'collections', got 'window'"),
    (lambda: of(windows="1h"), f"JobSpec takes the keys {KEYS}, got 'windows'; did you mean 'window'?"),
    (lambda: JobSpec.from_json([1]), "JobSpec must be a JSON object, got [1]"),
    (
        lambda: of(collections="krr.json"),
        "JobSpec.collections must be a list of collections, JSON objects or paths, got 'krr.json'",
    ),
    (
        lambda: of(collections=None),
        "JobSpec.collections must be a list of collections, JSON objects or paths, got None",
    ),
    (
        lambda: of(collections=[5]),
        "JobSpec.collections must hold collections, JSON objects or paths, got 5",
    ),
    (lambda: of(collections=[{}]), "Collection needs the key 'id', got no keys"),
    (lambda: of(collections=[]), "a job needs at least one collection, got none"),
    (
        lambda: of(collections=[KRR, KRR]),
        "collections of one job must have different fingerprints, got 'krr' version 1 and 'krr' version 1 with the "
        "same one",
    ),
    (
        lambda: of(collections=[KRR, Collection.from_json(RAPPOR.to_json() | {"id": "krr"})]),
        "collections of one job must differ in id or version, got 'krr' version 1 twice",
    ),
    (lambda: fields(collections=["krr.json"]), "JobSpec.collections must be a tuple of Collection, got ['krr.json']"),
    (lambda: fields(collections=("krr.json",)), "JobSpec.collections must be a tuple of Collection, got ('krr.json',)"),
    (lambda: fields(windows="1h"), "JobSpec.windows must be Windows or None, got '1h'"),
    *(
        (
            lambda name=name: of(run=name),
            'JobSpec.run must be 1 to 64 letters, digits, ".", "_" or "-", a letter or digit first, or null, got '
            f"{name!r}",
        )
        for name in ("", "-a", ".a", "a/b", "a b", "é", "a\n", 7)
    ),
    *(
        (
            lambda time=time: of(partial_before=time),
            f'JobSpec.partial_before must be a time such as "2026-01-31T00:00:00Z", got {time!r}',
        )
        for time in ("1h", "2026-01-31T00:00:00", 5, "")
    ),
    (
        lambda: fields(partial_before="2026-01-31T00:00:00Z"),
        f"JobSpec.partial_before must be an integer in [{MIN_EVENT_TIME}, {MAX_EVENT_TIME - 1}], got "
        "'2026-01-31T00:00:00Z'",
    ),
    (
        lambda: of(partial_before="2026-01-31T00:00:00Z", bounded=True),
        "JobSpec.partial_before needs an unbounded input, got a bounded one",
    ),
    (
        lambda: of(window="1s", bounded=False, allowed_lateness="3h"),
        "JobSpec.window must keep at most 10000 windows open per collection, got 11101 (one every 1s, "
        "with window 1s, allowed_lateness 3h and future_skew 5m); use a longer window or a shorter allowed_lateness",
    ),
    (
        lambda: of(window="1d", slide="1m", allowed_lateness="7d").for_input(False),
        "JobSpec.window must keep at most 10000 windows open per collection, got 11525 (one every 1m, "
        "with window 1d, allowed_lateness 7d and future_skew 5m); use a longer window or a shorter allowed_lateness",
    ),
    (
        lambda: of(window="1d", timezone=BERLIN, allowed_lateness="30000d").for_input(False),
        "JobSpec.window must keep at most 10000 windows open per collection, got 30004 (one every 1d, "
        "with window 1d, allowed_lateness 30000d and future_skew 5m); use a longer window or a shorter "
        "allowed_lateness",
    ),
    (lambda: of(window="1d", timezone="Berlin"), f"{TIMEZONE} 'Berlin'"),
    (lambda: of(window="1d", timezone="Europe"), f"{TIMEZONE} 'Europe'"),
    (lambda: of(window="1d", timezone="../../etc/passwd"), f"{TIMEZONE} '../../etc/passwd'"),
    (lambda: of(window="1d", timezone=""), f"{TIMEZONE} ''"),
    (lambda: of(window="1d", timezone=1), f"{TIMEZONE} 1"),
    (
        lambda: without_time_zones(lambda: of(window="1d", timezone=BERLIN)),
        "CalendarWindows.timezone needs a time-zone database, such as the package tzdata, got a machine without one",
    ),
    (
        lambda: CalendarWindows(size=1, unit="w", timezone=BERLIN),
        "CalendarWindows.unit must be one of d, mo, got 'w'",
    ),
    (lambda: of(window="1h", timezone=BERLIN), f"JobSpec.window {LENGTH} '1h'"),
    (lambda: of(window="24h", timezone=BERLIN), f"JobSpec.window {LENGTH} '24h'"),
    (lambda: of(window=ms(DAY + 1), timezone=BERLIN), f"JobSpec.window {LENGTH} {ms(DAY + 1)!r}"),
    (lambda: of(window=7, timezone=BERLIN), f"JobSpec.window {LENGTH} 7"),
    (lambda: of(window="1d", slide="1h", timezone=BERLIN), f"JobSpec.slide {LENGTH} '1h'"),
    (lambda: of(window="1d", window_offset="4h", timezone=BERLIN), f"JobSpec.window_offset {LENGTH} '4h'"),
    (lambda: of(window="1mo", slide="7d"), "JobSpec.slide must be in months if window is, got '7d'"),
    (
        lambda: of(window="P1M", window_offset="14d", timezone=BERLIN),
        "JobSpec.window_offset must be in months if window is, got '14d'",
    ),
    (
        lambda: of(window="30d", slide="1mo", timezone=BERLIN),
        "JobSpec.slide must be in days if window is, got '1mo'",
    ),
    (lambda: of(window="30d", slide="1mo"), f"JobSpec.slide {DURATION} '1mo'"),
    (lambda: of(allowed_lateness="1mo"), f"JobSpec.allowed_lateness {DURATION} '1mo'"),
    (lambda: of(allowed_lateness="P1M"), f"JobSpec.allowed_lateness {DURATION} 'P1M'"),
    (lambda: of(window="0d", timezone=BERLIN), "CalendarWindows.size must be an integer in [1, 365], got 0"),
    (lambda: of(window="53w", timezone=BERLIN), "CalendarWindows.size must be an integer in [1, 365], got 371"),
    (lambda: of(window="13mo"), "CalendarWindows.size must be an integer in [1, 12], got 13"),
    (
        lambda: of(window="1w", slide="8d", timezone=BERLIN),
        "CalendarWindows.slide must be an integer in [1, 7], got 8",
    ),
    (
        lambda: of(window="1w", window_offset="1w", timezone=BERLIN),
        "CalendarWindows.offset must be an integer in [0, 6], got 7",
    ),
    (
        lambda: of(window=None, timezone=BERLIN),
        "JobSpec.timezone needs JobSpec.window, got none",
    ),
    (lambda: of(window="1 hour"), f"JobSpec.window {DURATION} '1 hour'"),
    (lambda: of(slide="x"), f"JobSpec.slide {DURATION} 'x'"),
    (lambda: of(window_offset="-1s"), f"JobSpec.window_offset {DURATION} '-1s'"),
    (lambda: of(allowed_lateness=""), f"JobSpec.allowed_lateness {DURATION} ''"),
    (lambda: of(early_every="1"), f"JobSpec.early_every {DURATION} '1'"),
    (lambda: of(future_skew="s"), f"JobSpec.future_skew {DURATION} 's'"),
    (lambda: of(lateness_slack="1.5h"), f"JobSpec.lateness_slack {DURATION} '1.5h'"),
    (
        lambda: of(window=1.5),
        "JobSpec.window must be a text with a unit such as 90s, 15m, 1h or 1d, got 1.5",
    ),
    (lambda: of(window=ms(0)), f"Windows.size must be an integer in [1, {YEAR}], got 0"),
    (lambda: of(window="366d"), f"Windows.size must be an integer in [1, {YEAR}], got {366 * DAY}"),
    (lambda: of(slide="0s"), f"Windows.slide must be an integer in [1, {HOUR}], got 0"),
    (lambda: of(slide="2h"), f"Windows.slide must be an integer in [1, {HOUR}], got {2 * HOUR}"),
    (lambda: of(window_offset="1h"), f"Windows.offset must be an integer in [0, {HOUR - 1}], got {HOUR}"),
    (lambda: of(slide="1m", window_offset="1m"), f"Windows.offset must be an integer in [0, {MINUTE - 1}], got 60000"),
    (lambda: of(window_offset=ms(-1)), f"Windows.offset must be an integer in [0, {HOUR - 1}], got -1"),
    (
        lambda: of(window=None, slide="1m"),
        "JobSpec.slide needs JobSpec.window, got none",
    ),
    (
        lambda: of(window=None, slide="1m", window_offset="1s"),
        "JobSpec.slide needs JobSpec.window, got none",
    ),
    (
        lambda: of(window=GlobalWindows(), window_offset="1s"),
        "JobSpec.window must be a duration where window_offset is given, got a window object, which defines its own",
    ),
    (
        lambda: of(window=FixedWindows(60), slide="1m"),
        "JobSpec.window must be a duration where slide is given, got a window object, which defines its own",
    ),
    (
        lambda: of(window=Windows(size=7), window_offset=ms(1)),
        "JobSpec.window must be a duration where window_offset is given, got a window object, which defines its own",
    ),
    (lambda: of(window=Sessions(60)), "windows must be fixed or sliding, got Sessions"),
    (
        lambda: of(window=FixedWindows(Duration(micros=1_500))),
        "windows must be whole milliseconds, got 1500 microseconds",
    ),
    (
        lambda: of(window=SlidingWindows(60, Duration(micros=1_001))),
        "windows must be whole milliseconds, got 1001 microseconds",
    ),
    (
        lambda: of(window=FixedWindows(60, Timestamp(micros=1))),
        "windows must be whole milliseconds, got 1 microseconds",
    ),
    (lambda: of(window=SlidingWindows(60, 120)), f"Windows.slide must be an integer in [1, {MINUTE}], got 120000"),
    (lambda: of(allowed_lateness=ms(-1)), f"JobSpec.allowed_lateness must be an integer in [0, {CENTURY}], got -1"),
    (
        lambda: fields(allowed_lateness="1h"),
        f"JobSpec.allowed_lateness must be an integer in [0, {CENTURY}], got '1h'",
    ),
    (lambda: of(future_skew=ms(-1)), f"JobSpec.future_skew must be an integer in [0, {CENTURY}], got -1"),
    (lambda: of(lateness_slack=ms(0)), f"JobSpec.lateness_slack must be an integer in [1, {CENTURY}], got 0"),
    (
        lambda: of(lateness_slack="36526d"),
        f"JobSpec.lateness_slack must be an integer in [1, {CENTURY}], got {36_526 * DAY}",
    ),
    (lambda: of(early_every=ms(999)), f"JobSpec.early_every must be an integer in [1000, {CENTURY}], got 999"),
    (lambda: of(early_every=ms(1_500)), "JobSpec.early_every must be a whole number of seconds, got 1500 ms"),
    (lambda: of(late_every=ms(1_500)), "JobSpec.late_every must be a whole number of seconds, got 1500 ms"),
    *(
        (
            lambda share=share: of(max_rejected_share=share),
            f"JobSpec.max_rejected_share must be a number in [0, 1] or null, got {share!r}",
        )
        for share in (-0.01, 1.01, float("nan"), True, "0.5")
    ),
    *(
        (
            lambda confidence=confidence: of(confidence=confidence),
            f"JobSpec.confidence must be a number between 0 and 1, at most 0.999999, such as 0.95, got {confidence!r}",
        )
        for confidence in (0, 1, 1.0, 1.5, 95, -0.1, 0.9999999, float("nan"), True, "0.9")
    ),
    *(
        (lambda share=share: of(liars=share), f"JobSpec.liars must be a number in [0, 1] or null, got {share!r}")
        for share in (-0.01, 1.01, float("nan"), True, "0.5")
    ),
    (lambda: of(liars=1), "JobSpec.liars must have a share in [0, 1), got 1"),
    (
        lambda: of(collections=[KRR, OPEN], candidates=["a"], liars=0.01),
        "JobSpec.liars needs a list of all values, each with a symbol of its own, got collection 'open'",
    ),
    (
        lambda: of(collections=[DELAYS], liars=0.01),
        "JobSpec.liars needs values that are not numbers, got collection 'delays'",
    ),
    (
        lambda: of(borrow=True),
        "JobSpec.borrow needs JobSpec.by, got none",
    ),
    (
        lambda: of(collections=[BY_ARM], by=["arm"], borrow=True, bounded=False),
        "JobSpec.borrow needs input that ends, because groups of a stream come one by one, got a stream",
    ),
    (
        lambda: of(collections=[BY_ARM], by=["arm"], borrow=True, estimator="em"),
        "JobSpec.borrow needs an estimator whose shares are a continuous function of the unbiased ones, such as eb or "
        "projected, got collection 'krr' and 'em'",
    ),
    (lambda: of(min_reports=0), f"JobSpec.min_reports must be an integer in [1, {1 << 62}], got 0"),
    (lambda: of(show=0), f"JobSpec.show must be an integer in [1, {1 << 20}], got 0"),
    (lambda: of(show=(1 << 20) + 1), f"JobSpec.show must be an integer in [1, {1 << 20}], got {(1 << 20) + 1}"),
    (lambda: of(min_reports=True), f"JobSpec.min_reports must be an integer in [1, {1 << 62}], got True"),
    (lambda: of(min_reports="5"), f"JobSpec.min_reports must be an integer in [1, {1 << 62}], got '5'"),
    (
        lambda: of(deduplicate=True, deduplicate_parts=0),
        f"JobSpec.deduplicate_parts must be an integer in [1, {MAX_PARTS}], got 0",
    ),
    (
        lambda: of(deduplicate=True, deduplicate_parts=MAX_PARTS + 1),
        f"JobSpec.deduplicate_parts must be an integer in [1, {MAX_PARTS}], got {MAX_PARTS + 1}",
    ),
    (lambda: of(deduplicate="yes"), "JobSpec.deduplicate must be true or false, got 'yes'"),
    (lambda: of(deduplicate=1), "JobSpec.deduplicate must be true or false, got 1"),
    (lambda: of(bit_patterns=0), "JobSpec.bit_patterns must be true or false, got 0"),
    (lambda: of(smooth="no"), "JobSpec.smooth must be true or false, got 'no'"),
    (
        lambda: of(smooth=True, alarm_every=0),
        f"JobSpec.alarm_every must be an integer in [1, {1 << 31}], got 0",
    ),
    (
        lambda: of(smooth=True, show=2),
        "JobSpec.show must be at least 3, all values of collection 'krr', where smooth is true, got 2",
    ),
    (
        lambda: of(collections=[ASKED["1d"]], window="12h"),
        "JobSpec.window must consist of whole client windows of collection 'krr', such as window 1d, got window 12h",
    ),
    (
        lambda: of(collections=[ASKED["weeks"]], window="2w", slide="1d", window_offset="12h"),
        "JobSpec.window must consist of whole client windows of collection 'krr', such as window 1w and "
        "timezone Europe/Berlin, got window 14d, slide 1d, window_offset 12h",
    ),
    (
        lambda: of(collections=[ASKED["berlin"]], window="1d"),
        "JobSpec.window must consist of whole client windows of collection 'krr', such as window 1d and "
        "timezone Europe/Berlin, got window 1d",
    ),
    (lambda: of(alarm_every=50), "JobSpec.alarm_every needs JobSpec.smooth, got none"),
    (
        lambda: of(smooth=True, window=None),
        "JobSpec.smooth needs JobSpec.window, got none",
    ),
    (
        lambda: of(smooth=True, slide="15m"),
        "JobSpec.smooth cannot be combined with JobSpec.slide, which makes windows overlap, got both",
    ),
    (lambda: of(discover=1), "JobSpec.discover must be true or false, got 1"),
    (
        lambda: of(collections=[KRR, OPEN], discover=True),
        "JobSpec.discover needs a collection with the alphabet prefixes, got closed, hashed",
    ),
    (lambda: of(bounded=1), "JobSpec.bounded must be true, false or null, got 1"),
    (lambda: of(bounded="yes"), "JobSpec.bounded must be true, false or null, got 'yes'"),
    (lambda: of(release="once"), 'JobSpec.release must be "corrected" or "final", got \'once\''),
    (lambda: of(release=["final"]), 'JobSpec.release must be "corrected" or "final", got [\'final\']'),
    (
        lambda: of(estimator="best"),
        "estimator.id must be one of eb, em, empirical, ml, normalized, projected, threshold, got 'best'",
    ),
    (
        lambda: of(collections=[KRR, RAPPOR], estimator="ml"),
        "estimator 'ml' does not support collection 'rappor': there is no closed form for rappor; use the estimator em",
    ),
    *(
        (
            lambda wrong=wrong: of(collections=[DELAYS], limits=wrong),
            f"JobSpec.limits must be a list of numbers, or a text such as 30,60, got {wrong!r}",
        )
        for wrong in (5, "30;60", [True], ["30"], {})
    ),
    *(
        (
            lambda wrong=wrong: of(collections=[DELAYS], limits=wrong),
            f"JobSpec.limits must be a list of numbers, or a text such as 30,60, got {parts}",
        )
        for wrong, parts in (("30,nan", "(30.0, nan)"), ([math.inf], "(inf,)"))
    ),
    (lambda: of(limits=[15]), "JobSpec.numbers need the alphabet ordered, got closed"),
    (
        lambda: of(collections=[DELAYS], limits="15,50"),
        "JobSpec.limits must be numbers from 15.0 to 45.0, between inner edges, got 50.0",
    ),
    (
        lambda: of(collections=[DELAYS], quantiles=[0.5, 1]),
        "JobSpec.quantiles must be numbers in (0, 1), got 1.0",
    ),
    (lambda: of(candidates=5), "candidates must be a list of texts, got 5"),
    (
        lambda: of(candidates={"a": 1}),
        "JobSpec.candidates must be a list of texts or the path of a file, got {'a': 1}",
    ),
    *[
        (
            lambda wrong=wrong: JobSpec(collections=(KRR,), candidates=wrong),
            "JobSpec.candidates must be a tuple of different texts in Unicode NFC, as JobSpec.of makes it, got "
            f"{wrong!r}",
        )
        for wrong in (("e\N{COMBINING ACUTE ACCENT}",), ("a", "a"), ("a ",), "ab", 5, ["a"], (1,), ())
    ],
    (lambda: of(candidates=[]), "candidates must have at least 1 entries, got 0"),
    (lambda: of(candidates=["a", 1]), "candidates must be a list of texts, got ('a', 1)"),
    (lambda: of(candidates=["a", "a"]), "candidates must not repeat an entry (in Unicode NFC), got 'a' twice"),
    *[
        (
            lambda wrong=wrong: of(candidates=["a", wrong]),
            "candidates must not begin or end with white space, got such a value at position 1",
        )
        for wrong in ("bee ", " bee", "bee\r", "\N{NO-BREAK SPACE}bee", "  ", "bee\n")
    ],
    (
        lambda: of(candidates=["a", "b", "ä" * 2049]),
        "candidates must be at most 4096 bytes of UTF-8 each, got 4098 at position 2",
    ),
    # what is allowed alone, but not together
    (
        lambda: of(release="final", early_every="1m"),
        "JobSpec.early_every cannot be combined with JobSpec.release=final, got both",
    ),
    (
        lambda: of(release="final", late_every="0s"),
        "JobSpec.late_every cannot be combined with JobSpec.release=final, got both",
    ),
    (
        lambda: of(bounded=True, late_every="2m"),
        "JobSpec.late_every needs an unbounded input, got a bounded one",
    ),
    (
        lambda: of(bounded=True, early_every="1m"),
        "JobSpec.early_every needs an unbounded input, got a bounded one",
    ),
    (
        lambda: of(bounded=False, window=None),
        "an unbounded input needs JobSpec.window: an unbounded stream without windows has no estimate, got none",
    ),
    (
        lambda: of(bounded=False, window=GlobalWindows()),
        "an unbounded input needs JobSpec.window: an unbounded stream without windows has no estimate, got none",
    ),
    (
        lambda: of(deduplicate_parts=8),
        "JobSpec.deduplicate_parts needs JobSpec.deduplicate, got none",
    ),
    (
        lambda: of(deduplicate_by="fingerprints"),
        "JobSpec.deduplicate_by needs JobSpec.deduplicate, got none",
    ),
    (
        lambda: of(deduplicate=True, deduplicate_by="ids"),
        'JobSpec.deduplicate_by must be "reports" or "fingerprints", got \'ids\'',
    ),
    (lambda: of(by="arm,arm"), "JobSpec.by must name each dimension once, got arm, arm"),
    (
        lambda: of(by=["arm"]),
        "JobSpec.by must name dimensions that a collection of the job has (none has any), got arm",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), REFUSED, ids=[sentence[:60] for _, sentence in REFUSED])
def test_refusals(call: Callable[[], Any], sentence: str) -> None:
    assert refusal(call) == sentence


def test_what_a_job_does_if_nothing_is_said() -> None:
    """A release of the library that publishes smaller windows, or drops later reports, must say so."""
    spec = of()
    assert (spec.min_reports, spec.show, spec.estimator, spec.alarm_every) == (100, 10_000, "eb", 1_000)
    assert (spec.allowed_lateness, spec.late_every, spec.early_every, spec.release) == (HOUR, 60_000, None, CORRECTED)
    assert (spec.deduplicate, spec.deduplicate_parts, spec.deduplicate_by) == (False, 16, "reports")
    assert (spec.future_skew, of(window="1h").for_input(False).lateness_slack) == (300_000, 600_000)
    assert (spec.candidates, spec.by, spec.limits, spec.quantiles, spec.liars, spec.run) == (None,) * 6
    assert not any((spec.bit_patterns, spec.smooth, spec.discover, spec.borrow))


@pytest.mark.parametrize(
    ("name", "given", "read"),
    [
        ("by", " a , b", ("a", "b")),
        ("by", ["a"], ("a",)),
        ("by", " ", None),
        ("by", [], None),
        ("by", 7, 7),
        ("limits", "30, 60.5", (30.0, 60.5)),
        ("quantiles", (1,), (1.0,)),
        ("limits", "thirty", "thirty"),
        ("limits", [True], [True]),
    ],
)
def test_lists_may_be_texts_with_commas(name: str, given: Any, read: Any) -> None:
    """What is neither stays as it is, for the specification to refuse."""
    found = fields_of({"collections": [], name: given})[name]
    assert (found, type(found)) == (read, type(read))


@pytest.mark.parametrize(
    "change",
    [{"release": FINAL}, {"bounded": True}, {"windows": None}, {"deduplicate": False}, {"deduplicate_parts": 0}],
)
def test_a_contradiction_cannot_be_made_by_a_change(change: dict[str, Any]) -> None:
    """The specification of all values is a stream with early panes and de-duplication."""
    with pytest.raises(SpecError):
        dataclasses.replace(ALL_FIELDS, **change)
    with pytest.raises(dataclasses.FrozenInstanceError):
        ALL_FIELDS.min_reports = 1  # type: ignore[misc]


def test_the_usual_number_of_parts_contradicts_nothing() -> None:
    assert of(deduplicate_parts=PARTS) == of()


def test_files_that_hold_nothing_of_use(tmp_path: Path) -> None:
    files = {
        "no.json": "{",
        "list.json": "[]",
        "twice.json": '{"window": 1, "window": 2}',
        "latin.json": b"\xe9",
        "empty.json": "{}",
        "nan.json": '{"window": NaN}',
    }
    write_files(tmp_path, files)
    paths = {name: str(tmp_path / name) for name in files}
    for name, sentence in [
        ("no.json", "{path} must be JSON, got an error in line 1: Expecting property name enclosed in double quotes"),
        ("twice.json", "{path} must not repeat a key, got window more than once"),
        ("latin.json", "{path} must be a UTF-8 text file, got other bytes"),
        ("nan.json", "{path} must hold finite numbers, got NaN"),
    ]:
        expected = sentence.format(path=paths[name])
        assert refusal(lambda name=name: JobSpec.from_json(paths[name])) == expected
        assert refusal(lambda name=name: of(collections=[paths[name]])) == expected
    assert refusal(lambda: JobSpec.from_json(paths["list.json"])) == "JobSpec must be a JSON object, got []"
    assert refusal(lambda: JobSpec.from_json(paths["empty.json"])) == "JobSpec needs the key 'collections', got no keys"
    expected = f"{paths['empty.json']}: Collection needs the key 'id', got no keys"
    assert refusal(lambda: read_collection(paths["empty.json"])) == expected
    assert (
        refusal(lambda: of(candidates=paths["latin.json"])) == f"{paths['latin.json']} must be a UTF-8 text file, "
        "got other bytes"
    )
    missing = tmp_path / "missing.json"
    for call in (
        lambda: JobSpec.from_json(missing),
        lambda: of(collections=[missing]),
        lambda: of(candidates=missing),
        lambda: read_text(missing),
    ):
        with pytest.raises(FileNotFoundError, match=r"missing\.json"):
            call()


# ---------------------------------------------------------------------- what transforms derive


@pytest.mark.parametrize("bounded", [True, False])
def test_for_input_leaves_nothing_open(bounded: bool) -> None:
    spec = of().for_input(bounded)
    assert (spec.bounded, spec.lateness_slack) == (bounded, LATENESS_SLACK)
    assert spec.for_input(bounded) == spec
    assert spec == dataclasses.replace(of(), bounded=bounded, lateness_slack=LATENESS_SLACK)


def test_defaults_of_streams_are_those_that_pages_promise() -> None:
    """In milliseconds, written out: one more or less would also change what a stream that is restarted accepts."""
    spec = of()
    assert (spec.allowed_lateness, spec.late_every, spec.future_skew) == (HOUR, MINUTE, 5 * MINUTE)
    assert (spec.slack, spec.margin, MAX_OPEN_WINDOWS, MAX_PERIODS) == (10 * MINUTE, MINUTE, 10_000, 24 * 60)
    assert (spec.deduplicate_parts, MAX_PARTS, spec.alarm_every) == (16, 2**32, 1_000)
    assert (spec.estimator, spec.min_reports, spec.show) == ("eb", 100, 10_000)


def test_only_streams_have_a_bound_of_open_windows() -> None:
    """In files windows are not open: each one has a row at the end."""
    many = of(window="1s", allowed_lateness="3h")
    assert many.open_windows == 11_101
    assert many.for_input(True).windows == many.windows
    assert (
        of(window="1s", allowed_lateness=ms(10_000_000 - 1_000 - FUTURE_SKEW)).for_input(False).open_windows == 10_000
    )
    with pytest.raises(SpecError, match=r"got 10001 \(one every 1s"):
        of(window="1s", allowed_lateness=ms(10_000_001 - 1_000 - FUTURE_SKEW)).for_input(False)


def test_for_input_keeps_a_slack_that_is_given() -> None:
    assert of(lateness_slack=ms(5)).for_input(False, clock_is_watermark=True).lateness_slack == 5
    assert of().for_input(False, clock_is_watermark=True).lateness_slack == TEN_YEARS
    assert of().for_input(False, clock_is_watermark=True).for_input(False).lateness_slack == TEN_YEARS


def test_for_bounded_input_there_are_no_early_panes_and_nothing_to_release() -> None:
    assert of(early_every="1m").for_input(True).early_every is None
    assert of(late_every="5m").for_input(True).late_every == LATE_EVERY
    assert of(late_every="5m").for_input(False).late_every == 5 * MINUTE
    assert of(late_every="0s").late_every == 0
    assert of(release="final").for_input(True).release == CORRECTED
    assert of(early_every="1m").for_input(False).early_every == MINUTE


def test_only_a_stream_has_windows_that_an_earlier_run_cut() -> None:
    spec = of(partial_before="2026-01-31T02:00:00+02:00", run="r")
    assert spec.partial_before == spec.for_input(False).partial_before == 1_769_817_600_000
    assert (spec.for_input(True).partial_before, spec.for_input(True).run) == (None, "r")
    assert len(of(run="r" * 64).run or "") == 64
    assert of(release="final").for_input(False).release == FINAL


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: of(bounded=True).for_input(False),
            "JobSpec.bounded must agree with the input, which is unbounded, got True",
        ),
        (
            lambda: of(bounded=False).for_input(True),
            "JobSpec.bounded must agree with the input, which is bounded, got False",
        ),
        (
            lambda: of(window=None).for_input(False),
            "an unbounded input needs JobSpec.window: an unbounded stream without windows has no estimate, got none",
        ),
    ],
)
def test_for_input_refuses_what_contradicts_it(call: Callable[[], Any], sentence: str) -> None:
    assert refusal(call) == sentence


def test_the_gate_is_that_of_base_periods() -> None:
    spec = of(window="15m", slide="10m", window_offset="8m", allowed_lateness="1m", future_skew="2s")
    periods = BasePeriods(5 * MINUTE, 3 * MINUTE)
    assert spec.periods == periods
    gate = TimeGate(periods=periods, allowed_lateness=MINUTE, future_skew=2_000)
    assert spec.gate == spec.for_input(False).gate == gate
    assert spec.for_input(True).gate is None, "files have no arrival times"
    assert of(window=None).gate is of(window=None).periods is None


@pytest.mark.parametrize(
    ("slack", "margin"), [(None, MINUTE), (10 * MINUTE, MINUTE), (2 * MINUTE, MINUTE), (MINUTE, MINUTE // 2), (1, 0)]
)
def test_windows_are_released_after_the_lateness_and_within_the_slack(slack: int | None, margin: int) -> None:
    spec = dataclasses.replace(of(), allowed_lateness=7, lateness_slack=slack)
    assert spec.slack == (slack or LATENESS_SLACK)
    assert spec.release_delay == 7 + margin
    assert spec.release_delay < spec.allowed_lateness + spec.slack, "before the runner forgets the window"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"bounded": True}, None),
        ({"bounded": True, "release": "final"}, None),
        ({"bounded": False}, 0),
        ({}, 0),
        ({"release": "final"}, HOUR + MINUTE),
        ({"release": "final", "bounded": False, "allowed_lateness": "0s", "lateness_slack": "1ms"}, 0),
    ],
)
def test_when_a_row_has_all_reports(values: dict[str, Any], expected: int | None) -> None:
    assert of(**values).complete_after == expected


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ({"bounded": False, "window": "1h"}, 7),
        ({"bounded": False, "window": "1h", "release": FINAL}, None),
        ({"bounded": True}, None),
        ({"window": "1h"}, 7),
    ],
)
def test_only_windows_with_several_rows_are_looked_at_again(values: dict[str, Any], scale: int | None) -> None:
    """Their intervals hold together, from the first row on that may have numbers."""
    assert of(min_reports=7, **values).anytime_scale == scale


def test_what_withholds_numbers_is_as_the_specification_says() -> None:
    spec = of(min_reports=7, bounded=False, window="1h", release=FINAL, partial_before="1970-01-01T00:00:01Z")
    assert Withholding.of(spec) == Withholding(7, spec.release_delay, 1_000)
    assert Withholding.of(of(bounded=True)) == Withholding(MIN_REPORTS, None, None)


def test_the_share_of_rejected_reports_depends_on_the_kind_of_input() -> None:
    assert of(bounded=True).rejected_share == REJECTED_SHARE_OF_FILES
    assert of(bounded=False, window="1h").rejected_share == REJECTED_SHARE_OF_STREAMS
    assert of(bounded=True, max_rejected_share=0).rejected_share == 0


def test_without_windows_one_is_open() -> None:
    assert of(window=None).open_windows == 1
    assert of(window="1h", allowed_lateness="55m").open_windows == 2


def test_rows_of_a_question_are_of_its_versions() -> None:
    one, other = (dataclasses.replace(KRR, version=number, question="q") for number in (1, 2))
    spec = of(collections=[one, other, RAPPOR])
    [question] = spec.questions
    assert spec.models_of(question.fingerprint) == question.pooled
    assert [spec.models_of(each.fingerprint) for each in (one, RAPPOR)] == [(one,), (RAPPOR,)]


PUBLIC = Collection.from_json(
    OPEN.to_json()
    | {"alphabet": {"id": "hashed", "num_buckets": 4, "num_clear_buckets": 4, "non_sensitive": ["a", "b"]}}
    | {"mechanism": {"id": "urr", "epsilon": 1.0}}
)


@pytest.mark.parametrize(
    ("made_of", "number"),
    [([KRR], 3), ([OPEN], 2), ([PUBLIC], 3)],
    ids=["known", "candidates", "candidates, one of them public"],
)
def test_smoothing_needs_all_values_of_each_collection(made_of: list[Collection], number: int) -> None:
    values: dict[str, Any] = {"collections": made_of, "window": "1h", "smooth": True, "candidates": ["b", "c"]}
    assert of(show=number, **values).smooth
    with pytest.raises(SpecError, match=rf"^JobSpec.show must be at least {number}, all values of collection "):
        of(show=number - 1, **values)


def test_slack_is_never_zero() -> None:
    """Else the runner, which leaves no trace, would drop reports before the gate does."""
    for spec in (of(), of().for_input(False), of().for_input(True)):
        assert spec.slack > 0


def test_the_catalog_holds_the_collections() -> None:
    assert list(of(collections=[KRR, URAP]).catalog) == [KRR, URAP]


@pytest.mark.parametrize(
    ("values", "number"),
    [({}, 0), ({"candidates": [str(i) for i in range(1_048_577)]}, 1_048_577)],
    ids=["none", "too many"],
)
def test_open_alphabets_need_candidates(values: dict[str, Any], number: int) -> None:
    """Only where they are estimated: counting needs none."""
    spec = of(collections=[KRR, OPEN], **values)
    assert refusal(spec.check_candidates) == (
        f"collection 'open' has an open alphabet and needs 1 to 1048576 candidate values (--candidates) or public "
        f"values, got {number}"
    )


def test_an_estimator_may_take_fewer_candidates() -> None:
    spec = of(collections=[OPEN], estimator="em", candidates=[str(i) for i in range(8193)])
    assert refusal(spec.check_candidates) == (
        "collection 'open' has an open alphabet and needs 1 to 8192 candidate values (--candidates) or "
        "public values for "
        "estimator 'em', got 8193"
    )


def test_public_values_that_share_clear_buckets_are_few() -> None:
    alphabet = {"num_clear_buckets": 4, "non_sensitive": [str(i) for i in range(8193)]}
    many = OPEN.to_json() | {"alphabet": {"id": "hashed", "num_buckets": 4} | alphabet}
    many["mechanism"] = {"id": "urr", "epsilon": 1.0}
    assert refusal(of(collections=[many]).check_candidates) == (
        "collection 'open' must have at most 8192 public values that share clear buckets, got 8193"
    )


CANDIDATE_FILES: list[tuple[bytes, tuple[str, ...]]] = [
    (b"a\nb\n", ("a", "b")),
    (b"b\r\na", ("b", "a")),
    (b"\xef\xbb\xbfa\n\nb\n", ("a", "b")),  # of a spreadsheet
    (b"bee \n  \n\tant\r\n \r\n\xc2\xa0yak\xc2\xa0\n", ("bee", "ant", "yak")),
    (b"one two\ne\xcc\x81", ("one two", "\u00e9")),
    (b"\xef\xbb\xbf" + b"x" * 4096 + b"\r\ny", ("x" * 4096, "y")),
]


@pytest.mark.parametrize(("content", "expected"), CANDIDATE_FILES, ids=range(len(CANDIDATE_FILES)))
def test_candidates_are_the_lines_of_a_file(content: bytes, expected: tuple[str, ...], tmp_path: Path) -> None:
    """White space around a line is no part of a value, and a line of it is none."""
    write_files(tmp_path, {"values.txt": content, "values.txt.gz": gzip.compress(content)})
    for name in ("values.txt", "values.txt.gz"):
        assert of(candidates=tmp_path / name).candidates == expected


WRONG_CANDIDATE_FILES: list[tuple[bytes, str]] = [
    (b"ant\n\nbee\n bee \n", "must have different values (in Unicode NFC), got the same one in lines 3 and 4"),
    (b"\xc3\xa9\ne\xcc\x81", "must have different values (in Unicode NFC), got the same one in lines 1 and 2"),
    (b"a\n" + b"x" * 4097, "must have lines of at most 4096 bytes, got a longer one at line 2"),
    (b"a\n" + b"x" * 4096 + b"\r" * 9, "must have lines of at most 4096 bytes, got a longer one at line 2"),
    (b" " * 4097, "must have lines of at most 4096 bytes, got a longer one at line 1"),
    ("\n".join(map(str, range((1 << 20) + 1))).encode(), "must have at most 1048576 values, got more"),
    (b"a\n\xe4\n", "must be a UTF-8 text file, got other bytes"),
]


@pytest.mark.parametrize(("content", "sentence"), WRONG_CANDIDATE_FILES, ids=range(len(WRONG_CANDIDATE_FILES)))
def test_what_candidates_are_not(content: bytes, sentence: str, tmp_path: Path) -> None:
    write_files(tmp_path, {"values.txt": content, "values.txt.gz": gzip.compress(content)})
    for name in ("values.txt", "values.txt.gz"):
        path = tmp_path / name
        assert refusal(lambda path=path: of(candidates=path)) == f"{path} {sentence}"


@pytest.mark.parametrize("content", [b"ant\nbee\n", gzip.compress(b"ant\nbee\n")[:-9]], ids=["other", "cut"])
def test_half_a_file_has_no_candidates(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "values.txt.gz"
    path.write_bytes(content)
    assert (
        refusal(lambda: of(candidates=path))
        == f"{path} must be a complete gzip file, got another format or a damaged file"
    )


HUGE = {"one line": lambda: b"x" * (1 << 20), "empty lines": lambda: b"\n" * (1 << 20)}


@pytest.mark.parametrize("content", HUGE.values(), ids=HUGE)
def test_files_of_candidates_are_not_held(content: Callable[[], bytes], tmp_path: Path) -> None:
    """At most a quarter of a file of 1 MiB is held, whether it is one line or empty lines, packed or not."""
    write_files(tmp_path, {"values.txt": content(), "values.txt.gz": gzip.compress(content(), 1)})
    for name in ("values.txt", "values.txt.gz"):
        tracemalloc.start()
        try:
            refusal(lambda name=name: of(candidates=tmp_path / name))
            assert tracemalloc.get_traced_memory()[1] < 1 << 18
        finally:
            tracemalloc.stop()


def test_candidates_may_be_public() -> None:
    public = collection(
        "public", {"id": "hashed", "num_buckets": 3, "non_sensitive": ["a"], "num_clear_buckets": 7}, "urap"
    )
    for spec in (of(), of(collections=[OPEN], candidates=["a"]), of(collections=[public])):
        spec.check_candidates()
