"""The pages of ``uldp survey`` and ``uldp regress``: the numbers that are printed, each drawn in its row."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import browser, needs_browser
from tests.support.html_tree import Node, tree_of
from uldp_transforms.jobs import pictures
from uldp_transforms_survey import regress, survey
from uldp_transforms_survey.survey.figures_of_answers import regression

HOSTILE = "<script>alert(1)</script>&"
ANSWERS = f"""question,design,answer,people
{HOSTILE},crosswise:0.2,0,576
{HOSTILE},crosswise:0.2,1,1424
{HOSTILE},crosswise:0.8,0,1224
{HOSTILE},crosswise:0.8,1,776
other,direct,0,10
other,direct,1,9990
other,direct,maybe,1
"""
SURVEY = "answers.csv --question question --design design --people people"
PEOPLE = [("yes", 20 + at % 40, ("north", "south", HOSTILE)[at % 3]) for at in range(60)]
PEOPLE += [("no", 40 + at % 40, ("north", "north", "south", HOSTILE)[at % 4]) for at in range(80)]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("answers.csv").write_text(ANSWERS, encoding="utf-8")
    lines = ["answer,age,region", *(",".join(map(str, person)) for person in PEOPLE)]
    Path("people.csv").write_text("\n".join(lines), encoding="utf-8")


def page_of(program: Any, words: str, code: int = 0) -> Node:
    assert program.main(shlex.split(f"{words} --html page.html")) == code
    return tree_of(Path("page.html").read_text(encoding="utf-8"))


def rows_in(table: Node) -> list[tuple[list[str], list[float | None]]]:
    """The words of each row, and its exact numbers; None for unknown ones."""
    found = []
    for line in list(table.all("tr"))[1:]:
        cells = list(line.all("th", "td"))
        words = [cell.text for cell in cells if cell.attributes.get("class") not in ("drawn", "number")]
        exact = [cell.attributes["data-n"] for cell in cells if "data-n" in cell.attributes]
        found.append((words, [float(text) if text else None for text in " ".join(exact).split(" ")]))
    return found


def dots_in(table: Node) -> list[int]:
    """The number of dots in the picture of each row."""
    return [len(list(line.all("circle"))) for line in list(table.all("tr"))[1:]]


def test_the_page_of_a_survey_has_the_printed_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    page = page_of(survey, f"{SURVEY} --inattentive one --json_pooled pooled.jsonl")
    printed = capsys.readouterr().out.splitlines()
    first, second = page.all("table")
    names, numbers = zip(*rows_in(first))
    assert list(names) == [
        [HOSTILE, "crosswise:0.2"],
        [HOSTILE, "crosswise:0.8"],
        [HOSTILE, "crosswise, 2 designs"],
        ["other", "direct"],
    ]
    assert dots_in(first) == [1, 1, 0, 1]
    for line, (share, low, high, people) in zip(
        (printed[1], printed[2], printed[4]), (numbers[0], numbers[1], numbers[3])
    ):
        assert f"{people:,.0f}  {share:.4f}" in line and f"{low:.4f} to {high:.4f}" in line
    assert numbers[2][0] is None and numbers[2][-1] == 4000
    [row] = [
        row for row in map(json.loads, Path("pooled.jsonl").read_text("utf-8").splitlines()) if row["inattentive_habit"]
    ]
    for (words, found), parts in zip(
        rows_in(second),
        (("inattentive_share", "inattentive_ci_low", "inattentive_ci_high"), ("frequency", "ci_low", "ci_high")),
    ):
        assert words[:2] == [HOSTILE, "crosswise, 2 designs"]
        assert found == pytest.approx([row[part] for part in parts], rel=1e-5)
    for sentence in printed[-2:]:
        assert sentence in page.text
    assert "the designs disagree (chi-square 44.7" in page.text


def test_the_page_of_a_regression_has_the_printed_numbers() -> None:
    words = "people.csv --design forced:0.9,1/2 --covariates age,region --base region=north --json results.jsonl"
    page = page_of(regress, words)
    result = json.loads(Path("results.jsonl").read_text(encoding="utf-8"))
    coefficients, predicted = page.all("table")
    for (words_of, found), row in zip(rows_in(coefficients), result["coefficients"][1:], strict=True):
        assert [text.replace(" ", "") for text in words_of] == [row["covariate"].replace(" ", "")]  # cut by its room
        assert found == pytest.approx([row[part] for part in ("coefficient", "ci_low", "ci_high")], rel=1e-5)
    for (words_of, found), row in zip(rows_in(predicted), result["predicted"], strict=True):
        assert words_of == [row["covariate"], row["value"]]
        assert found == pytest.approx([row[part] for part in ("share", "ci_low", "ci_high")], rel=1e-5)
    assert "region: compared with north" in page.text and "140 people." in page.text
    assert dots_in(coefficients) == [1] * 3 and dots_in(predicted) == [1] * len(result["predicted"])


def test_categories_have_one_axis_around_0_and_each_number_its_own() -> None:
    page_of(regress, "people.csv --design forced:0.9,1/2 --covariates age,region --json results.jsonl")
    first, _ = regression(json.loads(Path("results.jsonl").read_text(encoding="utf-8")))
    drawn = next(column for column in first.table.columns if column.kind == "drawn")
    age, *categories = (cell.axis for cell in drawn.cells)
    assert age is not None and age.is_signed and age.low == -age.high
    assert categories[0] == categories[1] != age


def test_questions_without_a_result_are_sentences() -> None:
    Path("people.csv").write_text("answer,age,people\n1,1,30\n1,2,30\n", encoding="utf-8")
    page = page_of(regress, "people.csv --design crosswise:0.2 --people people", code=1)
    assert not list(page.all("table")) and "no result: " in page.text


def test_no_name_is_code_on_the_page() -> None:
    page_of(survey, SURVEY)
    assert HOSTILE not in Path("page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("program", [survey, regress])
def test_a_page_needs_its_package_before_anything_is_read(
    program: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pictures, "entry_points", lambda **_: ())
    assert program.main(["none.csv", "--design", "direct", "--html", "page.html"]) == 2
    expected = "a report needs the package uldp-transforms-report; in a checkout: "
    expected += "pip install . ./packages/tables ./packages/report\n"
    assert capsys.readouterr().err.endswith(expected)


@needs_browser
def test_a_browser_reads_the_page_without_complaints(tmp_path: Path) -> None:
    page_of(survey, SURVEY)
    with browser(tmp_path) as window:
        window.open(f"file://{tmp_path / 'page.html'}")
        assert window.log() == []
        for width in (1440, 390):
            window.resize(width, 900)
            assert window.run("return document.documentElement.scrollWidth") <= width
