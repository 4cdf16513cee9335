"""``uldp compare``: groups and windows of stored counts, against the library and against exact sums."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from packages.compare.tests.support.refused_comparisons import BOTH, DAILY, MEMOS, TIMES, arms, latencies, row
from tests.support.jobs.reestimated import PERIOD
from tests.support.jobs.stored_periods import GROUPED, store
from tests.support.messages_cases import write_files
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.versions import questions_of
from uldp_transforms.rows.figures.compared_figures import difference_interval
from uldp_transforms.rows.row_types import ComparedValue
from uldp_transforms_compare.compare import found_in_words
from uldp_transforms_compare.compare.findings import Findings
from uldp_transforms_compare.comparisons import compare as library
from uldp_transforms_compare.comparisons import homogeneity
from uldp_transforms_compare.comparisons.compare import q_values

OTHER = Collection.from_json(GROUPED.to_json() | {"id": "other"})
HASHED = Collection.from_json(
    GROUPED.to_json() | {"alphabet": {"id": "hashed", "num_buckets": 4}, "num_cohorts": 2}
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_files(
        tmp_path,
        {"grouped.json": GROUPED, "both.json": BOTH, "memos.json": MEMOS, "daily.json": DAILY, "other.json": OTHER},
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def compared(options: str) -> list[dict[str, Any]]:
    assert uldp.main(["compare", "job", *shlex.split(options)]) == 0
    return [json.loads(line) for line in Path("job/comparisons.jsonl").read_text("utf-8").splitlines()]


def estimated(cells: list[int], of: Collection = GROUPED) -> Any:
    return of.estimate(CohortCounts(np.array([sum(cells)]), np.array([cells])), "empirical")


@pytest.mark.usefixtures("folder")
def test_rows_are_what_the_library_says(capsys: pytest.CaptureFixture[str]) -> None:
    """Of the sums of all windows; the arm that is declared first is the baseline."""
    store([*arms([300, 200, 200], [200, 300, 200]), *arms([100, 50, 80], [60, 70, 60], start=PERIOD)])
    rows = compared("--collection grouped.json --by arm")
    cells = [260, 370, 260], [400, 250, 280]
    found = library(*map(estimated, cells))
    assert {(one["group_a"], one["group_b"]) for one in rows} == {("arm=new", "arm=control")}
    assert {(one["window_start"], one["window_end"]) for one in rows} == {
        ("1970-01-01T00:00:00Z", "1970-01-01T00:20:00Z")
    }
    assert [one["value"] for one in rows] == list(found.values)
    columns = {"difference": found.differences, "low": found.low, "high": found.high}
    columns |= {"p_value": found.p_values, "q_value": found.q_values}
    columns |= {"noticeable": found.noticeable}
    columns |= {"lift": found.lifts, "lift_low": found.lift_low, "lift_high": found.lift_high}
    for name, column in columns.items():
        assert [one[name] for one in rows] == pytest.approx(column.tolist())
    said = capsys.readouterr().out.splitlines()
    test = homogeneity(GROUPED, [CohortCounts(np.array([sum(own)]), np.array([own])) for own in cells])
    assert test is not None and test.p_value < 0.05
    assert said[0] == "grouped: 2 compared, 1 pair, 1,820 reports"
    assert said[1] == (
        f"Do they differ at all? Yes (chi-square {test.statistic:.1f}, 2 degrees of freedom, p {test.p_value:.2g})."
    )
    number = int((found.q_values <= 0.05).sum())
    assert 0 < number < 3
    assert said[2] == f"{number} of 3 differences are found (q at most 0.05)."
    assert sum(line.startswith("*") for line in said[5:]) == number


@pytest.mark.usefixtures("folder")
def test_many_looks_are_paid_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Rows are those of the library, with min_reports as the scale."""
    store(arms([1200, 800, 800], [900, 1100, 800]))
    rows = compared("--collection grouped.json --by arm --anytime --min_reports 50")
    found = library(estimated([900, 1100, 800]), estimated([1200, 800, 800]), anytime_scale=50)
    for name, column in {"low": found.low, "high": found.high, "p_value": found.p_values}.items():
        assert [one[name] for one in rows] == pytest.approx(column.tolist())
    assert {one["interval"] for one in rows} == {"anytime"}
    assert "Intervals, p and q hold at all looks while reports arrive;" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_a_declared_share_of_liars_is_allowed_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Rows are those of the library for groups and for windows, also after the selection."""
    cells = [1200, 800, 800], [700, 1300, 800]
    store([*arms(*cells), *arms(*cells, start=PERIOD)])
    for options, factor in (("--by arm", 2), ("--windows", 1)):
        rows = compared(f"--collection grouped.json {options} --liars 0.01")
        sides = [estimated([factor * c for c in side]) for side in (cells[1], cells[0])]
        if factor == 1:
            sides = [estimated(np.sum(cells, axis=0).tolist())] * 2
        sides = [side.with_liars(GROUPED, 0.01) for side in sides]
        found = library(*sides)
        for name, column in {"low": found.low, "high": found.high, "p_value": found.p_values}.items():
            assert [one[name] for one in rows] == pytest.approx(column.tolist())
        assert {one["liars"] for one in rows} == {0.01}
        selected = [one for one in rows if one["selected_low"] is not None]
        assert len(selected) == int((found.q_values <= 0.05).sum())
        assert all(one["selected_low"] <= one["low"] <= one["high"] <= one["selected_high"] for one in selected)
        said = capsys.readouterr().out
        assert "Whether they differ at all is not tested, because that test takes all reports as honest." in said
        assert "whatever liars send, who are at most 1 % of each side." in said
    assert {one["liars"] for one in compared("--collection grouped.json --by arm")} == {None}


@pytest.mark.usefixtures("folder")
def test_pairs_are_in_the_declared_order_and_q_values_over_all_of_them() -> None:
    groups = [(("arm", arm), ("c", c)) for arm in ("new", "control", "other") for c in ("DE", "other")]
    cells = [[200 + 10 * number, 150, 100] for number in range(6)]
    total = np.sum(cells, axis=0).tolist()
    store([row(BOTH, 0, total), *(row(BOTH, 0, own, list(group)) for own, group in zip(cells, groups))])
    rows = compared("--collection both.json --by arm")
    names = ["arm=new", "arm=control", "arm=other"]
    pairs = [(names[1], names[0]), (names[2], names[0]), (names[2], names[1])]
    assert list(dict.fromkeys((one["group_a"], one["group_b"]) for one in rows)) == pairs
    adjusted = q_values(np.array([one["p_value"] for one in rows]))
    assert [one["q_value"] for one in rows] == pytest.approx(adjusted.tolist())
    against = compared("--collection both.json --by arm --against arm=control")
    assert list(dict.fromkeys((one["group_a"], one["group_b"]) for one in against)) == [
        ("arm=new", "arm=control"),
        ("arm=other", "arm=control"),
    ]
    assert len(compared("--collection both.json --by c,arm")) == 3 * 15


def two_directories() -> None:
    """``before``: the first ten minutes; ``job``: twenty minutes later on."""
    store(arms([300, 200, 200], [200, 300, 200]))
    Path("job").rename("before")
    store(
        [*arms([500, 100, 100], [260, 250, 190], start=2 * PERIOD), *arms([90, 80, 70], [60, 70, 90], start=3 * PERIOD)]
    )


@pytest.mark.usefixtures("folder")
def test_two_directories_are_compared_as_a_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """The sums of all windows of each; the one that is named first comes first."""
    two_directories()
    rows = compared("--with before --collection grouped.json")
    cells = [910, 500, 450], [500, 500, 400]
    found = library(*map(estimated, cells))
    assert {(one["group_a"], one["group_b"]) for one in rows} == {("directory=job", "directory=before")}
    assert {(one["window_start"], one["window_end"]) for one in rows} == {
        ("1970-01-01T00:00:00Z", "1970-01-01T00:40:00Z")
    }
    for name, column in {"difference": found.differences, "low": found.low, "p_value": found.p_values}.items():
        assert [one[name] for one in rows] == pytest.approx(column.tolist())
    test = homogeneity(GROUPED, [CohortCounts(np.array([sum(c)]), np.array([c])) for c in cells])
    assert test is not None
    said = capsys.readouterr().out
    assert said.startswith("grouped: 2 compared, 1 pair, 3,260 reports\n")
    assert f"chi-square {test.statistic:.1f}, 2 degrees of freedom" in said


@pytest.mark.usefixtures("folder")
def test_two_directories_are_compared_group_by_group(capsys: pytest.CaptureFixture[str]) -> None:
    """q-values are over all rows; chi-square statistics of pairs are added up; a group of one directory is left out."""
    two_directories()
    rows = compared("--with before --by arm --collection grouped.json")
    sides = ([590, 180, 170], [300, 200, 200]), ([320, 320, 280], [200, 300, 200])
    found = [library(*map(estimated, pair)) for pair in sides]
    names = [(f"directory=job,arm={arm}", f"directory=before,arm={arm}") for arm in ("control", "new")]
    assert list(dict.fromkeys((one["group_a"], one["group_b"]) for one in rows)) == names
    p_values = np.concatenate([one.p_values for one in found])
    assert [one["p_value"] for one in rows] == pytest.approx(p_values.tolist())
    assert [one["q_value"] for one in rows] == pytest.approx(q_values(p_values).tolist())
    tests = [homogeneity(GROUPED, [CohortCounts(np.array([sum(c)]), np.array([c])) for c in pair]) for pair in sides]
    statistic = sum(test.statistic for test in tests if test is not None)
    assert f"chi-square {statistic:.1f}, 4 degrees of freedom" in capsys.readouterr().out
    compared("--with before --by arm --collection grouped.json --min_reports 800")
    assert capsys.readouterr().err.splitlines() == [
        "compare: grouped: before: arm=control is left out, because it has fewer than 800 reports",
        "compare: grouped: before: arm=new is left out, because it has fewer than 800 reports",
        "compare: grouped: arm=control is left out, because only one directory has it",
        "compare: grouped: arm=new is left out, because only one directory has it",
    ]


@pytest.mark.usefixtures("folder")
def test_a_collection_that_only_one_directory_has_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    store(arms([300, 200, 200], [200, 300, 200]))
    Path("job").rename("before")
    store([*arms([500, 100, 100], [260, 250, 190]), *arms([500, 100, 100], [260, 250, 190], OTHER)])
    rows = compared("--with before --collection grouped.json --collection other.json")
    assert {one["collection_id"] for one in rows} == {"grouped"}
    assert "compare: other: before has no counts of this collection (the same fingerprint)" in capsys.readouterr().err


# ---------------------------------------------------------------------- questions

FIRST = Collection.from_json(GROUPED.to_json() | {"question": "asked"})
SECOND = Collection.from_json(
    GROUPED.to_json() | {"question": "asked", "version": 2, "mechanism": {"id": "krr", "epsilon": 3.0}}
)
OF_FIRST, OF_SECOND = ([60, 50, 40], [50, 60, 45]), ([300, 200, 150], [200, 310, 140])


def of_question(cells: tuple[list[int], list[int]]) -> Any:
    """The pooled estimate of one arm, from the counts of both versions."""
    counts = {
        one.fingerprint: CohortCounts(np.array([sum(c)]), np.array([c])) for one, c in zip((FIRST, SECOND), cells)
    }
    [question] = questions_of([FIRST, SECOND])
    return question.estimate(counts, ESTIMATORS["eb"]()).estimate


@pytest.fixture
def question(folder: Path) -> str:
    write_files(folder, {"first.json": FIRST, "second.json": SECOND})
    store([*arms(*OF_FIRST, FIRST), *arms(*OF_SECOND, SECOND)])
    return "--collection first.json --collection second.json"


def test_versions_of_a_question_are_pooled(question: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The minimum number of reports is that of all versions; the rows of versions alone would be further tests."""
    control, new = (of_question(pair) for pair in zip(OF_FIRST, OF_SECOND))
    found = library(new, control)
    rows = compared(f"{question} --by arm --min_reports 600")
    assert [(one["collection_id"], one["collection_version"]) for one in rows] == [("asked", 0)] * 3
    for name, column in {"difference": found.differences, "high": found.high, "p_value": found.p_values}.items():
        assert [one[name] for one in rows] == pytest.approx(column.tolist())
    said = capsys.readouterr().out
    assert said.startswith("asked: 2 compared, 1 pair, 1,605 reports\n")
    assert "Whether they differ at all is not tested, because versions of a question are pooled." in said
    alone = compared("--collection second.json --by arm")
    assert [(one["collection_id"], one["collection_version"]) for one in alone] == [("grouped", 2)] * 3


