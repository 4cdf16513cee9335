"""The parts of rows by themselves: names, times, what is withheld, and what a finding is worth."""

from __future__ import annotations

import datetime
import functools
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from tests.support.estimated import estimate_question, estimate_window
from tests.support.messages_cases import KRR, NOON, collection, numbered
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.alphabets.dimensions import OTHER
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.ldp.sentinels import Finding
from uldp_transforms.ldp.versions import questions_of
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.rows import discovered_value
from uldp_transforms.rows.avro_fields import Field, fields_of, map_fields, time_fields
from uldp_transforms.rows.discovered_value import discover_window
from uldp_transforms.rows.json_and_avro import as_dict, from_avro
from uldp_transforms.rows.rejected_report import rejected_row
from uldp_transforms.rows.row_identity import fields_of_group, reports_of_a_person, span_of
from uldp_transforms.rows.row_types import HealthFinding
from uldp_transforms.rows.samples.asked import Asked
from uldp_transforms.rows.samples.rows_of_samples import rows_of
from uldp_transforms.rows.samples.sample import Owner, Sample, reason_to_withhold
from uldp_transforms.rows.samples.solutions import Solution
from uldp_transforms.rows.samples.version_health import finding_of_agreement, health_of_versions
from uldp_transforms.rows.window_health import finding_of_fit, health_of_window, with_change
from uldp_transforms.rows.windowed_estimate import confidence_of_row, flat
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME

DAY = 86_400_000
ONE_DAY = span_of(0, DAY) | {"pane_index": 0, "pane_timing": "ON_TIME", "run": None}
NO_WINDOW = ONE_DAY | span_of(None, None)


def memos(**fields: Any) -> Collection:
    return collection("memos", numbered(3), "krr", 1, epsilon_inf=2.0) if not fields else _with(fields)


def _with(fields: dict[str, Any]) -> Collection:
    return Collection.from_json(memos().to_json() | fields)


DAILY = memos(client_window="1d")
UNKNOWN = memos()
EVEN = CohortCounts(np.array([3000]), np.array([[1000, 1000, 1000]]))


# ---------------------------------------------------------------------- times and names


def test_no_millisecond_is_lost_on_the_way_through_a_table() -> None:
    """Seconds as floats hold many of them a little too low."""
    zone = datetime.timezone.utc
    for moment in (*range(2000), NOON, NOON + 7, -1, MIN_EVENT_TIME, MAX_EVENT_TIME - 1):
        time = datetime.datetime(1970, 1, 1, tzinfo=zone) + datetime.timedelta(milliseconds=moment)
        text = span_of(moment, 1)["window_start"]
        assert from_avro({"at": time, "n": 1}) == {"at": text, "n": 1}


class Inner(NamedTuple):
    value: int


class Outer(NamedTuple):
    inner: Inner
    many: tuple[Inner, ...]
    table: dict[str, int]
    text: str | None


def test_rows_within_rows_are_objects() -> None:
    found = as_dict(Outer(Inner(1), (Inner(2), Inner(3)), {"a": 4}, None))
    assert found == {"inner": {"value": 1}, "many": [{"value": 2}, {"value": 3}], "table": {"a": 4}, "text": None}
    assert type(found["many"]) is list and type(found["inner"]) is dict


def test_fields_of_a_schema_by_hand() -> None:
    time = {"type": "long", "logicalType": "timestamp-millis"}
    record = {"type": "record", "name": "R", "fields": [{"name": "x", "type": "double", "doc": "An x."}]}
    schema = {
        "fields": [
            {"name": "when", "type": ["null", time], "default": None},
            {"name": "at", "type": time},
            {"name": "long", "type": "long"},
            {"name": "parts", "type": {"type": "array", "items": record}},
            {"name": "table", "type": {"type": "map", "values": "long"}},
            {"name": "kind", "type": {"type": "enum", "name": "K", "symbols": ["A"]}},
        ]
    }
    x = Field("x", "double", doc="An x.")
    assert fields_of(schema) == (
        Field("when", "time", nullable=True, has_default=True),
        Field("at", "time"),
        Field("long", "long"),
        Field("parts", "array", parts=(Field("element", "record", record="R", parts=(x,)),)),
        Field("table", "map", parts=(Field("value", "long"),)),
        Field("kind", "string"),
    )
    assert (list(time_fields(schema)), map_fields(schema)) == (["when", "at"], {"table"})


