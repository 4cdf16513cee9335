"""The page of ``uldp report`` in a browser: its tables are searched, sorted, compared and saved, by the file alone."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from packages.report.tests.support.page_tools import VALUES, choose, names, saved, survey
from tests.rigs import axe
from tests.support import report_rows as rows
from tests.support.browser import Browser, browser, needs_browser
from tests.support.html_tree import table, tree_of
from uldp_transforms.jobs import uldp

LATEST = "#part-1-latest-table"
COMPARED = "#part-1-compare-table"

pytestmark = needs_browser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return survey(tmp_path_factory.mktemp("survey"))


@pytest.fixture(scope="module")
def one_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture
def window(one_browser: Browser, page: Path) -> Browser:
    one_browser.open(page.as_uri())
    one_browser.resize(1200, 1000)
    return one_browser


def cells(window: Browser, of: str) -> list[list[str]]:
    found: list[list[str]] = window.run(
        f"return [...document.querySelectorAll('{of} tbody tr')].map(row => [...row.cells].map(c => c.textContent))"
    )
    return found


def test_rows_are_searched_and_filtered(window: Browser) -> None:
    find = f"[data-find='{LATEST[1:]}']"
    choose(window, f"{find} input[type=search]", "AN")
    assert names(window, LATEST) == ["ant", VALUES[4]]
    assert window.text(f"{find} [role=status]") == "2 of 5 rows"
    choose(window, f"{find} input[type=search]", "")
    assert len(names(window, LATEST)) == 5 and window.text(f"{find} [role=status]") == ""
    window.click(f"{find} input[value=told]")
    assert "dog" not in names(window, LATEST) and len(names(window, LATEST)) == 4
    window.click(f"{find} input[value=changed]")
    assert names(window, LATEST) == ["bee"]


def test_rows_are_sorted_by_numbers_and_by_names(window: Browser) -> None:
    """By numbers the largest first, then the smallest, then as before."""
    before = names(window, LATEST)
    assert before[0] == "bee" and before[-1] == "dog"
    share, value = (f"{LATEST} th[data-name={name}]" for name in ("share", "value"))
    window.click(f"{value} .sort")
    assert window.run(f"return document.querySelector('{value}').ariaSort") == "ascending"
    assert [name for name in names(window, LATEST) if name[0].isalpha()] == [VALUES[4], "ant", "bee", "dog"]
    orders = []
    for _ in range(3):
        window.click(f"{share} .sort")
        orders.append((window.run(f"return document.querySelector('{share}').ariaSort"), names(window, LATEST)))
    assert orders == [("descending", before), ("ascending", before[::-1]), (None, before)]


def test_two_windows_are_compared_as_the_page_itself_does(window: Browser, page: Path) -> None:
    """The script's numbers for the windows that the page compares by itself, and those of two others."""
    static = table(tree_of(page.read_text("utf-8")), "Differences: Sat 11 Nov 2000 minus Fri 10 Nov 2000")[1:]
    choose(window, "[data-compare] label:nth-child(2) select", "0")
    caption = window.text(f"{COMPARED} caption")
    assert caption == "Differences: Sat 11 Nov 2000 minus Mon 6 Nov 2000"
    found = {name: [difference, interval, apart] for name, _, difference, interval, apart in cells(window, COMPARED)}
    half = 100 * 2.5758293035489004 * 0.01 * 2**0.5  # the quantile of 1 - 0.05 / 2 / 5
    assert found["bee"] == ["+10.0", f"{10 - half:+.1f} to {10 + half:+.1f}", "yes"]
    assert found["ant"] == ["-10.0", f"{-10 - half:+.1f} to {-10 + half:+.1f}", "yes"]
    assert found["dog"] == ["0.0", f"{-half:+.1f} to {half:+.1f}", "no"]
    window.click(f"[data-find='{COMPARED[1:]}'] input[value=differs]")
    assert set(names(window, COMPARED)) == {"ant", "bee"}
    choose(window, "[data-compare] label:nth-child(2) select", "4")
    assert [[name, *shown] for name, _, *shown in cells(window, COMPARED)] == static
    assert not names(window, COMPARED)


