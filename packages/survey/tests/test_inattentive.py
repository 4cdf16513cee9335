"""uldp survey --inattentive: people who do not follow the design, beside published figures of another program."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from uldp_transforms_survey import survey

PAIRS = {
    1.25: {(0, 0): 116, (0, 1): 338, (1, 0): 252, (1, 1): 871},
    5.0: {(0, 0): 32, (0, 1): 87, (1, 0): 59, (1, 1): 245},
}
"""By weight: people by their answers to a crosswise question and to an anchor that is true of nobody, both at rate .15.

The artificial data set of the R package cWise 0.0.0.9000 (Atsusaka and Stevenson 2021), counted.
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def table(*lines: str) -> None:
    Path("answers.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def rows_of(options: str, code: int = 0) -> list[dict]:
    """The rows of --json_pooled that name what people do."""
    assert survey.main(shlex.split(f"answers.csv {options} --json_pooled rows.jsonl")) == code
    rows = map(json.loads, Path("rows.jsonl").read_text(encoding="utf-8").splitlines())
    return [row for row in rows if row["inattentive_habit"] is not None]


def write_pairs() -> None:
    people = [(weight, pair) for weight, counts in PAIRS.items() for pair, size in counts.items() for _ in range(size)]
    asked = [f"{person},asked,{pair[0]},{weight}" for person, (weight, pair) in enumerate(people)]
    anchor = [f"{person},anchor,{pair[1]},{weight}" for person, (weight, pair) in enumerate(people)]
    table("person,q,answer,w", *asked, *anchor)


@pytest.mark.parametrize(
    ("weight", "yes", "attentive", "error"),
    [("", 0.1054, 0.7729, 0.0208), ("--weight w", 0.1097, 0.7888, 0.0250)],
    ids=["equal", "weighted"],
)
def test_an_anchor_corrects_as_published(weight, yes, attentive, error, capsys):
    """Shares to all digits that are printed there; errors are a bootstrap of 200 samples there, which is less exact."""
    write_pairs()
    options = f"--question q --design crosswise:0.15 --inattentive chance --anchor anchor=0 --cluster person {weight}"
    [row] = rows_of(options)
    assert row["frequency"] == pytest.approx(yes, abs=5e-5)
    assert 1 - row["inattentive_share"] == pytest.approx(attentive, abs=5e-5)
    assert row["standard_error"] == pytest.approx(error, rel=0.2)
    assert row["ci_low"] < yes < row["ci_high"]
    assert (row["question"], row["design"], row["num_designs"], row["num_reports"]) == ("asked", "crosswise", 1, 2000)
    assert (row["inattentive_habit"], row["anchor"], row["anchor_share"]) == ("chance", "anchor", 0)
    said = capsys.readouterr().out
    assert (
        "inattentive: people who answer 0 or 1 by chance, assumed to be the same share at each rate and in the anchor "
        "question, whose share of yes is 0; yes: share among the others" in said
    )


def test_the_name_of_an_anchor_may_contain_the_sign():
    write_pairs()
    of_two = Path("answers.csv").read_text(encoding="utf-8").replace(",anchor,", ",a=b,")
    Path("answers.csv").write_text(of_two, encoding="utf-8")
    [row] = rows_of("--question q --design crosswise:0.15 --inattentive chance --anchor a=b=0 --cluster person")
    assert (row["anchor"], row["anchor_share"]) == ("a=b", 0)


def lines(inattentive: float, yes: float, *rates: float) -> list[str]:
    """Expected answers of 2,000 people at each rate, of whom some always answer 1."""
    ones = {rate: 2000 * (inattentive + (1 - inattentive) * (yes * rate + (1 - yes) * (1 - rate))) for rate in rates}
    return [f"{rate},{answer},{round(n)}" for rate, k in ones.items() for answer, n in ((0, 2000 - k), (1, k))]


def test_two_rates_tell_who_always_says_one(capsys):
    """The halves disagree (.04 and .37), and the share of all is withheld; with one-sayers it is .2."""
    table("rate,answer,people", *lines(0.1, 0.2, 0.2, 0.8))
    [row] = rows_of("--design crosswise:rate --people people --inattentive one")
    assert row["inattentive_share"] == pytest.approx(0.1, abs=1e-9)
    assert row["frequency"] == pytest.approx(0.2, abs=1e-9)
    assert row["agreement_p_value"] is None
    assert row["fits"] is True
    said = capsys.readouterr().out
    assert "crosswise, 2 designs: no share of all: the designs disagree (chi-square " in said
    assert "inattentive: people who always answer 1, assumed to be the same share at each rate; yes: " in said
    cells = next(line for line in said.splitlines() if "0.1000" in line).split()
    assert cells[:5] == ["crosswise,", "2", "designs", "4,000", "0.1000"]
    assert cells[9] == "0.2000"


def test_a_share_is_withheld_where_three_rates_disagree_even_so():
    table("rate,answer,people", *lines(0.1, 0.2, 0.2, 0.8), *lines(0.0, 0.9, 0.35))
    [row] = rows_of("--design crosswise:rate --people people --inattentive one", code=1)
    assert row["agreement_p_value"] < 1e-6
    assert "the designs disagree" in row["problem"]
    assert (row["frequency"], row["inattentive_share"], row["inattentive_ci_high"]) == (None, None, None)


def test_what_is_not_determined_has_a_sentence_beside_questions_that_are():
    two = [f"a,{line}" for line in lines(0.1, 0.2, 0.2, 0.8)]
    table("q,rate,answer,people", *two, *(f"b,{line}" for line in lines(0.1, 0.2, 0.2)))
    first, second = rows_of("--question q --design crosswise:rate --people people --inattentive one", code=1)
    assert first["frequency"] == pytest.approx(0.2, abs=1e-9)
    assert second["frequency"] is None
    needed = "--inattentive one needs --anchor, or two rates of a design whose answers determine both shares"
    assert second["problem"] == needed


@pytest.mark.parametrize("options", ["crosswise:rate --inattentive chance", "direct --inattentive one"])
def test_what_no_question_determines_is_refused(options, capsys):
    """By chance at two rates, and without instructions that somebody could fail to follow."""
    table("rate,answer,people", *lines(0.1, 0.2, 0.2, 0.8))
    assert survey.main(shlex.split(f"answers.csv --people people --design {options}")) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert " needs --anchor, or two rates of a design whose answers determine both shares, got neither" in found.err


def test_direct_answers_do_not_enter():
    of_rates = [f"crosswise:{line}" for line in lines(0.1, 0.2, 0.2, 0.8)]
    table("design,answer,people", *of_rates, "direct,0,50", "direct,1,1950")
    [row] = rows_of("--design design --people people --inattentive one")
    assert (row["num_designs"], row["num_reports"]) == (2, 4000)
    assert row["frequency"] == pytest.approx(0.2, abs=1e-9)