def test_questions_are_compared_by_windows_and_with_other_directories(question: str) -> None:
    """A version that is new since the other directory takes part: the question is the same."""
    Path("job").rename("before")
    store([*arms(*OF_SECOND, SECOND), *arms(*OF_FIRST, FIRST, PERIOD)])
    [*rows] = compared(f"{question} --windows")
    assert {one["collection_id"] for one in rows} == {"asked"}
    store([one._replace(run="b") for one in (*arms(*OF_FIRST, FIRST), *arms(*OF_SECOND, SECOND))])
    rows = compared(f"{question} --with before --by arm")
    assert {one["collection_version"] for one in rows} == {0}
    assert [one["difference"] for one in rows] == pytest.approx([0] * 6)
    assert {one["p_value"] for one in rows} == {1.0}


@pytest.mark.usefixtures("folder")
def test_people_who_answer_one_version_after_the_other_widen_the_intervals() -> None:
    """One version in the first window, the other one in the second: a person may be in both, so that the errors of the
    versions are not independent, and intervals are those of two reports per person."""
    versions = [Collection.from_json(one.to_json() | {"client_window": "10m"}) for one in (FIRST, SECOND)]
    write_files(Path(), {"first.json": versions[0], "second.json": versions[1]})
    store([*arms(*OF_FIRST, versions[0]), *arms(*OF_SECOND, versions[1], PERIOD)])
    [asked], twice = questions_of(versions), {one.fingerprint: 2 for one in versions}
    control, new = (
        asked.estimate(
            {one.fingerprint: CohortCounts(np.array([sum(c)]), np.array([c])) for one, c in zip(versions, cells)},
            ESTIMATORS["eb"](),
            times=twice,
        ).estimate
        for cells in zip(OF_FIRST, OF_SECOND)
    )
    expected = library(new, control)
    rows = compared("--collection first.json --collection second.json --by arm")
    assert [one["low"] for one in rows] == pytest.approx(expected.low.tolist())
    assert [one["p_value"] for one in rows] == pytest.approx(expected.p_values.tolist())


