"""uldp survey and uldp regress: no row shows a number outside its interval or an interval that is short by chance.

The interval of a share that is 0 or 1, or beyond it by chance, is printed with its one end.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from tests.support.shown_intervals import faults, shown
from tests.support.tolerance import generator
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp.estimators.display import interval_text
from uldp_transforms_survey.survey_designs import SurveyDesign

DESIGNS = ("direct", "crosswise:0.2", "crosswise:0.7", "forced:0.75,2/3", "unrelated:0.7,0.4")
SHARES, SIZES = (0, 0.002, 0.3, 0.995, 1), (4, 30, 250)

RUNS = (
    "survey answers.csv --question q --design design",
    "survey answers.csv --question q --design design --weight w",
    "survey answers.csv --question q --design design --cluster c --stratum s",
    "survey rates.csv --question q --design design --inattentive one",
    "survey rates.csv --question q --design design --inattentive zero --weight w",
    "survey rates.csv --question q --design design --inattentive chance --anchor anchor=0 --cluster c",
    "regress answers.csv --question q --design design --covariates x,w",
    "regress answers.csv --question q --design design --weight w --cluster c --stratum s",
)


def lines_of(question: str, design: str, share: float, size: int, rng: np.random.Generator) -> list[str]:
    """Rows of people whose truthful answer is yes with this probability, with columns of a sample and a covariate."""
    truth = (rng.random(size) < share).astype(int)
    answers = rng.random(size) < np.array(SurveyDesign.parse(design).channel.probabilities)[truth, 1]
    weights = rng.uniform(0.5, 2, size).round(2)
    people = zip(range(size), answers.astype(int).tolist(), weights.tolist())
    ofs = [f"{answer};{w};c{at // 2 % 9};s{at % 2};{'ab'[at % 3 == 0]}" for at, answer, w in people]
    return [f"{question};{design};{one}" for one in ofs]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of rare and common answers: in all designs, and at two rates of one with a rare anchor."""
    found, rng = tmp_path_factory.mktemp("shown"), generator("shown rows of surveys")
    answers, rates = [], []
    for share in SHARES:
        for size in SIZES:
            answers += [line for one in DESIGNS for line in lines_of(f"{share} of {size}", one, share, size, rng)]
            for rate in (0.2, 0.7):
                rates += lines_of(f"{share} of {size}", f"crosswise:{rate}", share, size, rng)
    rates += [line for rate in (0.2, 0.7) for line in lines_of("anchor", f"crosswise:{rate}", 0, 250, rng)]
    for name, lines in (("answers", answers), ("rates", rates)):
        text = "\n".join(["q;design;answer;w;c;s;x", *lines]) + "\n"
        (found / f"{name}.csv").write_text(text, encoding="utf-8")
    return found


@pytest.mark.parametrize("line", RUNS)
def test_every_row_is_right(
    line: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    pooled = ["--json_pooled", "pooled.jsonl"] * line.startswith("survey")
    assert uldp.main([*shlex.split(line), "--json", "rows.jsonl", *pooled]) in (0, 1)  # 1: some answers do not fit
    names = ["rows.jsonl", *pooled[1:]]
    rows = [json.loads(text) for name in names for text in Path(name).read_text("utf-8").splitlines()]
    assert faults(rows) == []
    intervals = [each for row in rows for each in shown(row) if each.number is not None]
    kinds = {"ci_", *["inattentive_ci_"] * ("inattentive" in line), *["odds_ratio_"] * ("covariates" in line)}
    assert {each.kind for each in intervals} >= kinds and len(intervals) >= 20
    said = capsys.readouterr().out
    assert not re.search(r" -?0\.0000 +0\.\d{4} +0\.0000 to 0|-0\.\d{4} +0\.\d{4} +0\.0000 to 0", said)
    if line.startswith("survey"):
        assert len(re.findall(r" below 0\.\d{4} ", said)) > 3


@pytest.mark.parametrize(
    ("ones", "cells"),
    [
        (390, ["-0.0083", "0.0149", "below", "0.0304"]),
        (1610, ["1.0083", "0.0149", "above", "0.9696"]),
    ],
)
def test_a_share_below_0_or_above_1_is_printed_with_one_end(
    ones: int, cells: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "answers.csv"
    table.write_text(f"answer,people\n1,{ones}\n0,{2000 - ones}\n", encoding="utf-8")
    assert uldp.main(["survey", str(table), "--design", "crosswise:0.8", "--people", "people"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[2:6] == cells


def test_pooled_shares_and_inattentive_people_are_printed_with_one_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody has the property, and all follow the design: -.0042 and -.0017 at the two rates."""
    monkeypatch.chdir(tmp_path)
    people = [("crosswise:0.2", 1605, 395), ("crosswise:0.8", 398, 1602)]
    lines = [f"{design},{answer},{n}" for design, *counts in people for answer, n in zip((1, 0), counts)]
    Path("answers.csv").write_text("\n".join(["design,answer,people", *lines]), encoding="utf-8")
    options = "survey answers.csv --design design --people people --inattentive one --json_pooled rows.jsonl"
    assert uldp.main(shlex.split(options)) == 0
    together, by_model = map(json.loads, Path("rows.jsonl").read_text(encoding="utf-8").splitlines())
    said = capsys.readouterr().out
    cells = [line.split() for line in said.splitlines() if line.startswith("crosswise, 2 designs")]
    assert cells[0][4:8] == ["-0.0029", "0.0105", "below", f"{together['ci_high']:.4f}"]
    assert cells[1][6:8] == ["below", f"{by_model['inattentive_ci_high']:.4f}"]
    assert cells[1][8] == "0.0000" and cells[1][10:12] == ["below", f"{by_model['ci_high']:.4f}"]


def test_one_end_is_never_printed_as_0_or_1() -> None:
    assert interval_text(0.0, 0.0, 0.00002) == "below 0.00002"
    assert interval_text(1.0, 0.9999951, 1.0) == "above 0.999995"
    assert interval_text(0.0, 0.0, 1.0) == "0.0000 to 1.0000"
    assert interval_text(0.01, 0.0, 0.018) == "0.0000 to 0.0180"
