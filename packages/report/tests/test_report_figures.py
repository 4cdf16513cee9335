"""Figures of numbers, differences and groups of a page, function by function: rows by hand, ends from both sides."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from typing import Any

import numpy as np
import pytest

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rows.figures.figure import Figure, figures_of, name_of_quantile, name_of_share, table_of, trend_of
from uldp_transforms.rows.figures.figure_words import NumberFormat, format_of, said_of
from uldp_transforms.rows.figures.window_names import clock
from uldp_transforms_report.compared import compared_rows
from uldp_transforms_report.compared.compared_rows import comparisons_of
from uldp_transforms_report.differences import Panel, reach_of
from uldp_transforms_report.groups.group_facts import GroupsAsked, groups_of
from uldp_transforms_report.numbers.number_facts import figure_panel, numbers_of, sums_part

DASH, NAN = "\N{EN DASH}", math.nan


def figure(
    name: str = "mean", value: float | None = 2.0, low: float | None = 1.0, high: float | None = 4.0, **more: Any
) -> Figure:
    given = {"is_share": False, "sure_low": low, "sure_high": high} | more
    return Figure(name=name, value=value, low=low, high=high, **given)


# --------------------------------------------------------------------------------------------------------------- words


def test_numbers_are_formatted_for_readers() -> None:
    assert [NumberFormat(False, 2).text(number) for number in (None, NAN, 0.0, 1234.567, -1.0)] == [
        DASH,
        DASH,
        "0.00",
        "1,234.57",
        "-1.00",
    ]
    ends: list[tuple[float | None, float | None]] = [(2.9, 5.8), (None, 5.8), (2.9, NAN), (NAN, None)]
    assert [NumberFormat(False, 1).span(*of) for of in ends] == ["2.9 to 5.8", "below 5.8", "from 2.9", DASH]


def digits_of_one(of: Figure) -> int | None:
    return format_of(of).digits


def test_decimals_of_a_figure_are_those_of_its_shortest_interval() -> None:
    """Of the smooth and the sure one; with an open end, of twice the distance of the other."""
    assert digits_of_one(figure(low=0.0, high=40.0, sure_low=1.0, sure_high=2.0)) == 2
    assert digits_of_one(figure(low=1.0, high=2.0, sure_low=0.0, sure_high=40.0)) == 2
    assert digits_of_one(figure(low=0.0, high=40.0)) == 0
    assert digits_of_one(figure(low=1.0, high=40.0, sure_low=None)) == 0
    assert [digits_of_one(figure(value=2.0, low=None, high=high)) for high in (2.9, 3.1, 12.1)] == [2, 1, 0]
    assert digits_of_one(figure(value=2.0, low=0.9, high=None)) == 1
    assert digits_of_one(figure(value=2.0, low=None, high=3.1, sure_high=40.0)) == 1
    assert digits_of_one(figure(low=None, high=None)) == digits_of_one(figure(value=None, low=None)) == 3


def test_figures_have_names() -> None:
    assert [name_of_quantile(q) for q in (0.5, 0.9, 0.999, 0.05)] == ["median", "p90", "p99.9", "p5"]
    assert [name_of_share(30.0, unit) for unit in ("min", "")] == ["share from 30 min", "share from 30"]
    assert [said_of(figure(name)) for name in ("mean", "median", "p90", "p99.9", "sum")] == [
        *("the mean is", "the median is", "90 % are below", "99.9 % are below", "the sum is")
    ]


# ------------------------------------------------------------------------------------------------------- from rows


def told(value: float | None, low: float | None, high: float | None, **more: Any) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high} | more


SMOOTH = {"display_value": 5.5, "display_low": 5.0, "display_high": 6.0}
OVER_TIME = {"smoothed_value": 5.1, "smoothed_low": 4.9, "smoothed_high": 5.3}
NUMBERS: dict[str, Any] = {
    "mean": told(5.0, 4.0, 6.5, **SMOOTH, **OVER_TIME),
    "quantiles": [told(5.2, 3.0, 7.0, q=0.5, **SMOOTH), told(9.0, None, 12.0, q=0.9)],
    "shares_above": [told(0.2, 0.1, 0.3, limit=8.0)],
    "sum": told(500.0, 400.0, 650.0),
    "curve": [],
}


def row(numbers: Any, status: str = "ok", **more: Any) -> dict[str, Any]:
    return {"numbers": numbers, "status": status} | more


def test_a_mean_is_unbiased_and_other_figures_are_smooth_if_they_can_be() -> None:
    """The sure interval never depends on smoothness."""
    mean, median, p90, share, total = figures_of(row(NUMBERS), "min")
    assert mean == figure("mean", 5.0, 4.0, 6.5, smoothed=5.1, smoothed_low=4.9, smoothed_high=5.3, unit="min")
    assert median == figure("median", 5.5, 5.0, 6.0, sure_low=3.0, sure_high=7.0, unit="min")
    assert p90 == figure("p90", 9.0, None, 12.0, unit="min")
    assert share == figure("share from 8 min", 0.2, 0.1, 0.3, is_share=True)
    assert total == figure("sum", 500.0, 400.0, 650.0, unit="min")


def test_means_and_shares_are_shown_within_what_they_can_be() -> None:
    """Rows have the unbiased number, and an interval that contains it; readers see both cut to the range."""
    below = {"below": [{"edge": 10.0, "value": -0.1}, {"edge": 30.0, "value": 1.0}]}
    outside = {
        "mean": told(3.5, 3.5, 6.5, half_bin=5.0) | {"smoothed_value": 4.0, "smoothed_low": 3.0, "smoothed_high": 6.0},
        "shares_above": [told(1.01, 0.9, 1.01, limit=10.0), told(-0.02, -0.02, 0.05, limit=30.0)],
        "sum": told(-20.0, -20.0, 650.0, half_bins=500.0),
        "share": 1,
    }
    mean, most, least, total = figures_of(row(outside | below), "min")
    assert mean == figure("mean", 5.0, 5.0, 6.5, smoothed=5.0, smoothed_low=5.0, smoothed_high=6.0, unit="min")
    assert most == figure("share from 10 min", 1, 0.9, 1, is_share=True)
    assert least == figure("share from 30 min", 0, 0, 0.05, is_share=True)
    assert total == figure("sum", 500.0, 500.0, 650.0, unit="min")
    [*_, total] = figures_of(row(outside | below | {"share": 0.9}), "min")  # with people who have no number
    assert total == figure("sum", 0.0, 0.0, 650.0, unit="min")
    [alone, *_, total] = figures_of(row(outside), "min")
    assert (alone.value, alone.low, total.value) == (3.5, 3.5, -20.0)  # a row that does not say where its bins are


def test_rows_without_figures_have_none() -> None:
    nothing = row({"mean": told(None, None, None), "sum": told(None, None, None)})
    for of in (row(None), row({}), nothing, row(NUMBERS, "suppressed")):
        assert figures_of(of, "") == []
        assert numbers_of([of], "") is None
    assert numbers_of([], "") is None
    assert [one.name for one in figures_of(row({"mean": told(0.0, None, None)}), "")] == ["mean"]


CURVE = [
    {"low": None, "high": 10.0, "share": 0.1, "display_low": 0.05, "display_high": 0.2},
    {"low": 10.0, "high": 13.0, "share": 0.5, "display_low": 0.4, "display_high": 0.6},
    {"low": 13.0, "high": 17.5, "share": 0.2, "display_low": 0.1, "display_high": 0.3},
    {"low": 17.5, "high": None, "share": 0.2, "display_low": 0.15, "display_high": 0.25},
]


def test_open_bins_are_as_wide_as_their_neighbours() -> None:
    part = numbers_of([row(NUMBERS | {"curve": CURVE})], "min")
    assert part is not None and part.is_smooth and part.unit == "min" and part.trends == []
    assert [(bar.figure.name, bar.begin, bar.end, bar.figure.value) for bar in part.bars] == [
        ("below 10", 7.0, 10.0, 0.1),
        ("10 to 13", 10.0, 13.0, 0.5),
        ("13 to 17.5", 13.0, 17.5, 0.2),
        ("from 17.5", 17.5, 22.0, 0.2),
    ]
    assert [(bar.figure.low, bar.figure.high) for bar in part.bars] == [
        (0.05, 0.2),
        (0.4, 0.6),
        (0.1, 0.3),
        (0.15, 0.25),
    ]
    three = numbers_of([row(NUMBERS | {"curve": [CURVE[0], CURVE[1], CURVE[3]]})], "")
    two = numbers_of([row(NUMBERS | {"curve": [CURVE[0], CURVE[3]]})], "")
    assert three is not None and len(three.bars) == 3 and three.bars[2].end == 25.0
    assert two is not None and two.bars == [] and two.is_smooth
    plain = numbers_of([row(NUMBERS)], "")
    assert plain is not None and not plain.is_smooth


def test_trends_are_of_the_mean_and_quantiles_over_all_windows() -> None:
    """Of the latest window with numbers; missing and open ends are nan."""
    early = {"mean": told(1.0, 0.5, None), "quantiles": [told(2.0, 1.0, 3.0, q=0.9)]}
    part = numbers_of([row(early), row(NUMBERS, "suppressed"), row(NUMBERS), row(early, "empty")], "")
    assert part is not None and [one.name for one in part.figures] == ["mean", "median", "p90", "share from 8", "sum"]
    mean, median, p90 = part.trends
    assert [one.figure.name for one in part.trends] == ["mean", "median", "p90"]
    np.testing.assert_array_equal(mean.value, [1.0, NAN, 5.0, NAN])
    np.testing.assert_array_equal(mean.high, [NAN, NAN, 6.5, NAN])
    np.testing.assert_array_equal(mean.smoothed, [NAN, NAN, 5.1, NAN])
    np.testing.assert_array_equal(median.value, [NAN, NAN, 5.5, NAN])
    np.testing.assert_array_equal(median.sure_low, [NAN, NAN, 3.0, NAN])
    np.testing.assert_array_equal(p90.low, [1.0, NAN, NAN, NAN])
    assert (mean.is_smoothed, median.is_smoothed) == (True, False)
    two = numbers_of([row(early), row(NUMBERS)], "")
    assert two is not None and len(two.trends) == 3


def test_a_window_contradicts_what_is_smoothed_if_they_have_no_number_in_common() -> None:
    spans = [(4.0, 5.0), (4.1, 5.0), (1.0, 2.0), (1.0, 1.9), (None, None)]
    sure: dict[str, Any] = {"low": 0.0, "high": 0.0, "sure_low": 2.0, "sure_high": 4.0}
    found = trend_of(figure(), table_of([figure(**sure, smoothed_low=low, smoothed_high=high) for low, high in spans]))
    assert found.contradicted.tolist() == [False, True, False, True, False]


def test_figures_of_two_rows_make_a_panel() -> None:
    """Of the last row with figures; what another one lacks is unknown."""
    early = {"mean": told(1.0, 0.5, None)}
    panel = figure_panel(["a", "b", "c"], [row(early), row(NUMBERS, "empty"), row(NUMBERS)], "min")
    assert panel is not None and panel.is_of_figures
    assert (panel.values, panel.sides) == (["mean", "median", "p90", "share from 8 min", "sum"], ["a", "c"])
    assert panel.is_share == [False, False, False, True, False]
    np.testing.assert_array_equal(panel.value, [[1.0, NAN, NAN, NAN, NAN], [5.0, 5.5, 9.0, 0.2, 500.0]])
    np.testing.assert_array_equal(panel.low[:, :3], [[0.5, NAN, NAN], [4.0, 5.0, NAN]])
    np.testing.assert_array_equal(panel.high[:, :3], [[NAN, NAN, NAN], [6.5, 6.0, 12.0]])
    assert figure_panel(["a", "b"], [row(early), row({})], "") is None
    three = figure_panel(["a", "b", "c"], [row(NUMBERS), row(NUMBERS), row(early)], "")
    assert three is not None and three.values == ["mean"] and three.sides == ["a", "b", "c"]
    assert figure_panel([], [], "") is None


# --------------------------------------------------------------------------------------------------------- differences


@pytest.mark.parametrize(
    ("low", "high", "apart", "half"),
    [
        (1e-9, 4.0, True, 2.0 - 5e-10),
        (0.0, 4.0, False, 2.0),
        (-4.0, 0.0, False, 2.0),
        (-4.0, -1e-9, True, 2.0 - 5e-10),
        (None, 3.0, False, 1.0),
        (None, -1.0, True, 3.0),
        (0.5, None, True, 1.5),
        (-1.0, None, False, 3.0),
        (None, None, False, None),
    ],
)
def test_a_difference_is_told_apart_if_0_is_outside(
    low: float | None, high: float | None, apart: bool, half: float | None
) -> None:
    value = None if low is None or high is None else (low + high) / 2
    one = Figure(name="x", is_share=False, value=2.0 if value is None else value, low=low, high=high)
    assert one.told_apart is apart
    assert one.halves == ([] if half is None else [pytest.approx(half)])
    unknown = Figure(name="x", is_share=False, value=None, low=low, high=high).halves
    assert unknown == (one.halves if value is not None else [])


def test_intervals_of_a_comparison_hold_for_all_values_at_once() -> None:
    """Normal quantiles of 1 - 0.05 / (2 n), from a table."""
    assert [reach_of(number) for number in (0, 1, 2, 10, 100)] == pytest.approx(
        [1.959963984540054, 1.959963984540054, 2.241402727604947, 2.807033768343811, 3.480756404346], rel=1e-10
    )


def test_shares_of_two_sides_are_subtracted() -> None:
    """Each with its ends; those of shares below 0 and above 1 contain those of shares at the edge."""
    tables = {
        "value": np.array([[0.5, 0.2, NAN, -0.1, 1.2], [0.1, 0.25, 0.3, 0.4, 0.5]]),
        "low": np.array([[0.47, 0.16, NAN, -0.2, 1.1], [0.06, 0.22, 0.29, 0.3, 0.4]]),
        "high": np.array([[0.53, 0.24, NAN, -0.05, 1.3], [0.14, 0.28, 0.31, 0.6, 0.7]]),
        "inner": np.array([[NAN, NAN, NAN, 0.1, 0.9], [NAN] * 5]),
    }
    panel = Panel(values=list("abcde"), is_share=[True] * 5, sides=["x", "y"], is_of_figures=False, **tables)
    found = [(one.name, one.is_share, one.value, one.low, one.high) for one in panel.differences(0, 1)]
    assert found[0] == ("a", True, pytest.approx(0.4), pytest.approx(0.35), pytest.approx(0.45))
    assert found[1] == ("b", True, pytest.approx(-0.05), pytest.approx(-0.1), pytest.approx(0.0))
    assert found[2] == ("c", True, None, None, None) and not panel.is_of_figures
    assert found[3][2:4] == (-0.5, pytest.approx(-0.5 - np.hypot(0.1, 0.2)))
    assert found[3][4] == pytest.approx(-0.4 + np.hypot(0.1, 0.1))  # 0 to 0.1 minus 0.3 to 0.4
    assert found[4][3] == pytest.approx(0.5 - np.hypot(0.1, 0.2))  # 0.9 to 1 minus 0.5 to 0.7
    assert found[4][4] == pytest.approx(0.7 + np.hypot(0.1, 0.1))
    assert json.loads(panel.as_json()) == {
        "values": list("abcde"),
        "shares": [True] * 5,
        "scales": ["share"] * 5,
        "sides": ["x", "y"],
        **{name: np.where(np.isnan(table), None, table).tolist() for name, table in tables.items()},
        "joint": True,
    }
    fine = dataclasses.replace(panel, value=np.array([[0.123456789]]))
    assert json.loads(fine.as_json())["value"] == [[0.1234568]] and " " not in fine.as_json()


def test_sums_with_weights_have_scales_of_their_own() -> None:
    """Their units are not known; shares have one scale, in tables and in charts over the windows."""
    sums = [
        {"name": name, "is_share": is_share, "value": value, "low": value - 0.1, "high": value + 0.1}
        for name, is_share, value in (
            ("a", True, 0.2),
            ("cost", False, 9.0),
            ("b", True, 0.5),
            ("kilograms", False, 70.0),
        )
    ]
    part = sums_part([{"status": "ok", "num_reports": 9, "sums": sums}] * 2)
    assert part is not None and len(set(part.scales)) == 3 and part.scales[0] == part.scales[2]
    beside = [[one.figure.name for one in part.beside(trend)] for trend in part.trends]
    assert beside == [["a", "b"], ["cost"], ["a", "b"], ["kilograms"]]


# -------------------------------------------------------------------------------------------------------------- groups


def share_row(
    group: str, start: str | None, *shares: tuple[str, float], status: str = "ok", number: int = 100
) -> dict[str, Any]:
    entries = [
        {"value": value, "frequency": share, "ci_low": share - 0.05, "ci_high": share + 0.05, "raw_frequency": share}
        | {"standard_error": 0.02, "display_low": share - 0.2, "display_high": share + 0.2}
        for value, share in shares
    ]
    found = {"group": group, "window_start": start, "status": status, "num_reports": number, "entries": entries}
    return found | {"numbers": None}


def entries_of(rows: Any) -> list[Any]:
    return [(of, of["entries"]) for of in rows]


def asked(**more: Any) -> GroupsAsked:
    given: dict[str, Any] = {"values": ["a", "b"], "num_values": 2, "unit": "", "most": 10, "most_cells": 100}
    return GroupsAsked(**given | {"is_compared": True} | more)


def named(of: Any) -> str:
    return f"window {of['window_start']}"


ROWS = [
    share_row("g=1", "2", ("b", 0.3), ("a", 0.06), ("c", 0.2)),
    share_row("g=0", "2", ("a", 0.05), ("b", 0.4), number=70),
    share_row("g=9", "2", status="suppressed"),
    share_row("g=8", "2", status="empty"),
    share_row("g=7", "1", status="suppressed"),
    share_row("g=1", "1", ("a", 0.9)),
]


def test_groups_stand_by_value_and_then_by_group() -> None:
    """Those of the latest window with numbers, with the interval of each value alone; others are named."""
    [part] = groups_of(asked(), ROWS, entries_of, named)
    assert (part.window, part.number, part.without, part.left_out) == (
        *("window 2", 2, {"empty": ["g=8"], "suppressed": ["g=9"]}, 0),
    )
    assert [(line.figure.name, line.group, line.figure.value, line.num_reports) for line in part.lines] == [
        ("a", "g=0", 0.05, 70),
        ("a", "g=1", 0.06, 100),
        ("b", "g=0", 0.4, 70),
        ("b", "g=1", 0.3, 100),
    ]
    first = part.lines[1].figure
    assert (first.low, first.high) == pytest.approx((0.01, 0.11))
    assert [line.figure.told_apart for line in part.lines] == [False, True, True, True] and first.is_share
    assert {line.form.digits for line in part.lines} == {1}
    assert part.panel is not None and not part.panel.is_of_figures
    assert (part.panel.sides, part.panel.values) == (["g=0", "g=1"], ["a", "b"])
    np.testing.assert_array_equal(part.panel.value, [[0.05, 0.4], [0.06, 0.3]])
    assert part.panel.high[1, 0] == pytest.approx(0.06 + 0.05 * reach_of(2) / reach_of(1))


def test_groups_without_numbers_have_no_part() -> None:
    assert groups_of(asked(), [], entries_of, named) == []
    assert groups_of(asked(), ROWS[2:5], entries_of, named) == []
    whole = [share_row("g=1", None, ("a", 0.5))]
    [part] = groups_of(asked(), whole, entries_of, named)
    assert part.panel is None and part.number == 1


def test_what_does_not_fit_is_counted() -> None:
    [part] = groups_of(asked(most=3, is_compared=False), ROWS, entries_of, named)
    assert (len(part.lines), part.left_out, part.panel) == (3, 1, None)
    [part] = groups_of(asked(most=4), ROWS, entries_of, named)
    assert part.left_out == 0
    [part] = groups_of(asked(values=[]), ROWS, entries_of, named)
    assert part.lines == [] and part.panel is None
    many = [f"v{at}" for at in range(12)]
    rows = [share_row("g=1", "1", *((value, 0.5) for value in many)), share_row("g=2", "1", ("v0", 0.5))]
    [part] = groups_of(asked(values=many, most=50), rows, entries_of, named)
    assert [line.figure.name for line in part.lines] == ["v0", *many[:10]]


def test_figures_of_groups_have_decimals_of_their_own() -> None:
    """Equal in all groups, as the shortest interval of that figure needs; shares have one number of them."""

    def numbers(width: float, share: float) -> dict[str, Any]:
        return {
            "mean": told(10.0, 10.0 - width, 10.0 + width),
            "shares_above": [told(0.5, 0.5 - share, 0.5 + share, limit=3.0)],
        }

    rows = [
        share_row("g=1", "1") | {"numbers": numbers(2.0, 0.3)},
        share_row("g=2", "1") | {"numbers": numbers(0.2, 0.004)},
    ]
    open_one = {
        "mean": told(10.0, None, 10.05),
        "quantiles": [told(9.0, 8.901, None, q=0.9), told(None, 1.0, None, q=0.1)],
    }
    rows.append(share_row("g=3", "1") | {"numbers": open_one})
    rows.append(share_row("g=4", "1") | {"numbers": {"mean": told(10.0, None, None)}})
    [part] = groups_of(asked(unit="min"), rows, entries_of, named)
    digits = {(line.figure.name, line.group): line.form.digits for line in part.lines}
    assert {digits["mean", f"g={at}"] for at in (1, 2, 3, 4)} == {3} and digits["p90", "g=3"] == 3
    assert {digits["share from 3 min", f"g={at}"] for at in (1, 2)} == {2}
    assert part.panel is not None and part.panel.is_of_figures and part.panel.sides == ["g=1", "g=2", "g=3", "g=4"]


def test_a_line_is_told_apart_by_its_low_end() -> None:
    assert [figure(low=low).told_apart for low in (None, 0.0, -1.0, 1e-9)] == [False, False, False, True]


def test_a_mean_below_0_is_told_apart_from_0() -> None:
    spans = [(-8.4, -0.2), (-8.4, 0.0), (None, -0.2), (-8.4, None)]
    assert [figure(low=low, high=high).told_apart for low, high in spans] == [True, False, True, False]


# --------------------------------------------------------------------------------------------------------- comparisons


def compared(
    q_value: float = 0.01,
    low: float | None = 0.1,
    high: float | None = 0.3,
    smooth: tuple[float | None, float | None] = (None, None),
    value: float = 0.2,
) -> compared_rows.Difference:
    one = Figure(name="v", is_share=False, value=value, low=low, high=high)
    smoothed = dataclasses.replace(one, low=smooth[0], high=smooth[1])
    return compared_rows.Difference(figure=one, smooth=smoothed, a="x", b="y", q_value=q_value, noticeable=None)


def test_a_difference_is_found_up_to_a_q_value_of_a_twentieth() -> None:
    assert [compared(q).found for q in (0.05, 0.0500001, 0.0)] == [True, False, True]
    sizes = [compared(value=value, low=-0.1, high=None).size for value in (0.2, -0.2)]
    assert [(one.value, one.low, one.high) for one in sizes] == [(0.2, -0.1, None), (0.2, None, 0.1)]


@pytest.mark.parametrize(
    ("low", "high", "shows"),
    [
        *((1e-9, 0.1, True), (0.0, 0.1, False), (-0.1, 0.0, False), (-0.1, -1e-9, True), (None, 0.1, False)),
        *((None, -0.1, True), (0.1, None, True), (-0.1, None, False), (None, None, False)),
    ],
)
def test_only_the_smooth_interval_shows_what_is_not_found(low: float | None, high: float | None, shows: bool) -> None:
    assert compared(0.2, 0.0, smooth=(low, high)).shows_only_smooth is shows
    assert not compared(0.01, 0.0, smooth=(low, high)).shows_only_smooth
    assert not compared(0.2, 1e-9, smooth=(low, high)).shows_only_smooth
    assert not compared(0.2, None, -1e-9, smooth=(low, high)).shows_only_smooth


def test_decimals_of_figures_are_those_of_their_interval() -> None:
    def digits(low: float | None, high: float | None, value: float = 0.2) -> int | None:
        return digits_of_one(compared(low=low, high=high, value=value).figure)

    assert [digits(0.0, length) for length in (0.19, 0.21, 2.1)] == [3, 2, 1]
    assert (digits(None, 3.1, 2.0), digits(1.1, None, 2.0)) == (1, 2)
    assert (digits(None, None), digits(1.0, 1.19)) == (3, 3)
    assert digits_of_one(compared(smooth=(1.1, None), value=2.0).smooth) == 2


def line(value: str = "v", difference: float = 0.2, q_value: float = 0.01, **more: Any) -> dict[str, Any]:
    place = {"collection_id": "c", "collection_version": 1, "value": value, "group_a": "x", "group_b": "y"}
    numbers = {"difference": difference, "p_value": q_value / 2, "q_value": q_value, "low": 0.1, "high": 0.3}
    return place | numbers | {"selected_low": 0.05, "selected_high": 0.35} | more


def written(folder: Any, *rows: dict[str, Any], most: int = 10) -> list[compared_rows.Comparisons]:
    (folder / "comparisons.jsonl").write_text("".join(f"{json.dumps(of)}\n" for of in rows), encoding="utf-8")
    return comparisons_of(str(folder), most)


def test_comparisons_are_divided_into_what_is_found_and_what_is_not(tmp_path: Any) -> None:
    """The clearest ones first; of those that are found the interval after the selection."""
    rows = [line(f"v{at}", q_value=q, display_low=0.0) for at, q in enumerate((0.04, 0.3, 0.05, 0.001, 0.2, 0.06))]
    [of] = written(tmp_path, *rows, most=2)
    assert [one.figure.name for one in of.found] == ["v3", "v0"] and [one.figure.name for one in of.untold] == [
        "v5",
        "v4",
    ]
    assert (of.found_left_out, of.untold_left_out, of.number, of.is_smooth) == (1, 1, 6, True)
    assert [(one.figure.low, one.figure.high) for one in (of.found[0], of.untold[0])] == [(0.05, 0.35), (0.1, 0.3)]
    assert (of.name, of.period, of.anytime, of.liars, of.is_old) == ("c", None, False, None, False)
    [exact] = written(tmp_path, *rows, most=3)
    assert (exact.found_left_out, exact.untold_left_out) == (0, 0)
    assert [(one.figure.low, one.figure.high) for one in exact.found] == [(0.05, 0.35)] * 3
    old = {name: value for name, value in line().items() if not name.startswith("selected_")}
    [of] = written(tmp_path, old)
    assert [(one.figure.low, one.figure.high) for one in of.found] == [(0.1, 0.3)] and not of.is_smooth
    assert written(tmp_path, line("a", display_high=0.1))[0].is_smooth
    assert written(tmp_path, line("a", q_value=0.1, low=-0.1, display_low=0.1))[0].some_show_only_smooth
    [single] = written(tmp_path, line("a", q_value=0.1, display_low=0.1))
    assert single.some_are_single and not single.some_show_only_smooth
    assert not written(tmp_path, line("a", q_value=0.01, display_low=0.1))[0].some_show_only_smooth


def test_what_comparisons_are_of(tmp_path: Any) -> None:
    first = {"window_start": "2", "window_end": "5", "liars": 0.01, "interval": "anytime"}
    [of] = written(tmp_path, line(**first), line(window_start="1", window_end="4", liars=0.03), line(liars=0.02))
    assert (of.period, of.liars, of.anytime) == ("1 to 5", 0.03, True)
    assert [part.period for part in written(tmp_path, line(window_start="1"))] == [None]
    days = {"window_start": "2001-03-04T23:00:00Z", "window_end": "2001-03-05T23:00:00Z"}
    windows = {"group_a": "window=2001-03-04T23:00:00Z", "group_b": "window=b"}
    written(tmp_path, line(**days, **windows))
    [of] = comparisons_of(str(tmp_path), 10, clock("Europe/Berlin"))
    assert (of.period, of.found[0].a, of.found[0].b) == ("Mon 5 Mar 2001", "Mon 5 Mar 2001", "window=b")
    kinds = {"mean": False, "quantile": False, "share": True, None: True}
    [of] = written(tmp_path, *(line(str(kind), figure=kind) for kind in kinds))
    assert {one.figure.name: one.figure.is_share for one in of.found} == {
        str(kind): is_share for kind, is_share in kinds.items()
    }
    assert len(of.shares) == 2


def test_comparisons_are_old_if_counts_were_written_after_them(tmp_path: Any) -> None:
    written(tmp_path, line())
    counts = [tmp_path / f"counts-{at}.avro" for at in (1, 2)]
    for times, is_old in (((9, 9), False), ((10, 9), False), ((9, 11), True)):
        for path, time in zip(counts, times):
            path.touch()
            os.utime(path, (time, time))
        os.utime(tmp_path / "comparisons.jsonl", (10, 10))
        [of] = comparisons_of(str(tmp_path), 10)
        assert of.is_old is is_old


@pytest.mark.parametrize(
    "change",
    [
        *({"value": 5}, {"group_a": None}, {"q_value": "x"}, {"p_value": True}, {"difference": None}, {"low": "x"}),
        *({"liars": False}, {"noticeable": "x"}, {"window_start": 5}, {"collection_version": "1"}, {"high": 1e999}),
    ],
)
def test_other_rows_are_refused(change: dict[str, Any], tmp_path: Any) -> None:
    with pytest.raises(SpecError) as caught:
        written(tmp_path, line(), line() | change)
    path = tmp_path / "comparisons.jsonl"
    assert str(caught.value) == f"{path} must contain rows of uldp compare (the content is not shown)"
    for name in line().keys() - {"selected_high"}:
        (tmp_path / "comparisons.jsonl").write_text(json.dumps({k: v for k, v in line().items() if k != name}), "utf-8")
        if name in ("collection_version", "selected_low"):
            assert len(comparisons_of(str(tmp_path), 10)) == 1
        else:
            with pytest.raises(SpecError, match="must contain rows of uldp compare"):
                comparisons_of(str(tmp_path), 10)
    for content in ("{", "5\n"):
        (tmp_path / "comparisons.jsonl").write_text(content, "utf-8")
        with pytest.raises(SpecError, match="must contain rows of uldp compare"):
            comparisons_of(str(tmp_path), 10)
    assert len(written(tmp_path, line(low=None, high=None, liars=0, noticeable=None, window_end=None))) == 1