@pytest.mark.usefixtures("folder")
def test_groups_of_a_version_are_compared_if_the_newest_one_has_none() -> None:
    bare = {name: part for name, part in SECOND.to_json().items() if name != "dimensions"}
    newest = Collection.from_json(bare)
    write_files(Path(), {"first.json": FIRST, "second.json": newest})
    store([*arms(*OF_FIRST, FIRST), row(newest, 0, [300, 200, 150])])
    rows = compared("--collection first.json --collection second.json --by arm --min_reports 1")
    assert [(one["collection_id"], one["group_a"], one["group_b"]) for one in rows] == [
        ("asked", "arm=new", "arm=control")
    ] * 3
    found = library(*(estimated(cells, FIRST) for cells in reversed(OF_FIRST)))
    assert [one["difference"] for one in rows] == pytest.approx(found.differences.tolist())


@pytest.mark.usefixtures("folder")
def test_a_lift_without_a_bound_is_null() -> None:
    """A share of control that may be 0, and one that is estimated below 0."""
    store(arms([470, 180, 150], [300, 300, 200]))
    rows = compared("--collection grouped.json --by arm")
    known = [[one[name] is not None for name in ("lift", "lift_low", "lift_high")] for one in rows]
    assert known == [[True, True, True], [True, True, False], [False, False, False]]


