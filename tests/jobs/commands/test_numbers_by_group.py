"""Numbers by group: rows of groups, sums of stored counts, and comparisons, from one simulated experiment."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.messages_cases import write_files
from tests.support.tolerance import generator
from uldp_transforms.jobs import estimate, uldp
from uldp_transforms.jobs.records.whole_period import FILE
from uldp_transforms.jobs.reestimate.stored_counts import stored_counts
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.estimators.number_estimates import estimate_numbers
from uldp_transforms.rows.figures.figure_words import FEW_REPORTS

TIMES = Collection.from_json(
    {"id": "times", "version": 1, "mechanism": {"id": "sw", "epsilon": 2.0}}
    | {"alphabet": {"id": "ordered", "low": 0, "high": 80, "num_bins": 16, "unit": "ms"}}
    | {"dimensions": [{"name": "arm", "values": ["control", "new"]}, {"name": "c", "values": ["DE"]}]}
)
LEVELS = {"control": 20.0, "new": 26.0}
FIGURES = ["--limits", "40", "--quantiles", "0.5,0.9"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two days of an experiment, estimated by arm and country."""
    folder = tmp_path_factory.mktemp("experiment")
    rng = generator("latency of two arms")
    write_files(folder, {"times.json": TIMES})
    with (folder / "V.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["value", "event_time", "arm", "c"])
        for day in (1, 2):
            for arm, level in LEVELS.items():
                numbers = rng.gamma(4, level / 4, 4000).round(1).tolist()
                rows.writerows([number, f"2026-11-0{day}T12:00:00Z", arm, "DE"] for number in numbers[:3000])
                rows.writerows([number, f"2026-11-0{day}T12:00:00Z", arm, "FR"] for number in numbers[3000:])
    item = str(folder / "times.json")
    made = ["--collection", item, "--values", str(folder / "V.csv"), "--output", str(folder / "r.avro"), "--seed", "1"]
    assert uldp.main(["simulate", *made, "--form", "packed"]) == 0
    told = ["--collection", item, "--input", str(folder / "r.avro"), "--output", str(folder / "job")]
    assert estimate.main([*told, "--window", "1d", "--by", "arm,c", "--write_counts", *FIGURES]) == 0
    return folder


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_rows_of_groups_have_the_figures_of_their_own_counts(folder: Path) -> None:
    rows = rows_of(folder / "job" / "estimates.jsonl")
    assert len(rows) == 2 * 5  # the total, two arms times the listed country and all others
    known = {TIMES.fingerprint.hex(): TIMES}
    stored = stored_counts([([str(*(folder / "job").glob("counts*.avro"))], [])], known, None, ("arm", "c"))
    counts = {
        (row["group"] or "", row["window_start"]): row["counts"] for key in stored.windows.values() for row in key
    }
    assert len(counts) == len(rows)
    of_window = {1: "2026-11-01T00:00:00Z", 2: "2026-11-02T00:00:00Z"}
    starts = dict(zip(of_window.values(), sorted({start for _, start in counts})))
    for row in rows:
        own = counts[row["group"], starts[row["window_start"]]]
        told = estimate_numbers(TIMES, own, limits=[40], quantiles=[0.5, 0.9])
        assert told.mean is not None
        assert row["numbers"]["mean"]["value"] == pytest.approx(told.mean.value)
        assert row["numbers"]["shares_above"][0]["high"] == pytest.approx(told.shares_above[0].high)
        assert row["numbers"]["quantiles"][1]["display_low"] == pytest.approx(told.quantiles[1].display_low)


def test_the_total_prints_figures_of_each_arm(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert uldp.main(["reestimate", str(folder / "job"), "--window", "all", "--by", "arm", *FIGURES]) == 0
    said = capsys.readouterr().out
    [heading] = [line for line in said.splitlines() if line.startswith("times, arm=new, ")]
    assert "8,000 reports in 2 windows" in heading
    table = said.split(heading)[1].splitlines()[1:6]
    assert [line.split("  ")[0] for line in table] == ["figure", "mean", "median", "p90", "share from 40 ms"]
    assert table[0].endswith("without smoothness  smooth 95 % interval"), "of 8,000 reports"
    assert said.split(heading)[1].splitlines()[7] == FEW_REPORTS
    rows = {row["group"]: row["numbers"] for row in rows_of(folder / "job" / FILE)}
    for arm, level in LEVELS.items():
        mean = rows[f"arm={arm}"]["mean"]
        assert abs(mean["value"] - level) < 4 * (mean["high"] - mean["low"]) / 2  # 7.8 standard errors


def test_of_many_reports_the_smooth_interval_is_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert uldp.main(["reestimate", str(folder / "job"), "--window", "all", *FIGURES]) == 0
    said = capsys.readouterr().out
    assert "16,000 reports" in said
    assert "smooth 95 % interval  without smoothness\n" in said
    assert FEW_REPORTS not in said
