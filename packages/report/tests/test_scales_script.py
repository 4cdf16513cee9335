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
from uldp_transforms_report import charts
from uldp_transforms_report.facts import WindowLine

SCRIPT = Path(report.__file__).with_name("page_scales.js")
TOOLS = (
    '<div data-trends="charts"><input type="search"><input type="checkbox" name="flag" value="told">'
    '<input type="checkbox" name="flag" value="changed"><input type="checkbox" name="scale" value="log">'
    '<input type="checkbox" name="scale" value="same"><span role="status"></span></div>'
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
"""

pytestmark = needs_node


def height(share: float, top: float) -> float:
    return 150 * (1 - share / top)


def logarithmic(share: float, top: float) -> float:
    """Three decades, and the lower edge for all that is below."""
    return 150 * (1 - min(max(1 + math.log10(max(share, 1e-300) / top) / 3, 0), 1))


def figure(name: str, top: float, shares: Sequence[float], last: float, flags: str = "") -> str:
    """A chart as ``charts`` draws it: an axis from 0 to ``top`` with labels at 0 and ``last``, an area, and points."""
    at = [0.0, last]
    grid = "".join(f'<line transform="translate(0,{height(share, top):.4f})"></line>' for share in at)
    ticks = "".join(f'<line x2="-5" transform="translate(0,{height(share, top):.4f})"></line>' for share in at)
    texts = "".join(f'<text transform="translate(-7,{height(s, top) + 3:.4f})">{100 * s:g}%</text>' for s in at)
    below = '<text transform="translate(143.5,16)">Mon 06</text>'
    points = "".join(f'<path transform="translate(9,{height(s, top):.4f})" d="M2,0A2,2,0,1,1"></path>' for s in shares)
    line = "L".join(f"{x},{height(share, top):.4f}" for x, share in enumerate(shares))
    axes = f'<g class="role-axis-grid">{grid}</g><g class="role-axis-label">{below}</g>'
    axes += f'<g class="role-axis-tick">{ticks}</g><g class="role-axis-label">{texts}</g>'
    marks = f'<g class="role-mark area"><path d="M{line}Z"></path></g><g class="role-mark point">{points}</g>'
    chart = f'<div class="chart"><svg><g>{axes}{marks}</g></svg></div>'
    return f'<figure data-value="{name}" data-flags="{flags}">{chart}</figure>'


def result(program: str, *figures: str) -> Any:
    page = f'<html><body>{TOOLS}<div id="charts">{"".join(figures)}</div></body></html>'
    return run(LOOKS + program, page, scripts=[SCRIPT])


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
    figure("bee", 0.4, [0.3, 0.2], 0.4, "told changed"),
    figure("Ant", 0.1, [0.05, 0.02], 0.08, "told"),
    figure("cow", 0.8, [0.7, 0.1], 0.6, ""),
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


def test_a_common_axis_is_that_of_the_largest_chart_that_is_seen() -> None:
    """Hidden charts keep theirs; without the choice each chart is as it was drawn."""
    program = """const before = ["bee", "Ant", "cow"].map(look);
    await type("input", "an,bee"); await tick("[value=same]"); const found = ["bee", "Ant", "cow"].map(look);
    await tick("[value=same]"); return [before, found, ["bee", "Ant", "cow"].map(look)];"""
    before, found, after = result(program, *THREE)
    names = ["0%", "10%", "20%", "30%", "40%"]
    ticks = [0.0, 0.1, 0.2, 0.3, 0.4]
    assert close(found[0], drawn([0.3, 0.2], ticks, height, 0.4, names))
    assert close(found[1], drawn([0.05, 0.02], ticks, height, 0.4, names))
    assert close(found[2], drawn([0.7, 0.1], [0, 0.2, 0.4, 0.6, 0.8], height, 0.8, ["0%", "20%", "40%", "60%", "80%"]))
    assert after == before != found


def test_a_logarithmic_axis_has_three_decades() -> None:
    """What is smaller, 0 and what is below 0 lie on its lower edge; what is above its top on the upper one."""
    shares = [0.3, 0.004, 0.0004, 0.0003, 0.0, -0.1, 0.5]
    edge = "Shares below a thousandth of the top of an axis lie on its lower edge."
    program = """await tick("[value=log]"); const found = [look("a"), look("b"), seen()[1]];
    await type("input", "a"); return [...found, seen()[1]];"""
    first, whole, said, both = result(program, figure("a", 0.4, shares, 0.4), figure("b", 1.0, [0.001, 1.0], 1.0))
    assert close(first, drawn(shares, [0.001, 0.01, 0.1], logarithmic, 0.4, ["0.1%", "1%", "10%"]))
    names = ["0.1%", "1%", "10%", "100%"]
    assert close(whole, drawn([0.001, 1.0], [0.001, 0.01, 0.1, 1.0], logarithmic, 1.0, names))
    assert (said, both) == (edge, f"1 of 2 charts. {edge}")


def test_charts_that_are_seen_have_one_logarithmic_axis() -> None:
    program = 'await tick("[value=log]"); await tick("[value=same]"); return [look("bee"), look("Ant")];'
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
    figures = [figure(f"chart{at:02}", top, [0.0], top) for at, (top, _) in enumerate(TOPS)]
    program = """const found = [];
    for (const { dataset } of all("figure")) { await type("input", dataset.value); found.push(labels(dataset.value)); }
    return found;"""
    same = TOOLS.replace('value="same"', 'value="same" checked="checked"')
    page = f'<html><body>{same}<div id="charts">{"".join(figures)}</div></body></html>'
    assert run(LOOKS + program, page, scripts=[SCRIPT]) == [[f"{label:g}%" for label in labels] for _, labels in TOPS]


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
    svg = charts.trend_svg(trend, lines, "UTC")
    program = """const times = texts(".role-axis-label text").filter((text) => !text.endsWith("%"));
    const before = heights("a", ".mark-symbol path"); const old = markup(one("figure"));
    await tick("[value=log]"); const found = [labels("a"), heights("a", ".mark-symbol path")];
    const [x, y] = /M([^,]*),([^L]*)L/.exec(one(".mark-area path").getAttribute("d")).slice(1);
    const same = texts(".role-axis-label text").filter((text) => !text.endsWith("%")).join() === times.join();
    await tick("[value=log]"); return [before, ...found, y, same, times.length, markup(one("figure")) === old];"""
    before, labels, after, edge, same, times, restored = result(
        program, f'<figure data-value="a" data-flags=""><div class="chart">{svg}</div></figure>'
    )
    top = 0.3 / (1 - float(before[0]) / 150)
    assert labels == ["0.1%", "1%", "10%"]
    assert [float(y) for y in after] == pytest.approx([logarithmic(share, top) for share in shares], abs=0.1)
    assert float(edge) == pytest.approx(logarithmic(0.28, top), abs=0.1)
    assert same and times == 3 and restored


def test_an_update_finds_the_charts_as_the_page_brought_them() -> None:
    """And those that it brings are then drawn as the reader has chosen."""
    program = """const before = ["bee", "Ant"].map(look); await tick("[value=log]"); await type("input", "bee");
    await document.dispatchEvent(new Event("uldp:before")); const between = ["bee", "Ant"].map(look);
    const [bee, ant] = all("figure .chart"); const next = one(".next svg");
    bee.replaceChildren(next); ant.closest("figure").remove();
    await document.dispatchEvent(new Event("uldp:after")); const after = [look("bee"), seen()];
    await tick("[value=log]");
    return [before, between, after, look("bee"), one('[data-value="bee"] svg') === next];"""
    next_one = (
        figure("new", 0.2, [0.1, 0.15], 0.2).replace("<figure", '<div class="next"').replace("</figure>", "</div>")
    )
    page = f'<html><body>{TOOLS}<div id="charts">{"".join(THREE[:2])}</div>{next_one}</body></html>'
    before, between, after, linear, is_next = run(LOOKS + program, page, scripts=[SCRIPT])
    assert between == before
    assert close(after[0], drawn([0.1, 0.15], [0.001, 0.01, 0.1], logarithmic, 0.2, ["0.1%", "1%", "10%"]))
    assert after[1][0] == ["bee"] and after[1][1].startswith("1 of 1 charts. ")
    assert is_next and [float(y) for y in linear[4]] == pytest.approx([75, 37.5])


def test_a_chart_that_went_away_does_no_harm() -> None:
    program = """await tick("[value=log]"); one("figure .chart").remove();
    await document.dispatchEvent(new Event("uldp:before")); await emit("input", one("figure")); return true;"""
    assert result(program, *THREE)