@pytest.mark.usefixtures("folder")
def test_windows_are_compared_with_the_ones_before(capsys: pytest.CaptureFixture[str]) -> None:
    """Complete ones with enough reports: the others are named on standard error."""
    cells = [[100, 80, 60], [1, 1, 1], [150, 80, 60], [90, 80, 60]]
    windows = [row(GROUPED, at * PERIOD, own) for at, own in enumerate(cells)]
    store([*windows, row(GROUPED, 4 * PERIOD, [100, 100, 100])._replace(complete=False)])
    rows = compared("--collection grouped.json --windows")
    assert list(
        dict.fromkeys((one["group_a"], one["group_b"], one["window_start"], one["window_end"]) for one in rows)
    ) == [
        ("window=1970-01-01T00:20:00Z", "window=1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1970-01-01T00:30:00Z"),
        ("window=1970-01-01T00:30:00Z", "window=1970-01-01T00:20:00Z", "1970-01-01T00:20:00Z", "1970-01-01T00:40:00Z"),
    ]
    found = library(estimated(cells[2]), estimated(cells[0]))
    assert [one["difference"] for one in rows[:3]] == pytest.approx(found.differences.tolist())
    assert capsys.readouterr().err.splitlines() == [
        "compare: grouped: 1 Jan 1970, 00:10 is left out, because it has fewer than 100 reports",
        "compare: grouped: 1 Jan 1970, 00:40 is left out, because it has no complete window",
    ]
    store(windows[:1])
    assert compared("--collection grouped.json --windows") == []
    assert capsys.readouterr().out == "grouped: fewer than two can be compared\n"


