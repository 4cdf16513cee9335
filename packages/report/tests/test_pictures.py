"""Pictures of charts and tables, which the browser draws from the page."""

from __future__ import annotations

import re
import struct
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from packages.report.tests.support.everything import NAMES, everything
from packages.report.tests.support.page_tools import VALUES, choose, picture, survey
from tests.support.browser import Browser, browser, needs_browser
from tests.support.report_rows import RUN

pytestmark = needs_browser

LATEST, TREND = "part-1-latest-table", "part-1-trend-1"
LEAST = 7 * 96 / 72  # pixels of a letter on paper
_SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def one_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return survey(tmp_path_factory.mktemp("survey"))


@pytest.fixture(scope="module")
def whole_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return everything(tmp_path_factory.mktemp("everything"))


@pytest.fixture
def window(one_browser: Browser, page: Path) -> Browser:
    one_browser.look(prefers_color_scheme="light")
    one_browser.resize(1200, 1000)
    one_browser.open(page.as_uri())
    return one_browser


def svg(window: Browser, of: str, size: str = "slide") -> ET.Element:
    return ET.fromstring(picture(window, of, size, "svg"))


def texts(of: ET.Element) -> list[str]:
    return [text.text or "" for text in of.iter(f"{_SVG}text")]


def across(shape: ET.Element, name: str) -> float:
    """Where a shape is in its picture, from the left."""
    place = shape.get("transform")
    a, *_, e, _ = map(float, re.findall(r"[-\d.e]+", place[len("matrix") :])) if place else (1.0, 0.0, 0.0)
    return a * float(shape.get(name, 0)) + e


def test_a_table_is_drawn_as_it_stands(window: Browser) -> None:
    """Each estimate is at its place between the labels of the axis, in the order of the rows."""
    drawn = svg(window, LATEST)
    labels = {text.text: across(text, "x") for text in drawn.iter(f"{_SVG}text") if text.get("transform")}
    dots = [across(dot, "cx") for dot in drawn.iter(f"{_SVG}circle") if dot.get("r") == "4.5"]
    dots = dots[2:]  # after those of the key
    step = (labels["20 %"] - labels["0 %"]) / 0.2
    shares = [(at - labels["0 %"]) / step for at in dots]
    assert shares == pytest.approx([0.4, 0.21, 0.2, 0.189, 0.001], abs=2e-4)
    assert [text for text in texts(drawn) if text in VALUES] == ["bee", "=cat()", "ant", "dog"]


@pytest.mark.parametrize("of", [LATEST, TREND])
def test_a_picture_says_what_it_is_and_where_it_comes_from(of: str, window: Browser) -> None:
    said = " ".join(texts(svg(window, of)))
    assert "95 % interval" in said
    assert ("The latest window with numbers: Sat 11 Nov 2000" if of == LATEST else "Trends: bee") in said
    spans = {
        LATEST: "Sat 11 Nov 2000, 1,000 reports",
        TREND: "6 windows, Mon 6 Nov 2000 to Sat 11 Nov 2000, 6,000 reports",
    }
    source = f"Source: survey, version 1, {spans[of]}"
    assert source in said and f"run {RUN}, uldp_transforms" in said


def test_a_picture_for_a_paper_has_the_estimates(window: Browser) -> None:
    """Its intervals are drawn alone, for want of room."""
    said = texts(svg(window, LATEST, "paper"))
    assert {"share", "40.0 %", "18.9 %"} <= set(said) and not [text for text in said if " to " in text and "%" in text]


def test_a_picture_says_what_all_its_rows_have_in_common(window: Browser, whole_page: Path) -> None:
    """Such as the group that others are compared with, which needs no column."""
    window.open(whole_page.as_uri())
    notes = window.run(
        "return [...document.querySelectorAll('[data-rows-of]')].map(it => [it.dataset.rowsOf, it.innerText])"
    )
    drawn = window.run("return [...document.querySelectorAll('[data-picture]')].map(it => it.dataset.picture)")
    notes = [(of, said) for of, said in notes if of in drawn]
    assert notes
    for of, said in notes:
        assert said.replace(" ", "") in "".join(texts(svg(window, of))).replace(" ", "")


def test_a_picture_has_the_rows_that_are_seen(window: Browser) -> None:
    choose(window, f"[data-find='{LATEST}'] input[type=search]", "bee")
    said = texts(svg(window, LATEST))
    assert "bee" in said and not {"ant", "dog"} & set(said)


