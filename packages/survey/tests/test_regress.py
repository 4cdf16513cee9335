"""uldp regress: tables of regressions, what is left out, and what is refused."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from tests.support.tolerance import generator
from uldp_transforms_survey import regress as command
from uldp_transforms_survey.regression import regress

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
        first, second, start, end = (f"{number:.{5 if name == 'age' else 4}f}" for number in numbers)
        cells = [name, first, second, start, "to", end, f"{found.wald_p_values[0, at]:.3g}"]
        if at:
            smaller = regress(FORCED, answers, np.delete(covariates, at, axis=1))
            cells.append(f"{found.likelihood_ratio(smaller)[2]:.3g}")
            odds = np.exp([found.coefficients[0, at], low[0, at], high[0, at]])
            cells += [f"{odds[0]:.4g}", f"{odds[1]:.4g}", "to", f"{odds[2]:.4g}"]
        assert line.split() == cells
    assert lines[4:6] == [f"log-likelihood {found.log_likelihood:.4f}, 900 people", ""]
    assert [line.split()[:-5] for line in lines[7:13]] == [
        ["all"],
        *(["age", f"{number:g}"] for number in np.quantile(ages, (0.25, 0.5, 0.75), method="inverted_cdf")),
        *(["woman", number] for number in "01"),
    ]
    assert lines[13:] == [
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
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("x "))
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


def results(options: str, code: int = 0) -> list[dict]:
    """What is written with --json."""
    assert command.main(shlex.split(f"answers.csv {options} --json results.jsonl")) == code
    return [json.loads(line) for line in Path("results.jsonl").read_text(encoding="utf-8").splitlines()]


def test_without_covariates_the_predicted_share_is_that_of_survey():
    table("answer,people", "0,562", "1,604")
    [result] = results("--design crosswise:0.1594625 --people people")
    [row], [share] = result["coefficients"], result["predicted"]
    assert (row["covariate"], row["p_likelihood_ratio"]) == ("(intercept)", None)
    assert share["share"] == pytest.approx(0.4736, abs=1e-4)
    assert share["standard_error"] == pytest.approx(0.0215, abs=1e-4)
    assert share["ci_low"] == pytest.approx(0.4315, abs=2e-3)
    assert row["odds_ratio"] == pytest.approx(share["share"] / (1 - share["share"]))


def test_shares_of_categories_are_those_of_each_category_alone(capsys):
    """Directly asked: 30, 60 and 45 of 100."""
    table(
        "answer,x,n", *(f"{a},{x},{n}" for x, k in (("a", 30), ("b", 60), ("c", 45)) for a, n in ((0, 100 - k), (1, k)))
    )
    [result] = results("--design direct --people n --covariates x --base x=b")
    assert result["compared"] == [{"covariate": "x", "base": "b"}]
    assert [row["odds_ratio"] for row in result["coefficients"][1:]] == [
        pytest.approx(30 / 70 * 40 / 60, rel=1e-5),
        pytest.approx(45 / 55 * 40 / 60, rel=1e-5),
    ]
    shares = {(row["covariate"], row["value"]): row["share"] for row in result["predicted"]}
    wanted = {("all", ""): 0.45, ("x", "a"): 0.3, ("x", "b"): 0.6, ("x", "c"): 0.45}
    assert shares == pytest.approx(wanted, abs=1e-6)
    errors = [row["standard_error"] for row in result["predicted"][1:]]
    assert errors == pytest.approx([(p * (1 - p) / 100) ** 0.5 for p in (0.3, 0.6, 0.45)], rel=1e-4)
    assert "x: compared with b" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("design", "lines", "outside"),
    [
        ("forced:1/6,1/6", ["0,1,2830", "1,0,4314"], "54 standard errors above 1"),
        ("crosswise:0.2", ["1,1,30", "1,0,30"], "5 standard errors below 0"),
    ],
)
def test_answers_that_do_not_fit_their_design(design, lines, outside, capsys):
    table("answer,x,n", *lines)
    [result] = results(f"--design {design} --people n --covariates x", code=1)
    sentence = f"{design}: the answers do not fit this design ({outside})"
    assert (result["problem"], result["coefficients"], result["predicted"]) == (sentence, [], [])
    assert f"no result: {sentence}" in capsys.readouterr().out


def test_a_coefficient_of_large_numbers_has_significant_digits(capsys):
    """Such as an income: its coefficient was printed as -0.0000."""
    rng = generator("income")
    income = rng.integers(1, 200_000, 2000)
    answers = (rng.random(2000) < 1 / (1 + np.exp(income / 50_000 - 2))).astype(int)
    table("answer,income", *(f"{a},{x}" for a, x in zip(answers, income)))
    [result] = results("--design direct --covariates income")
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("income  ")][:1]
    row = result["coefficients"][1]
    assert float(line.split()[1]) == pytest.approx(row["coefficient"], rel=0.01)
    assert float(line.split()[2]) == pytest.approx(row["standard_error"], rel=0.01)


def test_no_number_is_minus_0(capsys):
    table("answer,x,n", "0,0,1000000", "1,0,1000000", "0,1,1000000", "1,1,999999")
    assert command.main(shlex.split("answers.csv --design direct --people n --covariates x")) == 0
    assert " -0.0000 " not in capsys.readouterr().out


def test_designs_that_disagree_are_named(capsys):
    table("answer,d,n", "0,crosswise:0.2,700", "1,crosswise:0.2,1300", "0,crosswise:0.8,1400", "1,crosswise:0.8,600")
    [result] = results("--design d --people n")
    assert result["agreement_p_value"] < 1e-3
    assert "the designs disagree (p " in capsys.readouterr().out


def test_equal_weights_give_the_same_coefficients():
    rng = generator("equal weights")
    x, answers = rng.normal(size=3000).round(3), rng.integers(0, 2, 3000)
    table("answer,x,w", *(f"{a},{b},3" for a, b in zip(answers, x)))
    [plain] = results("--design forced:2/3,0.5 --covariates x")
    [weighted] = results("--design forced:2/3,0.5 --covariates x --weight w")
    for one, other in zip(plain["coefficients"], weighted["coefficients"], strict=True):
        assert other["coefficient"] == pytest.approx(one["coefficient"], abs=1e-6)
        assert other["standard_error"] == pytest.approx(one["standard_error"], rel=0.1)
        assert other["p_likelihood_ratio"] is None


@pytest.mark.parametrize("design", ["crosswise:0.2", "forced:2/3,1/2"])
def test_no_predicted_share_has_a_short_interval(design):
    """Of all numbers of answers 1: near an edge too, where there is a result; below it there is a sentence."""
    size = 53
    table("q,answer,n", *(f"{k:02},{answer},{n}" for k in range(size + 1) for answer, n in ((0, size - k), (1, k))))
    found = results(f"--design {design} --people n --question q", code=1)
    shown = [share for result in found for share in result["predicted"]]
    assert len(found) == size + 1
    assert len(shown) > size / 2
    assert all(result["problem"] for result in found if not result["predicted"])
    for share in shown:
        assert 0 <= share["ci_low"] <= share["share"] <= share["ci_high"] <= 1
        assert share["ci_high"] - share["ci_low"] > share["standard_error"] / 2
        assert share["ci_high"] - share["ci_low"] < 5 * share["standard_error"]


def test_a_predicted_share_near_0_has_an_upper_end(capsys):
    """The interval that was symmetric for the log odds went from 0 to 1; that of the group alone ends at .0377."""
    table("answer,group,n", "0,0,833", "1,0,168", "0,1,700", "1,1,300")
    [result] = results("--design forced:2/3,1/2 --covariates group --people n")
    _, group, _ = result["predicted"]
    assert group["share"] == pytest.approx((168 / 1001 - 1 / 6) / (2 / 3), abs=1e-4)
    chances = 1 / 6 + 2 / 3 * np.array([0.0, group["share"], group["ci_high"]])
    none, best, high = 168 * np.log(chances) + 833 * np.log(1 - chances)
    assert group["ci_low"] == 0 and none > best - 1.92
    assert best - high == pytest.approx(1.9207294, abs=1e-3)
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("group          0"))
    assert line.split()[2:] == ["0.0017", "0.0177", "0.0000", "to", "0.0377"]


def test_a_share_that_the_answers_do_not_bound_is_named(capsys):
    """Of three people: two shares out of three are possible, and so is each other one."""
    table("answer,n", "0,2", "1,1")
    [result] = results("--design forced:1/2,1/2 --people n")
    assert [(row["ci_low"], row["ci_high"]) for row in result["predicted"]] == [(0, 1)]
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("all "))
    assert line.split()[3:] == ["not", "bounded", "by", "the", "answers"]