@pytest.mark.usefixtures("folder")
def test_as_many_reports_as_the_least_are_enough(capsys: pytest.CaptureFixture[str]) -> None:
    """Of windows of 100, 99 and 100 reports the first and the last are compared."""
    cells = [[40, 30, 30], [40, 30, 29], [30, 40, 30]]
    store([row(GROUPED, at * PERIOD, own) for at, own in enumerate(cells)])
    rows = compared("--collection grouped.json --windows --min_reports 100")
    assert [one["difference"] for one in rows] == pytest.approx(
        library(estimated(cells[2]), estimated(cells[0])).differences.tolist()
    )
    left_out = "1 Jan 1970, 00:10 is left out, because it has fewer than 100 reports"
    assert capsys.readouterr().err == f"compare: grouped: {left_out}\n"


@pytest.mark.usefixtures("folder")
def test_sides_without_an_estimate_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Texts that are hashed by one of two cohorts alone cannot be told apart."""
    write_files(Path(), {"hashed.json": HASHED, "candidates.txt": "a\nb\nc\nd\ne\n"})
    store([row(HASHED, at * PERIOD, [90, 60, 40, 10, *[0] * 4])._replace(num_reports=[200, 0]) for at in range(2)])
    assert compared("--collection hashed.json --windows --candidates candidates.txt") == []
    assert capsys.readouterr().err.splitlines() == [
        f"compare: grouped: {window} is left out, because it has no estimate (insufficient_cohorts)"
        for window in ("1 Jan 1970, 00:00", "1 Jan 1970, 00:10")
    ]


def test_the_difference_that_is_said_to_be_noticed_is_noticed() -> None:
    """Exact sums over all pairs of counts of two groups of 400 people, whose shares differ by what is said."""
    model = Collection.from_json(
        {"id": "two", "version": 1, "alphabet": {"id": "closed", "values": ["0", "1"]}}
        | {"mechanism": {"id": "krr", "epsilon": 2.0}}
    )
    size, keep = 400, float(np.exp(2) / (np.exp(2) + 1))
    estimates = [estimated([count, size - count], model) for count in range(size + 1)]
    raw = np.array([one.raw_frequencies[0] for one in estimates])
    low, high = np.array([[end[0] for end in one.unclipped(0.95)] for one in estimates]).T
    middle = size // 2
    ends = difference_interval(raw[middle], raw[middle], low[middle], high[middle], low[middle], high[middle])
    noticeable = library(estimates[middle], estimates[middle]).noticeable[0]
    assert noticeable == pytest.approx((1.96 + 0.84) / 1.96 * (ends[1] - ends[0]) / 2)
    numbers = (0.0, float(ends[0]), float(ends[1]), 1.0, 1.0, 1.0, 1.0, 1.0)
    example = ComparedValue("two", None, None, "0", "a", "b", *numbers, noticeable=float(noticeable))
    said = re.match(
        r"A difference of ([\d.]+) in any one value", *found_in_words.power_in_words(Findings.of([example]))
    )
    assert said is not None
    [hopeless] = found_in_words.power_in_words(Findings.of([example, example._replace(noticeable=1.2)]))
    assert (
        hopeless
        == "Even a difference of 1 in any one value may be missed: there are too few reports, or too many liars."
    )
    p = 0.5 + float(said[1])
    low_of_all, high_of_all = difference_interval(
        raw[:, None], raw[None, :], low[:, None], high[:, None], low[None, :], high[None, :]
    )
    of_a, of_b = (stats.binom.pmf(range(size + 1), size, share * keep + (1 - share) * (1 - keep)) for share in (p, 0.5))
    power = float(of_a @ ((low_of_all > 0) | (high_of_all < 0)) @ of_b)
    assert 0.78 < power < 0.9


# ---------------------------------------------------------------------- numbers


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("options", ["--by arm", "--windows"])
def test_numbers_are_compared_by_their_figures(options: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Mean, quantiles, shares above limits, and the texts beside the numbers; not the bins, which are noise."""
    write_files(Path(), {"times.json": TIMES})
    control, new = latencies(0), latencies(12)
    store(arms(control, new, TIMES) if options == "--by arm" else [row(TIMES, 0, control), row(TIMES, PERIOD, new)])
    rows = compared(f"--collection times.json {options} --limits 40,50 --quantiles 0.5,0.9")
    assert [(one["value"], one["figure"], one["at"]) for one in rows] == [
        ("mean", "mean", None),
        ("median", "quantile", 0.5),
        ("p90", "quantile", 0.9),
        ("share from 40 ms", "share_above", 40),
        ("share from 50 ms", "share_above", 50),
        ("error", None, None),
    ]
    mean, median = rows[:2]
    assert mean["difference"] == pytest.approx(12, abs=0.3)  # rounded counts, and clamped tails
    assert 0 < mean["low"] < 12 < mean["high"]
    assert median["display_low"] < median["display_difference"] < median["display_high"]
    assert rows[-1]["low"] < 0 < rows[-1]["high"]
    assert rows[-1]["lift"] is not None
    assert all((one["selected_low"] is not None) == (one["q_value"] <= 0.05) for one in rows)
    assert mean["selected_low"] < mean["low"] < mean["high"] < mean["selected_high"]
    assert all(one["noticeable"] == pytest.approx(1.4286 * (one["high"] - one["low"]) / 2, rel=1e-3) for one in rows)
    adjusted = q_values(np.array([one["p_value"] for one in rows]))
    assert [one["q_value"] for one in rows] == pytest.approx(adjusted.tolist())
    said = capsys.readouterr().out
    assert re.search(r"A difference of [\d.]+ in the mean or of [\d.]+ in any one share would have a p-value", said)
    assert re.search(r"\*  mean +(\S+ +\S+|.* 1970, 00:00) +\+1[12]\.\d", said)
    assert "smooth interval" in said


