"""The page that lists the papers' items, against the experiments, the code and the page of results."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from labs.experiments import EXPERIMENTS
from labs.experiments.kairouz.crossover import ratio_at_logarithm
from labs.experiments.kairouz.equation_22 import loss_rows
from labs.experiments.tang.printed_aoue import rows_of_counterexamples
from tests.project.documents import ROOT
from tests.support.tolerance import generator, normal_limit

PAGE = (ROOT / "docs" / "papers.md").read_text("utf-8")
RESULTS = (ROOT / "docs" / "reproduction.md").read_text("utf-8")
ROWS = re.findall(r"^\| ([A-Z][^|]+?) \| ([^|]+?) \| ([^|]*?) *\| ([^|]+?) \|$", PAGE, re.MULTILINE)
VERDICTS = ("agrees", "sharper", "corrected", "does not hold", "not built, because", "not read; ")
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


LISTED = {
    "uldp": {"Definition": range(1, 7), "Proposition": range(1, 19), "Lemma": range(1, 3), "Table": range(1, 5)}
    | {"Theorem": range(1, 2), "Figure": range(5, 14)},
    "kairouz": {"Figure": range(1, 17)},
    "tang": {"Lemma": range(1, 2), "Theorem": range(4, 5), "Figure": range(1, 3)},
}
"""Numbers of the papers' items that have a row each; others share a row."""


@pytest.mark.parametrize("paper", PAPERS)
def test_numbered_items_have_rows(paper: str) -> None:
    wanted = {f"{kind} {number}" for kind, numbers in LISTED[paper].items() for number in numbers}
    assert wanted <= set(items(paper))
    assert paper != "uldp" or {"Lemmas 3, 4", "Figures 1 to 4"} <= set(items(paper))


def test_the_row_of_aoue_has_the_numbers_of_the_enumeration() -> None:
    verdict = items("tang")["Guarantee of AOUE"][2]
    assert verdict.startswith("corrected: ")
    for row in rows_of_counterexamples():
        number = f"{row['largest_log_ratio']:.3f}" if row["mechanism"] == "AOUE as printed" else f"{row['noise']:.4f}"
        assert number in verdict


def test_the_row_of_proposition_5_has_the_minimum_of_its_proof() -> None:
    verdict = items("kairouz")["Proposition 5"][2]
    assert all(f"{ratio_at_logarithm(k):.4f}" in verdict for k in (7, 8, 9))


def test_the_page_of_estimation_has_the_numbers_of_equation_22() -> None:
    """Those of the table of results, of twenty runs whose l1 scatters by 0.015 (22) and 0.012; four runs are near."""
    estimation = re.sub(r"\s+", " ", (ROOT / "docs" / "estimation.md").read_text("utf-8"))
    (whole,) = re.findall(r"its distance is ([.0-9]+); that of the centred estimate is ([.0-9]+) ", estimation)
    assert "0.217 instead of 0.336" in RESULTS and whole == ("0.336", "0.217")
    rows = loss_rows(0.2, 1_000_000, 4, generator("equation 22"))
    limit = normal_limit(2)
    for row, number, spread in zip(rows, map(float, whole), (0.015, 0.012)):
        assert abs(row["l1_projected"] - number) < limit * spread * np.sqrt(1 / 4 + 1 / 20) + 5e-4
