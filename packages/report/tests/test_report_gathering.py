"""What a page gathers from a directory, as plain data: rows by hand, each number and each limit."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fastavro
import numpy as np
import pytest

from tests.support import report_rows as rows
from uldp_transforms.jobs.records.row_directory import RowDirectory
from uldp_transforms.jobs.records.run_records import RunRecord
from uldp_transforms.jobs.records.whole_period import group_totals_of, totals_of
from uldp_transforms.jobs.reestimate import whole_periods
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rows.figures.figure import share_of
from uldp_transforms.windows import rfc3339
from uldp_transforms_report import gathering
from uldp_transforms_report.differences import Panel, reach_of
from uldp_transforms_report.facts import CollectionPart, Limits, Report
from uldp_transforms_report.gathering import Asked, gather
from uldp_transforms_report.truth_file import Truth

VALUES = ("ant", "bee", "cow", "dog")
SHARES = {"ant": 0.2, "bee": 0.5, "cow": 0.05, "dog": 0.1}
NAN = float("nan")


def entries(**shares: float) -> list[dict[str, Any]]:
    """With intervals of a single value of +- 0.03, of selected ones of +- 0.05, and smoothed ones of +- 0.01."""
    found = []
    for value, share in shares.items():
        own = {
            "ci_low": share - 0.03,
            "ci_high": share + 0.03,
            "display_low": share - 0.05,
            "display_high": share + 0.05,
        }
        smoothed = {"smoothed_frequency": share, "smoothed_low": share - 0.01, "smoothed_high": share + 0.01}
        found.append(rows.entry(value, share, 0.02) | own | smoothed)
    return found


def reached(panel: Panel) -> float:
    """By how many standard errors the intervals of differences reach, of ``entries``."""
    return float(reach_of(1) * np.nanmax(panel.high - panel.value) / 0.03)


def part_of(folder: Path, **asked: Any) -> CollectionPart:
    [part] = report_of(folder, **asked).parts
    return part


def report_of(folder: Path, **asked: Any) -> Report:
    return gather(Asked(directory=str(folder), title="T", **asked))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four days: the second is withheld, the last is open; the shares of the third one differ."""
    of = rows.survey(tmp_path, VALUES, 4)
    early = {"pane_timing": "EARLY", "interval": "anytime", "unexplained_mass": 0.25, "unexplained_low": 0.2}
    days = [
        rows.estimate(of, 0, entries(**SHARES)),
        rows.estimate(of, 1, status="suppressed", num_reports=None),
        rows.estimate(of, 2, entries(ant=0.3, bee=0.4), num_values=2),
        rows.estimate(of, 3, entries(**SHARES), num_values=9, **early, unexplained_high=0.3, simulated=True),
    ]
    rows.write(tmp_path, "estimates.jsonl", days)
    return tmp_path


def test_the_latest_window_has_its_largest_values_first(folder: Path) -> None:
    """With the intervals for the selection of the largest; what is left out is counted, with its share."""
    part = part_of(folder, limits=Limits(rows=3))
    assert part.latest is not None
    found = [(one.name, one.value, round(one.low, 9), round(one.high, 9), one.truth) for one in part.latest.entries]
    assert found == [("bee", 0.5, 0.45, 0.55, None), ("ant", 0.2, 0.15, 0.25, None), ("dog", 0.1, 0.05, 0.15, None)]
    assert [(one.smoothed, one.smoothed_low) for one in part.latest.entries[:1]] == [(0.5, 0.49)]
    assert (part.latest.others, part.latest.other_share) == (6, pytest.approx(0.05))
    window = part.latest.window
    assert (window.name, window.num_reports, window.is_open, window.holds_always) == (
        "Thu 9 Nov 2000",
        1000,
        True,
        True,
    )
    unlisted = window.unexplained
    assert (unlisted.value, unlisted.low, unlisted.high) == (0.25, 0.2, 0.3)
    assert [(line.status, line.is_open, line.holds_always) for line in part.windows[:2]] == [
        *(("ok", False, False), ("suppressed", False, False))
    ]
    assert [one.sensitive for one in part.latest.entries] == [None] * 3 and part.simulated
    whole = part_of(folder)
    assert whole.latest is not None and (whole.latest.others, whole.latest.other_share) == (5, 0)


