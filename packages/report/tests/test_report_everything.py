"""One page with everything at once, in a browser: harmful names, numbers, groups, versions, discoveries, runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from packages.report.tests.support.everything import KILLED, NAMES, everything
from packages.report.tests.support.page_tools import choose, names
from tests.rigs import axe
from tests.support.browser import Browser, browser, needs_browser

pytestmark = needs_browser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return everything(tmp_path_factory.mktemp("everything"))


@pytest.fixture(scope="module")
def one_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture
def window(one_browser: Browser, page: Path) -> Browser:
    one_browser.resize(1200, 1000)
    one_browser.open(page.as_uri())
    return one_browser


A4 = 718, 1046
"""Pixels of a sheet within Chromium's margins."""

TYPE = """
const scale = (matrix) => (matrix ? Math.hypot(matrix.a, matrix.b) : 1);
const found = [...document.querySelectorAll("main *")].filter(it => it.checkVisibility() && it.textContent.trim() &&
  [...it.childNodes].some(child => child.nodeType === 3 && child.data.trim())).map(it =>
  [parseFloat(getComputedStyle(it).fontSize) * scale(it.getScreenCTM?.()), it.outerHTML.slice(0, 200)]);
"""
"""Pixels of the letters of each text that is seen."""

SECTION = {"hostile": 1, "how-do-you-sleep": 2, "names": 3, "survey": 4}
"""Collections in their order on the page; ``survey`` has the numbers."""


@pytest.mark.parametrize("width", [400, 800, 1200, 1600])
def test_nothing_sticks_out_and_a_result_is_seen_at_once(width: int, window: Browser) -> None:
    window.resize(width, 1000)
    assert window.run("return document.documentElement.scrollWidth <= innerWidth")
    places = "[...document.querySelectorAll('thead th, td.side, .learned')]"
    assert window.run(f"return {places}.filter(it => it.scrollWidth > it.clientWidth + 1).length") == 0
    for number in SECTION.values():
        section = f"document.querySelector('#part-{number}')"
        top = window.run(f"return {section}.querySelector('figure, table').getBoundingClientRect().top")
        assert top - window.run(f"return {section}.getBoundingClientRect().top") < 700
    if width == 400:  # value, share and interval of a long table are seen without scrolling
        end = "document.querySelector('#part-1-latest-table tbody td:nth-child(4)').getBoundingClientRect().right"
        assert window.run(f"return {end}") <= 400
    assert window.log() == []


def test_unfolded_numbers_need_no_scrolling_where_there_is_little_room(window: Browser) -> None:
    window.resize(390, 1000)
    window.run("for (const it of document.querySelectorAll('details:not(.take)')) it.open = true")
    tables = "[...document.querySelectorAll('figure details .wide, details:not(.part) .wide:not(:has(.drawn))')]"
    assert window.run(f"return {tables}.length") > 10
    wide = f"return {tables}.filter(it => it.scrollWidth > it.clientWidth).map(it => it.firstElementChild.id)"
    assert window.run(wide) == []


def test_little_room_has_the_first_collection_alone(window: Browser, page: Path) -> None:
    """Others open when a link leads to them, and on paper, after which they are folded again."""
    folded = "return [...document.querySelectorAll('details.part')].map(it => !it.open)"
    assert not any(window.run(folded))
    window.resize(400, 1000)
    window.open(page.as_uri())
    first, *others = window.run(folded)
    assert not first and all(others) and len(others) == 7
    window.click("a[href='#ledger']")
    window.wait_for("return document.querySelector('#ledger details').open")
    assert [at for at, is_folded in enumerate(window.run(folded)) if not is_folded] == [0, 5]
    for event, expected in (("beforeprint", 0), ("afterprint", 6)):
        window.run(f"dispatchEvent(new Event('{event}'))")
        assert sum(window.run(folded)) == expected
    for event in ("before", "after"):
        window.run("for (const it of document.querySelectorAll('details.part')) if (window.updated) it.open = true")
        window.run(f"window.updated = true; document.dispatchEvent(new Event('uldp:{event}'))")
    assert sum(window.run(folded)) == 6
    window.run("location.hash = 'part-3-found'")
    window.wait_for("return document.querySelector('#part-3 details').open")


