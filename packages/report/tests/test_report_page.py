"""``uldp report``: what its page and picture say, for directories of any size, and that values can do no harm."""

from __future__ import annotations

import base64
import hashlib
import html
import itertools
import json
import re
import struct
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import fastavro
import pytest

from packages.report.tests.support.report_page import page_of
from tests.support import report_rows as rows
from tests.support.html_tree import Node, chromium, needs_chromium, table, texts_of, tree_of
from uldp_transforms.jobs import uldp
from uldp_transforms.schemas import load
from uldp_transforms.windows import moment_of
from uldp_transforms_report import colours, web_page


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten days of four values, of which one moved; one day has too few reports."""
    folder = tmp_path_factory.mktemp("survey")
    of = rows.survey(folder, ["ant", "bee", "cat", "dog"], 10)
    estimates = [rows.estimate(of, at, rows.waves(["ant", "bee", "cat", "dog"], at)) for at in range(9)]
    early = {
        "pane_timing": "EARLY",
        "interval": "anytime",
        "unexplained_mass": 0.25,
        "unexplained_low": 0.2,
        "unexplained_high": 0.3,
    }
    shares = {"ant": 0.3, "bee": 0.5, "cat": 0.01, "dog": 0.19}
    latest = rows.estimate(of, 9, [rows.entry(value, share) for value, share in shares.items()], **early)
    estimates[3] = rows.estimate(of, 3, status="suppressed", num_reports=None)
    older = rows.estimate(of, 9, [rows.entry("ant", 1.0)], run="20261121T000000.000Z-000000", pane_index=7)
    partial = latest | {"status": "partial", "estimates": [], "run": "20261123T000000.000Z-000000"}
    rows.write(folder, "estimates.jsonl", [*estimates, older, latest, latest | {"pane_index": -1}, partial])
    moved = "Shares moved, in percentage points: 'bee' +10.00 (+8.00 to +12.00)."
    rows.write(folder, "health.jsonl", [rows.finding(of, 5, moved)])
    return folder


@pytest.fixture(scope="module")
def tree(survey: Path) -> Node:
    return tree_of(page_of(survey))


# ------------------------------------------------------------------------------------------------------- what it says


def test_what_was_asked_and_what_it_costs(tree: Node) -> None:
    asked = {name.text: text.text for name, text in zip(tree.all("dt"), tree.all("dd"))}
    assert asked["Answers"] == "4 listed values (closed)"
    assert asked["A device sends"] == "one symbol (krr)"
    assert asked["Epsilon of one report"].startswith(
        "1: a protected report is at most 2.72 times as likely from one value as from any other."
    )
    assert asked["Epsilon of one report"].endswith("can be at most 73.1 % sure after seeing it")
    assert asked["Reports"] == "9,000; 1,000 in each of the 9 windows that show the number"
    assert table(tree, "Total epsilon of one person's reports, if the answer stays the same")[1:] == [
        ["one report", "1"],
        ["one in each window of a week (7)", "7"],
        ["one in each window of 30 days (30)", "30"],
        ["one in each window of a year (365)", "365"],
    ]


def test_the_latest_window_by_size(tree: Node) -> None:
    """Of the latest run the last pane, and no partial row beside it; cat may be nobody."""
    cells = table(tree, "Shares of answers, Wed 15 Nov 2000")
    assert cells[0] == [
        "value",
        "share",
        "95 % interval",
        "told apart from 0",
        "smoothed",
        "its interval",
        "last change",
    ]
    assert [row[:4] for row in cells[1:]] == [
        ["bee", "50.0 %", "48.0 to 52.0 %", "yes"],
        ["ant", "30.0 %", "28.0 to 32.0 %", "yes"],
        ["dog", "19.0 %", "17.0 to 21.0 %", "yes"],
        ["cat", "1.0 %", "below 3.0 %", "no"],
    ]
    assert [row[-1] for row in cells[1:]] == ["Sat 11 Nov 2000", "", "", ""]
    assert "so far, 1,000 answers: " in tree.text and "The window has not ended." in tree.text
    assert "Intervals are valid simultaneously in all rows of the window, however often they are read" in tree.text


def test_a_share_of_0_or_1_is_told_by_one_end(tmp_path: Path) -> None:
    """In the table and in the caption of its chart."""
    of = rows.survey(tmp_path, ["all", "nobody"], 2)
    shares = {"all": 1.0, "nobody": 0.0}
    estimates = [rows.estimate(of, at, [rows.entry(*each, smooth=False) for each in shares.items()]) for at in (0, 1)]
    rows.write(tmp_path, "estimates.jsonl", estimates)
    page = tree_of(page_of(tmp_path))
    cells = [row[:3] for row in table(page, "Shares of answers, Tue 7 Nov 2000")[1:]]
    assert cells == [["all", "100.00 %", "above 98.04 %"], ["nobody", "0.00 %", "below 1.96 %"]]
    captions = [figure.text for figure in page.all("figcaption")]
    assert "nobody below 2.0 %" in captions and "all above 98.0 %" in captions


NUMBER = re.compile(r"-?[0-9.]+")


def test_each_number_is_shown_with_an_interval_that_holds_it(tmp_path: Path) -> None:
    """The intervals for values that are shown because they are large, in table and trends; of older rows as well."""
    of = rows.survey(tmp_path, ["ant", "bee", "cat"], 2)
    ant = rows.entry("ant", 0.007) | {"ci_low": 0.02, "ci_high": 0.05, "display_low": 0.004, "display_high": 0.07}
    bee = rows.entry("bee", 0.1) | {"ci_low": 0.2, "ci_high": 0.3, "display_low": None, "display_high": None}
    cat = rows.entry("cat", 0.05) | {"smoothed_frequency": 0.01, "smoothed_low": 0.02, "smoothed_high": 0.03}
    rows.write(tmp_path, "estimates.jsonl", [rows.estimate(of, at, [ant, bee, cat]) for at in range(2)])
    page = tree_of(page_of(tmp_path))
    latest = table(page, next(node.text for node in page.all("caption") if node.text.startswith("Shares of answers")))
    assert [row[0] for row in latest[1:]] == ["bee", "cat", "ant"]
    assert [row[1:3] for row in latest[1:]] == [
        ["10.0 %", "10.0 to 30.0 %"],
        ["5.0 %", "3.0 to 7.0 %"],
        ["0.7 %", "0.4 to 7.0 %"],
    ]
    figures = [node for node in page.all("figure") if node.attributes.get("id", "").startswith("part-1-trend-")]
    trends = [row[1:] for node in figures for row in table(node, "All windows")[1:]]
    for cells in [row[1:] for row in latest[1:]] + trends:
        for number, interval in zip(cells[::2], cells[1::2]):
            low, high = map(float, NUMBER.findall(interval.replace("below", "0 to")))
            assert low <= float(NUMBER.findall(number)[0]) <= high


def test_trends_of_each_value(tree: Node) -> None:
    figures = [node for node in tree.all("figure") if node.attributes.get("id", "").startswith("part-1-trend-")]
    assert [next(node.all("bdi")).text for node in figures] == ["bee", "ant", "dog", "cat"]
    (said,) = (node.attributes["aria-label"] for node in figures[0].all("div") if node.attributes.get("role") == "img")
    assert said.startswith("bee: ") and said.endswith("in 9 windows. It changed in Sat 11 Nov 2000.")
    assert all(len(list(node.all("svg"))) == 1 for node in figures)
    numbers = table(figures[0], "All windows")
    assert [row[0] for row in numbers[1:]][:4] == [
        "Mon 6 Nov 2000",
        "Tue 7 Nov 2000",
        "Wed 8 Nov 2000",
        "Thu 9 Nov 2000",
    ]
    assert numbers[4][1:] == ["\N{EN DASH}"] * 4  # suppressed
    assert numbers[-1][1:3] == ["50.0 %", "48.0 to 52.0 %"]


def test_the_first_sentence_says_what_this_is(tmp_path: Path) -> None:
    """The number of reports if there is a ledger; an address in the note is a link."""
    rows.survey(tmp_path, ["ant", "bee"], 2)
    note = "A trial: http://127.0.0.1:8000/"
    page = tree_of(page_of(tmp_path, "--note", note))
    first, *_ = [node.text for node in page.all("p")]
    said = (
        "Estimates from private reports of 1,980 answers, with intervals that contain the true figure in 95 % of cases."
    )
    assert first == said
    assert [node.attributes["href"] for node in page.all("a") if node.text.startswith("http")] == [note[9:]]


def test_the_whole_period_is_shown(survey: Path, tree: Node, tmp_path: Path) -> None:
    """The rows of ``uldp reestimate``; without them, and without stored counts, the page says what it would need."""
    assert "There is no row for the whole period" in tree.text
    of = rows.survey(tmp_path, ["ant", "bee"], 3)
    whole = rows.estimate(
        of, 0, [rows.entry("ant", 0.001, smooth=False), rows.entry("bee", 0.6, smooth=False)], num_reports=3000
    )
    whole["window_end"] = rows.span(2)["window_end"]
    rows.write(tmp_path, "totals.jsonl", [whole])
    page = tree_of(page_of(tmp_path))
    assert "The whole period: 6 Nov 2000 to 8 Nov 2000" in [node.text for node in page.all("h3")]
    assert table(page, "Shares of 3,000 answers in the whole period")[1:] == [
        ["bee", "60.0 %", "58.0 to 62.0 %", "yes"],
        ["ant", "0.1 %", "below 2.1 %", "no"],
    ]
    assert "There is no row for the whole period" not in page.text


def test_other_rows_of_the_whole_period_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows.survey(tmp_path, ["ant", "bee"], 3)
    (tmp_path / "totals.jsonl").write_text('{"fingerprint": "secret"}\n', encoding="utf-8")
    assert uldp.main(["report", str(tmp_path), "--output", str(tmp_path / "page.html")]) == 2
    said = capsys.readouterr().err
    assert said.endswith("totals.jsonl must contain rows of uldp reestimate --window all (the content is not shown)\n")
    assert "secret" not in said


def test_changes_unexplained_mass_ledger_and_runs(tree: Node) -> None:
    moved = "Shares moved, in percentage points: 'bee' +10.00 (+8.00 to +12.00)."
    assert table(tree, "Findings of the sentinels, latest first")[1:] == [["Sat 11 Nov 2000", "change", moved]]
    said = "In the latest window 25.0 % of answers (20.0 to 30.0 %) have a value that is on no list."
    assert said in tree.text
    ledger = ["survey", "10,000", "9,900", "0", "100", "malformed 100"]
    assert table(tree, "Reports by collection")[1:] == [ledger]
    assert "Balanced: received = accepted + duplicates + rejected" in tree.text
    ((run, *_, end, sentence),) = table(tree, "Starts of the job in this directory; times in UTC")[1:]
    assert (run, end, sentence) == (rows.RUN, "complete", "1000 received = 1000 accepted + 0 rejected")
    assert "9 ok : has numbers" in tree.text.replace("9  ok", "9 ok").replace("9 ok:", "9 ok :")
    assert "not enough data: fewer reports than the job's minimum" in tree.text


def test_not_enough_data(tmp_path: Path) -> None:
    of = rows.collection(["a", "b"])
    assert "No window has results yet." in tree_of(page_of(tmp_path)).text
    assert "The directory contains no run record." in tree_of(page_of(tmp_path)).text
    rows.write(tmp_path, "estimates.jsonl", [rows.estimate(of, 0, status="suppressed", num_reports=None)])
    said = tree_of(page_of(tmp_path)).text
    assert (
        "Not enough data. No window of this collection has numbers; the list of windows below gives the reasons."
        in said
    )
    assert "not known: no run record in the directory names the collection" in said
    assert "not shown: every window has too few" in said
    assert "No window was checked." in said
    (tmp_path / "c.json").write_text(json.dumps(of.to_json()), encoding="utf-8")
    assert "2 listed values" in tree_of(page_of(tmp_path, "--collection", str(tmp_path / "c.json"))).text


def test_one_window_and_one_for_everything(tmp_path: Path) -> None:
    rows.survey(tmp_path / "day", ["a", "b"], 1)
    assert "There is only one window, so there are no trends yet." in tree_of(page_of(tmp_path / "day")).text
    of = rows.collection(["a", "b"])
    rows.write(tmp_path / "all", "estimates.jsonl", [rows.estimate(of, None, rows.waves(["a", "b"], 0))])
    assert "The latest window with numbers: all reports" in tree_of(page_of(tmp_path / "all")).text


def test_only_what_was_watched_for_changes_explains_their_marks(tmp_path: Path) -> None:
    """One window is not called several."""
    of = rows.survey(tmp_path, ["a", "b"], 2)
    assert "Dotted vertical line" not in tree_of(page_of(tmp_path)).text
    rows.write(tmp_path, "health.jsonl", [rows.finding(of, 1, "Shares moved, in percentage points: 'a' +1.00.")])
    text = tree_of(page_of(tmp_path)).text
    assert "Dotted vertical line: the share changed" in text
    assert "One window was also judged against earlier ones." in text
    quiet = rows.finding(of, 1, "")
    rows.write(tmp_path, "health.jsonl", [quiet | {"findings": quiet["findings"][1:], "status": "ok"}])
    assert "No sentinel fired in the window." in tree_of(page_of(tmp_path)).text


def test_rows_of_no_candidates(tmp_path: Path) -> None:
    of = rows.collection(["a", "b"])
    rows.write(tmp_path, "estimates.jsonl", [rows.estimate(of, at) for at in range(2)])
    tree = tree_of(page_of(tmp_path, "--png", str(tmp_path / "p.png")))
    assert "This window has no shares, because the job had no list of candidates." in tree.text
    assert not list(tree.all("figure"))


def test_discovered_values_of_the_pane_that_counts(tmp_path: Path) -> None:
    of = rows.survey(tmp_path, ["a", "b"], 2)
    place = {"collection_id": of.id, "collection_version": 1, "fingerprint": of.fingerprint.hex(), "run": rows.RUN}

    def found(window: int, value: str, low: float, pane_index: int = 0, num_reports: int = 1000) -> dict[str, Any]:
        numbers = {"frequency": 0.2, "ci_low": low, "ci_high": 0.3, "q_value": 0.001, "num_reports": num_reports}
        return {**place, **rows.span(window), **numbers, "pane_index": pane_index, "value": value}

    lines = [found(0, "old", 0.1), found(1, "less", 0.15) | {"frequency": 0.19}, found(1, "more", 0.1)]
    lines.append(found(1, "other pane", 0.2, 1))
    lines.append(found(1, "same index, before a worker was killed", 0.2, num_reports=900))
    rows.write(tmp_path, "discovered.jsonl", lines)
    tree = tree_of(page_of(tmp_path))
    cells = table(tree, "Frequent unlisted values; at most 5 % are expected not to occur")
    assert cells[1:] == [["more", "20.0 %", "10.0 to 30.0 %", "0.001"], ["less", "19.0 %", "15.0 to 30.0 %", "0.001"]]
    assert "Discovered values: Tue 7 Nov 2000" in tree.text


def test_truth_and_coverage(tmp_path: Path) -> None:
    """In the first window a and b have what the rows say; in the second one a is far off."""
    values = ["a", "b", "c"]
    of = rows.collection(values, sensitive=["c"])
    rows.record(tmp_path, of)
    said = [rows.entry("a", 0.5), rows.entry("b", 0.25), rows.entry("c", 0.25, 0.2)]
    rows.write(tmp_path, "estimates.jsonl", [rows.estimate(of, at, said) for at in range(2)])
    lines = [(value, rows.BEGAN // 1000 + 86_400 * at) for at, held in enumerate(("aabc", "bbbc")) for value in held]
    text = "value,event_time\n" + "".join(f"{value},{time}\n" for value, time in lines)
    (tmp_path / "truth.csv").write_text(text, encoding="utf-8")
    tree = tree_of(page_of(tmp_path, "--truth", str(tmp_path / "truth.csv")))
    cells = [[row[0], row[4], *row[-2:]] for row in table(tree, "Shares of answers, Tue 7 Nov 2000")[1:]]
    assert cells == [["a", "no", "0.0 %", "no"], ["b", "no", "75.0 %", "no"], ["c", "yes", "25.0 %", "yes"]]
    caption = "Intervals that contain the truth, over all values in all windows shown; nominal: 95 %"
    assert table(tree, caption)[1:] == [
        ["each window alone, sensitive values", "2", "2", "100.0 %"],
        ["each window alone, other values", "2", "4", "50.0 %"],
        ["smoothed, sensitive values", "2", "2", "100.0 %"],
        ["smoothed, other values", "2", "4", "50.0 %"],
    ]


def test_two_versions_side_by_side_in_avro(tmp_path: Path) -> None:
    """Where there are no JSON lines; windows of the versions take turns."""
    schema = fastavro.parse_schema(load("windowed_estimate.avsc"))
    first, second = rows.collection(["a", "b"]), rows.collection(["a", "b"], epsilon=2.0)
    lines = []
    for at, of in itertools.product(range(2), (first, second)):
        row = rows.estimate(of, at, rows.waves(["a", "b"], at), software="x", unexplained_standard_error=None)
        times = {name: moment_of(row[name]) for name in ("window_start", "window_end")}
        lines.append(row | times | {"redistributed_mass": None, "fit_p_value": None, "unexplained_status": None})
    with (tmp_path / "estimates.avro").open("wb") as file:
        fastavro.writer(file, schema, lines)
    rows.record(tmp_path, first, second)
    tree = tree_of(page_of(tmp_path))
    assert [node.text for node in tree.all("h2")][:2] == ["survey , version 1"] * 2
    assert tree.text.count("2,000; 1,000 in each of the 2 windows that show the number") == 2


# ------------------------------------------------------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    ("values", "windows"), [(1, 1), (50, 410), (2_000, 1), pytest.param(100_000, 1, marks=pytest.mark.slow)]
)
def test_pages_of_any_size_are_bounded(values: int, windows: int, tmp_path: Path) -> None:
    """And say what they leave out. One listed value is no question, so a candidate of its own stands for it."""
    names = [f"value {at}" for at in range(values)]
    of = rows.survey(tmp_path, names if values > 1 else ["value 0", "other"], windows)
    if values == 1:
        rows.write(tmp_path, "estimates.jsonl", [rows.estimate(of, 0, [rows.entry("value 0", 0.5)])])
    page = page_of(tmp_path)
    assert len(page) < 2_000_000
    tree = tree_of(page)
    cells = table(tree, next(node.text for node in tree.all("caption") if node.text.startswith("Shares of answers")))
    assert len(cells) - 1 == min(values, 200)
    said = tree.text
    assert (f"Not shown: {values - 200:,} further values" in said) == (values > 200)
    assert ("Charts and tables show the latest 400 windows; 10 earlier ones are left out." in said) == (windows > 400)
    assert ("Not shown: 26 values without a chart of their own." in said) == (values == 50)
    assert ("The latest 31 of 400 windows" in said) == (windows > 31)


def test_limits_can_be_given(survey: Path) -> None:
    tree = tree_of(page_of(survey, "--trends=1", "--latest_windows=5", "--rows=2", "--title=<Own> title"))
    assert next(tree.all("h1")).text == "<Own> title"
    assert len(table(tree, "Shares of answers, Wed 15 Nov 2000")) == 3
    assert "Not shown: 2 further values, none of them larger; those in the row add up to 20.0 %" in tree.text
    assert "Charts and tables show the latest 5 windows; 5 earlier ones are left out." in tree.text
    assert tree.text.count("Numbers of ") == 1


def test_values_that_are_charted_first(survey: Path) -> None:
    tree = tree_of(page_of(survey, "--trends=2", "--rows=1", "--value=cat", "--value=elk"))
    figures = [node for node in tree.all("figure") if node.attributes.get("id", "").startswith("part-1-trend-")]
    assert [next(node.all("bdi")).text for node in figures] == ["cat", "bee"]
    assert "Requested, but not in the latest row with numbers, or left out for lack of space: elk." in tree.text
    assert "Not shown: 2 values without a chart of their own." in tree.text


def test_a_picture(survey: Path, tmp_path: Path) -> None:
    assert uldp.main(["report", str(survey), "--png", str(tmp_path / "p.png")]) == 0
    content = (tmp_path / "p.png").read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", content[16:24])
    assert 800 < width < 3000 and 400 < height < 3000
    (tmp_path / "empty").mkdir()
    assert uldp.main(["report", str(tmp_path / "empty"), "--png", str(tmp_path / "e.png")]) == 0
    assert len((tmp_path / "e.png").read_bytes()) > 5_000


def test_the_picture_as_svg_explains_itself(survey: Path, tmp_path: Path) -> None:
    """Title, what is shown, the version, and a legend of what is drawn and of nothing else."""
    assert uldp.main(["report", str(survey), "--svg", str(tmp_path / "p.svg")]) == 0
    root = ElementTree.parse(tmp_path / "p.svg").getroot()  # we wrote it
    texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "Estimated shares of answers with 95 % intervals, adjusted for showing the largest values" in texts
    assert {"latest window", "each window alone"} <= set(texts)
    assert "truth" not in texts
    assert any(", version 1: " in text for text in texts)


# --------------------------------------------------------------------------------------------- harm, and who reads it


def hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def assert_scripts_are_its_own(page: Node) -> None:
    """Those of the package, and data that no browser runs."""
    files = [Path(web_page.__file__).with_name(name).read_text("utf-8") for name in web_page._SCRIPTS]
    scripts = list(page.all("script"))
    assert [node.children for node in scripts if not node.attributes] == [[f"\n{content}"] for content in files]
    for node in scripts:
        if node.attributes:
            assert set(node.attributes) == {"type", "id"} and node.attributes["type"] == "application/json"
            assert json.loads("".join(map(str, node.children)))["values"]


@pytest.fixture(scope="module")
def harmful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("harmful")
    of = rows.survey(folder, rows.HARMFUL, 3)
    rows.write(folder, "health.jsonl", [rows.finding(of, 1, "<script>alert(2)</script>", name="<b>")])
    return folder


def test_values_do_no_harm(harmful: Path) -> None:
    """They are there as texts; no element, attribute or address is."""
    tree = tree_of(page_of(harmful, "--title=</title><script>alert(3)</script>", "--note=<img src=x onerror=alert(4)>"))
    assert "<img src=x onerror=alert(4)>" in next(tree.all("header")).text
    names = {node.name for node in tree.all()}
    assert_scripts_are_its_own(tree)
    assert not names & {"img", "iframe", "object", "embed", "form", "link", "base", "image", "use"}
    for node in tree.all():
        assert not [name for name in node.attributes if name.startswith("on")]
        for name in ("href", "src", "action", "xlink:href"):
            assert node.attributes.get(name, "#").startswith("#")
    cells = [row[0] for row in table(tree, "Shares of answers, Wed 8 Nov 2000")]
    assert {
        "<script>alert(1)</script>",
        "{{ 7 * 7 }}",
        "(empty)",
        "(white space)",
        "a\ufffdb\ufffd[31mc\ufffdd",
    } <= set(cells)
    assert max(map(len, cells)) == 121  # 120 letters, in two elements


def test_no_text_of_any_row_is_more_than_a_text(tmp_path: Path) -> None:
    """Ids, reasons, states and sentences come from files too, and whoever writes these may mean harm."""
    evil = (
        "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"' onmouseover=alert(3) \u202e\x1b]0;\x07\x00"
    )
    of = rows.survey(tmp_path, ["ant", evil], 3)
    place = {"collection_id": evil, "estimator": evil, "pane_timing": evil, "interval": evil}
    waves = [rows.estimate(of, at, rows.waves(["ant", evil], at), **place) for at in range(2)]
    rows.write(tmp_path, "estimates.jsonl", [*waves, rows.estimate(of, 2, **place | {"status": evil})])
    rows.write(tmp_path, "health.jsonl", [rows.finding(of, 1, f"Shares moved: {evil!r}{evil}", name=evil)])
    numbers = {"received": 5, "accepted": 0, "duplicates": 0, "rejected": {evil: 5}, "in_transit": 0}
    rows.write(tmp_path, "ledger.jsonl", [{"collection_id": evil, "collection_version": 1, "run": rows.RUN, **numbers}])
    ledger = tmp_path / "ledger.jsonl"
    ledger.write_text(json.dumps(json.loads(ledger.read_text("utf-8")) | rows.span(0)), encoding="utf-8")
    record = tmp_path / f"run-{rows.RUN}.json"
    told = {"end": evil, "sentence": evil}
    record.write_text(json.dumps(json.loads(record.read_text("utf-8")) | told), encoding="utf-8")
    page = page_of(tmp_path)
    tree = tree_of(page)
    assert_scripts_are_its_own(tree)
    assert not {node.name for node in tree.all()} & {"img"}
    assert not [node for node in tree.all() if any(name.startswith("on") for name in node.attributes)]
    assert not set(page) & set("\u202e\x1b\x07\x00")
    assert page.count("alert(1)") > 8


def test_nothing_is_loaded(survey: Path, harmful: Path) -> None:
    """The only addresses are names of XML; the page itself forbids everything else but pictures that it has drawn."""
    for folder in (survey, harmful):
        page = page_of(folder)
        assert set(re.findall(r"https?://[^\s\"<]*", page)) == {
            "http://www.w3.org/2000/svg",
            "http://www.w3.org/1999/xlink",
        }
        assert not re.search(r"url\(|@import", page)
        (style,) = tree_of(page).all("style")
        scripts = [node for node in tree_of(page).all("script") if not node.attributes]
        own = [hash_of("".join(map(str, node.children))) for node in (style, *scripts)]
        (policy,) = (
            node.attributes["content"]
            for node in tree_of(page).all("meta")
            if node.attributes.get("http-equiv") == "Content-Security-Policy"
        )
        assert policy == (
            f"default-src 'none'; style-src {own[0]}; script-src {' '.join(own[1:])}; img-src blob:; "
            "base-uri 'none'; form-action 'none'"
        )


def test_readers_find_their_way(tree: Node) -> None:
    """Landmarks, headings without gaps, captions, names of scrolling regions, unique ids, targets that exist."""
    assert next(tree.all("html")).attributes["lang"] == "en"
    assert [len(list(tree.all(name))) for name in ("h1", "header", "nav", "main", "footer")] == [1] * 5
    levels = [int(node.name[1]) for node in tree.all("h1", "h2", "h3", "h4")]
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    for node in tree.all("table"):
        assert len(list(node.all("caption"))) == 1
        assert all(cell.attributes.get("scope") in ("row", "col") for cell in node.all("th"))
    ids = [node.attributes["id"] for node in tree.all() if "id" in node.attributes]
    assert len(ids) == len(set(ids))
    for node in tree.all():
        if "aria-labelledby" in node.attributes:
            assert set(node.attributes["aria-labelledby"].split()) <= set(ids)
        if node.attributes.get("class") == "wide":
            assert node.attributes["tabindex"] == "0" and node.attributes["role"] == "region"
        if node.attributes.get("href", "").startswith("#"):
            assert node.attributes["href"][1:] in ids
    pictures = [node for node in tree.all("div") if node.attributes.get("class") == "chart"]
    assert pictures and all(node.attributes["role"] == "img" and node.attributes["aria-label"] for node in pictures)


def luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """As WCAG 2.2 defines it."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_in_the_light_and_in_the_dark() -> None:
    """WCAG 2.2 AA: 4.5 for text, 3 for what is drawn; and every colour of charts has one for dark pages."""
    style = Path(web_page.__file__).with_name("page.css").read_text("utf-8")
    light, _, dark = style.partition("prefers-color-scheme: dark")
    for part in (light, dark):
        colour = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", part))
        for name in ("ink", "soft", "link", "smoothed", "truth"):
            assert contrast(colour[name], colour["paper"]) >= 4.5, name
        assert contrast(colour["ink"], colour["warn"]) >= 4.5
        assert contrast(colour["plain"], colour["paper"]) >= 3
    for name in (colours.PLAIN, colours.SMOOTHED, colours.TRUTH, colours.INK):
        assert contrast(name, colours.PAPER) >= 3
    for name in (colours.PLAIN, colours.SMOOTHED, colours.TRUTH, colours.INK, colours.LINE):
        assert f'"{name}"' in dark


