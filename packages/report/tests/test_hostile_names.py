"""Names of members of every JavaScript object, and formulas of spreadsheets, as texts of every chart and table."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from packages.report.tests.support.report_page import page_of
from tests.support import report_rows as rows
from tests.support.browser import Browser, browser, needs_browser
from tests.support.html_tree import tree_of
from tests.support.pages import compared_rows, number_rows
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp import Collection, SpecError
from uldp_transforms_report import charts
from uldp_transforms_report.follow import Following
from uldp_transforms_report.gathering import Asked
from uldp_transforms_report.texts_for_readers import named
from uldp_transforms_report.trends import picture

MEMBERS = (
    "constructor",
    "toString",
    "valueOf",
    "hasOwnProperty",
    "__proto__",
    "__defineGetter__",
    "__lookupSetter__",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toLocaleString",
)
FORMULAS = ("x;=cmd()", "=1+1", "\uff1d1+1", " @SUM(1)", "\uff0b1", "\u3000\uff0d1", '"quoted"', "a,b", "\u2212 1")
VALUES = (*MEMBERS, *FORMULAS)
DAYS = 3


def write_everything(folder: Path, text: str) -> None:
    """Rows of values, numbers, groups, comparisons, discovered values; ``text`` is a value, group, unit and id."""
    of = Collection.from_json(rows.collection(VALUES).to_json() | {"id": text.strip("_").lower()})
    entries = [rows.entry(value, (1 + (value == text)) / (1 + len(VALUES)), 0.001) for value in VALUES]
    numbers = number_rows.collection(unit=text)
    figures = [
        number_rows.row(numbers, at + later) | {"group": group} | rows.span(at)
        for at in range(DAYS)
        for group, later in (("", 0), (f"arm={text}", 0), ("arm=b", 4))
    ]
    found = rows.estimate(of, DAYS - 1, [rows.entry(text, 0.5)])
    place = {name: found[name] for name in ("collection_id", "collection_version", "fingerprint", "run")}
    shown = {"value": text, "frequency": 0.2, "ci_low": 0.1, "ci_high": 0.3, "q_value": 1e-5}
    rows.write(folder, "estimates.jsonl", [*(rows.estimate(of, at, entries) for at in range(DAYS)), *figures])
    rows.write(folder, "totals.jsonl", [rows.estimate(of, None, entries) | rows.span(0)])
    shown |= {**place, **rows.span(DAYS - 1), "pane_index": 0, "num_reports": 9}
    rows.write(folder, "discovered.jsonl", [shown])
    compared = [
        compared_rows.row(value, 0.01 * at, 0.001, 1e-9, group_a=f"arm={text}")
        for at, value in enumerate((text, *FORMULAS), 1)
    ]
    compared.append(compared_rows.row("side", 0.5, 0.001, 1e-9, group_b="x; =cmd()"))
    rows.write(folder, "comparisons.jsonl", compared)
    rows.record(folder, of, numbers)


@pytest.mark.parametrize("text", MEMBERS)
def test_every_chart_is_drawn(text: str, tmp_path: Path) -> None:
    """On the page, in its picture, and on the page that follows a stream."""
    write_everything(tmp_path, text)
    files = [f"{tmp_path}/{name}" for name in ("p.html", "p.png", "p.svg")]
    argv = ["report", str(tmp_path), "--title", text, "--trends", "2", "--value", text]
    assert uldp.main([*argv, "--output", files[0], "--png", files[1], "--svg", files[2]]) == 0
    page = Path(files[0]).read_text("utf-8")
    drawn = [node for node in tree_of(page).all("svg") if node.all("text")]
    assert len(drawn) > 8 and all(node.all("path") for node in drawn)
    picture = ElementTree.fromstring(Path(files[2]).read_text("utf-8"))
    texts = [node.text.strip() for node in picture.iter("{http://www.w3.org/2000/svg}text") if node.text]
    assert {named(value, 18).strip() for value in VALUES} <= set(texts)
    assert texts.count(text) >= 2  # title of the picture and of a trend
    followed = Following(Asked(directory=str(tmp_path), title=text))
    followed.look()
    assert followed._answer({"PATH_INFO": "/"})[0] == "200 OK"


@pytest.mark.parametrize("text", MEMBERS)
def test_estimates_in_notebooks_are_drawn(text: str) -> None:
    of = rows.collection([text, "a", "b"])
    estimate = of.estimate(of.count(of.perturb([text] * 60 + ["a"] * 30, np.random.default_rng(5))))
    numbers = number_rows.collection(unit=text)
    held = numbers.perturb(np.linspace(-50, 170, 200).tolist(), np.random.default_rng(5))
    for one in (estimate, numbers.estimate(numbers.count(held), "eb")):
        picture = charts.svg_of(one.plot().to_dict()).decode()
        assert f">{text}</text>" in re.sub(r"\s+<", "<", picture)
    both = charts.svg_of((estimate.plot() | of.estimate(of.count(of.perturb(["b"] * 90))).plot()).to_dict()).decode()
    assert both.count(f">{text}</text>") == 2


def test_an_incomplete_drawing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Vega fails at a title that is looked up as a name; no page and no picture is left."""
    monkeypatch.setattr(picture, "as_title", lambda text: text)
    write_everything(tmp_path, "constructor")
    argv = ["report", str(tmp_path), "--title", "constructor", "--svg", f"{tmp_path}/p.svg"]
    assert uldp.main(argv) != 0
    sentence = capsys.readouterr().err.splitlines()[-1]
    assert re.fullmatch(r"report: charts must be drawn by vl-convert with all of their \d+ marks, got \d+", sentence)
    assert not Path(f"{tmp_path}/p.svg").exists()
    with pytest.raises(SpecError, match="with all of their 1 marks, got 0"):
        charts.png_of({"data": {"values": [{}]}, "mark": "point", "title": "toString"})


