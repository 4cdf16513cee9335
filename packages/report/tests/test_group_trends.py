"""Charts of groups over the windows: whose, of which figures, in which colours, beside everybody."""

from __future__ import annotations

from pathlib import Path

import pytest

from packages.report.tests.support.report_page import page_of
from tests.support import report_rows as rows
from tests.support.html_tree import tree_of
from uldp_transforms_report import colours
from uldp_transforms_report.gathering import Asked, gather
from uldp_transforms_report.trends import group_trends

GROUPS = {"arm=new": (0.7, 900), "arm=old": (0.5, 300), "arm=<b>": (0.2, 10)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four windows of five values in three groups; the smallest one has numbers in two windows."""
    of = rows.survey(tmp_path, [*"abcde"], 4)
    written = []
    for at in range(4):
        shares = dict(zip("abcde", (0.5, 0.25, 0.15, 0.06, 0.04)))
        written.append(rows.estimate(of, at, [rows.entry(*one) for one in shares.items()], group=""))
        for group, (share, number) in GROUPS.items():
            told = [rows.entry("a", share), rows.entry("b", 0.9 - share), rows.entry("e", 0.1)]
            status = {} if number > 10 or at > 1 else {"status": "suppressed"}
            written.append(rows.estimate(of, at, told, group=group, num_reports=number, **status))
    rows.write(tmp_path, "estimates.jsonl", written)
    return tmp_path


def test_the_first_values_have_charts_of_each_group(folder: Path) -> None:
    """In order of the page, in the windows of everybody; of a window without numbers nothing is drawn."""
    [part] = gather(Asked(directory=str(folder), title="T")).parts
    assert [of.name for of in part.group_trends] == ["a", "b"]  # no group has the third value
    shares = part.group_trends[0].trends
    assert [*shares] == sorted(GROUPS) and part.group_trends[0].left_out == 0
    assert shares["arm=new"].value.tolist() == [0.7] * 4
    assert shares["arm=<b>"].value[2:].tolist() == [0.2] * 2 and shares["arm=<b>"].value[:2].tolist() != [0.2] * 2
    everybody = part.everybody("a")
    assert everybody is not None and everybody.value.tolist() == [0.5] * 4 and part.everybody("x") is None


def test_the_largest_groups_have_charts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_trends, "MOST", 2)
    [part] = gather(Asked(directory=str(folder), title="T")).parts
    assert [(*of.trends, of.left_out) for of in part.group_trends] == [("arm=new", "arm=old", 1)] * 2
    text = tree_of(page_of(folder)).text
    assert "Not shown: 1 groups, which have fewer reports" in text and "By arm, over the windows" in text


def test_groups_have_charts_if_two_windows_have_numbers(tmp_path: Path) -> None:
    of = rows.survey(tmp_path, ["a", "b"], 2)
    one = [rows.entry("a", 0.5)]
    told = [rows.estimate(of, at, one, group="") for at in range(2)]
    rows.write(tmp_path, "estimates.jsonl", [*told, rows.estimate(of, 1, one, group="arm=new", num_reports=9)])
    [part] = gather(Asked(directory=str(tmp_path), title="T")).parts
    assert part.group_trends == [] and "over the windows" not in page_of(tmp_path)


def test_a_group_has_its_colour_in_all_its_charts(folder: Path) -> None:
    """And everybody is a grey line in each."""
    page = page_of(folder)
    drawn = [part.partition("</figure>")[0] for part in page.split('<figure id="part-1-group-trends-')[1:]]
    assert len(drawn) == 6
    own = colours.colours_of_groups(GROUPS)
    for at, chart in enumerate(drawn):
        of = own[sorted(GROUPS)[at % 3]]
        assert f'stroke="{of}"' in chart and f'fill="{of}"' in chart
        assert not [other for other in own.values() if other != of and other in chart]
        assert chart.count(f'stroke="{colours.PLAIN}"') == 1
        assert "<b>" not in chart.replace("<bdi>", "") and "6 Nov 2000" in chart


def test_the_numbers_of_each_chart_can_be_taken_away(folder: Path) -> None:
    """The menu of a chart saves the table below it, with the windows in which the group has numbers."""
    tree = tree_of(page_of(folder))
    menus = [
        menu for menu in tree.all("details") if "part-1-group-trends-" in (menu.attributes.get("data-picture", ""))
    ]
    assert len(menus) == 6
    tables = {table.attributes.get("id"): table for table in tree.all("table")}
    shown = [tables[menu.attributes.get("data-table")].text for menu in menus]
    assert "Wed 8 Nov 2000 70.0 %" in " ".join(shown[1].split()) and "Mon 6 Nov 2000 \N{EN DASH}" in " ".join(
        shown[0].split()
    )
