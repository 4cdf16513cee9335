"""People who keep memos and answer every day, from ``uldp simulate`` through the main job to rows."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import functools
import io
import json
import operator
import shutil
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest
from scipy import stats

from tests.support.estimated import estimate_window
from tests.support.tolerance import RATE, generator, normal_limit
from uldp_transforms.jobs import check, estimate, uldp
from uldp_transforms.jobs.records.collection_facts import facts_of
from uldp_transforms.jobs.records.unknown_repeats import warnings_of
from uldp_transforms.jobs.reestimate import reestimate_command as reestimate
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.rows.row_identity import span_of

DAY = 86_400_000
MONDAY = 20_003 * DAY  # 2024-10-07
DAYS, PEOPLE = 14, 300
SHARES = {"ant": 0.45, "bee": 0.3, "cat": 0.2, "dog": 0.05}
ASKED = {
    "id": "asked",
    "version": 1,
    "alphabet": {"id": "closed", "values": list(SHARES)},
    "mechanism": {"id": "krr", "epsilon": 1.0, "epsilon_inf": 2.0},
    "num_cohorts": 4,
    "client_window": "1d",
}
UNNAMED = {name: value for name, value in ASKED.items() if name != "client_window"}
WARNING = (
    "collection 'asked' keeps memos (epsilon_inf) and names no client_window, so intervals are valid only if "
    "nobody reports twice in a window, and the sentinels are off; add client_window to its next version"
)


Rows = tuple[int, dict[str, list[dict[str, Any]]]]
"""Days in a window, and what a job wrote."""


@dataclasses.dataclass
class Reports:
    """Of the same people on all days: a folder with R.avro, and what is in it."""

    folder: Path
    counts: list[CohortCounts]  # of each day
    truth: np.ndarray  # shares of people
    said: str = ""  # by all jobs, to people

    def estimate(self, window: str) -> dict[str, list[dict[str, Any]]]:
        """The rows of a job over days or weeks, in which each report comes twice."""
        output = self.folder / f"by-{window}"
        argv = ["--collection", str(self.folder / "C.json"), "--input", str(self.folder / "R*.avro"), "--deduplicate"]
        # windows of the calendar: weeks begin on the Monday with which reports begin
        argv += ["--output", str(output), "--window", window, "--timezone", "UTC", "--write_counts"]
        with contextlib.redirect_stderr(io.StringIO()) as said:
            assert estimate.main([*argv, "--estimator", "projected"]) == 0
        self.said += said.getvalue()
        return {name: read(output / f"{name}.jsonl") for name in ("estimates", "health", "ledger")}


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def made(folder: Path, spec: dict[str, Any], people: int) -> Reports:
    held = generator("memo people").choice(list(SHARES), people, p=list(SHARES.values())).tolist()
    (folder / "C.json").write_text(json.dumps(spec), encoding="utf-8")
    with (folder / "V.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["who", "value", "event_time"])
        rows.writerows([f"p{i}", held[i], (MONDAY + day * DAY) // 1000] for day in range(DAYS) for i in range(people))
    argv = ["--collection", str(folder / "C.json"), "--values", str(folder / "V.csv"), "--person_column", "who"]
    assert uldp.main(["simulate", *argv, "--output", str(folder / "R.avro")]) == 0
    shutil.copy(folder / "R.avro", folder / "R2.avro")
    counts = [np.zeros((4, len(SHARES)), dtype=np.int64) for _ in range(DAYS)]
    with (folder / "R.avro").open("rb") as file:
        for record in fastavro.reader(file):
            assert isinstance(record, dict)
            counts[(record["event_time"] - MONDAY) // DAY][record["cohort"], record["payload"][0]] += 1
    shares = np.array([held.count(value) for value in SHARES]) / people
    return Reports(folder, [CohortCounts(cells.sum(axis=1), cells) for cells in counts], shares)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Reports:
    return made(tmp_path_factory.mktemp("memos"), ASKED, PEOPLE)


@pytest.fixture(scope="module", params=["1d", "1w"])
def rows(request: pytest.FixtureRequest, reports: Reports) -> Rows:
    """Days in a window, and what the job wrote."""
    return {"1d": 1, "1w": 7}[request.param], reports.estimate(request.param)


# ---------------------------------------------------------------------- rows


def test_the_ledger_has_every_report_and_its_copy(rows: Rows) -> None:
    days, written = rows
    numbers = [(row["received"], row["accepted"], row["duplicates"], row["rejected"]) for row in written["ledger"]]
    assert numbers == [(2 * PEOPLE * days, PEOPLE * days, PEOPLE * days, {})] * (DAYS // days)


def test_rows_are_those_of_the_library(rows: Rows, reports: Reports) -> None:
    """Of counts that were made report by report; for weeks with the bound on the variance of seven reports a person."""
    days, written = rows
    of, found = Collection.from_json(ASKED), sorted(written["estimates"], key=operator.itemgetter("window_start"))
    assert len(found) == DAYS // days
    for row, start in zip(found, range(0, DAYS, days)):
        counts = functools.reduce(operator.add, reports.counts[start : start + days])
        place = {**span_of(MONDAY + start * DAY, days * DAY), "pane_index": 0, "pane_timing": "ON_TIME"}
        expected = estimate_window(of, counts, place, ESTIMATORS["projected"](), None, None)
        assert (row["window_start"], row["num_reports"]) == (expected.window_start, counts.total)
        for name in ("raw_frequency", "standard_error", "ci_low", "ci_high", "common_variance"):
            numbers = [entry[name] for entry in row["estimates"]]
            assert numbers == pytest.approx([getattr(entry, name) for entry in expected.estimates], rel=1e-12)


def test_intervals_contain_what_people_hold(rows: Rows, reports: Reports) -> None:
    """Intervals that are as much longer as the suite's rate of false alarms asks for."""
    days, written = rows
    longer = normal_limit(len(SHARES) * DAYS // days) / stats.norm.isf(0.025)
    for row in written["estimates"]:
        for entry, share in zip(row["estimates"], reports.truth):
            raw, low, high = entry["raw_frequency"], entry["ci_low"], entry["ci_high"]
            assert low == 0 or share >= raw - longer * (raw - low)
            assert high == 1 or share <= raw + longer * (high - raw)


def test_sentinels_judge_days_and_no_weeks(rows: Rows) -> None:
    days, written = rows
    for row in written["health"]:
        assert {finding["name"] for finding in row["findings"]} == (
            {"floor", "cohorts", "homogeneity"} if days == 1 else set()
        )
        assert all(finding["p_value"] > RATE for finding in row["findings"])


# ---------------------------------------------------------------------- where nobody knows how often people report


def test_jobs_over_unnamed_windows_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In one sentence that names the way out, and in a finding that never fires; the exit code stays."""
    reports = made(tmp_path, UNNAMED, 50)
    written = reports.estimate("1w")
    assert reports.said.count(f"estimate: {WARNING}\n") == 1
    capsys.readouterr()
    assert [row["status"] for row in written["health"]] == ["ok"] * 2
    for row in written["health"]:
        [finding] = row["findings"]
        assert (finding["name"], finding["fired"]) == ("repeats", False)
        assert "Name a client_window" in finding["sentence"]
    output = tmp_path / "by-1w"
    assert check.main([str(output)]) == 0
    assert f"memos    {WARNING}\n" in capsys.readouterr().out
    argv = ["--collection", str(tmp_path / "C.json"), str(output), "--output", str(tmp_path / "again")]
    assert reestimate.main(argv) == 0
    assert f"reestimate: {WARNING}\n" in capsys.readouterr().err


def test_nothing_is_said_of_other_collections(rows: Rows, reports: Reports, capsys: pytest.CaptureFixture[str]) -> None:
    days, _ = rows
    assert check.main([str(reports.folder / f"by-1{'w' if days == 7 else 'd'}")]) == 0
    assert reports.said.startswith("estimate: ")
    assert "memos" not in reports.said + capsys.readouterr().out
    fresh = UNNAMED | {"mechanism": {"id": "krr", "epsilon": 1.0}}
    collections = [Collection.from_json(spec) for spec in (ASKED, UNNAMED, fresh)]
    assert warnings_of(collections) == [WARNING]


def test_pages_say_that_it_is_not_known() -> None:
    named, unnamed = (dict(facts_of(Collection.from_json(spec), {})) for spec in (ASKED, UNNAMED))
    assert unnamed["Reports of one person"].startswith("number per window not known")
    assert unnamed == named | {"Reports of one person": unnamed["Reports of one person"]}
