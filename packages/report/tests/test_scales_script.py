"""The script of a page's charts: which are seen, on which axes, each point where its share belongs; in Node."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import uldp_transforms_report as report
from tests.support import report_rows as rows
from tests.support.page_scripts import needs_node, run
from uldp_transforms.rows.figures.figure import Figure, table_of, trend_of, unlisted_share
from uldp_transforms_report.facts import WindowLine
from uldp_transforms_report.trends.trend_charts import common_scale, trend_svg

SCRIPT = Path(report.__file__).with_name("page_scales.js")
TOOLS = (
    '<div data-trends="charts"><input type="search"><input type="checkbox" name="flag" value="told">'
    '<input type="checkbox" name="flag" value="changed"><input type="checkbox" name="scale" value="log">'
    '<input type="checkbox" name="scale" value="own"><span role="status"></span></div>'
)
LOOKS = """
const seen = () => {
  const figures = all("figure").filter((figure) => !figure.hidden);
  return [figures.map((figure) => figure.dataset.value), one("[role=status]").textContent];
};
const inside = (name, shapes) => all(`[data-value="${name}"] ${shapes}`);
const labels = (name) =>
  inside(name, ".role-axis-label text").map((it) => it.textContent).filter((it) => /%$/.test(it));
const heights = (name, shapes) => inside(name, shapes).map((it) => /,([^)]*)/.exec(it.getAttribute("transform"))[1]);
const look = (name) => [labels(name), heights(name, ".role-axis-grid line"), heights(name, ".role-axis-tick line"),
  heights(name, "text[transform^='translate(-']"), heights(name, ".point path"),
  inside(name, ".area path").map((it) => it.getAttribute("d")).join()];
const whiskers = (name) => inside(name, ".whisker line").map((it) => {
  const top = Number(/,([^)]*)/.exec(it.getAttribute("transform"))[1]);
  return [top, top + Number(it.getAttribute("y2"))];
});
"""

pytestmark = needs_node


def height(share: float, top: float) -> float:
    return 150 * (1 - share / top)


def logarithmic(share: float, top: float) -> float:
    """Three decades, and the lower edge for all that is below."""
    return 150 * (1 - min(max(1 + math.log10(max(share, 1e-300) / top) / 3, 0), 1))


def figure(name: str, top: float, shares: Sequence[float], flags: str = "", drawn: float = 0.8) -> str:
    """A chart as ``trend_charts`` draws it: on an axis from 0 to ``drawn``, its own one would end at ``top``; with an
    interval from 0 and a point for each share, an area, and a dotted line where something changed."""
    at = [0.0, drawn]
    grid = "".join(f'<line transform="translate(0,{height(share, drawn):.4f})"></line>' for share in at)
    ticks = "".join(f'<line x2="-5" transform="translate(0,{height(share, drawn):.4f})"></line>' for share in at)
    texts = "".join(f'<text transform="translate(-7,{height(s, drawn) + 3:.4f})">{100 * s:g}%</text>' for s in at)
    below = '<text transform="translate(143.5,16)">Mon 06</text>'
    points = "".join(
        f'<path transform="translate(9,{height(s, drawn):.4f})" d="M2,0A2,2,0,1,1"></path>' for s in shares
    )
    whiskers = "".join(
        f'<line transform="translate(9,{height(s, drawn):.4f})" x2="0" y2="{150 - height(s, drawn):.4f}"></line>'
        for s in shares
    )
    line = "L".join(f"{x},{height(share, drawn):.4f}" for x, share in enumerate(shares))
    axes = f'<g class="role-axis-grid">{grid}</g><g class="role-axis-label">{below}</g>'
    axes += f'<g class="role-axis-tick">{ticks}</g><g class="role-axis-label">{texts}</g>'
    marks = f'<g class="role-mark area"><path d="M{line}Z"></path></g><g class="role-mark point">{points}</g>'
    marks += f'<g class="role-mark whisker">{whiskers}</g>'
    change = '<line transform="translate(9,0)" x2="0" y2="150" stroke-dasharray="2,3"></line>'
    marks += f'<g class="role-mark change">{change}</g>'
    chart = f'<div class="chart"><svg><g>{axes}{marks}</g></svg></div>'
    return f'<figure data-value="{name}" data-flags="{flags}" data-scale="0 {top}">{chart}</figure>'


def page_of(*figures: str, tools: str = TOOLS, drawn: float = 0.8) -> str:
    return f'<html><body>{tools}<div id="charts" data-scale="0 {drawn}">{"".join(figures)}</div></body></html>'


def result(program: str, *figures: str, drawn: float = 0.8) -> Any:
    return run(LOOKS + program, page_of(*figures, drawn=drawn), scripts=[SCRIPT])


def drawn(shares: Sequence[float], ticks: Sequence[float], places: Any, top: float, names: Sequence[str]) -> list[Any]:
    """What a chart has after it was drawn again with these places."""
    grid, labels = ([f"{places(share, top) + more:.2f}" for share in ticks] for more in (0, 3))
    points = [f"{places(share, top):.2f}" for share in shares]
    line = "L".join(f"{x},{y}" for x, y in enumerate(points))
    return [list(names), grid, grid, labels, points, f"M{line}Z"]


def close(found: list[Any], expected: list[Any]) -> bool:
    """Heights may differ by the rounding of the fixture, a hundredth of a pixel."""
    return (
        found[0] == expected[0]
        and found[5].count(",") == expected[5].count(",")
        and all(
            list(map(float, mine)) == pytest.approx(list(map(float, theirs)), abs=0.0101)
            for mine, theirs in zip([*found[1:5], *_numbers(found[5])], [*expected[1:5], *_numbers(expected[5])])
        )
    )


def _numbers(path: str) -> list[list[str]]:
    return [path.strip("MZ").replace("L", ",").split(",")]


THREE = (
    figure("bee", 0.4, [0.3, 0.2], "told changed"),
    figure("Ant", 0.1, [0.05, 0.02], "told"),
    figure("cow", 0.8, [0.7, 0.1]),
)


def test_charts_are_chosen_by_names_and_flags() -> None:
    """Any of the names, all of the flags; letters' case and blanks do not matter."""
    program = """const found = [];
    for (const text of ["an", " BEE , cow", ",", "x", ""]) { await type("input", text); found.push(seen()); }
    for (const flag of ["told", "changed", "told", "changed"]) { await tick(`[value=${flag}]`); found.push(seen()); }
    return found;"""
    everything = ["bee", "Ant", "cow"]
    assert result(program, *THREE) == [
        [["Ant"], "1 of 3 charts"],
        [["bee", "cow"], "2 of 3 charts"],
        [everything, ""],
        [[], "0 of 3 charts"],
        [everything, ""],
        [["bee", "Ant"], "2 of 3 charts"],
        [["bee"], "1 of 3 charts"],
        [["bee"], "1 of 3 charts"],
        [everything, ""],
    ]


