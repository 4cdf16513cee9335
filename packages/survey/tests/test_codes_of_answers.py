"""Habits of tables of answers that other people made: codes, gaps, spellings, categories and lines that are cut off."""

from __future__ import annotations

import csv
import json
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from uldp_transforms.jobs import uldp
from uldp_transforms_survey.regression import regress

SECRET = "my-secret"
NO_OBJECT = "no JSON object whose members have different names"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def surveyed(table: str, *options: str) -> list[dict[str, Any]]:
    Path("t.csv").write_text(table, encoding="utf-8")
    assert uldp.main(["survey", "t.csv", "--json", "rows", *options]) == 0
    return [json.loads(line) for line in Path("rows").read_text(encoding="utf-8").splitlines()]


CODED = "Q,p,n\n1,.2,60\n1,.8,140\n2,.2,110\n2,.8,45\n"


def test_codes_of_which_one_looks_like_yes_are_refused_until_both_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """1 and 2 are the codes of SPSS, Stata and Qualtrics."""
    columns = ("--answer", "Q", "--design", "crosswise:p", "--people", "n")
    Path("t.csv").write_text(CODED, encoding="utf-8")
    assert uldp.main(["survey", "t.csv", *columns]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert "--yes and --no" in found.err
    rows = surveyed(CODED, *columns, "--yes", "1", "--no", "2")
    assert [(row["num_reports"], row["num_ones"]) for row in rows] == [(170, 60), (185, 140)]
    assert [row["raw_frequency"] for row in rows] == [
        pytest.approx((60 / 170 - 0.8) / (0.4 - 1)),
        pytest.approx((140 / 185 - 0.2) / (1.6 - 1)),
    ]


@pytest.mark.parametrize(
    "answers",
    ["1,2", "0,2", "yes,nein", "Ja,no", "true,F", "1,2,9", "1.0,2.0", "1,2,NA"],
)
def test_answers_that_are_no_known_pair_are_refused(answers: str) -> None:
    for question in ("", "other,1\nother,0\n"):  # another question may have both
        lines = "".join(f"q,{answer}\n" for answer in answers.split(","))
        Path("t.csv").write_text(f"question,answer\n{lines}{question}", encoding="utf-8")
        options = ["--design", "direct", "--question", "question", "--max_unreadable", "1"]
        assert uldp.main(["survey", "t.csv", *options]) == 2


@pytest.mark.parametrize("pair", ["1,0", "1.0,0.0", "1.00,0", "yes,no", "YES,No", "True,False", "true,0", "yes,0.0"])
def test_answers_that_are_a_known_pair_are_taken(pair: str) -> None:
    """Also as programs write them after a gap."""
    one, zero = pair.split(",")
    [row] = surveyed("answer\n" + f"{one}\n" * 3 + f"{zero}\n" * 5 + '""\nNaN\n', "--design", "direct")
    assert (row["num_reports"], row["num_ones"]) == (8, 3)


def test_named_answers_add_up_and_are_the_same_number() -> None:
    text = "answer\nja\nJa\n1.0\nnein\n2.0\n"
    names = ("--yes", "ja", "--yes", "Ja", "--yes", "1", "--no", "nein", "--no", "2")
    [row] = surveyed(text, "--design", "direct", *names)
    assert (row["num_reports"], row["num_ones"]) == (5, 3)


@pytest.mark.parametrize(("wrong", "code"), [(5, 0), (6, 2)])
def test_more_rows_that_cannot_be_read_than_the_stated_share_are_refused(
    wrong: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    good = ["1", "0"] * 50
    Path("t.csv").write_text("answer\n" + "\n".join(good[wrong:] + [SECRET] * wrong) + "\n", encoding="utf-8")
    assert uldp.main(["survey", "t.csv", "--design", "direct"]) == code
    assert uldp.main(["survey", "t.csv", "--design", "direct", "--max_unreadable", ".06"]) == 0
    assert SECRET not in "".join(capsys.readouterr())


def test_one_question_has_one_name_in_both_forms_of_unicode() -> None:
    names = [unicodedata.normalize(form, "Caf\u00e9?") for form in ("NFC", "NFD")]
    assert names[0] != names[1]
    rows = surveyed(
        "q,answer\n" + "".join(f"{name},{x}\n" for name in names for x in (1, 0)),
        "--question",
        "q",
        "--design",
        "direct",
    )
    assert [(row["question"], row["num_reports"]) for row in rows] == [(names[0], 4)]


def test_a_covariate_of_names_is_compared_with_a_named_base(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(4)
    sex, region, answer = rng.integers(0, 3, 600), rng.integers(1, 4, 600), rng.integers(0, 2, 600)
    rows = "".join(f"{a},{'fmx'[s]},{r}\n" for a, s, r in zip(answer, sex, region))
    Path("t.csv").write_text(f"answer,sex,region\n{rows}", encoding="utf-8")
    common = ["regress", "t.csv", "--design", "forced:2/3,1/2", "--covariates", "sex,region", "--categories", "region"]
    assert uldp.main([*common, "--base", "sex=x"]) == 0
    said = capsys.readouterr().out.splitlines()
    names = ["(intercept)", "sex: f", "sex: m", "region: 2", "region: 3"]
    columns = [np.ones(600), sex == 0, sex == 1, region == 2, region == 3]
    channel = np.array([[5 / 6, 1 / 6], [1 / 6, 5 / 6]])
    found = regress(channel, answer, np.column_stack(columns).astype(float))
    for line, name, value, error in zip(said[1:], names, found.coefficients[0], found.standard_errors[0]):
        assert line.startswith(name)
        assert line.removeprefix(name).split()[:2] == [f"{value:.4f}", f"{error:.4f}"]
    assert said[6:8] == ["sex: compared with x", "region: compared with 1"]


def test_answers_of_two_spellings_both_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """150 of 200 people said yes, in two spellings; no is spelled in two ways too."""
    answers = ["ja"] * 90 + ["jawohl"] * 60 + ["nein"] * 30 + ["nee"] * 20
    (tmp_path / "a.csv").write_text("\n".join(["answer", *answers]), encoding="utf-8")
    words = ["survey", str(tmp_path / "a.csv"), "--design", "direct", "--json", str(tmp_path / "rows")]
    assert uldp.main([*words, "--yes", "ja", "--yes", "jawohl", "--no", "nein", "--no", "nee"]) == 0
    assert "200 of 200 rows are used." in capsys.readouterr().out
    row = json.loads((tmp_path / "rows").read_text(encoding="utf-8"))
    assert (row["num_reports"], row["num_ones"], row["raw_frequency"]) == (200, 150, 0.75)
    assert uldp.main([*words, "--yes", "ja", "--yes", "nein", "--no", "nee", "--no", "nein"]) == 2
    assert capsys.readouterr().err == "survey: --yes and --no must be different texts, got 'nein' for both\n"


def test_covariates_of_two_options_are_both_in_the_regression(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "a.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["answer", "age", "female"])
        writer.writerows([int(n % 7 < 3), n % 5, n % 2] for n in range(200))
    words = ["regress", str(tmp_path / "a.csv"), "--design", "direct"]
    assert uldp.main([*words, "--covariates", "age,female"]) == 0
    together = capsys.readouterr().out
    assert uldp.main([*words, "--covariates", "age", "--covariates", "female"]) == 0
    assert capsys.readouterr().out == together


@pytest.mark.parametrize(
    ("line", "reason"), [('{"answer": "ye', NO_OBJECT), ('{"answer": ["no"]}', "an array or an object in answer")]
)
@pytest.mark.parametrize("program", ["survey", "regress"])
def test_answers_that_cannot_be_read_are_not_missing(
    program: str, line: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """They count as rows that are not understood, of which there may be few."""
    rows = [json.dumps({"answer": "yn"[row % 2], "age": row % 7}) for row in range(90)]
    lines = [row.replace('"y"', '"yes"').replace('"n"', '"no"') for row in rows]
    command = [program, "s.jsonl", "--design", "direct", *(["--covariates", "age"] if program == "regress" else [])]
    Path("s.jsonl").write_text("\n".join([*lines, line]), encoding="utf-8")
    assert uldp.main(command) == 0
    assert f"90 of 91 rows are used.\nleft out: 1 row: {reason} (line 91)" in capsys.readouterr().out
    Path("s.jsonl").write_text("\n".join([*lines, *[line] * 9]), encoding="utf-8")
    assert uldp.main(command) == 2
    assert f"9 rows: {reason} (line 91, line 92, line 93 and 6 more); repair or remove these rows" in (
        capsys.readouterr().err
    )