@pytest.fixture(scope="module")
def one_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    write_everything(folder, "constructor")
    page_of(folder)
    return folder / "page.html"


SAVED = """
const made = [];
URL.createObjectURL = (blob) => { made.push(blob.text()); return "#"; };
document.querySelector("[data-table='%s'] [data-form=%s]").click();
return Promise.all(made);
"""


def saved(window: Browser, table: str, form: str) -> str:
    [text] = window.run(SAVED % (table, form))
    return str(text)


@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_works_with_them(width: int, one_browser: Browser, hostile: Path) -> None:
    one_browser.resize(width, 1000)
    one_browser.open(hostile.as_uri())
    assert one_browser.run("return document.documentElement.scrollWidth <= innerWidth")
    compared = "document.querySelector('#compared-1-found-table')"
    assert one_browser.run(f"return {compared}.tBodies[0].rows.length") == 2 + len(FORMULAS)
    one_browser.run(f"{compared}.querySelector('.sort').click()")
    assert one_browser.run(f"return {compared}.querySelectorAll('[aria-sort]').length") == 1
    tables = one_browser.run("return [...document.querySelectorAll('[data-table]')].map(it => it.dataset.table)")
    assert len(tables) > 8
    for table in tables:
        assert json.loads(saved(one_browser, table, "json")), table
    records = json.loads(saved(one_browser, "compared-1-found-table", "json"))
    assert {row["value"] for row in records} == {"constructor", "side", *FORMULAS}
    assert one_browser.log() == []


COMPUTED = re.compile(r"[\s\x00-\x1f]*[=+\-@\uff1d\uff0b\uff0d\uff20]")


@needs_browser
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_spreadsheet_computes_no_cell(delimiter: str, one_browser: Browser, hostile: Path) -> None:
    """Whatever it takes for the end of a field: no cell of any saved table begins like a formula, but numbers."""
    one_browser.open(hostile.as_uri())
    tables = one_browser.run("return [...document.querySelectorAll('[data-table]')].map(it => it.dataset.table)")
    for table in tables:
        text = saved(one_browser, table, "csv")
        for cell in itertools.chain(*csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)):
            assert not COMPUTED.match(cell) or np.isfinite(float(cell)), (table, cell)
    text = saved(one_browser, "compared-1-found-table", "csv")
    assert text.startswith('"value","difference","low","high","q_value","a","b"\r\n') and '"x;=cmd()",' in text
    found = {row["value"].removeprefix("'") for row in csv.DictReader(io.StringIO(text, newline=""))}
    assert found == {"constructor", "side", *FORMULAS}
