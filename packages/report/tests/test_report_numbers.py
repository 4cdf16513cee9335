"""The part of a page about numbers: figures, curve, open ends, windows without numbers, rows of older jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import report_rows as rows
from tests.support.html_tree import Node, texts_of, tree_of
from tests.support.pages.number_rows import collection, row
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp import Collection
from uldp_transforms_report.numbers.number_charts import curve_svg
from uldp_transforms_report.numbers.number_facts import NumberPart, numbers_of


def directory(folder: Path, item: Collection, told: list[dict[str, Any]]) -> Node:
    rows.record(folder, item)
    rows.write(folder, "estimates.jsonl", told)
    output = folder / "page.html"
    assert uldp.main(["report", str(folder), "--output", str(output)]) == 0
    return tree_of(output.read_text("utf-8"))


def cells_of(tree: Node, table: str) -> list[list[str]]:
    (found,) = (node for node in tree.all("table") if node.attributes.get("id") == table)
    return texts_of(found)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Node:
    item = collection()
    withheld = row(item, 1) | {"status": "suppressed", "estimates": [], "num_reports": None}
    return directory(tmp_path_factory.mktemp("numbers"), item, [row(item, 0), withheld, row(item, 2)])


def test_figures_are_those_of_the_row(tree: Node) -> None:
    numbers = row(collection(), 2)["numbers"]
    table = cells_of(tree, "part-1-numbers-table")
    assert [line[0] for line in table] == ["figure", "mean", "median", "p98", "share from 60 <b>min</b>", "sum"]
    mean, median, above = numbers["mean"], numbers["quantiles"][0], numbers["shares_above"][0]
    assert table[1][1:] == [f"{mean['value']:.1f}", *[f"{mean['low']:.1f} to {mean['high']:.1f}"] * 2]
    assert table[2][1:3] == [
        f"{median['display_value']:.1f}",
        f"{median['display_low']:.1f} to {median['display_high']:.1f}",
    ]
    assert table[3][3].startswith("from ")  # 98 % reaches into the clamped last bin
    assert table[4][1] == f"{100 * above['display_value']:.1f} %"
    assert table[4][3] == f"{100 * above['low']:.1f} to {100 * above['high']:.1f} %"


def test_the_first_sentence_has_the_figures(tree: Node) -> None:
    (sentence,) = (node.text for node in tree.all("p") if node.attributes.get("class") == "learned")
    assert "the mean is" in sentence and "the median is" in sentence and "hold" not in sentence


def test_the_curve_has_a_bar_and_a_line_of_its_table_for_each_bin(tree: Node) -> None:
    table = cells_of(tree, "part-1-curve-table")
    assert [line[0] for line in table[1:3]] == ["below -30", "-30 to 0"]
    assert table[-1][0] == "from 150"
    told = {text for node in tree.all("title") for text in node.children}
    assert any(str(text).startswith("from 150") for text in told)
    (chart,) = (
        node for node in tree.all("div") if "Share of answers in 8 bins" in node.attributes.get("aria-label", "")
    )
    assert "most in 0 to 30" in chart.attributes["aria-label"] or "most in 30 to 60" in chart.attributes["aria-label"]


def test_figures_over_the_windows(tree: Node) -> None:
    table = cells_of(tree, "part-1-figure-1-table")
    first, last = (row(collection(), window)["numbers"]["mean"]["value"] for window in (0, 2))
    assert [line[1] for line in table[1:]] == [f"{first:.1f}", "\N{EN DASH}", f"{last:.1f}"]
    assert not [node for node in tree.all("h3", "b") if node.text == "Trends" or node.name == "b"]


def test_two_windows_are_compared_by_figures(tree: Node) -> None:
    """The difference of means, with the interval of Zou and Donner; bins are not compared."""
    means = [row(collection(), window)["numbers"]["mean"] for window in (2, 0)]
    (a, low_a, high_a), (b, low_b, high_b) = ([of[name] for name in ("value", "low", "high")] for of in means)
    low, high = a - b - np.hypot(a - low_a, high_b - b), a - b + np.hypot(high_a - a, b - low_b)
    table = cells_of(tree, "part-1-compare-table")
    assert [line[0] for line in table] == ["figure", "mean", "median", "p98", "share from 60 <b>min</b>", "sum"]
    assert table[1][1:3] == [f"{a - b:+.1f}", f"{low:+.1f} to {high:+.1f}"]


def test_the_whole_period_has_figures(tmp_path: Path) -> None:
    item = collection()
    whole = row(item, 2) | {"group": None}
    rows.write(tmp_path, "totals.jsonl", [whole])
    tree = directory(tmp_path, item, [row(item, 0), row(item, 1)])
    assert cells_of(tree, "part-1-whole-numbers-table")[1][1] == f"{whole['numbers']['mean']['value']:.1f}"
    assert "answers: the mean is" in tree.text


def test_smoothed_figures_and_a_window_that_contradicts_them(tmp_path: Path) -> None:
    """The line breaks where the window's own interval and the smoothed one have no number in common."""
    item, told = collection(), [row(collection(), window) for window in range(3)]
    for window, numbers in enumerate(one["numbers"] for one in told):
        mean = numbers["mean"]
        high = mean["low"] - 1 if window == 1 else mean["high"]
        mean |= {"smoothed_value": high - 1, "smoothed_low": high - 2, "smoothed_high": high}
    tree = directory(tmp_path, item, told)
    table = cells_of(tree, "part-1-figure-1-table")
    assert table[0][-2:] == ["smoothed", "its interval"]
    last = told[2]["numbers"]["mean"]["high"]
    assert table[3][-2:] == [f"{last - 1:.1f}", f"{last - 2:.1f} to {last:.1f}"]
    assert "smoothed" not in cells_of(tree, "part-1-figure-2-table")[0]
    broken = [node.text for node in tree.all("span") if node.attributes.get("class") == "broken"]
    assert len(broken) == 1
    assert broken[0].startswith("The smoothed line breaks in ")
    assert "smoothed over neighbouring windows" in tree.text


def test_without_a_smooth_posterior_there_is_one_interval(tmp_path: Path) -> None:
    item = collection("rappor")
    tree = directory(tmp_path, item, [row(item, 0)])
    table = cells_of(tree, "part-1-numbers-table")
    assert table[0] == ["figure", "estimate", "95 % interval"]
    assert not [node for node in tree.all("table") if node.attributes.get("id") == "part-1-curve-table"]


def test_rows_of_before_the_curve(tmp_path: Path) -> None:
    item, told = collection(), row(collection(), 0)
    del told["numbers"]["curve"]
    for figure in (told["numbers"]["mean"], *told["numbers"]["quantiles"], *told["numbers"]["shares_above"]):
        for name in [name for name in figure if name.startswith("display_")]:
            del figure[name]
    table = cells_of(directory(tmp_path, item, [told]), "part-1-numbers-table")
    assert table[2][1:] == [f"{told['numbers']['quantiles'][0]['value']:.1f}", table[2][2]]


def test_wide_bins_have_a_logarithmic_axis() -> None:
    def part(edges: list[float]) -> NumberPart:
        item = collection(low=None, high=None, num_bins=None, edges=edges)
        found = numbers_of([row(item, 0)], "ms")
        assert found is not None
        return found

    wide = part([1, 2, 4, 8, 16, 32, 64, 128, 256])
    assert [bar.figure.name for bar in wide.bars[:2]] == ["below 2", "2 to 4"]
    assert curve_svg(wide) != curve_svg(part([1, 2, 3, 4, 5, 6, 7, 8, 9]))
