"""Groups on the page of a directory: the latest window, value by value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from packages.report.tests.support.page_tools import choose, names, saved
from packages.report.tests.support.report_page import page_of
from tests.rigs import axe
from tests.support import report_rows as rows
from tests.support.browser import Browser, browser, needs_browser
from tests.support.html_tree import Node, texts_of, tree_of
from tests.support.messages_cases import write_files
from uldp_transforms.jobs import estimate, uldp
from uldp_transforms_report.colours import GROUPS
from uldp_transforms_report.groups.group_labels import GroupLabels

VALUE = "<script>alert(1)</script>"
HOSTILE = f"arm={VALUE}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two windows of two values; in the second one, two groups have numbers and a third one has none."""
    of = rows.survey(tmp_path, ["ant", "bee"], 2)
    shares = [rows.entry("ant", 0.6), rows.entry("bee", 0.4)]
    own = [rows.entry("ant", 0.7, 0.03), rows.entry("bee", 0.3, 0.03)]
    written = [
        *(rows.estimate(of, at, shares, group="") for at in range(2)),
        rows.estimate(of, 0, own, group="arm=old", num_reports=5),
        rows.estimate(of, 1, own, group="arm=new", num_reports=300),
        rows.estimate(of, 1, shares, group=HOSTILE, num_reports=700),
        rows.estimate(of, 1, [], group="arm=few", num_reports=None, status="suppressed"),
    ]
    rows.write(tmp_path, "estimates.jsonl", written)
    return tmp_path


def cells(tree: Node, table: str = "part-1-groups-table") -> list[list[str]]:
    found = [one for one in tree.all("table") if one.attributes.get("id") == table]
    return [line for one in found for line in texts_of(one)[1:]]


def test_groups_of_a_value_stand_together(folder: Path) -> None:
    tree = tree_of(page_of(folder))
    assert cells(tree) == [
        ["ant", VALUE, "60.0 %", "58.0 to 62.0 %", "700"],
        ["ant", "new", "70.0 %", "64.1 to 75.9 %", "300"],
        ["bee", VALUE, "40.0 %", "38.0 to 42.0 %", "700"],
        ["bee", "new", "30.0 %", "24.1 to 35.9 %", "300"],
    ]
    assert "By arm: Tue 7 Nov 2000" in tree.text
    assert (
        "Without numbers (not enough data: fewer reports than the job's minimum): few ." in tree.text
    )  # as text of elements


CALLED: list[tuple[list[str], str, list[str]]] = [
    (["from_airport=EWR", "from_airport=JFK"], "from_airport", ["EWR", "JFK"]),
    (["at=EWR,class=first", "at=JFK,class=a=b, c"], "at, class", ["EWR, first", "JFK, a=b, c"]),
    (["ill=yes,old=no", "ill=no,old=no"], "group", []),  # no what?
    (["at=a, b,in=c", "at=a,in=b, c"], "group", []),  # two groups with one label
    (["at=a", "at=a,in=b"], "group", []),
    (["at=a", "elsewhere"], "group", []),
    ([], "group", []),
]


@pytest.mark.parametrize(("groups", "head", "labels"), CALLED)
def test_groups_are_called_by_their_values_if_these_tell_their_dimensions(
    groups: list[str], head: str, labels: list[str]
) -> None:
    found = GroupLabels.of(groups)
    assert found.head == head and found.labels == dict(zip(groups, labels or groups))


def test_two_groups_are_compared(folder: Path) -> None:
    """The last one minus the one before; both intervals hold at once with 95 % confidence."""
    page = tree_of(page_of(folder))
    half = 100 * 2.241402727604947 * (0.03**2 + 0.01**2) ** 0.5  # the quantile of 1 - 0.05 / 2 / 2
    [caption] = [node.text for node in page.all("caption") if node.text.startswith("Differences: new")]
    assert caption == f"Differences: new minus {VALUE}"
    assert cells(page, "part-1-groups-compare-table") == [
        ["ant", "+10.0", f"{10 - half:+.1f} to {10 + half:+.1f}", "yes"],
        ["bee", "-10.0", f"{-10 - half:+.1f} to {-10 + half:+.1f}", "yes"],
    ]


