"""Files of single charts: which there are, how large, and with which words."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support import report_rows as rows
from uldp_transforms.jobs import uldp
from uldp_transforms_report import colours
from uldp_transforms_report.trends.chart_files import STYLES

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three days of two values, of everybody and of a group."""
    of = rows.survey(found := tmp_path_factory.mktemp("survey"), ["a b/c", "toString"], 3)
    shares = [rows.entry("a b/c", 0.6), rows.entry("toString", 0.4)]
    told = [rows.estimate(of, at, shares, group=group) for at in range(3) for group in ("", "arm=new")]
    rows.write(found, "estimates.jsonl", told)
    return found


def drawn(folder: Path, target: Path, *style: str) -> list[Path]:
    assert uldp.main(["report", str(folder), "--charts", str(target), *style]) == 0
    return sorted(target.iterdir())


def texts(path: Path) -> str:
    found = ElementTree.fromstring(path.read_text("utf-8")).iter(f"{SVG}text")
    return " ".join(text for node in found for text in node.itertext() if text.strip())


def test_slides_have_their_caption_and_source(folder: Path, tmp_path: Path) -> None:
    """Nothing of a value can leave the directory; pictures have the pixels of a screen."""
    files = drawn(folder, tmp_path / "s")
    assert [path.name for path in files if path.suffix == ".svg"] == [
        *("1-01-survey-a-b-c.svg", "1-02-survey-toString.svg", "1-03-survey-a-b-c-arm-new.svg"),
        "1-04-survey-toString-arm-new.svg",
    ]
    assert len(files) == 8
    for path in files:
        if path.suffix == ".png":
            assert struct.unpack(">II", path.read_bytes()[16:24]) == (1920, 1080)
    text = re.sub(r"\s+", " ", texts(files[1]))
    assert "60.0 % (Mon 6 Nov 2000), 60.0 % (Wed 8 Nov 2000)" in text and "a b/c" in text
    assert "95 % intervals of single windows. Band: smoothed" in text and "Source: survey, version 1, 3 windows" in text
    assert f"; {folder.name}, run " in text


def test_a_column_of_a_paper_has_its_caption_beside_it(folder: Path, tmp_path: Path) -> None:
    """3.3 inches wide, in greys; text is set in a face that PDF files contain."""
    files = drawn(folder, tmp_path / "p", "--style", "paper")
    assert len(files) == 16
    pdf, png, svg, txt = files[:4]
    assert b"MediaBox [0 0 237.6 136.8]" in pdf.read_bytes() and b"LiberationSans" in pdf.read_bytes()
    assert struct.unpack(">II", png.read_bytes()[16:24]) == (990, 570)
    root = ElementTree.fromstring(svg.read_text("utf-8"))
    assert (root.get("width"), root.get("height")) == ("237.6", "136.8")
    used = set(re.findall(r"#[0-9a-f]{6}", svg.read_text("utf-8")))
    assert used and all(one[1:3] == one[3:5] == one[5:7] for one in used), used
    assert txt.read_text("utf-8").startswith("a b/c. 60.0 % (Mon 6 Nov 2000)") and "a b/c" not in texts(svg)


def test_greys_are_told_apart() -> None:
    greys = STYLES["paper"].colours
    assert {*greys} >= {colours.PLAIN, colours.SMOOTHED, colours.TRUTH, *colours.GROUPS}
    assert greys[colours.PLAIN] != greys[colours.SMOOTHED]


def test_one_window_has_no_charts(tmp_path: Path) -> None:
    of = rows.survey(tmp_path, ["a", "b"], 1)
    rows.write(tmp_path, "estimates.jsonl", [rows.estimate(of, 0, [rows.entry("a", 0.6), rows.entry("b", 0.4)])])
    assert drawn(tmp_path, tmp_path / "none") == []


def test_charts_of_sums_have_the_scales_of_the_page(tmp_path: Path) -> None:
    """A sum of small weights is not flattened beside one of large weights."""
    of = rows.survey(tmp_path, ["a", "b"], 2)
    sums = [
        {"name": name, "is_share": False, "value": value, "low": value - 0.1, "high": value + 0.1}
        for name, value in (("days", 2.0), ("cost", 900.0))
    ]
    shares = [rows.entry("a", 0.6), rows.entry("b", 0.4)]
    rows.write(tmp_path, "estimates.jsonl", [rows.estimate(of, at, shares, sums=sums) for at in range(2)])
    days = next(path for path in drawn(tmp_path, tmp_path / "c") if path.name == "1-03-survey-days.svg")
    found = ElementTree.fromstring(days.read_text("utf-8")).iter(f"{SVG}text")
    labels = [float(node.text) for node in found if re.fullmatch(r"[0-9.]+", node.text or "")]
    assert labels and max(labels) < 10