def test_tables_are_saved_with_exact_numbers(window: Browser) -> None:
    """As JSON with the values as they are; as CSV with nothing that a spreadsheet computes."""
    save = f"[data-table='{LATEST[1:]}'] [data-form={{}}]"
    lines: list[dict[str, Any]] = json.loads(saved(window, save.format("json")))
    by_value = {line["value"]: line for line in lines}
    assert set(by_value) == set(VALUES)
    assert by_value["bee"]["share"] == pytest.approx(0.4) and by_value["bee"]["low"] == pytest.approx(0.3804)
    assert by_value["dog"]["told_apart_from_0"] == "no"
    records = list(csv.DictReader(io.StringIO(saved(window, save.format("csv")))))
    assert {line["value"] for line in records} == {*VALUES[:2], "'=cat()", *VALUES[3:]}
    assert [float(line["high"]) for line in records] == [line["high"] for line in lines]
    numbers = list(csv.DictReader(io.StringIO(saved(window, "[data-table='ledger-table'] [data-form=csv]"))))
    assert (numbers[0]["received"], numbers[0]["accepted"]) == ("6000", "5940")


def test_a_saved_table_has_the_rows_that_are_seen(window: Browser) -> None:
    choose(window, f"[data-find='{LATEST[1:]}'] input[type=search]", "bee")
    assert len(json.loads(saved(window, f"[data-table='{LATEST[1:]}'] [data-form=json]"))) == 1


def test_long_names_are_read_by_keyboard(window: Browser) -> None:
    """Cut by the style alone, and whole in focus."""
    cut = (
        "const it = document.querySelector('tbody .long'); {} const begin = it.querySelector('.begin');"
        "return [begin.scrollWidth > begin.clientWidth && it.clientWidth > 0, it.offsetHeight, it.textContent]"
    )
    is_cut, height, text = window.run(cut.format(""))
    whole, taller, _ = window.run(cut.format("it.focus();"))
    assert is_cut and not whole and taller > height and text == VALUES[4]


def test_its_policy_lets_nothing_else_run(window: Browser) -> None:
    assert window.log() == []
    window.run(
        "const it = document.createElement('script'); it.textContent = 'window.evil = 1'; document.body.append(it)"
    )
    assert window.run("return window.evil === undefined")
    assert any("Content Security Policy" in line for line in window.log())


def test_the_first_sentence_has_at_most_three_lines_where_there_is_little_room(window: Browser) -> None:
    window.resize(390, 1000)
    sentence = "document.querySelector('.learned')"
    height = f"parseFloat(getComputedStyle({sentence}).lineHeight)"
    assert window.run(f"return {sentence}.offsetHeight / {height}") <= 3.01


@pytest.mark.parametrize("width", [400, 800, 1200, 1600])
def test_no_word_is_broken_and_the_table_fits(width: int, window: Browser) -> None:
    """Heads and short values stand on whole words; from 1,200 pixels on, the main table needs no scrolling."""
    window.resize(width, 1000)
    assert window.run("return document.documentElement.scrollWidth <= innerWidth")
    narrow = window.run(
        "return [...document.querySelectorAll('thead th')].filter(it => it.scrollWidth > it.clientWidth + 1).length"
    )
    assert narrow == 0
    room = window.run(
        f"const it = document.querySelector('{LATEST}').parentNode; return it.clientWidth - it.scrollWidth"
    )
    assert room == 0 or width < 1200
    assert window.run(f"return document.querySelector('{LATEST}').getBoundingClientRect().top") < 1000


def test_a_large_page_opens(one_browser: Browser, tmp_path: Path) -> None:
    """100 windows of 1,000 values, all of them in its table; ``-s`` prints how long it takes (asked: 2 s).

    Processor time is that of the main thread, which parses, lays out and runs scripts.
    """
    values = [f"value {at}" for at in range(1000)]
    rows.survey(tmp_path, values, 100)
    page = tmp_path / "page.html"
    assert uldp.main(["report", str(tmp_path), "--output", str(page), "--rows=1000"]) == 0
    one_browser.open("about:blank")
    began = time.perf_counter()
    with one_browser.processor_seconds() as spent:
        one_browser.open(page.as_uri())
        assert len(names(one_browser, LATEST)) == 1000
    took = f"{time.perf_counter() - began:.2f} s, {spent[0]:.2f} s of them processor time"
    print(f"{page.stat().st_size / 1e6:.1f} MB, open in {took}")


