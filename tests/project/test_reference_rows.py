"""``tests.campaigns.reference_rows`` finds a number that changed by one bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.campaigns.reference_jobs import JOBS, OPTIONS, STUDIES
from tests.campaigns.reference_rows import difference, main, masked
from uldp_transforms.ldp.alphabets import ALPHABETS
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.mechanisms import MECHANISMS

JOB = "follow-plain-fixed"


def test_a_changed_number_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A job that runs twice has the same rows; then one stored share moves to the next float."""
    folder = str(tmp_path / "reference")
    assert main(["write", folder, "--only", JOB]) == 0
    assert main(["compare", folder, "--only", JOB]) == 0
    path = tmp_path / "reference" / f"{JOB}.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    at = next(at for at, row in enumerate(rows) if row.get("kind") == "estimates.jsonl" and row["estimates"])
    entry = rows[at]["estimates"][1]
    entry["raw_frequency"] = float(np.nextafter(entry["raw_frequency"], 2))
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    capsys.readouterr()
    assert main(["compare", folder, "--only", JOB, "total-plain-alone"]) == 1
    found, total = capsys.readouterr().out.splitlines()
    assert found.startswith(f"{JOB}: 1 of {len(rows)} lines differ, first line {at + 1} (estimates.jsonl ")
    assert f": estimates[1].raw_frequency: {entry['raw_frequency']!r} before, " in found
    assert total == f"1 of 1 jobs differ; not stored in {folder}: 1 jobs"


def test_comparing_with_nothing_is_no_success(tmp_path: Path) -> None:
    assert main(["compare", str(tmp_path), "--only", JOB]) == 1


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ([{"a": 1}], [{"a": 1.0}], "1 of 1 lines differ, first line 1 (): a: 1 before, 1.0 now"),
        ([{"a": None}], [{"a": []}], "1 of 1 lines differ, first line 1 (): a: null before, [] now"),
        (
            [{"a": [1, {"b": 2}]}],
            [{"a": [1, {"b": "2"}]}],
            '1 of 1 lines differ, first line 1 (): a[1].b: 2 before, "2" now',
        ),
        ([], [{"kind": "k", "value": "v"}], '1 of 1 lines differ, first line 1 (k v): kind: nothing before, "k" now'),
        ([{}, {"a": 1}], [{}], "1 of 2 lines differ, first line 2 (): a: 1 before, nothing now"),
        ([{"a": 1, "b": 2}], [{"b": 2, "a": 1}], "1 of 1 lines differ, first line 1 (): order of fields"),
    ],
)
def test_the_first_difference_is_named(old: list[Any], new: list[Any], found: str) -> None:
    lines, others = ([json.dumps(row) for row in rows] for rows in (old, new))
    assert difference(lines, others) == found
    assert difference(lines, lines) is None


def test_runs_versions_and_arrivals_are_masked() -> None:
    row = {
        "run": "20261129T114344.627Z-d96a86",
        "software": "uldp_transforms 0.4.0",
        "received_at": "2026-11-29",
        "n": 1,
    }
    assert json.loads(masked(row)) == {"run": "RUN", "software": "SOFTWARE", "received_at": "ARRIVED", "n": 1}


def test_jobs_cover_everything() -> None:
    """Every mechanism and alphabet, every estimator, and each option with each program that has it."""
    asked = [one.spec for study in STUDIES.values() for one in study.asked]
    assert {spec["mechanism"]["id"] for spec in asked} == {*MECHANISMS}
    assert {spec["alphabet"]["id"] for spec in asked} == {*ALPHABETS}
    for program in ("reestimate", "total"):
        lines = [" ".join(job.words) for job in JOBS.values() if job.name.startswith(program)]
        assert all(any(f"--estimator {name}" in line for line in lines) for name in ESTIMATORS), program
    for program in ("estimate", "follow", "reestimate", "total", "compare"):
        words = [job.words for job in JOBS.values() if job.name.startswith(program)]
        assert all(any(set(options.split()) <= set(line) for line in words) for options in OPTIONS.values()), program
