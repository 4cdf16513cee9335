"""uldp regress: tables of regressions, what is left out, and what is refused."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest

from tests.support.tolerance import generator
from uldp_transforms.jobs import regress as command
from uldp_transforms.ldp.regression import regress

FORCED = np.array([[5 / 6, 1 / 6], [1 / 6, 5 / 6]])


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def table(*lines: str) -> None:
    Path("answers.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_the_table_has_the_numbers_of_the_function(capsys):
    rng = generator("regress")
    ages, women = rng.integers(18, 80, 900), rng.integers(0, 2, 900)
    answers = rng.integers(0, 2, 900)
    table("answer,age,woman", *(f"{a},{b},{c}" for a, b, c in zip(answers, ages, women)), "1,NA,1", "1,x,1", ",30,1")
    assert command.main(shlex.split("answers.csv --design forced:2/3,0.5 --covariates age,woman")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("  ")[0] == "covariate"
    covariates = np.column_stack([np.ones(900), ages, women])
    found = regress(FORCED, answers, covariates)
    low, high = found.intervals()
    for at, (name, line) in enumerate(zip(("(intercept)", "age", "woman"), lines[1:])):
        numbers = [array[0, at] for array in (found.coefficients, found.standard_errors, low, high)]
        first, second, start, end = (f"{number:.4f}" for number in numbers)
        cells = [name, first, second, start, "to", end, f"{found.wald_p_values[0, at]:.3g}"]
        if at:
            smaller = regress(FORCED, answers, np.delete(covariates, at, axis=1))
            cells.append(f"{found.likelihood_ratio(smaller)[2]:.3g}")
        assert line.split() == cells
    assert lines[4:] == [
        f"log-likelihood {found.log_likelihood:.4f}, 900 people",
        "",
        "900 of 903 rows are used.",
        "left out: 1 row: no answer in answer (line 904)",
        "left out: 1 row: no number in age (line 902)",
        "left out: 1 row: something else than a number in age; --categories reads names (line 903)",
    ]


def test_each_question_has_a_table_and_one_without_a_result_says_why(capsys):
    good = [f"good,{answer},{x},10" for answer in (0, 1) for x in (0, 1)]
    table("q,answer,x,n", *good, "bad,0,0,5", "bad,0,1,5", "empty,,1,1")
    options = "--design direct --covariates x --question q --people n"
    assert command.main(shlex.split(f"answers.csv {options}")) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "bad"
    assert lines[1].startswith("no result: Regression does not converge: ")
    assert lines[3] == "good"
    assert lines[-3:] == ["", "6 of 7 rows are used.", "left out: 1 row: no answer in answer (line 8)"]


def test_each_row_has_the_channel_of_its_design(capsys):
    cells = [(answer, design, x) for answer in (0, 1) for design in ("direct", "crosswise:0.2") for x in (0, 1)]
    people = np.array([30, 20, 40, 50, 10, 20, 60, 40])
    table("answer,design,x,n", *(f"{a},{d},{x},{n}" for (a, d, x), n in zip(cells, people)))
    assert command.main(shlex.split("answers.csv --design design --covariates x --people n")) == 0
    matrices = {"direct": np.eye(2), "crosswise:0.2": np.array([[0.2, 0.8], [0.8, 0.2]])}
    found = regress(
        np.array([matrices[design] for _, design, _ in cells]),
        np.array([answer for answer, _, _ in cells]),
        np.array([[1.0, x] for _, _, x in cells]),
        people,
    )
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("x ")]
    assert line.split()[1:3] == [f"{found.coefficients[0, 1]:.4f}", f"{found.standard_errors[0, 1]:.4f}"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--covariates x,x", "--covariates must name each column once, got 'x,x'"),
        (
            "--covariates z",
            "--covariates must name one column of answers.csv, got 'z', found 0 times; CSV must begin with its header",
        ),
        (
            "--covariates x,y",
            "regress needs covariates that are not linear combinations of others, got dependent ones",
        ),
    ],
)
def test_refused(options, sentence, capsys):
    table("answer,x,y", "0,1,2", "1,2,4", "1,3,6", "0,4,8")
    assert command.main(shlex.split(f"answers.csv --design direct {options}")) == 2
    assert capsys.readouterr() == ("", f"regress: {sentence}\n")