# --------------------------------------------------------------------------------------------- charts of one's choice

TRENDS = "[data-trends='part-1-charts']"


def seen_charts(window: Browser) -> list[str]:
    found: list[str] = window.run(
        "return [...document.querySelectorAll('#part-1-charts figure')].filter(it => !it.hidden)"
        ".map(it => it.dataset.value)"
    )
    return found


def heights(window: Browser, value: str) -> list[float]:
    """Heights of the points of a chart, from the top of its axis."""
    found: list[float] = window.run(
        f"return [...document.querySelectorAll('figure[data-value=\"{value}\"] .mark-symbol path')]"
        ".map(it => Number(it.getAttribute('transform').match(/,([^)]+)/)[1]))"
    )
    return found


def labels(window: Browser, value: str) -> list[str]:
    found: list[str] = window.run(
        f'return [...document.querySelectorAll(\'figure[data-value="{value}"] text[transform^="translate(-"]\')]'
        ".map(it => it.textContent)"
    )
    return found


def test_charts_are_chosen_by_names_and_flags(window: Browser) -> None:
    choose(window, f"{TRENDS} input[type=search]", "bee, DOG")
    assert sorted(seen_charts(window)) == ["bee", "dog"]
    assert window.text(f"{TRENDS} [role=status]") == "2 of 5 charts"
    window.click(f"{TRENDS} input[value=told]")
    assert seen_charts(window) == ["bee"]
    choose(window, f"{TRENDS} input[type=search]", "")
    window.click(f"{TRENDS} input[value=changed]")
    assert seen_charts(window) == ["bee"]


def test_axes_become_logarithmic_and_their_own_and_common_again(window: Browser) -> None:
    """Each point lies where its share belongs on the axis that is drawn."""
    bee = [0.3 + at / 50 for at in range(6)]
    before = heights(window, "bee"), labels(window, "bee")
    window.click(f"{TRENDS} input[value=log]")
    top = bee[0] / (1 - before[0][0] / 150)
    assert heights(window, "bee") == pytest.approx([-50 * np.log10(share / top) for share in bee], abs=0.1)
    assert labels(window, "bee") == ["0.1%", "1%", "10%"]
    assert "lower edge" in window.text(f"{TRENDS} [role=status]")
    window.click(f"{TRENDS} input[value=log]")
    assert labels(window, "dog") == labels(window, "bee")
    assert heights(window, "dog") == pytest.approx([150 * (1 - 0.001 / top)] * 6, abs=0.1)
    window.click(f"{TRENDS} input[value=own]")
    own = float(window.run("return document.querySelector('figure[data-value=dog]').dataset.scale").split()[1])
    assert own < top and labels(window, "dog") != labels(window, "bee")
    assert heights(window, "dog") == pytest.approx([150 * (1 - 0.001 / own)] * 6, abs=0.1)
    window.click(f"{TRENDS} input[value=own]")
    assert (heights(window, "bee"), labels(window, "bee")) == before


def test_a_point_says_its_numbers_under_the_pointer(window: Browser) -> None:
    said = window.run("return [...document.querySelectorAll('svg title')].map(it => it.textContent)")
    assert "Mon 6 Nov 2000: 30.0 % (28.0 to 32.0 %)" in said


@pytest.mark.skipif(axe.missing() is not None, reason=str(axe.missing()))
@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 1200), ("light", 400)])
def test_axe_finds_no_violation(scheme: str, width: int, window: Browser) -> None:
    window.resize(width, 1000)
    window.look(prefers_color_scheme=scheme)
    window.run(
        axe.SCRIPT.read_text("utf-8") + "; axe.run().then(found => { window.found = { all: found.violations } })"
    )
    found = window.wait_for("return window.found")["all"]
    window.look(prefers_color_scheme="light")
    assert [(it["id"], [node["html"] for node in it["nodes"]]) for it in found] == []