def test_groups_are_named_where_there_are_dimensions() -> None:
    found = fields_of_group([("arm", "new"), ("country", OTHER)], has_groups=True)
    assert ([tuple(one) for one in found["dimensions"]], found["group"]) == (
        [("arm", "new"), ("country", "other")],
        "arm=new,country=other",
    )
    assert fields_of_group([], has_groups=False) == {"dimensions": (), "group": None}
    assert fields_of_group([], has_groups=True)["dimensions"] == ()


def test_how_often_a_person_reports() -> None:
    """Independent reports count once each; of memos it must be declared."""
    week = ONE_DAY | span_of(0, 7 * DAY)
    daily = Collection.from_json(KRR.to_json() | {"client_window": "1d"})
    for item, numbers in ((KRR, (1, 1, 1)), (daily, (1, 1, 7)), (UNKNOWN, (None, None, None)), (DAILY, (None, 1, 7))):
        assert tuple(reports_of_a_person(item, place) for place in (NO_WINDOW, ONE_DAY, week)) == numbers


@pytest.mark.parametrize(
    ("moment", "is_told"),
    [
        (None, False),
        (MIN_EVENT_TIME - 1, False),
        (MIN_EVENT_TIME, True),
        (MAX_EVENT_TIME - 1, True),
        (MAX_EVENT_TIME, False),
    ],
)
def test_times_of_arrival_that_rows_cannot_hold_are_left_out(moment: int | None, is_told: bool) -> None:
    row = rejected_row(Rejection(Reason.MALFORMED, 4, 9, arrival_time=moment), None, "run-1")
    assert (row.received_at is not None) is is_told
    assert (row.num_reports, row.message_bytes, row.source, row.run) == (4, 9, "message", "run-1")
    assert (row.collection_id, row.window_start, row.reason) == (None, None, "malformed")


# ---------------------------------------------------------------------- what is withheld


@pytest.mark.parametrize(
    ("number", "partial", "reason"),
    [(99, False, "suppressed"), (100, False, None), (99, True, "partial"), (500, True, "partial")],
)
def test_windows_with_few_reports_and_parts_are_withheld(number: int, partial: bool, reason: str | None) -> None:
    assert reason_to_withhold(number, 100, partial) == reason


def test_a_withheld_window_tells_no_number() -> None:
    """In no row: neither the estimate, nor health, nor values that were discovered."""
    estimator = ESTIMATORS["projected"]()
    row = estimate_window(KRR_ONE, EVEN, ONE_DAY, estimator, None, "suppressed")
    assert (row.status, row.num_reports, row.estimates, row.num_values, flat(row)) == ("suppressed", None, [], None, [])
    health = health_of_window(KRR_ONE, EVEN, ONE_DAY, "partial", 0.5)
    assert (health.status, health.num_reports, health.findings) == ("partial", None, [])
    shown = health_of_window(KRR_ONE, EVEN, ONE_DAY, None, None)
    assert (shown.status, shown.num_reports) == ("ok", 3000)


KRR_ONE = collection("krr", numbered(3), "krr", 1)