@needs_chromium
def test_nothing_sticks_out_in_a_browser(survey: Path, harmful: Path, tmp_path: Path) -> None:
    """In frames of four widths, without the policy: harm would be done there."""
    widths = (400, 800, 1200, 1600)
    measure = "[it.innerWidth, it.document.documentElement.scrollWidth, it.document.scripts.length]"
    for folder in (survey, harmful):
        page = re.sub(r"<meta http-equiv=.*?>", "", page_of(folder))
        frames = "".join(
            f'<iframe style="width: {width}px; height: 900px; border: 0" srcdoc="{html.escape(page)}"></iframe>'
            for width in widths
        )
        script = f"onload = () => {{ document.title = Array.from(frames, (it) => {measure}).join(';') }}"
        (tmp_path / "frame.html").write_text(f"<title></title>{frames}<script>{script}</script>", encoding="utf-8")
        (said,) = re.findall(r"<title>([\d,;]*)</title>", chromium(tmp_path / "frame.html", tmp_path / "profile"))
        for width, numbers in zip(widths, said.split(";")):
            inner, needed, scripts = map(int, numbers.split(","))
            assert inner == width and scripts == len(list(tree_of(page).all("script")))
            assert needed <= inner


# ----------------------------------------------------------------------------------------------------- words, refusals


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("", "the following arguments are required: DIR"),
        ("{0}", "one of --output, --png, --svg, --charts and --follow must be given, got none"),
        ("{0}/none --output x.html", "DIR must be a directory, got '{0}/none'"),
        ("{0} --output x.html --serve 0", "--serve needs --follow, got DIR alone"),
        ("{0} --output x.html --host ::1", "--host needs --follow, got DIR alone"),
        ("{0} --follow --serve 0 --output x.html", "--output must not be given with --follow, got both"),
        ("{0} --follow --serve 0 --png x.png", "--png must not be given with --follow, got both"),
        ("{0} --follow --serve 0 --svg x.svg", "--svg must not be given with --follow, got both"),
        ("{0} --follow", "--follow needs --serve, got none"),
        ("{0} --follow --serve 65536", "--serve must be a port from 0 to 65535, got '65536'"),
        ("{0} --follow --serve=-1", "--serve must be a port from 0 to 65535, got '-1'"),
        ("{0} --output x.html --rows 0", "--rows must be a whole number above 0, got '0'"),
        (
            "{0}/rows --output {0}/x.html --truth {0}/times.csv",
            "{0}/times.csv must have the column event_time for rows with windows, got none",
        ),
        ("{0} --output x.html --truth {0}/empty.csv", "{0}/empty.csv must have at least one value, got none"),
    ],
)
def test_wrong_command_line(options: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.csv").write_text("value\n", encoding="utf-8")
    (tmp_path / "times.csv").write_text("value\na\n", encoding="utf-8")
    rows.survey(tmp_path / "rows", ["a", "b"], 1)
    assert uldp.main(["report", *options.format(tmp_path).split()]) == 2
    assert capsys.readouterr().err == f"report: {sentence.format(tmp_path)}\n"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[1]\n", "{0} must contain rows of uldp estimate (the content is not shown)"),
        ("{{\n", "{0} must contain rows of uldp estimate (the content is not shown)"),
        ('{{"collection_id": "a"}}\n', "{0} must contain rows of estimates, got a row without collection_version"),
    ],
)
def test_files_that_have_other_rows(
    content: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "estimates.jsonl"
    path.write_text(content.format(), encoding="utf-8")
    assert uldp.main(["report", str(tmp_path), "--output", str(tmp_path / "x.html")]) == 2
    assert capsys.readouterr().err == f"report: {sentence.format(path)}\n"
    assert not (tmp_path / "x.html").exists()


def test_values_in_public_blocks_have_their_share_of_the_block(tmp_path: Path) -> None:
    """With a dash of nothing where nobody reported from a block; other rows have no such columns."""
    of, ends = rows.collection(["a", "b", "c"]), ("low", "high", "display_low", "display_high")
    told = [("a", "x<b>", 0.7), ("b", "x<b>", 0.3), ("c", "y", None)]
    in_blocks = [
        {"value": value, "block": block, "num_reports": 900, "share": share}
        | {name: None if share is None else share + (0.1 if "high" in name else -0.1) for name in ends}
        for value, block, share in told
    ]
    entries = [rows.entry(value, share or 0.0) for value, _, share in told]
    rows.write(tmp_path / "blocks", "estimates.jsonl", [rows.estimate(of, 0, entries, in_blocks=in_blocks)])
    rows.write(tmp_path / "plain", "estimates.jsonl", [rows.estimate(of, 0, entries)])
    with_blocks, plain = (
        next(texts_of(table) for table in tree_of(page_of(tmp_path / name)).all("table"))
        for name in ("blocks", "plain")
    )
    at = with_blocks[0].index("block")
    assert with_blocks[0][at : at + 3] == ["block", "share in block", "95 % interval in block"]
    assert [line[at : at + 2] for line in with_blocks[1:]] == [
        ["x<b>", "70.0 %"],
        ["x<b>", "30.0 %"],
        ["y", "\N{EN DASH}"],
    ]
    assert with_blocks[1][at + 2] == "60.0 to 80.0 %"
    assert not {"block", "share in block"} & set(plain[0])