@pytest.mark.usefixtures("folder")
def test_versions_with_texts_in_other_orders_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """Their numbers are the same, and the symbols of the texts beside them are not."""
    spec = TIMES.to_json() | {"question": "asked"}
    one, other = (
        Collection.from_json(
            spec | {"version": version, "alphabet": spec["alphabet"] | {"num_bins": 4, "others": others}}
        )
        for version, others in ((1, ["error", "late"]), (2, ["late", "error"]))
    )
    write_files(Path(), {"one.json": one, "other.json": other})
    cells = [50] * len(one.mechanism.response(np.full(6, 1 / 6)))
    store([*arms(cells, cells, one), *arms(cells, cells, other)])
    assert compared("--collection one.json --collection other.json --by arm") == []
    why = "is left out, because versions list the texts beside numbers in other orders"
    assert capsys.readouterr().err.splitlines() == [
        f"compare: asked: arm=control {why}",
        f"compare: asked: arm=new {why}",
    ]
    store([*arms(cells, cells, one)])
    assert len(compared("--collection one.json --collection other.json --by arm")) > 0


@pytest.mark.usefixtures("folder")
def test_open_ends_are_null_in_rows_and_words_in_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    write_files(Path(), {"times.json": TIMES})
    store(arms(latencies(0), latencies(70), TIMES))
    [_, p90, _] = compared("--collection times.json --by arm --quantiles 0.9")
    assert (p90["value"], p90["high"]) == ("p90", None)
    assert p90["low"] > 0
    assert re.search(r"p90 .* from \+\d", capsys.readouterr().out)