def test_charts_that_are_seen_have_the_axis_of_the_largest_of_them() -> None:
    """All of them that which they were drawn on; with the choice each its own one."""
    program = """const before = ["bee", "Ant", "cow"].map(look);
    await type("input", "an,bee"); const found = ["bee", "Ant", "cow"].map(look);
    await type("input", ""); const again = ["bee", "Ant", "cow"].map(look);
    await tick("[value=own]"); return [before, found, again, ["bee", "Ant", "cow"].map(look)];"""
    before, found, after, own = result(program, *THREE)
    names, ticks = ["0%", "10%", "20%", "30%", "40%"], [0.0, 0.1, 0.2, 0.3, 0.4]
    bee, cow = drawn([0.3, 0.2], ticks, height, 0.4, names), before[2]
    assert close(found[0], bee) and close(own[0], bee)
    assert close(found[1], drawn([0.05, 0.02], ticks, height, 0.4, names))
    assert found[2] == cow == own[2] and after == before != found
    narrow = drawn([0.05, 0.02], [0, 0.05, 0.1], height, 0.1, ["0%", "5%", "10%"])
    assert close(own[1], narrow)


def test_intervals_move_with_their_points_and_lines_of_changes_stay() -> None:
    program = """await tick("[value=own]"); const change = markup(one(".change line"));
    return [whiskers("bee"), heights("bee", ".point path"), change];"""
    whiskers, points, change = result(program, THREE[0])
    assert [pytest.approx(top) for top, _ in whiskers] == [float(point) for point in points] == [37.5, 75.0]
    assert [bottom for _, bottom in whiskers] == pytest.approx([150.0, 150.0])
    assert "translate(9,0)" in change and 'y2="150"' in change


def test_a_logarithmic_axis_has_three_decades() -> None:
    """What is smaller, 0 and what is below 0 lie on its lower edge; what is above its top on the upper one."""
    shares = [0.3, 0.004, 0.0004, 0.0003, 0.0, -0.1, 0.5]
    edge = "Shares below a thousandth of the top of an axis lie on its lower edge."
    program = """await tick("[value=own]"); await tick("[value=log]"); const found = [look("a"), look("b"), seen()[1]];
    await type("input", "a"); return [...found, seen()[1]];"""
    first, whole, said, both = result(program, figure("a", 0.4, shares), figure("b", 1.0, [0.001, 1.0]))
    assert close(first, drawn(shares, [0.001, 0.01, 0.1], logarithmic, 0.4, ["0.1%", "1%", "10%"]))
    names = ["0.1%", "1%", "10%", "100%"]
    assert close(whole, drawn([0.001, 1.0], [0.001, 0.01, 0.1, 1.0], logarithmic, 1.0, names))
    assert (said, both) == (edge, f"1 of 2 charts. {edge}")


def test_charts_that_are_seen_have_one_logarithmic_axis() -> None:
    program = 'await tick("[value=log]"); return [look("bee"), look("Ant")];'
    found = result(program, *THREE[:2])
    for chart, shares in zip(found, ([0.3, 0.2], [0.05, 0.02])):
        assert close(chart, drawn(shares, [0.001, 0.01, 0.1], logarithmic, 0.4, ["0.1%", "1%", "10%"]))