def test_only_the_latest_windows_are_shown(folder: Path) -> None:
    part = part_of(folder, limits=Limits(windows=3))
    assert [line.name for line in part.windows] == ["Tue 7 Nov 2000", "Wed 8 Nov 2000", "Thu 9 Nov 2000"]
    assert part.windows_left_out == 1 and part.statuses == [("ok", 3), ("suppressed", 1)]
    assert part.panel is not None and list(part.panel.sides) == ["Wed 8 Nov 2000", "Thu 9 Nov 2000"]
    assert dict(part.asked)["Reports"].startswith("3,000; 1,000 in each of the 3 windows")
    assert part_of(folder, limits=Limits(windows=4)).windows_left_out == 0
    assert [cost.reports for cost in part.costs][:2] == ["one report", "one in each window of a week (7)"]


def test_a_comparison_of_windows_is_among_all_values_of_the_row(folder: Path) -> None:
    part = part_of(folder, limits=Limits(cells=8))
    assert part.panel is not None and not part.panel.is_of_figures
    assert list(part.panel.values) == ["bee", "ant", "dog", "cow"] and len(part.panel.sides) == 2
    np.testing.assert_allclose(part.panel.value[0], [0.4, 0.3, NAN, NAN])
    assert reached(part.panel) == pytest.approx(2.7729, abs=1e-3)  # of 1 - 0.05 / 18
    lying = [json.loads(line) | {"liars": 0.1} for line in (folder / "estimates.jsonl").read_text("utf-8").splitlines()]
    rows.write(folder, "estimates.jsonl", lying)
    assert part_of(folder).panel is None


def finding(of: Collection, window: int, *fired: str) -> dict[str, Any]:
    row = rows.finding(of, window, "x")
    found = [{"name": name, "fired": True, "sentence": f"'bee' in {name} {window}"} for name in fired]
    return row | {"findings": [*found, {"name": "floor", "fired": False, "sentence": "no"}] if fired else []}


def test_alarms_are_the_latest_first(folder: Path) -> None:
    of = rows.collection(VALUES)
    health = [finding(of, 0, "change"), finding(of, 1), finding(of, 2, "floor", "change"), finding(of, 3, "ceiling")]
    rows.write(folder, "health.jsonl", health)
    part = part_of(folder, limits=Limits(rows=3))
    assert [(alarm.window, alarm.name, alarm.sentence) for alarm in part.alarms] == [
        ("Thu 9 Nov 2000", "ceiling", "'bee' in ceiling 3"),
        ("Wed 8 Nov 2000", "change", "'bee' in change 2"),
        ("Wed 8 Nov 2000", "floor", "'bee' in floor 2"),
    ]
    assert (part.alarms_left_out, part.judged, part.watched.compared, part.watched.fired) == (1, 3, 2, 2)
    assert part.changed == {"bee": "Wed 8 Nov 2000"}
    moved = {trend.figure.name: trend.moved.tolist() for trend in part.trends}
    assert moved["bee"] == [True, False, True, False] and not any(moved["ant"])
    assert part_of(folder, limits=Limits(rows=4)).alarms_left_out == 0


def test_a_change_that_did_not_fire_is_none(folder: Path) -> None:
    of = rows.collection(VALUES)
    row = finding(of, 2, "change")
    row["findings"][0]["fired"] = False
    rows.write(folder, "health.jsonl", [row])
    part = part_of(folder)
    assert part.changed == {} and part.alarms == []
    assert (part.judged, part.watched.compared, part.watched.fired) == (1, 1, 0)