@pytest.mark.usefixtures("folder")
def test_what_only_the_smooth_interval_shows_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    """The median of 2,000 people, which moves by a quarter of a standard deviation."""
    write_files(Path(), {"times.json": TIMES})
    store(arms(latencies(0, 2000), latencies(3, 2000), TIMES))
    median, *_ = compared("--collection times.json --by arm --quantiles 0.5")[1:]
    assert median["q_value"] > 0.05 and median["display_low"] > 0
    said = capsys.readouterr().out
    assert re.search(r"^~  median +arm=new", said, flags=re.MULTILINE)
    assert said.rstrip().endswith("~ only the smooth interval is without 0; it takes neighbouring bins to be alike.")
    store(arms(latencies(0, 20_000), latencies(2, 20_000), TIMES))
    compared("--collection times.json --by arm --quantiles 0.5")
    said = capsys.readouterr().out
    assert re.search(r"^\*  median +arm=new", said, flags=re.MULTILINE)
    assert "only the smooth interval" not in said


# ---------------------------------------------------------------------- refusals


LONG = Collection.from_json(
    {"id": "long", "version": 1, "dimensions": [{"name": "arm", "values": ["control", "new"]}]}
    | {"alphabet": {"id": "closed", "values": [f"v{at:02}" for at in range(40)]}}
    | {"mechanism": {"id": "krr", "epsilon": 6.0}}
)


@pytest.mark.usefixtures("folder")
def test_many_tiny_p_values_have_an_order_and_a_text(capsys: pytest.CaptureFixture[str]) -> None:
    """The largest differences, in units of their error, are the last values of the list."""
    Path("long.json").write_text(json.dumps(LONG.to_json()), "utf-8")
    control = [1_200 - 27 * at for at in range(40)]
    new = [120 + 29 * at for at in range(40)]
    of_groups = [row(LONG, 0, cells, [("arm", arm)]) for arm, cells in (("control", control), ("new", new))]
    store([row(LONG, 0, [a + b for a, b in zip(control, new)]), *of_groups])
    rows = compared("--collection long.json --by arm")
    printed = capsys.readouterr().out
    first, second = estimated(new, LONG), estimated(control, LONG)
    z = np.abs(first.raw_frequencies - second.raw_frequencies) / np.hypot(first.standard_errors, second.standard_errors)
    order = [first.values[at] for at in np.argsort(-z, kind="stable")]
    names = [line.split()[1] for line in printed.splitlines() if line.startswith("*")]
    assert np.count_nonzero(z > 8.2) > 20 and z.max() < 37
    assert names == order[:20]
    assert "< 1e-15" in printed and "e-16" not in printed and " 0.0 " not in printed
    by_value = {one["value"]: one for one in rows}
    p_values = [by_value[name]["p_value"] for name in order]
    assert p_values == sorted(p_values) and len(set(p_values[:20])) == 20 and min(p_values) > 0
    q_values_of = [by_value[name]["q_value"] for name in order]
    assert q_values_of == sorted(q_values_of) and min(q_values_of) > 0