def test_what_is_discovered_is_told_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    found = SimpleNamespace(
        values=("x", "y"),
        frequencies=np.array([0.5, 0.25]),
        standard_errors=np.array([0.1, 0.2]),
        ci_low=np.array([0.3, 0.0]),
        ci_high=np.array([0.7, 0.6]),
        q_values=np.array([0.01, 0.02]),
        levels=np.array([1, 2]),
        num_scored=77,
    )
    prefixes = {"id": "prefixes", "num_buckets": 8, "lengths": [1, None], "tokens": ["x", "y"]}
    searched = collection("words", prefixes, "krr", 64)
    monkeypatch.setattr(discovered_value, "discover", lambda *_: found)
    rows = discover_window(searched, CohortCounts(np.array([9]), np.zeros((1, 8), dtype=np.int64)), ONE_DAY, None)
    assert [tuple(row)[-11:-2] for row in rows] == [
        (None, "x", 0.5, 0.1, 0.3, 0.7, 0.01, 1, 77),
        (None, "y", 0.25, 0.2, 0.0, 0.6, 0.02, 2, 77),
    ]
    assert {(row.num_reports, row.collection_id, row.window_end) for row in rows} == {
        (9, "words", "1970-01-02T00:00:00Z")
    }
    for withheld in ("suppressed", "partial"):
        assert discover_window(searched, EVEN, ONE_DAY, withheld) == []
    assert discover_window(KRR, EVEN, ONE_DAY, None) == []


# ---------------------------------------------------------------------- findings


def test_people_who_may_repeat_themselves_are_not_judged() -> None:
    """Neither by sentinels nor by the fit: both take reports as independent. One report of each person is."""
    alarming = CohortCounts(np.array([30_000]), np.array([[30_000, 0, 0]]))
    week = ONE_DAY | span_of(0, 7 * DAY)
    for item, place, judged in (
        (DAILY, ONE_DAY, True),
        (DAILY, week, False),
        (UNKNOWN, ONE_DAY, False),
        (KRR_ONE, week, True),
    ):
        row = health_of_window(item, alarming, place, None, 1e-9)
        assert row.status == ("alarm" if judged else "ok")
        assert (len(row.findings) > 1) is judged
        assert row.num_reports == 30_000
    fit = health_of_window(KRR_ONE, EVEN, ONE_DAY, None, 1e-9)
    assert (fit.status, fit.findings[-1].name) == ("misfit", "fit")


@pytest.mark.parametrize("p_value", [0.0, 1e-300, 1e-4, 1e-3, 0.0013, 0.5, 1.0])
def test_a_fit_is_told_by_its_z_score(p_value: float) -> None:
    found = finding_of_fit(p_value)
    assert found.fired is (p_value < 1e-3)
    assert found.statistic == pytest.approx(stats.norm.isf(min(max(p_value, 1e-300), 1 - 1e-16)), abs=0.05)
    assert found.sentence.startswith("The cohorts do not agree" if found.fired else "Nothing unusual.")


def test_a_change_is_told_after_all_other_findings() -> None:
    row = health_of_window(KRR_ONE, EVEN, ONE_DAY, None, None)
    change = Finding(name="change", statistic=4.0, p_value=1e-5, fired=True, sentence="moved")
    for status, fired, after in (
        ("ok", True, "change"),
        ("ok", False, "ok"),
        ("alarm", True, "alarm"),
        ("misfit", True, "misfit"),
    ):
        finding = Finding(**vars(change) | {"fired": fired})
        found = with_change(row._replace(status=status), finding)
        assert (found.status, found.findings) == (after, [*row.findings, HealthFinding(**vars(finding))])


# ---------------------------------------------------------------------- estimates


def test_intervals_of_a_window_with_several_rows_are_surer() -> None:
    late = ONE_DAY | {"pane_timing": "LATE"}
    for confidence in (0.5, 0.95, 0.99):
        assert confidence_of_row(confidence, 500, None, late) == confidence
        on_time, other = (confidence_of_row(confidence, 500, 1000, place) for place in (ONE_DAY, late))
        assert confidence < on_time < other < 1


def test_a_row_for_each_value_shares_the_fields_of_its_window() -> None:
    row = estimate_window(KRR_ONE, EVEN, ONE_DAY, ESTIMATORS["projected"](), None, None, show=2)
    values = flat(row)
    assert [one.value for one in values] == [one.value for one in row.estimates] and len(values) == 2
    assert {(one.num_reports, one.window_start, one.status, one.num_values) for one in values} == {
        (3000, row.window_start, "ok", 3)
    }
    assert [one.raw_frequency for one in values] == [one.raw_frequency for one in row.estimates]


# ---------------------------------------------------------------------- pooled rows