def test_the_latest_change_of_a_value_is_told() -> None:
    moved = [np.array([True, False, True, True]), np.array([False] * 4), np.array([True, False, False, False])]
    assert gathering._changed(moved, ["a", "b", "c"], ["1", "2", "3", "4"]) == {"a": "4", "c": "1"}


def test_a_question_has_the_facts_of_its_versions(tmp_path: Path) -> None:
    given = rows.collection(VALUES).to_json() | {"question": "q"}
    versions = [Collection.from_json(given | {"version": version}) for version in (1, 2)]
    rows.record(tmp_path, *versions)
    [fingerprint] = gathering.questions_in(versions)
    row = rows.estimate(versions[1], 0, entries(**SHARES)) | {"fingerprint": fingerprint, "pooled": True}
    rows.write(tmp_path, "estimates.jsonl", [row])
    part = part_of(tmp_path)
    assert dict(part.asked)["Pooled from"] == "survey version 1 (krr, epsilon 1); survey version 2 (krr, epsilon 1)"
    assert part.pooled and part.which == "all versions" and part.costs == []


def truth(**shares: float) -> Any:
    def of(start: str, end: str, values: list[str]) -> np.ndarray:
        if start == rows.span(0)["window_start"]:
            return np.full(len(values), NAN)
        return np.array([shares[value] for value in values])

    return SimpleNamespace(shares=of)


def test_intervals_are_compared_with_the_truth(folder: Path) -> None:
    """Of each window alone (+- 0.03) and smoothed (+- 0.01), at both ends; windows without people are left out."""
    part = part_of(folder, truth=truth(ant=0.2 + 0.03, bee=0.5, cow=0.05 - 0.03, dog=0.2))
    assert [(one.what, one.held, one.number) for one in part.coverage] == [
        ("each window alone", 3, 6),
        ("smoothed", 1, 6),
    ]
    assert part.latest is not None
    assert [(one.name, one.truth, one.covered) for one in part.latest.entries] == [
        *(("bee", 0.5, True), ("ant", 0.2 + 0.03, True), ("dog", 0.2, False), ("cow", 0.05 - 0.03, True))
    ]
    one = rows.estimate(rows.collection(VALUES), 2, entries(ant=0.3))
    rows.write(folder / "one", "estimates.jsonl", [one])
    assert [of.number for of in part_of(folder / "one", truth=truth(ant=0.3)).coverage] == [1, 1]
    bee = next(trend for trend in part.trends if trend.figure.name == "bee")
    np.testing.assert_array_equal(bee.truth, [NAN, NAN, 0.5, 0.5])
    assert [line.unexplained.truth for line in part.windows] == [None, None, pytest.approx(0.27), None]
    assert part_of(folder, truth=truth(ant=0.7, bee=0.6, cow=0, dog=0)).windows[2].unexplained.truth == 0
    assert report_of(folder, truth=truth(**SHARES)).has_truth and not report_of(folder).has_truth


def test_sensitive_values_are_counted_apart(tmp_path: Path) -> None:
    of = rows.collection(VALUES, sensitive=["ant"])
    rows.record(tmp_path, of)
    plain = [one | dict.fromkeys(("smoothed_frequency", "smoothed_low", "smoothed_high")) for one in entries(**SHARES)]
    rows.write(tmp_path, "estimates.jsonl", [rows.estimate(of, at, plain) for at in (1, 2)])
    part = part_of(tmp_path, truth=truth(ant=0.2, bee=0.9, cow=0.05, dog=0.1))
    assert [(one.what, one.held, one.number) for one in part.coverage] == [
        *(("each window alone, sensitive values", 2, 2), ("each window alone, other values", 4, 6))
    ]
    assert part.latest is not None and [one.sensitive for one in part.latest.entries] == [False, True, False, False]
    assert part.latest.entries[0].smoothed is None