def test_groups_of_the_whole_period(folder: Path) -> None:
    """As ``uldp reestimate`` writes them, beside those of the latest window; a group may begin later than others."""
    of = rows.collection(["ant", "bee"])
    shares = [rows.entry("ant", 0.6), rows.entry("bee", 0.4)]
    period = {"window_start": rows.span(0)["window_start"], "window_end": rows.span(1)["window_end"]}
    written = [rows.estimate(of, None, shares, group=group) | period for group in ("", "arm=new", "arm=old")]
    written[1]["window_start"] = rows.span(1)["window_start"]
    rows.write(folder, "totals.jsonl", written)
    page = tree_of(page_of(folder))
    assert "By arm: the whole period, 6 Nov 2000 to 7 Nov 2000" in page.text
    assert "if 20 groups are equal, the interval of the largest holds in only 60 of 100 cases" in page.text
    assert round(100 * 0.975**20) == 60
    assert [line[1] for line in cells(page, "part-1-groups-2-table")] == ["new", "old"] * 2
    assert [line[1] for line in cells(page, "part-1-groups-2-compare-table")] == ["0.0", "0.0"]
    assert len(cells(page)) == 4


@needs_browser
def test_groups_are_searched_sorted_compared_and_saved(folder: Path) -> None:
    page_of(folder)
    with browser(folder) as window:
        window.open((folder / "page.html").as_uri())
        groups, compared = "#part-1-groups-table", "#part-1-groups-compare-table"
        window.click("details:has(> [data-find='part-1-groups-table']) summary")
        choose(window, "[data-find='part-1-groups-table'] input[type=search]", "new")
        assert names(window, groups) == ["ant", "bee"]
        saved_rows = json.loads(saved(window, f"[data-table='{groups[1:]}'] [data-form=json]"))
        assert [(one["value"], one["group"], one["low"]) for one in saved_rows] == [
            ("ant", "arm=new", pytest.approx(0.6412)),
            ("bee", "arm=new", pytest.approx(0.2412)),
        ]
        window.click(f"{groups} th[data-name=share] .sort")
        assert names(window, groups) == ["ant", "bee"]
        before = window.text(compared)
        choose(window, "[data-compare='part-1-groups-compare-table'] label:nth-child(1) select", "0")
        assert set(window.text(f"{compared} td:nth-child(3)")) == {"\N{EN DASH}"}  # a group and itself
        choose(window, "[data-compare='part-1-groups-compare-table'] label:nth-child(2) select", "1")
        assert window.text(f"{compared} td:nth-child(3)") == "-10.0"
        choose(window, "[data-compare='part-1-groups-compare-table'] label:nth-child(1) select", "1")
        choose(window, "[data-compare='part-1-groups-compare-table'] label:nth-child(2) select", "0")
        assert window.text(compared) == before


def test_only_a_section_with_groups_without_a_colour_explains_theirs(tmp_path: Path) -> None:
    """Colours are given in the order of all names of the page."""
    first, second = (rows.collection(["ant", "bee"], epsilon=epsilon) for epsilon in (1.0, 2.0))
    names = {first: [f"arm={letter}" for letter in "abcdef"], second: ["arm=z"]}
    told = [rows.estimate(of, 0, [rows.entry("ant", 0.5)], group=name) for of in names for name in ["", *names[of]]]
    rows.write(tmp_path, "estimates.jsonl", told)
    keys = [key.text for key in tree_of(page_of(tmp_path)).all("ul") if "Bar: " in key.text]
    assert ["further groups" in key for key in keys] == ["b" not in key.split() for key in keys] and len(keys) == 2


def test_a_page_without_groups_has_no_table_of_them(tmp_path: Path) -> None:
    rows.survey(tmp_path, ["ant", "bee"], 2)
    assert cells(tree_of(page_of(tmp_path))) == []