TOPS: list[tuple[float, list[float]]] = [
    (0.001, [0, 0.05, 0.1]),
    (0.02, [0, 0.5, 1, 1.5, 2]),
    (0.021, [0, 1, 2]),
    (0.05, [0, 2, 4]),
    (0.083, [0, 5]),
    (0.1, [0, 5, 10]),
    (0.3, [0, 10, 20, 30]),
    (0.45, [0, 20, 40]),
    (0.5, [0, 20, 40]),
    (0.7, [0, 20, 40, 60]),
    (0.81, [0, 50]),
    (0.9, [0, 50]),
    (1.0, [0, 50, 100]),
]


def test_a_linear_axis_has_labels_at_round_shares() -> None:
    """At multiples of 1, 2 or 5 in a decimal place, such that four of them reach the top; also one that is the top."""
    figures = [figure(f"chart{at:02}", top, [0.0]) for at, (top, _) in enumerate(TOPS)]
    program = """const found = [];
    for (const { dataset } of all("figure")) { await type("input", dataset.value); found.push(labels(dataset.value)); }
    return found;"""
    own = TOOLS.replace('value="own"', 'value="own" checked="checked"')
    assert run(LOOKS + program, page_of(*figures, tools=own), scripts=[SCRIPT]) == [
        [f"{label:g}%" for label in labels] for _, labels in TOPS
    ]


def test_a_chart_of_the_page_itself_is_drawn_again() -> None:
    """Its points lie where their shares belong; an axis below it, of times, stays."""
    shares = np.array([0.3, 0.28, 0.26])
    latest = Figure(name="a", is_share=True, value=0.26, low=0.24, high=0.28)
    trend = trend_of(latest, table_of([replace(latest, value=of, low=of - 0.02, high=of + 0.02) for of in shares]))
    lines = [
        WindowLine(
            start=rows.span(at)["window_start"],
            end=rows.span(at)["window_end"],
            name=f"day {at}",
            status="ok",
            num_reports=1000,
            is_open=False,
            holds_always=False,
            unexplained=unlisted_share({}, None),
        )
        for at in range(3)
    ]
    scale = common_scale([trend])
    svg = trend_svg(trend, lines, "UTC", scale)
    program = """const times = texts(".role-axis-label text").filter((text) => !text.endsWith("%"));
    const before = heights("a", ".mark-symbol path"); const old = markup(one("figure"));
    await tick("[value=log]"); const found = [labels("a"), heights("a", ".mark-symbol path")];
    const y = heights("a", ".role-mark line")[0];
    const same = texts(".role-axis-label text").filter((text) => !text.endsWith("%")).join() === times.join();
    await tick("[value=log]"); return [before, ...found, y, same, times.length, markup(one("figure")) === old];"""
    before, labels, after, edge, same, times, restored = result(
        program,
        f'<figure data-value="a" data-flags="" data-scale="{scale.ends}"><div class="chart">{svg}</div></figure>',
        drawn=scale.high,
    )
    top = scale.high
    assert [float(y) for y in before] == pytest.approx([height(share, top) for share in shares], abs=0.1)
    assert labels == ["0.1%", "1%", "10%"]
    assert [float(y) for y in after] == pytest.approx([logarithmic(share, top) for share in shares], abs=0.1)
    assert float(edge) == pytest.approx(logarithmic(0.28, top), abs=0.1)
    assert same and times == 3 and restored


def test_an_update_finds_the_charts_as_the_page_brought_them() -> None:
    """And those that it brings are then drawn as the reader has chosen."""
    program = """const before = ["bee", "Ant"].map(look); await tick("[value=log]"); await type("input", "bee");
    await document.dispatchEvent(new Event("uldp:before")); const between = ["bee", "Ant"].map(look);
    const [bee, ant] = all("figure .chart"); const next = one(".next svg");
    bee.replaceChildren(next);
    bee.closest("figure").setAttribute("data-scale", "0 0.8"); ant.closest("figure").remove();
    await document.dispatchEvent(new Event("uldp:after")); const after = [look("bee"), seen()];
    await tick("[value=log]");
    return [before, between, after, look("bee"), one('[data-value="bee"] svg') === next];"""
    next_one = figure("new", 0.2, [0.1, 0.15]).replace("<figure", '<div class="next"').replace("</figure>", "</div>")
    page = page_of(*THREE[:2]).replace("</body>", f"{next_one}</body>")
    before, between, after, linear, is_next = run(LOOKS + program, page, scripts=[SCRIPT])
    assert between == before
    assert close(after[0], drawn([0.1, 0.15], [0.001, 0.01, 0.1], logarithmic, 0.8, ["0.1%", "1%", "10%"]))
    assert after[1][0] == ["bee"] and after[1][1].startswith("1 of 1 charts. ")
    assert is_next and [float(y) for y in linear[4]] == pytest.approx([131.25, 121.875])


def test_a_chart_that_went_away_does_no_harm() -> None:
    program = """await tick("[value=log]"); one("figure .chart").remove();
    await document.dispatchEvent(new Event("uldp:before")); await emit("input", one("figure")); return true;"""
    assert result(program, *THREE)