def test_bins_of_numbers_have_no_truth_in_a_file(tmp_path: Path) -> None:
    given = {"id": "c", "version": 1, "alphabet": {"id": "ordered", "edges": [0, 1, 2], "unit": "min"}}
    of = Collection.from_json(given | {"mechanism": {"id": "krr", "epsilon": 1.0}})
    rows.record(tmp_path, of)
    shares = dict(zip(of.alphabet.known_values or (), (0.4, 0.6)))
    numbers = {"mean": {"value": 1.0, "low": 0.9, "high": 1.1}}
    whole = rows.estimate(of, 0, entries(**shares), numbers=numbers)
    rows.write(tmp_path, "estimates.jsonl", [whole, rows.estimate(of, 1, entries(**shares), numbers=numbers)])
    rows.write(tmp_path, "totals.jsonl", [whole | {"window_end": rows.span(1)["window_end"]}])
    part = part_of(tmp_path, truth=truth())
    assert part.coverage == [] and part.latest is not None and part.latest.entries[0].truth is None
    assert part.numbers is not None and part.numbers.unit == "min" and len(part.numbers.trends) == 1
    assert part.whole_numbers is not None and [one.name for one in part.whole_numbers.figures] == ["mean"]
    assert part.panel is not None and part.panel.is_of_figures and part.panel.values == ["mean"]


def test_numbers_of_entries_of_older_jobs() -> None:
    """With one kind of intervals, which may be without the share."""
    new = {"frequency": 0.1, "ci_low": 0.0, "ci_high": 0.3, "display_low": 0.05, "display_high": 0.2}
    smoothed = {"smoothed_frequency": 0.5, "smoothed_low": 0.1, "smoothed_high": 0.4}

    def numbers(entry: dict[str, Any], single: bool = False) -> tuple[float | None, ...]:
        of = share_of(entry | {"value": "a"}, single=single)
        assert (of.name, of.is_share, of.sure_low, of.sure_high) == ("a", True, of.low, of.high)
        return of.value, of.low, of.high, of.smoothed, of.smoothed_low, of.smoothed_high

    assert numbers(new | smoothed) == (0.1, 0.05, 0.2, 0.5, 0.1, 0.5)
    assert numbers(new, single=True) == numbers(new | {"display_low": None}) == (0.1, 0.0, 0.3, None, None, None)
    assert numbers({"frequency": 0.1, "ci_low": 0.2, "ci_high": 0.3, "smoothed_low": 0.1}) == (
        *(0.1, 0.1, 0.3, None, None, None),
    )
    assert gathering._coverage(Counter({("a", True): 3, ("a", False): 1, ("b", True): 0})) == gathering._coverage(
        {("a", True): 3, ("a", False): 1, ("b", True): 0, ("b", False): 0}
    )


# ------------------------------------------------------------------------------------------------------- whole periods


def test_groups_of_windows_come_before_those_of_the_whole_period(folder: Path) -> None:
    of = rows.collection(VALUES)
    lines = (folder / "estimates.jsonl").read_text("utf-8").splitlines()
    groups = [rows.estimate(of, 3, entries(ant=at / 10), group=f"g={at}") for at in (1, 2)]
    rows.write(folder, "estimates.jsonl", [*map(json.loads, lines), *groups])
    rows.write(folder, "totals.jsonl", [rows.estimate(of, None, entries(ant=0.3), group="g=1")])
    part = part_of(folder)
    assert [one.window for one in part.groups] == ["Thu 9 Nov 2000", "the whole period, all reports"]
    assert part.latest is not None and part.latest.entries[0].name == "bee"
    assert part_of(folder, limits=Limits(cells=0)).groups[0].panel is not None
    assert part.groups[0].panel is not None
    assert reached(part.groups[0].panel) == pytest.approx(2.7729, abs=1e-3)