def test_little_room_has_the_first_charts_alone(window: Browser, page: Path) -> None:
    """A line tells how many others there are; they open for a reader, a search, a link and paper. Elsewhere all are
    charts among charts."""
    seen = "return [...document.querySelectorAll('#part-1-charts figure')].filter(it => it.checkVisibility()).length"
    line = "return document.querySelector('#part-1-further > summary').checkVisibility()"
    tops = "return [...document.querySelectorAll('#part-1-charts figure')].map(it => it.getBoundingClientRect().top)"
    window.resize(1600, 1000)
    assert window.run(seen) == len(NAMES) and not window.run(line)
    assert len(set(window.run(tops)[:4])) == 1  # in one row
    window.resize(400, 1000)
    window.open(page.as_uri())
    assert window.run(seen) == 3 and window.text("#part-1-further > summary") == "5 further charts"
    window.run("dispatchEvent(new Event('beforeprint'))")
    assert window.run(seen) == len(NAMES)
    window.run("dispatchEvent(new Event('afterprint'))")
    assert window.run(seen) == 3
    window.run("location.hash = 'part-1-trend-5'")
    window.wait_for(f"{seen} === {len(NAMES)}")
    window.run("location.hash = ''")
    window.open(page.as_uri())
    assert window.run(seen) == 3
    search = "const it = document.querySelector('[data-trends] input'); it.value = 'no';"
    window.run(f"{search} it.dispatchEvent(new Event('input', {{bubbles: true}}))")
    assert window.run(seen) == 1 and window.log() == []


def test_names_of_one_beginning_are_distinguished(window: Browser) -> None:
    """By their visible ends; a text cannot change the direction of others."""
    ends = window.run(
        "return [...document.querySelectorAll('#part-1-latest-table .long')].map(it => it.lastChild.textContent)"
    )
    assert sum(end.endswith(("=1", "=2")) for end in ends) == 2 and len(set(ends[:2])) == 2
    assert (
        window.run("return document.querySelector('#part-1-alarms-table td.text bdi').textContent") == f"'{NAMES[2]}'"
    )


def test_numbers_groups_and_windows_are_compared_and_filtered(window: Browser) -> None:
    number = SECTION["survey"]
    groups = f"#part-{number}-groups-compare-table"
    before = window.text(groups)
    selects = f"[data-compare='{groups[1:]}'] label:nth-child({{}}) select"
    choose(window, selects.format(1), "0")
    choose(window, selects.format(2), "1")
    assert window.text(f"{groups} caption") == "Differences: other, control minus other, new"
    assert window.text(f"{groups} td:nth-child(3)").startswith("-")
    choose(window, selects.format(1), "1")
    choose(window, selects.format(2), "0")
    assert window.text(groups) == before  # the script computes what the page had
    windows = f"#part-{number}-compare-table"
    assert names(window, windows) == names(window, groups)
    window.click(f"[data-find='{groups[1:]}'] input[value=differs]")
    told = window.run(
        f"return [...document.querySelectorAll('{groups} tbody tr')].map(it => [it.hidden, it.cells[4].textContent])"
    )
    assert all(is_hidden == (text == "no") for is_hidden, text in told)
    choose(window, f"[data-find='part-{number}-groups-table'] input[type=search]", "ARM=NEW")
    assert names(window, f"#part-{number}-groups-table") == names(window, f"#part-{number}-numbers-table")
    assert names(window, "#part-1-latest-table") and window.text(f"#part-{number}-groups-2")


def test_charts_of_figures_are_chosen_by_name(window: Browser) -> None:
    of = f"#part-{SECTION['survey']}"
    figures = f"[...document.querySelectorAll('{of}-figures figure')]"
    seen = f"return {figures}.filter(it => !it.hidden).map(it => it.dataset.value)"
    every = window.run(seen)
    choose(window, f"[data-trends='{of[1:]}-figures'] input", "P98, mean")
    assert window.run(seen) == ["mean", "p98"] and len(every) > 2
    assert window.text(f"[data-trends='{of[1:]}-figures'] [role=status]") == f"2 of {len(every)} charts"
    choose(window, f"[data-trends='{of[1:]}-figures'] input", "")
    assert window.run(seen) == every
    assert window.log() == []


def test_an_open_end_does_not_lengthen_a_number(window: Browser) -> None:
    """Half the distance of the end that is known shows two digits."""
    rows = window.run(
        f"return [...document.querySelectorAll('#part-{SECTION['survey']}-groups-table tbody tr')]"
        ".map(row => [...row.cells].map(it => it.textContent))"
    )
    shown = {row[2] for row in rows if row[0] == "p98"}
    assert shown == {"166.6", "170.1"}


