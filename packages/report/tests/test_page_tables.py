"""Tables of a page as data: axes, pictures of rows, and which columns are shown."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from packages.report.tests.support.script_pages import SCRIPT, island, table
from tests.support.page_scripts import needs_node, run
from tests.support.tolerance import generator
from uldp_transforms.rows.figures.figure import Figure
from uldp_transforms_report.colours import GROUPS, PLAIN
from uldp_transforms_report.differences import Panel
from uldp_transforms_report.groups.group_facts import GroupLine, GroupPart
from uldp_transforms_report.groups.group_labels import GroupLabels
from uldp_transforms_report.groups.group_tables import group_dots_table, shape_of
from uldp_transforms_report.levels import USUAL
from uldp_transforms_report.tables import columns as of
from uldp_transforms_report.tables.axis import (
    Axis,
    axis_of_differences,
    axis_of_numbers,
    axis_of_shares,
    scales_of,
    step_of,
)
from uldp_transforms_report.tables.drawings import drawn_differences, drawn_figures, drawn_shares
from uldp_transforms_report.tables.smoothed_columns import second_columns


def figure(
    name: str, value: float | None, low: float | None, high: float | None, is_share: bool = True, **more: Any
) -> Figure:
    return Figure(name=name, is_share=is_share, value=value, low=low, high=high, **more)


# ---------------------------------------------------------------------------------------------------------------- axis


@pytest.mark.parametrize(
    ("length", "step"),
    [(1, 0.2), (5, 1), (5.001, 2), (10, 2), (10.1, 5), (25, 5), (26, 10), (0.08, 0.02), (1e-7, 2e-8)],
)
def test_an_axis_has_at_most_five_steps_of_one_two_or_five(length: float, step: float) -> None:
    assert step_of(length) == pytest.approx(step)


def test_ticks_are_percentages_numbers_or_signed_points() -> None:
    assert axis_of_shares([0.081, None, 0.02]).ticks == [
        (0, "0 %"),
        (24.69, "2 %"),
        (49.38, "4 %"),
        (74.07, "6 %"),
        (98.77, "8 %"),
    ]
    assert [text for _, text in axis_of_numbers([-400.0, 1200.0]).ticks] == ["0", "500", "1,000"]
    assert axis_of_differences([0.021, -0.01], is_share=True).ticks == [
        (2.38, "-2"),
        (26.19, "-1"),
        (50, "0"),
        (73.81, "+1"),
        (97.62, "+2"),
    ]
    assert [text for _, text in axis_of_shares([0.004]).ticks][:3] == ["0.0 %", "0.1 %", "0.2 %"]


def test_an_axis_of_nothing_or_of_one_number_is_an_axis() -> None:
    assert axis_of_shares([]).high == axis_of_shares([0.0, math.nan]).high == 1
    assert (axis_of_numbers([]).low, axis_of_numbers([]).high) == (0, 1)
    assert (axis_of_numbers([7.0]).low, axis_of_numbers([7.0]).high) == (7, 8)
    assert axis_of_differences([0.0, None], is_share=False).high == 1


def test_places_are_inside_of_the_axis() -> None:
    axis = Axis(low=-1, high=3, is_share=False)
    assert [axis.place(number) for number in (-9, -1, 0, 3, 9, None, math.nan)] == [0, 0, 25, 100, 100, None, None]
    assert axis.grid == "M0 0V1M25 0V1M50 0V1M75 0V1M100 0V1"


# ------------------------------------------------------------------------------------------------------------ pictures


def test_a_share_has_its_interval_and_below_it_what_is_smoothed() -> None:
    told = figure("a", 0.5, 0.25, 1.0, smoothed=0.4, smoothed_low=0.3, smoothed_high=0.5, truth=0.75)
    untold, unknown = figure("b", 0.1, 0.0, 0.2), figure("c", None, None, None)
    first, second, third = (cell.marks for cell in drawn_shares([told, untold, unknown]).cells)
    assert [(mark.kind, mark.low, mark.value, mark.high) for mark in first] == [
        ("told", 25, 50, 100),
        ("smoothed", 30, 40, 50),
        ("truth", None, 75, None),
    ]
    assert first[0].at < 50 < first[1].at
    assert [(mark.kind, mark.low, mark.value, mark.high, mark.at) for mark in second] == [("untold", 0, 10, 20, 50)]
    assert [(mark.low, mark.value, mark.high) for mark in third] == [(None, None, None)]


def test_an_open_end_is_at_the_edge() -> None:
    """Of numbers, whose second interval does not depend on smoothness; shares and sums have other scales."""
    open_end = figure("p90", 6.0, 4.0, None, is_share=False, unit="h", sure_low=2.0)
    total = figure("sum", 600.0, 500.0, 700.0, is_share=False, unit="h")
    share = figure("share from 3 h", 0.5, 0.4, 0.6)
    figures = [figure("mean", 4.0, 2.0, 10.0, is_share=False, unit="h"), open_end, share, total]
    scales = scales_of(figures)
    assert scales == ["number", "number", "share", "sum"]
    column = drawn_figures(figures, scales)
    cells = column.cells
    assert [len(cell.marks) for cell in cells] == [1, 2, 1, 1]
    axes = [cell.axis for cell in cells]
    assert column.axis is None and axes[0] == axes[1]
    assert [(axis.low, axis.high, axis.is_share) for axis in axes[1:] if axis] == [
        (2, 10, False),
        (0, 0.6, True),
        (500, 700, False),
    ]
    assert [axis.ends for axis in axes[2:] if axis] == [[(0, "0 %"), (100, "60 %")], [(0, "500"), (100, "700")]]
    assert [(mark.kind, mark.low, mark.value, mark.high) for mark in cells[1].marks] == [
        ("told", 25, 50, 100),
        ("sure", 0, None, 100),
    ]
    alone = drawn_figures(figures[:2], scales[:2])
    assert alone.axis == axes[0] and [cell.axis for cell in alone.cells] == [None, None]


def test_differences_are_around_0() -> None:
    figures = [figure("a", 0.02, 0.01, 0.04), figure("b", 0.0, -0.02, 0.02), figure("c", None, None, None)]
    cells = drawn_differences(figures, [True, False, False]).cells
    assert [(mark.kind, mark.low, mark.value, mark.high) for cell in cells for mark in cell.marks] == [
        ("told", 62.5, 75, 100),
        ("untold", 25, 50, 75),
        ("untold", None, None, None),
    ]


def test_groups_have_a_dot_each_in_their_colour_and_shape() -> None:
    """In lanes by name; numbers have columns while there are few groups."""
    names = [f"arm={letter}" for letter in "abcdefgh"]
    form = of.forms_of([figure("ant", 0.5, 0.4, 0.6)])[0]
    lines = [
        GroupLine(group=name, figure=figure(value, 0.5, 0.0, 1.0), num_reports=9, form=form)
        for value in ("ant", "bee")
        for name in (names if value == "ant" else names[:1])
    ]
    part = GroupPart(window="w", lines=lines, left_out=0, number=8, without=(), panel=None, levels=USUAL)
    colours = dict.fromkeys(names, PLAIN) | dict(zip(names, GROUPS))
    labels = GroupLabels.of(names).labels
    dots = group_dots_table("c", "share", part, labels, colours)
    assert [column.title for column in dots.columns] == ["value", "picture"]
    ant, bee = dots.columns[1].cells
    assert [mark.colour for mark in ant.marks] == [*GROUPS, PLAIN, PLAIN]
    assert len({mark.shape for mark in ant.marks}) == len(GROUPS) == len({shape_of(colour) for colour in GROUPS})
    assert [mark.at for mark in ant.marks] == [pytest.approx(100 * (at + 0.5) / 8, abs=0.06) for at in range(8)]
    assert [mark.said for mark in bee.marks] == ["a: 50.0 % (0.0 to 100.0 %)"]
    few = GroupPart(window="w", lines=lines[:3], left_out=0, number=3, without=(), panel=None, levels=USUAL)
    shown = [(column.title, column.fields) for column in group_dots_table("c", "share", few, labels, colours).columns]
    assert shown[2:] == [("a", "arm=a"), ("b", "arm=b"), ("c", "arm=c")]


# ------------------------------------------------------------------------------------------------------------- columns


def test_columns_that_say_nothing_are_not_shown_but_saved() -> None:
    """An empty one, and an answer that all rows have; numbers always are."""
    figures = [figure("a", 0.5, 0.4, 0.6), figure("b", 0.5, 0.4, 0.6)]
    found = of.Table(
        caption="c",
        columns=[
            of.names("value", figures),
            of.answers("told", "told", [True, True]),
            of.answers("kept", "kept", [True, False]),
            of.texts("last change", "last_change", ["", ""]),
            of.texts("note", "note", ["", "x"]),
            of.counts("reports", "num_reports", [7, 7]),
        ],
    )
    assert [column.title for column in found.shown] == ["value", "kept", "note", "reports"]
    assert [column.title for column in found.same] == ["told"]
    assert json.loads(found.same_fields) == {"told": "yes", "last_change": ""}
    assert [[str(cell.text) for cell in row] for row in found.rows] == [["a", "yes", "", "7"], ["b", "no", "x", "7"]]


def test_cells_have_exact_numbers_with_open_ends_and_without_unknown_ones() -> None:
    share, number = figure("a", 0.123456789, 0.1, None), figure("p", 2.0, None, 3.0, is_share=False)
    shares = of.figure_columns("share", "95 %", [share], of.forms_of([share]))
    numbers = of.figure_columns("estimate", "95 %", [number], of.forms_of([number]))
    assert [column.cells[0].exact for column in shares] == ["0.123457", "0.1 "]
    assert [column.cells[0].exact for column in numbers] == ["2", "open 3"]
    assert [column.title for column in shares] == ["share", "95 % interval"]
    assert second_columns([share], of.forms_of([share])) == []


# -------------------------------------------------------------------------------------------------------------- script

AXES = """
const table = one("table"), shown = [];
const selects = all("select");
for (const [first, second] of sides) {
  selects[0].value = first; selects[1].value = second;
  await emit("input", one("[data-compare]"));
  shown.push([all("svg.axis text").map((text) => [parseFloat(text.getAttribute("x")), text.textContent]),
    all("td svg").map((svg) => [svg.querySelector("line"), svg.querySelector("circle")]).map(([line, dot]) =>
      [line.getAttribute("visibility"), dot.getAttribute("class"),
       ...[line.getAttribute("x1"), dot.getAttribute("cx"), line.getAttribute("x2")].map(parseFloat)])]);
}
return shown;
"""


@needs_node
def test_the_script_draws_differences_where_the_page_does() -> None:
    """Of all pairs of sides: places, ticks, and what is told apart from 0."""
    rng = generator("pictures of differences")
    value = rng.uniform(0.05, 0.4, (4, 6))
    value[1, 2] = math.nan
    half = rng.uniform(0.01, 0.2, (4, 6))
    panel = Panel(
        values=list("abcdef"),
        is_share=[True] * 6,
        sides=list("wxyz"),
        value=value,
        low=value - half,
        high=value + half,
        inner=value * math.nan,
        is_of_figures=False,
    )
    options = "".join(f'<option value="{at}">{name}</option>' for at, name in enumerate(panel.sides))
    mark = '<line class="told" x1="0%" x2="0%"/><circle class="told" cx="0%"/>'
    cells = '<td class="drawn"><svg><path class="grid"/>{}</svg></td><td data-n=""></td><td data-n=""></td><td></td>'
    row = f'<tr data-at="{{}}"><th>v</th>{cells}</tr>'
    page = (
        f'<html><body><div data-compare="t">{f"<select>{options}</select>" * 2}</div><table id="t" data-values="p">'
        '<caption>c</caption><thead><tr><th></th><th class="drawn"><svg class="axis"><text x="0%">0</text></svg></th>'
        f"</tr></thead><tbody>{''.join(row.format(at, mark) for at in range(6))}</tbody></table>"
        f"{island('p', json.loads(panel.as_json()))}</body></html>"
    )
    pairs = [(first, second) for first in range(4) for second in range(4) if first != second]
    shown = run(f"const sides = {json.dumps(pairs)}; {AXES}", page, scripts=[SCRIPT])
    for (first, second), (ticks, marks) in zip(pairs, shown, strict=True):
        lines = panel.differences(first, second)
        column = drawn_differences(lines, [one.told_apart for one in lines])
        assert column.axis is not None
        assert [text for _, text in ticks] == [text for _, text in column.axis.ticks]
        assert [x for x, _ in ticks] == [pytest.approx(x, abs=0.02) for x, _ in column.axis.ticks]
        for (visibility, kind, *places), cell in zip(marks, column.cells, strict=True):
            expected = cell.marks[0]
            assert kind == expected.kind and (visibility == "hidden") == (expected.value is None)
            if expected.value is not None:
                assert places == [pytest.approx(at, abs=0.02) for at in (expected.low, expected.value, expected.high)]


SCALES = """
await emit("input", one("[data-compare]"));
return all("td.drawn").map((cell) => [cell.querySelectorAll("text").map((text) => text.textContent),
  ...["line", "circle"].map((name) => cell.querySelector(name)).flatMap((shape) =>
    ["x1", "cx", "x2"].map((at) => parseFloat(shape.getAttribute(at))).filter((at) => !Number.isNaN(at)))]);