def test_totals_come_from_their_file_or_from_counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of counts with the settings of the latest run."""
    of = rows.collection(VALUES)
    known = {of.fingerprint.hex(): of}
    records = RowDirectory(str(folder)).records()
    called: list[Any] = []
    row = {"fingerprint": "f", "group": None}

    def counted(*given: Any) -> list[Any]:
        called.append(given)
        return [row]

    monkeypatch.setattr(whole_periods, "rows_of_counts", counted)
    assert totals_of(str(folder), records, known) == {} and group_totals_of(str(folder)) == {}
    (folder / "counts.avro").touch()
    assert totals_of(str(folder), [], known) == totals_of(str(folder), records, {}) == {} and not called
    settings = {"estimator": "raw", "min_reports": 7, "show": None, "window": "1d", "liars": 0.0}
    rows.record(folder, of, run="20261123T081503.042Z-4f2a9c", **settings)
    assert totals_of(str(folder), RowDirectory(str(folder)).records(), known) == {"f": row}
    assert called[0][3] == {"estimator": "raw", "min_reports": 7, "liars": 0.0}
    written = [rows.estimate(of, 0, entries(**SHARES), **more) for more in ({}, {"group": "g=1"}, {"group": ""})]
    rows.write(folder, "totals.jsonl", written)
    assert totals_of(str(folder), records, known) == {of.fingerprint.hex(): written[2]}
    assert group_totals_of(str(folder)) == {of.fingerprint.hex(): [written[1]]}
    for name in ("fingerprint", "window_start", "window_end", "status", "num_reports", "estimates"):
        rows.write(folder, "totals.jsonl", [{key: value for key, value in written[0].items() if key != name}])
        with pytest.raises(
            SpecError,
            match=r"totals.jsonl must contain rows of uldp reestimate --window all \(the content is not shown\)$",
        ):
            totals_of(str(folder), records, known)


# ----------------------------------------------------------------------------------------------------- runs, ledger


def run(
    folder: Path, name: str, *, resumes: bool = True, end: str | None = "stopped", sentence: str | None = "s"
) -> None:
    source = {"option": "--x", "name": "x", "bounded": False, "resumes": resumes}
    RunRecord(run=name, started=rfc3339(0), source=source, specification={}, end=end, sentence=sentence).write(
        str(folder)
    )


def ledger(run: str, received: int, accepted: int, collection: str | None = "c", **rejected: int) -> dict[str, Any]:
    place = {"collection_id": collection, "collection_version": 1, "window_start": None, "window_end": None, "run": run}
    return place | {"received": received, "accepted": accepted, "duplicates": 1, "rejected": rejected, "in_transit": 0}


def test_a_stream_has_the_ledger_of_all_its_runs(tmp_path: Path) -> None:
    """Of runs that resume where the last one stopped; a job over files that of its last run."""
    for name, resumes in (("a", False), ("b", True), ("c", True)):
        run(tmp_path, name, resumes=resumes)
    lines = [
        ledger("a", 100, 99),
        ledger("b", 5, 3, malformed=1),
        ledger("c", 7, 6),
        ledger("c", 4, 0, None, unknown=3),
    ]
    rows.write(tmp_path, "ledger.jsonl", [*lines, ledger("c", 2, 1, "b")])
    report = report_of(tmp_path)
    found = [(of.name, of.received, of.accepted, of.duplicates, of.rejected) for of in report.accounts]
    assert found == [
        ("named no known collection", 4, 0, 1, {"unknown": 3}),
        ("b", 2, 1, 1, {}),
        ("c", 12, 9, 2, {"malformed": 1}),
    ]
    assert report.balanced is True
    rows.write(tmp_path, "ledger.jsonl", [*lines, ledger("b", 9, 1)])
    assert report_of(tmp_path).balanced is False
    run(tmp_path, "d", resumes=False)
    assert report_of(tmp_path).balanced is None and report_of(tmp_path).accounts == []
    rows.write(tmp_path, "ledger.jsonl", [ledger("d", 9, 1)])
    assert report_of(tmp_path).balanced is False


def test_what_could_not_be_read_is_no_report(tmp_path: Path) -> None:
    """Files and messages stand apart from reports, and a row without reports is left out of the table."""
    run(tmp_path, "a", resumes=False)
    unread = {"unread_messages": {"malformed": 2}, "unread_files": {"bad_magic": 1}}
    nobody = ledger("a", 0, 0, None) | unread | {"duplicates": 0}
    rows.write(tmp_path, "ledger.jsonl", [ledger("a", 6, 5), nobody])
    report = report_of(tmp_path)
    assert [(of.name, of.received) for of in report.accounts] == [("c", 6)]
    assert report.balanced is True
    assert report.unread == ["unread messages: 2 (malformed 2)", "unread files: 1 (bad_magic 1)"]
    rows.write(tmp_path, "ledger.jsonl", [nobody])
    assert (report_of(tmp_path).accounts, report_of(tmp_path).balanced) == ([], True)
    rows.write(tmp_path, "ledger.jsonl", [ledger("a", 6, 5)])
    assert report_of(tmp_path).unread == []


def test_the_latest_runs_are_listed(tmp_path: Path) -> None:
    """The state of the last one is looked up; earlier ones without an end have none."""
    for at in range(20):
        run(tmp_path, f"r{at:02}", end=None, sentence=None)
    report = report_of(tmp_path)
    assert len(report.runs) == 20 and report.runs_left_out == 0
    assert report.runs[0] == ("r00", rfc3339(0), "", "no end", "") and report.runs[-1][3] == "killed"
    run(tmp_path, "r20")
    report = report_of(tmp_path)
    assert report.runs[0][0] == "r01" and report.runs_left_out == 1
    assert report.runs[-1] == ("r20", rfc3339(0), "", "stopped", "s")
    assert (report.zone, report.title, report.note, report.parts) == ("UTC", "T", "", [])


def test_an_empty_directory_has_nothing(tmp_path: Path) -> None:
    report = report_of(tmp_path, note="n")
    assert (report.runs, report.accounts, report.balanced, report.parts, report.note) == ([], [], None, [], "n")


# ------------------------------------------------------------------------------------------------------------- reading


def test_rows_are_read_from_json_lines_or_else_from_avro(tmp_path: Path) -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "run", "type": "string"}, {"name": "x", "type": "int"}],
    }
    content = io.BytesIO()
    fastavro.writer(content, schema, [{"run": "a", "x": 1}, {"run": "b", "x": 2}])
    (tmp_path / "ledger.avro").write_bytes(content.getvalue())
    directory = RowDirectory(str(tmp_path))
    assert directory.ledger(["b"]) == [{"run": "b", "x": 2}] and directory.rejected(["b"]) == []
    rows.write(tmp_path, "ledger.jsonl", [{"run": "b", "x": 3}])
    rows.write(tmp_path, "ledger-b-1.jsonl", [{"run": "b", "x": 4}, {"x": 5}])
    rows.write(tmp_path, "rejected-b-1.jsonl", [{"run": "a"}, {"run": "b", "y": 1}])
    assert directory.ledger(iter(["b"])) == [{"run": "b", "x": 3}, {"run": "b", "x": 4}]
    assert directory.rejected(["b"]) == [{"run": "b", "y": 1}]


def test_entries_are_those_of_their_rows(folder: Path) -> None:
    directory = RowDirectory(str(folder))
    windows = directory.windows()
    assert [(row["num_shown"], row["line"]) for row in windows] == [(4, 0), (0, 1), (2, 2), (4, 3)]
    assert not any("estimates" in row for row in windows)
    found = list(directory.entries([windows[2], windows[0]]))
    assert [(row["line"], [entry["value"] for entry in given]) for row, given in found] == [
        *((0, list(VALUES)), (2, ["ant", "bee"]))
    ]


def test_windows_and_groups_are_in_order(tmp_path: Path) -> None:
    first, second = rows.collection(VALUES), rows.collection(VALUES, 2.0)
    lines = [
        rows.estimate(of, window, group=group)
        for group in ("g=2", None, "g=1")
        for of in (second, first)
        for window in (3, None, 1)
    ]
    rows.write(tmp_path, "estimates.jsonl", lines)
    directory = RowDirectory(str(tmp_path))
    place = [(row["fingerprint"], row["window_start"] or "") for row in directory.windows()]
    assert place == sorted(place) and len(place) == 6
    groups = [(row["group"], row["fingerprint"], row["window_start"] or "") for row in directory.groups()]
    assert groups == sorted(groups) and len(groups) == 12


PLACE = (
    "collection_id",
    "collection_version",
    "fingerprint",
    "window_start",
    "window_end",
    "status",
    "run",
    "pane_index",
)


@pytest.mark.parametrize("name", [*PLACE, "estimates"])
def test_rows_of_something_else_are_refused(name: str, tmp_path: Path) -> None:
    row = rows.estimate(rows.collection(VALUES), 0)
    rows.write(tmp_path, "estimates.jsonl", [{key: value for key, value in row.items() if key != name}])
    with pytest.raises(SpecError) as caught:
        RowDirectory(str(tmp_path)).windows()
    said = f"{tmp_path / 'estimates.jsonl'} must contain rows of estimates, got a row without {name}"
    assert str(caught.value) == said


def test_health_is_in_order_of_time(tmp_path: Path) -> None:
    of = rows.collection(VALUES)
    whole = finding(of, 0) | dict.fromkeys(("window_start", "window_end"))
    rows.write(tmp_path, "health.jsonl", [finding(of, 2), whole, finding(of, 0)])
    times = [row["window_start"] for row in RowDirectory(str(tmp_path)).health()]
    assert times == [None, rows.span(0)["window_start"], rows.span(2)["window_start"]]


# --------------------------------------------------------------------------------------------------------------- truth


def test_true_shares_are_those_of_the_people_of_a_window() -> None:
    """From its start to its end, in any order of the file; values are compared in their canonical form."""
    parts = [(["a", "b", "e\u0301"], np.array([30, 10, 20])), (["a", "a"], np.array([19, 40]))]
    found = Truth(SimpleNamespace(path="V.csv", read=lambda number: iter(parts)))  # type: ignore[arg-type]  # what is read of it is enough
    values = ["b", "\u00e9", "a", "none"]
    assert found.shares(rfc3339(10), rfc3339(30), values).tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])
    assert found.shares(rfc3339(11), rfc3339(31), values).tolist() == pytest.approx([0, 1 / 3, 2 / 3, 0])
    assert found.shares(None, None, values).tolist() == pytest.approx([0.2, 0.2, 0.6, 0])
    assert found.shares(None, rfc3339(30), ["a"]).tolist() == found.shares(rfc3339(30), None, ["a"]).tolist() == [0.6]
    assert np.isnan(found.shares(rfc3339(41), rfc3339(50), values)).all()
    assert np.isnan(found.shares(rfc3339(21), rfc3339(30), ["a", "b"])).tolist() == [True, True]


def test_true_values_without_times_have_no_windows() -> None:
    found = Truth(SimpleNamespace(path="V.csv", read=lambda number: iter([(["a", "b"], None)])))  # type: ignore[arg-type]  # what is read of it is enough
    assert found.shares(None, None, ["a"]).tolist() == [0.5]
    with pytest.raises(SpecError, match=r"^V.csv must have the column event_time for rows with windows, got none$"):
        found.shares(rfc3339(0), rfc3339(1), ["a"])
    with pytest.raises(SpecError, match=r"^V.csv must have at least one value, got none$"):
        Truth(SimpleNamespace(path="V.csv", read=lambda number: iter([])))  # type: ignore[arg-type]  # what is read of it is enough
