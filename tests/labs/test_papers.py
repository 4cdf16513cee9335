"""The page that lists the papers' items, against the experiments, the code and the page of results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from labs.experiments import EXPERIMENTS
from tests.project.documents import ROOT

PAGE = (ROOT / "docs" / "papers.md").read_text("utf-8")
RESULTS = (ROOT / "docs" / "reproduction.md").read_text("utf-8")
ROWS = re.findall(r"^\| ([A-Z][^|]+?) \| ([^|]+?) \| ([^|]*?) *\| ([^|]+?) \|$", PAGE, re.MULTILINE)
VERDICTS = ("agrees", "sharper", "corrected", "does not hold", "not built, because")
IDS = {experiment.id for experiment in EXPERIMENTS}
PAPERS = {"uldp": "Murakami", "kairouz": "Kairouz", "tang": "Tang"}
NUMBERED = {"uldp": (range(5, 14), range(1, 2)), "kairouz": (range(1, 17), ()), "tang": (range(1, 3), ())}
"""Figures and tables with results, by paper."""


def items(paper: str) -> dict[str, tuple[str, str, str]]:
    """The rows of a paper's section: item to content, where, verdict."""
    (section,) = (part for part in PAGE.split("\n## ")[1:] if part.startswith(PAPERS[paper]))
    return {row[0]: row[1:] for row in ROWS if f"| {row[0]} | {row[1]} |" in section}


def test_every_row_has_a_verdict() -> None:
    assert len(ROWS) > 50
    for item, _, where, verdict in ROWS:
        assert verdict.startswith(VERDICTS), item
        assert where or verdict.startswith("not built"), item


@pytest.mark.parametrize("place", sorted({where for _, _, cell, _ in ROWS for where in re.findall(r"`([^`]+)`", cell)}))
def test_every_place_exists(place: str) -> None:
    assert place in IDS or (ROOT / place).exists()


@pytest.mark.parametrize("paper", PAPERS)
def test_every_figure_and_table_has_its_experiment(paper: str) -> None:
    figures, tables = NUMBERED[paper]
    wanted = {f"Figure {number}": f"{paper}-figure-{number}" for number in figures}
    wanted |= {f"Table {number}": f"{paper}-table-{number}" for number in tables}
    found = items(paper)
    assert {item: found[item][1].strip("`") for item in wanted} == wanted
    numbered = {name for name in IDS if re.match(rf"{paper}-(figure|table)-", name)}
    assert numbered == set(wanted.values())


@pytest.mark.parametrize("name", sorted(IDS))
def test_the_results_name_the_command_of_every_experiment(name: str) -> None:
    assert re.search(rf"uldp reproduce {name}\b(?!-)", re.sub(r"\s+", " ", RESULTS)), "the page of results omits it"


def test_pictures_of_the_results_exist() -> None:
    pictures = re.findall(r"\]\((images/[^)]+)\)", RESULTS)
    assert len(pictures) > 20
    assert all((ROOT / "docs" / Path(picture)).exists() for picture in pictures)
