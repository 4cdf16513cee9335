"""The specification of a job: from plain values and back, what it refuses, and what transforms derive from it."""

from __future__ import annotations

import dataclasses
import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.drawn_windows import windows
from tests.support.messages_cases import KRR, RAPPOR, URAP, collection, write_files
from tests.support.refusals.jobs.specification import (
    ASKED,
    BERLIN,
    CENTURY,
    DAY,
    DELAYS,
    HOUR,
    MINUTE,
    OPEN,
    fields,
    ms,
    of,
)
from uldp_transforms import CalendarWindows, JobSpec, Windows
from uldp_transforms.ldp import Collection, SpecError
from uldp_transforms.ldp.share_sums import NamedSum
from uldp_transforms.messages.refusal_causes import REJECTED_SHARE_OF_FILES, REJECTED_SHARE_OF_STREAMS
from uldp_transforms.spec.job_spec import MAX_OPEN_WINDOWS
from uldp_transforms.spec.plain_values import SpecValues, fields_of
from uldp_transforms.spec.spec_fields import (
    CORRECTED,
    FINAL,
    LATE_EVERY,
    MAX_PARTS,
    PARTS,
)
from uldp_transforms.windows import (
    FUTURE_SKEW,
    LATENESS_SLACK,
    MAX_PERIODS,
    BasePeriods,
    TimeGate,
)

TEN_YEARS = 10 * 365 * DAY
WORDS = collection(
    "words", {"id": "prefixes", "num_buckets": 4, "tokens": ["a"], "lengths": [1, None]}, "krr", num_cohorts=4
)


DECOMPOSED = "e\N{COMBINING ACUTE ACCENT}"
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
    "candidates": ["a", DECOMPOSED],
    "limits": [15, 30.5],
    "quantiles": "0.5,0.9",
    "sums": {
        "even": ["0", "2"],
        f"accent {DECOMPOSED}": {"match": f"{DECOMPOSED}*"},
        "cost": {"weights": {"a": 3, DECOMPOSED: 7.5}},
    },
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
    sums=(
        NamedSum("even", ("0", "2")),
        NamedSum("accent é", match="é*"),
        NamedSum("cost", ("a", "é"), (3, 7.5)),
    ),
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

IN_BERLIN = {"timezone": BERLIN}


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
        ("1d", {"window": "1d"} | IN_BERLIN, False),
        ("1h", {"window": "1d"} | IN_BERLIN, True),
        ("1h", {"window": "1mo", "timezone": "Asia/Kathmandu"}, False),
        ("2w", {"window": "1w"}, False),
        ("2w", {"window": "2w"}, True),
        ("berlin", {"window": "1d"} | IN_BERLIN, True),
        ("berlin", {"window": "1mo"} | IN_BERLIN, True),
        ("berlin", {"window": "1w", "slide": "1d"} | IN_BERLIN, True),
        ("berlin", {"window": "1d", "timezone": "Europe/London"}, False),
        ("berlin", {"window": "24h"}, False),
        ("weeks", {"window": "1w"} | IN_BERLIN, True),
        ("weeks", {"window": "1w", "slide": "1d"} | IN_BERLIN, False),
        ("weeks", {"window": "1mo"} | IN_BERLIN, False),
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


def refusal(call: Callable[[], Any]) -> str:
    with pytest.raises(SpecError) as error:
        call()
    return str(error.value)


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
        "sums": None,
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


def test_sums_may_be_an_object_a_text_or_a_file(tmp_path: Path) -> None:
    plain = {"even": ["0", "2"], "cost": {"weights": {"1": 3}}}
    (tmp_path / "sums.json").write_text(json.dumps(plain), encoding="utf-8")
    expected = of(sums=plain)
    assert expected.sums == (NamedSum("even", ("0", "2")), NamedSum("cost", ("1",), (3,)))
    for source in (json.dumps(plain), f" {json.dumps(plain)}", tmp_path / "sums.json", str(tmp_path / "sums.json")):
        assert of(sums=source) == expected
    assert expected.asked().sums == expected.sums
    assert of().asked().sums == ()


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


def test_windows_may_come_as_windows() -> None:
    assert of(window=Windows(size=7, slide=5)).windows == Windows(size=7, slide=5)


# ---------------------------------------------------------------------- what is refused


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