def window_of(p_value: float, loss: float, left_out: int = 0) -> Any:
    agreement = SimpleNamespace(p_value=p_value, statistic=12.5)
    return SimpleNamespace(
        agreement=agreement, loss=np.array([0.5, loss]), left_out=tuple(range(left_out)), used=(7, 8)
    )


@pytest.mark.parametrize(
    ("window", "fired", "sentence"),
    [
        (window_of(1e-3, 1.05), False, "Nothing unusual."),
        (
            window_of(0.0009, 1.0),
            True,
            "The versions do not agree: clients of one version do not do what it declares, or other people use it than "
            "the others.",
        ),
        (
            window_of(0.5, 1.26, left_out=1),
            False,
            "Nothing unusual. Not pooled, because they cannot be estimated: 1 of 3 versions. With these numbers of "
            "reports, the pooled variance of a value can be up to 1.3 times that of the most precise version.",
        ),
    ],
)
def test_the_agreement_of_versions_is_told(window: Any, fired: bool, sentence: str) -> None:
    assert finding_of_agreement(window) == Finding(
        name="agreement", statistic=12.5, p_value=window.agreement.p_value, fired=fired, sentence=sentence
    )


def test_versions_with_too_few_reports_are_said_not_to_be_tested() -> None:
    window = SimpleNamespace(agreement=None, loss=np.array([1.0]), left_out=(), used=(0, 1))
    sentence = "Not tested: all versions but one have too few reports to be compared."
    expected = Finding(name="agreement", statistic=0.0, p_value=1.0, fired=False, sentence=sentence)
    assert finding_of_agreement(window) == expected  # type: ignore[arg-type]  # what is read of a window is enough


@functools.cache
def asked_twice(**fields: Any) -> tuple[Any, dict[bytes, CohortCounts]]:
    """A question with two versions, and counts of which the second version's are the same."""
    spec = KRR_ONE.to_json() | {"question": "q"}
    versions = [Collection.from_json(spec | {"version": number} | fields) for number in (1, 2)]
    [question] = questions_of(versions)
    return question, {one.fingerprint: EVEN for one in versions}


def pooled(withheld: str | None = None, **options: Any) -> Any:
    question, counts = asked_twice()
    return estimate_question(question, counts, ONE_DAY, ESTIMATORS["eb"](), None, withheld, **options)


def test_a_pooled_row_counts_the_reports_of_its_versions() -> None:
    row, health = pooled()
    assert (row.num_reports, row.status, row.pooled, row.collection_version) == (6000, "ok", True, 0)
    assert (health.num_reports, health.status, health.pooled) == (6000, "ok", True)
    assert [one.name for one in health.findings] == ["agreement"]
    question, counts = asked_twice()
    one = dict(list(counts.items())[:1])
    few, _ = estimate_question(question, one, ONE_DAY, ESTIMATORS["eb"](), None, None)
    assert few.num_reports == 3000


def test_a_pooled_row_that_is_withheld_tells_no_number() -> None:
    row, health = pooled("suppressed")
    assert (row.num_reports, row.status, row.estimates) == (None, "suppressed", [])
    assert (health.num_reports, health.status, health.findings) == (None, "suppressed", [])


def test_pooled_rows_of_several_looks_have_longer_intervals() -> None:
    def width(**options: Any) -> float:
        row, _ = pooled(**options)
        return sum(one.ci_high - one.ci_low for one in row.estimates)

    assert width(anytime_scale=1000) > width()
    assert len(pooled(show=1)[0].estimates) == 1


def test_versions_that_disagree_ring() -> None:
    question, counts = asked_twice()
    first, second = counts
    moved = {first: EVEN, second: CohortCounts(np.array([3000]), np.array([[2000, 500, 500]]))}
    _, health = estimate_question(question, moved, ONE_DAY, ESTIMATORS["eb"](), None, None)
    assert (health.status, [one.fired for one in health.findings]) == ("alarm", [True])