def test_the_keyboard_alone_sorts_searches_and_opens(window: Browser) -> None:
    def press(key: str, code: int, text: str = "") -> None:
        for kind in ("keyDown", "keyUp"):
            own = {"text": text} if text and kind == "keyDown" else {}
            window._pipes.ask("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **own)

    press("Tab", 9)
    assert window.run("return document.activeElement.className") == "skip"
    press("Enter", 13, "\r")
    assert window.run("return location.hash") == "#main"
    seen: list[str] = []
    for _ in range(40):
        press("Tab", 9)
        seen.append(
            window.run("return document.activeElement.getAttribute('aria-label') ?? document.activeElement.localName")
        )
        if seen[-1] == "Sort by share":
            break
    assert seen[-1] == "Sort by share", seen
    press("Enter", 13, "\r")
    press("Enter", 13, "\r")
    assert names(window, "#part-1-latest-table")[0] == "no"
    window.run("document.querySelector('details.bins summary').focus()")
    press("Enter", 13, "\r")
    assert window.run("return document.querySelector('details.bins').open")


def test_without_scripts_and_on_paper_it_reads(one_browser: Browser, page: Path) -> None:
    one_browser._pipes.ask("Emulation.setScriptExecutionDisabled", value=True)
    try:
        one_browser.open(page.as_uri())
        seen = one_browser.text("main")
    finally:
        one_browser._pipes.ask("Emulation.setScriptExecutionDisabled", value=False)
    for text in ("Two groups compared", "The whole period", "Discovered values", "all versions", "Search", "no end"):
        assert (text in seen) == (text != "Search"), text
    one_browser.open(page.as_uri())
    one_browser._pipes.ask("Emulation.setEmulatedMedia", media="print")
    try:
        shown = "return [...document.querySelectorAll('.tools, .sort')].filter(it => it.offsetParent).length"
        assert one_browser.run(shown) == 0
        ways = "new Set([...document.querySelectorAll('.wide')].map(it => getComputedStyle(it).overflowY))"
        assert one_browser.run(f"return [...{ways}]") == ["visible"]
        one_browser.resize(*A4)
        one_browser.run("for (const it of document.querySelectorAll('details')) it.open = true")
        edges = "[...document.querySelectorAll('h1, table')].map(it => it.getBoundingClientRect().right)"
        end, *ends = one_browser.run(f"return {edges}")
        assert len(ends) > 30 and max(ends) < end + 1
        small = one_browser.run(f"{TYPE} return found.filter(([pixels]) => pixels < {7 * 96 / 72})")
        assert small == []  # seven points
        assert one_browser.run("return [...document.querySelectorAll('.take')].every(it => !it.checkVisibility())")
    finally:
        one_browser._pipes.ask("Emulation.setEmulatedMedia", media="")


@pytest.mark.skipif(axe.missing() is not None, reason=str(axe.missing()))
@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 400)])
def test_axe_finds_no_violation(scheme: str, width: int, window: Browser) -> None:
    window.resize(width, 1000)
    window.look(prefers_color_scheme=scheme)
    script = axe.SCRIPT.read_text("utf-8")
    window.run(f"{script}; axe.run().then(found => {{ window.found = {{ all: found.violations }} }})")
    found = window.wait_for("return window.found")["all"]
    window.look(prefers_color_scheme="light")
    assert [(it["id"], [node["html"] for node in it["nodes"]]) for it in found] == []


def test_it_has_everything(page: Path) -> None:
    """The directory, so that nothing above passes because it is not there."""
    text = page.read_text("utf-8")
    for name in ("compared-1-found", "part-4-groups-2-compare", "part-3-found-table", "part-4-whole-numbers-table"):
        assert f'id="{name}' in text, name
    assert KILLED in text and json.dumps(NAMES[0]).strip('"').replace("&", "\\u0026") in text


def test_each_label_is_on_the_page(window: Browser) -> None:
    """Regions whose labels are missing would be called alike."""
    labels = "[...document.querySelectorAll('[aria-labelledby]')].map(it => it.getAttribute('aria-labelledby'))"
    missing = f"return {labels}.join(' ').split(' ').filter(id => !document.getElementById(id))"
    assert window.run(missing) == []