"""


@needs_node
def test_the_script_draws_differences_of_several_scales_where_the_page_does() -> None:
    """Means on one axis, shares on one, and a sum on one, whose ends are below each row."""
    value = np.array([[40.0, 60.0, 0.25, 9000.0], [30.0, 20.0, 0.5, 4000.0]])
    half = np.array([5.0, 20.0, 0.1, 900.0])
    panel = Panel(
        values=["mean", "p90", "share from 3 h", "sum"],
        is_share=[False, False, True, False],
        sides=["x", "y"],
        value=value,
        low=value - half,
        high=value + half,
        inner=value * math.nan,
        is_of_figures=True,
    )
    options = "".join(f'<option value="{at}">{name}</option>' for at, name in enumerate(panel.sides))
    others = options.replace('value="1"', 'value="1" selected=""')
    mark = '<svg><path class="grid"/><line class="told"/><circle class="told"/></svg><text>0</text><text>0</text>'
    cells = f'<td class="drawn"><svg>{mark}</svg></td><td data-n=""></td><td data-n=""></td><td></td>'
    rows = "".join(f'<tr data-at="{at}"><th>v</th>{cells}</tr>' for at in range(4))
    page = (
        f'<html><body><div data-compare="t"><select>{options}</select><select>{others}</select></div>'
        f'<table id="t" data-values="p"><caption>c</caption><thead><tr><th></th></tr></thead><tbody>{rows}</tbody>'
        f"</table>{island('p', json.loads(panel.as_json()))}</body></html>"
    )
    drawn = run(SCALES, page, scripts=[SCRIPT])
    lines = panel.differences(0, 1)
    column = drawn_differences(lines, [one.told_apart for one in lines])
    for (ends, *places), cell in zip(drawn, column.cells, strict=True):
        assert cell.axis is not None
        assert ends == [text for _, text in cell.axis.ends]
        (one,) = cell.marks
        assert places == [pytest.approx(at, abs=0.02) for at in (one.low, one.high, one.value)]
    assert [ends for ends, *_ in drawn] == [["-50", "+50"], ["-50", "+50"], ["-20", "+20"], ["-5,000", "+5,000"]]


ROWS = """
const seen = () => all("tbody tr").filter((row) => !row.hidden && !row.classList.contains("beyond")).length;
const [status, button] = [one("[data-rows] span"), one("[data-rows] button")];
const said = () => [seen(), status.textContent, button.textContent, button.hidden ?? false];
const found = [said()];
await press("[data-rows] button"); found.push(said());
await type("input", "value 1"); found.push(said());
await press("[data-rows] button"); found.push(said());
await type("input", "value 19"); found.push(said());
await type("input", "none"); found.push(said());
return found;
"""


@needs_node
def test_rows_are_counted_and_shown_on_request() -> None:
    """The first 15 of those that a search left, in the order of the table; all of them if a reader asks."""
    rows = [(f"value {at}",) for at in range(40)]
    tools = '<p><span data-rows="t"><span></span><button></button></span></p>'
    find = '<div data-find="t"><input type="search"><span role="status"></span></div>'
    assert run(ROWS, f"<html><body>{tools}{find}{table('t', [''], rows)}</body></html>", scripts=[SCRIPT]) == [
        [15, "Rows 1 to 15 of 40", "Show all 40", False],
        [40, "Rows 1 to 40 of 40", "Show the first 15", False],
        [11, "Rows 1 to 11 of 11", "Show the first 15", True],
        [11, "Rows 1 to 11 of 11", "Show all 11", True],
        [1, "Rows 1 to 1 of 1", "Show all 1", True],
        [0, "No rows", "Show all 0", True],
    ]