def test_numbers_of_the_same_people_in_several_versions_are_not_judged() -> None:
    spec = memos(client_window="1d", question="q").to_json()
    versions = [Collection.from_json(spec | {"version": number}) for number in (1, 2)]
    [question] = questions_of(versions)
    counts = {one.fingerprint: EVEN for one in versions}
    for days, number in ((1, 1), (7, 0)):
        place = ONE_DAY | span_of(0, days * DAY)
        _, health = estimate_question(question, counts, place, ESTIMATORS["eb"](), None, None)
        assert len(health.findings) == number


@pytest.mark.parametrize("is_pooled", [False, True])
def test_the_row_on_time_is_the_planned_look(is_pooled: bool) -> None:
    """Its intervals are shorter than those of a pane that nobody planned, and longer than those of a single row."""
    question, counts = asked_twice()
    widths = []
    for timing, scale in (("ON_TIME", None), ("ON_TIME", 1000), ("LATE", 1000)):
        place = ONE_DAY | {"pane_timing": timing}
        if is_pooled:
            row, _ = estimate_question(question, counts, place, ESTIMATORS["eb"](), None, None, anytime_scale=scale)
        else:
            row = estimate_window(KRR_ONE, EVEN, place, ESTIMATORS["eb"](), None, None, anytime_scale=scale)
        widths.append(sum(one.ci_high - one.ci_low for one in row.estimates))
    assert widths == sorted(widths) and len(set(widths)) == 3


@pytest.mark.parametrize(
    ("p_value", "fit", "status", "names"),
    [
        (0.5, None, "ok", ["agreement"]),
        (0.5, 0.5, "ok", ["agreement", "fit"]),
        (0.5, 1e-9, "misfit", ["agreement", "fit"]),
        (1e-9, 1e-9, "alarm", ["agreement", "fit"]),
        (1e-9, None, "alarm", ["agreement"]),
    ],
)
def test_the_health_of_a_question_is_its_worst_finding(
    p_value: float, fit: float | None, status: str, names: list[str]
) -> None:
    window = window_of(p_value, 1.0)
    window.estimate = SimpleNamespace(fit_p_value=fit)
    sample = Sample(owner=Owner(named=asked_twice()[0]), place=ONE_DAY, counts={})
    row = health_of_versions(sample, Solution(status="ok", pooled=window), 77)  # type: ignore[arg-type]  # what is read of a window is enough
    assert (row.status, [one.name for one in row.findings], row.num_reports) == (status, names, 77)
    alone = SimpleNamespace(agreement=None, estimate=window.estimate, used=(0,))
    health = health_of_versions(sample, Solution(status="ok", pooled=alone), 77)  # type: ignore[arg-type]  # what is read of a window is enough
    assert [one.name for one in health.findings] == names[1:]


def test_a_question_without_reports_says_so() -> None:
    question, _ = asked_twice()
    counts = {one.fingerprint: CohortCounts.empty(1, 3) for one in question.collections}
    row, health = estimate_question(question, counts, ONE_DAY, ESTIMATORS["eb"](), None, None)
    assert (row.status, row.num_reports, row.estimates, health.num_reports) == ("empty", 0, [], 0)


@pytest.mark.parametrize("is_question", [False, True])
def test_display_intervals_count_all_groups(is_question: bool) -> None:
    """As long as those of the values of all groups together; the other intervals are as for everybody."""
    form = KRR_ONE.to_json() | {"dimensions": [{"name": "arm", "values": ["a", "b", "c"]}], "question": "q"}
    of = Collection.from_json(form)
    named = questions_of([of])[0] if is_question else of
    counts = {of.fingerprint: EVEN}
    samples = [
        Sample(owner=Owner(named=named, group=group), place=ONE_DAY, counts=counts) for group in ((), (("arm", "a"),))
    ]
    total, group = (rows.estimate for rows in rows_of(samples, Asked(estimator=ESTIMATORS["eb"]())))
    assert (total.group, group.group) == ("", "arm=a")
    for one, other in zip(total.estimates, group.estimates):
        assert (one.ci_low, one.ci_high) == (other.ci_low, other.ci_high)
        assert other.display_low <= one.display_low <= one.display_high <= other.display_high
        assert other.display_high - other.display_low > one.display_high - one.display_low
