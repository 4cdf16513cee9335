"""Trials on numbers: errors and coverage against exact figures, and tables that repeat."""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from uldp_transforms_planner.evaluate import evaluate_command as program


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """1,000 numbers, some beyond the bins, and 200 people without one."""
    spec = {"id": "ordered", "low": 0, "high": 100, "num_bins": 10, "others": ["none"]}
    of = {"id": "ages", "version": 1, "alphabet": spec, "mechanism": {"id": "krr", "epsilon": 3}}
    (tmp_path / "C.json").write_text(json.dumps(of), encoding="utf-8")
    (tmp_path / "log.json").write_text(
        json.dumps(of | {"alphabet": spec | {"low": 1, "scale": "log"}}), encoding="utf-8"
    )
    lines = [*map(str, numbers().tolist()), *["none"] * 200]
    (tmp_path / "V.csv").write_text("\n".join(["value", *lines]) + "\n", encoding="utf-8")
    return tmp_path


def numbers() -> np.ndarray:
    return np.arange(1000) % 119 + 0.5


def run(folder: Path, options: str) -> list[dict[str, Any]]:
    argv = f"--values IN/V.csv --json IN/T.json --seed 5 {options}".replace("IN/", f"{folder}/")
    assert program.main(shlex.split(argv)) == 0
    rows: list[dict[str, Any]] = json.loads((folder / "T.json").read_text(encoding="utf-8"))
    return rows


def test_figures_of_the_file(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With hardly any noise, errors are those of the bins; the truth is clamped to their range."""
    found = run(files, "--collection IN/C.json --mechanisms krr --epsilons 12 --repetitions 2 --reports 30000")
    assert [row["figure"] for row in found] == ["mean", "median", "p90"]
    assert all(row["error"] < 5 for row in found)  # half a bin
    printed = capsys.readouterr().out.splitlines()
    clamped = np.clip(numbers(), 0, 100)
    assert printed[0] == "30,000 reports, drawn from the 1,200 people in the file, 2 times"
    assert [line.split()[3] for line in printed[2:5]] == [
        f"{figure:.4g}" for figure in (clamped.mean(), *np.quantile(clamped, [0.5, 0.9]))
    ]


def test_errors_are_of_the_size_of_intervals(files: Path) -> None:
    (files / "V.csv").write_text("value\n" + "5\n" * 50 + "95\n" * 50, encoding="utf-8")
    [mean, *_] = run(files, "--collection IN/C.json --mechanisms sw --epsilons 1 --repetitions 3 --reports 50000")
    assert 0 < mean["half_width"] == mean["sure_half_width"] < 5
    assert mean["error"] < 8 * mean["half_width"] / 1.96  # three errors are not all above eight standard errors
    assert not math.isnan(mean["covered"])


def test_every_mechanism_is_tried_and_results_repeat(files: Path) -> None:
    options = "--collection IN/C.json --epsilons 1,2 --repetitions 1 --reports 500"
    first = run(files, options)
    places = [(row["mechanism"], row["epsilon"]) for row in first[::3]]
    assert places == [(name, epsilon) for name in ("sw", "krr", "rappor", "ss", "hr") for epsilon in (1, 2)]
    assert run(files, options) == first


def test_no_mean_on_a_log_scale(files: Path) -> None:
    found = run(files, "--collection IN/log.json --mechanisms sw --epsilons 2 --repetitions 1")
    assert [row["figure"] for row in found] == ["median", "p90"]


def test_intervals_without_smoothness(files: Path) -> None:
    found = run(files, "--collection IN/C.json --mechanisms sw,rappor --epsilons 1 --repetitions 2 --reports 20000")
    wave, bits = found[1], found[4]
    assert wave["half_width"] < wave["sure_half_width"]
    assert bits["half_width"] == bits["sure_half_width"]