def test_the_page_has_what_the_job_estimates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares of names and figures of numbers, from reports to the page."""
    monkeypatch.chdir(tmp_path)
    arms = [{"name": "arm", "values": ["control", "new"]}]
    krr = {"id": "krr", "epsilon": 2.0}
    closed = {"id": "closed", "values": ["well", "badly"]}
    ordered = {"id": "ordered", "low": 0, "high": 8, "num_bins": 8, "unit": "h"}
    forms = {
        "names": {"alphabet": closed, "mechanism": krr},
        "numbers": {"alphabet": ordered, "mechanism": {"id": "sw", "epsilon": 2.0}},
    }
    for name, form in forms.items():
        write_files(tmp_path, {f"{name}.json": json.dumps({"id": name, "version": 1, "dimensions": arms} | form)})
        value = ("well", "badly") if name == "names" else ("3", "5")
        lines = [f"2026-03-01T12:00:00Z,{value[at % 3 == 0]},{arms[0]['values'][at % 2]}" for at in range(600)]
        Path("V.csv").write_text("\n".join(["event_time,value,arm", *lines]), encoding="utf-8")
        collection = ["--collection", f"{name}.json"]
        options = ["--values", "V.csv", "--output", f"{name}.avro", "--form", "packed", "--seed", "1"]
        assert uldp.main(["simulate", *collection, *options]) == 0
        options = ["--input", f"{name}.avro", "--output", name, "--window", "1d", "--by", "arm"]
        assert estimate.main([*collection, *options]) == 0
        found = cells(tree_of(page_of(tmp_path / name)))
        [own] = [row for row in _rows(tmp_path / name) if row["group"] == "arm=new"]
        of_group = [line for line in found if line[1] == "new"]
        assert len(of_group) == len(found) / 2 and {line[4] for line in of_group} == {f"{own['num_reports']}"}
        if name == "names":
            shares = {entry["value"]: entry["frequency"] for entry in own["estimates"]}
            assert {line[0]: float(line[2].removesuffix(" %")) for line in of_group} == {
                value: pytest.approx(100 * share, abs=0.51) for value, share in shares.items()
            }
        else:
            assert [line[0] for line in of_group] == ["mean", "p10", "median", "p90", "sum"]
            assert float(of_group[0][2]) == pytest.approx(own["numbers"]["mean"]["value"], abs=0.051)


def _rows(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "estimates.jsonl").read_text("utf-8").splitlines()]


@needs_browser
@pytest.mark.skipif(axe.missing() is not None, reason=str(axe.missing()))
def test_axe_finds_no_violation(folder: Path) -> None:
    page_of(folder)
    with browser(folder) as window:
        _look(window, folder)


def _look(window: Browser, folder: Path) -> None:
    window.open((folder / "page.html").as_uri())
    for width in (1280, 400):
        window.resize(width, 1000)
        assert window.run("return document.documentElement.scrollWidth <= window.innerWidth")
        window.run(
            axe.SCRIPT.read_text("utf-8") + "; axe.run().then(found => { window.found = { all: found.violations } })"
        )
        assert window.wait_for("return window.found")["all"] == []


def test_a_group_has_one_colour_in_the_whole_page(tmp_path: Path) -> None:
    """In keys, tables and charts, although the latest window does not have the first group."""
    of = rows.survey(tmp_path, ["ant", "bee"], 3)
    shares = [rows.entry("ant", 0.6), rows.entry("bee", 0.4)]
    groups = {"arm=a": (0, 1), "arm=b": (0, 1, 2), "arm=c": (0, 1, 2)}
    places = [(at, group) for group, windows in groups.items() for at in windows]
    rows.write(
        tmp_path,
        "estimates.jsonl",
        [rows.estimate(of, at, shares, group=group) for at, group in [*((at, "") for at in range(3)), *places]],
    )
    main = tree_of(page_of(tmp_path))
    found: set[tuple[str, str, str]] = set()
    for item in main.all("li"):
        found |= {("key", item.text.strip(), path.attributes["fill"]) for path in item.all("path")}
    for table in main.all("table"):
        for path in table.all("path"):
            found |= {("table", title.text.split(":")[0], path.attributes["fill"]) for title in path.all("title")}
    for figure in main.all("figure"):
        drawn = {shape.attributes.get("fill") for shape in figure.all("path")} & set(GROUPS)
        found |= {("chart", next(figure.all("strong")).text, str(colour)) for colour in drawn}
    first, second, third = list(GROUPS)[:3]
    assert found == {
        *(("chart", name, colour) for name, colour in zip("abc", (first, second, third))),
        *((where, name, colour) for where in ("key", "table") for name, colour in zip("bc", (second, third))),
    }


@needs_browser
def test_long_names_of_groups_fit(tmp_path: Path) -> None:
    """In heads of columns, in lists to choose from, and in heads of charts."""
    of = rows.survey(tmp_path, ["y" * 200, "b"], 2)
    shares = [rows.entry("y" * 200, 0.6), rows.entry("b", 0.4)]
    groups = ("", "arm=new", f"arm={'x' * 250}")
    rows.write(
        tmp_path, "estimates.jsonl", [rows.estimate(of, at, shares, group=group) for group in groups for at in (0, 1)]
    )
    page_of(tmp_path)
    with browser(tmp_path) as window:
        window.open((tmp_path / "page.html").as_uri())
        for width in (1280, 400):
            window.resize(width, 1000)
            assert window.run("return document.documentElement.scrollWidth <= window.innerWidth")
        window.resize(1280, 1000)
        table = "document.querySelector('#part-1-groups-dots-table').parentElement"
        assert window.run(f"return {table}.scrollWidth <= {table}.clientWidth")