@pytest.mark.parametrize("of", [LATEST, TREND])
def test_pictures_have_the_sizes_of_slides_and_of_a_column(of: str, window: Browser) -> None:
    """In pixels; letters on paper have at least seven points."""
    assert struct.unpack(">II", picture(window, of, "slide", "png")[16:24]) == (1920, 1080)
    column = picture(window, of, "paper", "png")
    assert struct.unpack(">I", column[16:20]) == (990,) and len(column) > 20_000
    drawn = svg(window, of, "paper")
    assert drawn.get("width") == "317"  # 3.3 inches
    sizes = []
    for text in drawn.iter(f"{_SVG}text"):
        scale = float(re.findall(r"[-\d.e]+", text.get("transform", "(1"))[0])
        sizes.append(scale * float(text.get("font-size", "0px")[:-2]))
    assert sizes and min(sizes) >= LEAST


def test_a_long_table_fits_on_a_slide(window: Browser, whole_page: Path) -> None:
    """Names are whole, in either direction; nothing in them is markup."""
    window.open(whole_page.as_uri())
    box = list(map(float, (svg(window, LATEST).get("viewBox") or "").split()))
    assert box[2] / box[3] == pytest.approx(16 / 9, rel=0.01)
    for of in window.run("return [...document.querySelectorAll('[data-picture]')].map(it => it.dataset.picture)"):
        for size in ("slide", "paper"):
            drawn = svg(window, of, size)
            assert "".join(texts(drawn)).count("Source: ") == 1
            assert {shape.tag for shape in drawn.iter()} <= {f"{_SVG}{name}" for name in TAGS}
    said = "".join(texts(svg(window, LATEST))).replace(" ", "")
    assert all(name.replace(" ", "") in said for name in (NAMES[0], NAMES[2], NAMES[4]))
    assert window.log() == []


TAGS = ("svg", "title", "desc", "rect", "text", "line", "circle", "path")


def test_pictures_are_light(window: Browser) -> None:
    light = [picture(window, of, "slide", "svg") for of in (LATEST, TREND)]
    window.look(prefers_color_scheme="dark")
    assert [picture(window, of, "slide", "svg") for of in (LATEST, TREND)] == light


def test_every_table_and_every_drawing_can_be_taken_away(window: Browser, whole_page: Path) -> None:
    """Once, and only with scripts, without which the page shows nothing that does nothing."""
    window.open(whole_page.as_uri())
    ids = "return [...document.querySelectorAll(`{}`)].map(it => it.{}).sort()"
    tables = window.run(ids.format("main table", "id"))
    assert tables and window.run(ids.format("[data-table]", "dataset.table")) == tables
    drawn = window.run(ids.format("figure:has(.chart), main table:has(td.drawn svg)", "id"))
    assert drawn and window.run(ids.format("[data-picture]", "dataset.picture")) == drawn
    seen = "return [...document.querySelectorAll('.take')].filter(it => it.checkVisibility()).length"
    assert window.run(seen) > 10
    bare = whole_page.with_name("bare.html")
    bare.write_text(re.sub(r"<script>.*?</script>", "", whole_page.read_text("utf-8"), flags=re.S), "utf-8")
    window.open(bare.as_uri())
    assert window.run(seen) == 0


def test_a_menu_stays_in_the_page(window: Browser) -> None:
    for width in (390, 1200):
        window.resize(width, 1000)
        window.run("for (const part of document.querySelectorAll('details.part')) part.open = true")
        outside = window.run(
            "return [...document.querySelectorAll('.take')].filter(it => { if (!it.checkVisibility()) return false;"
            "it.open = true; const box = it.querySelector('.menu').getBoundingClientRect(); it.open = false;"
            "return box.left < 0 || box.right > innerWidth }).length"
        )
        assert outside == 0


def test_copied_rows_are_on_the_clipboard(window: Browser) -> None:
    """As people do it: with the pointer."""
    window.run("navigator.clipboard.writeText = async text => { window.copied = text }")
    window.click(f"[data-table='{LATEST}'] summary")
    window.click(f"[data-table='{LATEST}'] [data-form=tsv]")
    window.wait_for("return window.copied")
    head, *lines = [line.split("\t") for line in window.run("return window.copied").splitlines()]
    assert head[:2] == ["value", "share"] and len(lines) == len(VALUES) and lines[0][:2] == ["bee", "0.4"]
    assert window.text(f"[data-table='{LATEST}'] [role=status]") == "Copied: 5 rows."
