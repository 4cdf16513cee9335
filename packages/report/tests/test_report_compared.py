"""Comparisons on the page of a directory: what differs, and what cannot be told."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from packages.report.tests.support.compared_pages import REFUSED
from packages.report.tests.support.report_page import page_of
from tests.rigs import axe
from tests.support import report_rows as rows
from tests.support.browser import Browser, browser, needs_browser
from tests.support.html_tree import Node, texts_of, tree_of
from tests.support.pages.compared_rows import COMPARED, LONG, row
from uldp_transforms.collector.row_bytes import file_of
from uldp_transforms.jobs import uldp
from uldp_transforms.rows.row_types import COUNTS_SCHEMA
from uldp_transforms_report.compared.compared_rows import comparisons_of

HOSTILE = '<script>alert(1)</script>"\u202e'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    of = rows.survey(tmp_path, ["ant", "bee", "cat", LONG], 2)
    shares = [rows.entry(value, share) for value, share in zip(["ant", "bee", "cat", LONG], [0.4, 0.3, 0.2, 0.1])]
    rows.write(tmp_path, "estimates.jsonl", [rows.estimate(of, at, shares) for at in range(2)])
    return tmp_path


def written(folder: Path, compared: list[dict[str, Any]]) -> Node:
    (folder / "comparisons.jsonl").write_text("".join(json.dumps(one) + "\n" for one in compared), "utf-8")
    return tree_of(page_of(folder))


def section(tree: Node) -> Node:
    [found] = [node for node in tree.all("section") if node.attributes.get("id") == "compared"]
    return found


def cells(node: Node, table: str) -> list[list[str]]:
    [found] = [one for one in node.all("table") if one.attributes.get("id") == table]
    return texts_of(found)[1:]


def test_what_differs_stands_first_and_what_cannot_be_told_apart_from_it(folder: Path) -> None:
    """The first sentence has the clearest differences; intervals of what is found are those after the selection."""
    of = section(written(folder, COMPARED))
    assert (
        "2 of 4 differences are found: ant is 6.0 points higher in arm=new than in arm=control (4.0 to 8.0); bee is "
        "5.0 points lower in arm=new than in arm=control (2.4 to 7.6)."
    ) in of.text.replace(" ;", ";").replace(" .", ".")
    assert "1 Nov 2026 to 2 Nov 2026." in of.text
    assert "Intervals are for one look" in of.text
    assert cells(of, "compared-1-found-table") == [
        ["ant", "+6.0", "+4.0 to +8.0", "1e-15", "new", "control"],
        ["bee", "-5.0", "-7.6 to -2.4", "1e-12", "new", "control"],
    ]
    assert cells(of, "compared-1-untold-table") == [
        [LONG, "+1.0", "-1.0 to +3.0", "2.9", "new", "control"],
        ["cat", "-0.1", "-2.1 to +1.9", "2.9", "new", "control"],
    ]
    sides = [node.text for node in of.all("th") if node.attributes.get("data-name") in ("a", "b")]
    assert sides == ["a (arm)", "b (arm)"] * 2
    assert [node.attributes["data-full"] for node in of.all("td") if node.text == "new"] == ["arm=new"] * 4


def test_the_first_sentence_has_the_largest_of_tied_differences(folder: Path) -> None:
    """Rows of earlier versions have p-values that end at 2.4e-16; the clearest may be the last of a list."""
    tied = [row(f"v{at}", 0.01 * at, 0.001, 2.4e-16) for at in range(1, 18)]
    of = section(written(folder, tied))
    assert "17 of 17 differences are found: v17 is 17.00 points higher" in of.text
    table = cells(of, "compared-1-found-table")
    assert [line[0] for line in table] == [f"v{at}" for at in range(17, 0, -1)]
    assert {line[3] for line in table} == {"< 1e-15"}


def test_pictures_are_on_one_scale(folder: Path) -> None:
    """0 is in the middle, and the longest reach, 8 points, at the edge."""
    pictures = [cell for cell in section(written(folder, COMPARED)).all("td") if cell.attributes["class"] == "drawn"]
    found = [node for cell in pictures for node in cell.all("line") if node.attributes["class"] in ("told", "untold")]
    ends = [[float(node.attributes[name].removesuffix("%")) for name in ("x1", "x2")] for node in found]
    expected = [(4.0, 8.0), (-7.6, -2.4), (-1.0, 3.0), (-2.1, 1.9)]
    assert ends == [pytest.approx([50 + 50 * end / 8 for end in both], abs=0.006) for both in expected]
    assert [node.attributes["class"] for node in found] == ["told", "told", "untold", "untold"]


def test_comparisons_older_than_counts_are_called_so(folder: Path) -> None:
    """By the times at which the files were written; a run that adds counts makes them old."""
    old = "Counts were written after these comparisons, which lack them. Run uldp compare again."
    assert old not in section(written(folder, COMPARED)).text
    counts, compared = folder / "counts-1.avro", folder / "comparisons.jsonl"
    counts.write_bytes(b"")
    os.utime(counts, (1_000, 1_000))
    os.utime(compared, (1_001, 1_001))
    assert not comparisons_of(str(folder), 9)[0].is_old
    os.utime(compared, (999, 999))
    counts.write_bytes(file_of([], "avro", COUNTS_SCHEMA))
    assert old in section(tree_of(page_of(folder))).text


def test_what_only_the_smooth_interval_shows_is_marked(folder: Path) -> None:
    """Not what is found, and not what neither interval shows."""
    smooth = {"display_difference": 0.01, "display_low": 0.002, "display_high": 0.02}
    of_numbers = [row("p50", 0.01, 0.02, q, figure="quantile", at=0.5, **smooth) for q in (0.4, 0.01)]
    neither = of_numbers[0] | {"display_low": -0.002, "value": "p90"}
    of = section(written(folder, [*of_numbers, neither]))
    marked = [any(cell.endswith("~") for cell in line) for line in cells(of, "compared-1-untold-table")]
    assert marked == [True, False]
    assert not any("~" in cell for cell in cells(of, "compared-1-found-table")[0])
    assert "~: only the smooth interval is without 0." in of.text
    single = of_numbers[0] | {"low": -8.4, "high": -0.2, "difference": -4.3, "display_low": -7.0, "display_high": -0.4}
    both = section(written(folder, [single]))
    assert "~" not in both.text and "one without 0 is no finding among so many differences" in both.text
    assert "~" not in section(written(folder, [of_numbers[1], neither])).text


def test_versions_of_a_collection_stand_apart(folder: Path) -> None:
    """Only where there are several; rows of earlier releases name none."""
    of = [row("ant", 0.1, 0.02, 0.4, collection_version=version) for version in (2, 1, 0)]
    names = [one.name for one in (written(folder, of), comparisons_of(str(folder), 9))[1]]
    assert names == ["survey, all versions", "survey, version 1", "survey, version 2"]
    written(folder, of[:1])
    assert [one.name for one in comparisons_of(str(folder), 9)] == ["survey"]
    written(folder, COMPARED)
    assert [one.name for one in comparisons_of(str(folder), 9)] == ["survey"]


def test_the_share_of_liars_is_said(folder: Path) -> None:
    said = "They are of shares among honest people, whatever liars send, who are at most 1.5 % of each side."
    assert said not in section(written(folder, COMPARED)).text
    assert said in section(written(folder, [one | {"liars": 0.015} for one in COMPARED])).text


def test_many_looks_and_rows_of_earlier_versions(folder: Path) -> None:
    assert "Intervals hold at all looks while reports arrive." in section(
        written(folder, [row("ant", 0.1, 0.2, 0.3, interval="anytime")])
    ).text  # fmt: skip
    before = {
        name: it
        for name, it in row("ant", 0.3, 0.2, 0.01, window_start=None, window_end=None).items()
        if name not in ("selected_low", "selected_high", "noticeable", "interval")
    }
    of = section(written(folder, [before, before | {"q_value": 0.3, "p_value": 0.3}]))
    assert cells(of, "compared-1-found-table")[0][2] == "+10.0 to +50.0"
    assert cells(of, "compared-1-untold-table")[0][3] == "\N{EN DASH}"
    assert "From" not in of.text


def test_figures_of_numbers_are_no_shares(folder: Path) -> None:
    """They have their own unit, in which they are drawn, and may have open ends, which are at the edge."""
    mean = row("mean", 12.0, 2.0, 1e-9, figure="mean", at=None)
    p90 = row("p90", 12.0, 2.0, 1e-8, figure="quantile", at=0.9, high=None, selected_low=5.25, selected_high=None)
    of = section(written(folder, [mean, p90, row("error", 0.01, 0.02, 0.5)]))
    assert "mean is 12.0 higher in arm=new than in arm=control (8.0 to 16.0)" in of.text
    found = cells(of, "compared-1-found-table")
    assert found[0][1:3] == ["+12.0", "+8.0 to +16.0"]
    assert found[1][2] == "from +5.2"
    lines = [node for node in of.all("line") if node.attributes["class"] == "told"]
    assert [node.attributes["x2"] for node in lines[-2:]] == ["100.0%", "100.0%"]


def test_long_files_are_cut_and_texts_do_no_harm(folder: Path) -> None:
    many = [row(HOSTILE, 0.1 + number / 1000, 0.01, 1e-9) for number in range(7)] + [row("x", 0.0, 0.1, 1.0)] * 6
    (folder / "comparisons.jsonl").write_text("".join(json.dumps(one) + "\n" for one in many), "utf-8")
    text = page_of(folder, "--rows", "5")
    of = section(tree_of(text))
    assert "7 of 13 differences are found" in of.text
    assert "Not shown: 2 further differences that are found." in of.text
    assert "Not shown: 1 further differences that are not found." in of.text
    assert "<script>alert" not in text and "\u202e" not in text


WRONG = [row("ant", 0.1, 0.1, 0.5) | wrong for wrong in ({"low": "0"}, {"high": float("nan")}, {"window_start": 7})]


@pytest.mark.parametrize("content", ["[]", "{}", '{"collection_id": 7}', "no", *map(json.dumps, WRONG)])
def test_other_content_is_refused(content: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "comparisons.jsonl").write_text(f"{content}\n", "utf-8")
    assert uldp.main(["report", str(folder), "--output", str(folder / "page.html")]) != 0
    said = f"{folder / 'comparisons.jsonl'} must contain rows of uldp compare (the content is not shown)"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "call", "sentence"), REFUSED)
def test_the_library_refuses_it_too(kind: type[Exception], call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).rpartition("/")[2] == sentence


@pytest.fixture(scope="module")
def one_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@needs_browser
@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_is_wider_than_the_window(width: int, folder: Path, one_browser: Browser) -> None:
    written(folder, COMPARED)
    one_browser.open((folder / "page.html").as_uri())
    one_browser.resize(width, 1000)
    assert one_browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
    sizes = one_browser.run(
        "return [...document.querySelectorAll('#compared td.drawn > svg')].map(it => it.getBoundingClientRect().width)"
    )
    assert len(sizes) == 4 and min(sizes) > 100


@needs_browser
@pytest.mark.skipif(axe.missing() is not None, reason=str(axe.missing()))
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 400)])
def test_axe_finds_no_violation(scheme: str, width: int, folder: Path, one_browser: Browser) -> None:
    written(folder, COMPARED)
    one_browser.open((folder / "page.html").as_uri())
    one_browser.resize(width, 1000)
    one_browser.look(prefers_color_scheme=scheme)
    script = axe.SCRIPT.read_text("utf-8")
    one_browser.run(f"{script}; axe.run().then(found => {{ window.found = {{ all: found.violations }} }})")
    found = one_browser.wait_for("return window.found")["all"]
    one_browser.look(prefers_color_scheme="light")
    assert [(it["id"], [node["html"] for node in it["nodes"]]) for it in found] == []
