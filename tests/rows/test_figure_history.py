"""Figures of numbers as series, smoothed, and in sentences: by hand, number by number."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.support.rows.history_rows import HOUR, row_of
from uldp_transforms.ldp.smoothing import Alarms, Past, Shares
from uldp_transforms.rows.entry_columns import EntryColumns
from uldp_transforms.rows.figure_history import (
    _crossing,
    has_figures,
    in_order,
    rows_of_figures,
    sentence_of_change,
    series_of_figures,
    with_smoothed,
)
from uldp_transforms.rows.row_types import MeanFigure, NumberFigures, QuantileFigure, ShareBelow, ShareFigure
from uldp_transforms.rows.window_history import Neighbours

NAN = np.nan
FIGURES = NumberFigures(
    mean=MeanFigure(value=22.0, half_bin=5.0, standard_error=0.8, people_variance=0.16, common_variance=None),
    quantiles=(QuantileFigure(0.5, None, None, None), QuantileFigure(0.9, None, None, None)),
    shares_above=(ShareFigure(20.0, None, None, None), ShareFigure(25.0, None, None, None)),
    below=(ShareBelow(10.0, 0.1, 0.02, 0.001), ShareBelow(20.0, 0.5, 0.03), ShareBelow(30.0, 0.7, 0.04, 0.002)),
    share=0.25,
)
"""Four bins of 10 from 0 to 40: centres lie from 5 to 35. A quarter of the people have a number."""


def figures_row(figures: NumberFigures = FIGURES, **fields: Any) -> Any:
    return row_of(0, [])._replace(numbers=figures, **fields)


def cells_of(row: Any) -> dict[str, list[float]]:
    columns = EntryColumns.of(row.estimates)
    return {name: columns.column(name).tolist() for name in columns.names} | {"names": list(columns.values)}


def test_figures_as_shares_by_hand() -> None:
    """The mean is 17 of 30 on its way from 5 to 35, nearer to the upper end; 0.5 is no more than a half."""
    mean, edges = rows_of_figures(figures_row())
    assert has_figures(figures_row()) and not has_figures(figures_row(NumberFigures()))
    found = cells_of(mean)
    assert found["names"] == ["above "]
    assert found["raw_frequency"] == pytest.approx([13 / 30])
    assert found["standard_error"] == pytest.approx([0.8 / 30])
    assert found["people_variance"] == pytest.approx([0.16 / 900])
    assert np.isnan(found["common_variance"]).all()
    found = cells_of(edges)
    assert found["names"] == ["below 10.0", "below 20.0", "above 30.0"]
    assert found["raw_frequency"] == pytest.approx([0.1, 0.5, 0.3])
    assert found["standard_error"] == [0.02, 0.03, 0.04]
    np.testing.assert_array_equal(found["common_variance"], [0.001, NAN, 0.002])
    below, errors = np.array([0.1, 0.5, 0.7]), np.array([0.02, 0.03, 0.04])
    people = (below * (1 - below) + errors**2) / 25  # of 100 reports, a quarter are of people with a number
    assert found["people_variance"] == pytest.approx(people)


def test_series_keep_the_side_that_they_began_with() -> None:
    mean, edges = rows_of_figures(figures_row(), ["below ", "above 10.0", "below 30.0"])
    assert cells_of(mean)["names"] == ["below "]
    assert cells_of(mean)["raw_frequency"] == pytest.approx([17 / 30])
    assert cells_of(edges)["names"] == ["above 10.0", "below 20.0", "below 30.0"]
    assert cells_of(edges)["raw_frequency"] == pytest.approx([0.9, 0.5, 0.7])


# ------------------------------------------------------------------------------------------------- smoothed figures


def test_shares_measured_from_above_are_turned_round_with_their_ends() -> None:
    shares = Shares(np.array([[0.2, 0.3]]), np.array([[0.1, 0.25]]), np.array([[0.4, 0.5]]))
    found = in_order(shares, ["below 1.0", "above 2.0"])
    np.testing.assert_allclose(found.means, [[0.2, 0.7]])
    np.testing.assert_allclose(found.low, [[0.1, 0.5]])
    np.testing.assert_allclose(found.high, [[0.4, 0.75]])


def shares_at(means: list[float], low: list[float], high: list[float]) -> Shares:
    """Of the second of two windows; the first has other numbers."""
    return Shares(*(np.array([[0.0] * len(part), part]) for part in (means, low, high)))


NAMES = ["above 30.0", "below 10.0", "below 20.0"]


def test_smoothed_quantiles_and_shares_by_hand() -> None:
    """The shares below 10, 20 and 30 are 0.2, 0.6 and 0.8. So the median lies three quarters of the way from 10 to 20,
    and the 90 % quantile in the end bin. The upper end of the distribution function reaches a half at 10 + 10 / 2, its
    lower end at 20 + 10 / 2."""
    shares = shares_at([0.8, 0.2, 0.6], [0.7, 0.1, 0.3], [0.9, 0.3, 0.7])
    numbers = with_smoothed(figures_row(), NAMES, shares, 1).numbers
    median, high = numbers.quantiles
    assert median[-3:] == pytest.approx((17.5, 15.0, 25.0))
    assert (high.smoothed_value, high.smoothed_low, high.smoothed_high) == (None, pytest.approx(30.0), None)
    at_edge, inside = numbers.shares_above
    assert at_edge[-3:] == pytest.approx((1 - 0.6, 1 - 0.7, 1 - 0.3))
    assert inside[-3:] == pytest.approx((1 - 0.7, 1 - 0.9, 1 - 0.3))
    assert numbers.mean == FIGURES.mean


def test_a_distribution_function_that_is_not_in_order_is_sorted() -> None:
    """And so are both ends of its intervals, each by itself, after they are cut at 0 and 1."""
    sorted_, mixed = (
        with_smoothed(figures_row(), NAMES, shares_at(*parts), 1).numbers
        for parts in (
            ([0.8, 0.2, 0.6], [0.7, 0.0, 0.3], [1.0, 0.3, 0.7]),
            ([0.2, 0.6, 0.8], [0.3, 0.7, -0.4], [0.7, 1.3, 0.3]),
        )
    )
    assert mixed == sorted_
    assert mixed.quantiles[0].smoothed_value == pytest.approx(17.5)


@pytest.mark.parametrize(("median", "value"), [(10.0, 10.0), (30.0, 30.0), (9.9, None), (30.1, None)])
def test_a_quantile_in_an_end_bin_has_no_value(median: float, value: float | None) -> None:
    """At an edge it still has one: the shares below 10 and 30 are chosen so."""
    below = {10.0: [0.5, 0.6, 0.7], 30.0: [0.1, 0.2, 0.5], 9.9: [0.51, 0.6, 0.7], 30.1: [0.1, 0.2, 0.49]}[median]
    means = [below[2], below[0], below[1]]
    shares = shares_at(means, (np.array(means) - 0.05).tolist(), (np.array(means) + 0.05).tolist())
    found = with_smoothed(figures_row(), NAMES, shares, 1).numbers.quantiles[0].smoothed_value
    assert found == (None if value is None else pytest.approx(value))


# ---------------------------------------------------------------------------------------------------------- sentences


def alarms_of(expected: list[float], change: list[float], error: float, moved: list[bool], earlier: bool) -> Alarms:
    """Of two windows. ``earlier`` moved in the first one, so that the change of the second one began with it."""
    zeros = np.zeros((2, len(expected)))
    return Alarms(
        moved=np.array([[earlier] * len(expected), moved]),
        seen=zeros,
        p_value=np.array([1.0, 0.001]),
        expected=np.array([expected, expected]),
        expected_variance=zeros,
        change=np.array([change, change]),
        change_error=zeros + error,
        step=zeros,
        past=Past.empty(len(expected)),
    )


def sentence(
    names: tuple[str, ...], expected: list[float], change: list[float], moved: list[bool], **fields: Any
) -> str:
    """In a window that is changed, after one that was not, or as much."""
    earlier = fields.get("again", False)
    raw = np.array([expected, expected]) + np.array([np.full(len(names), fields.get("earlier", 0.0)), change])
    entries = EntryColumns(names, ("raw_frequency", "standard_error"), np.array([raw[0], np.full(len(names), 0.01)]))
    one = Neighbours.of([row_of(0, entries), row_of(HOUR, entries)])
    windows = dataclasses.replace(one, raw=raw)
    alarms = alarms_of(expected, change, 0.01, moved, earlier)
    return sentence_of_change(figures_row(), windows, series_of_figures(windows), alarms, 1)


def test_a_moved_mean_is_told_in_its_unit() -> None:
    """One series: 95 % of the normal law, for the beginnings that could be; from above, the sign is turned."""
    for again, looks in ((True, 1), (False, 2)):
        half = stats.norm.isf(0.025 / looks) * 0.01 * 30
        for name, sign in (("below ", 1), ("above ", -1)):
            told = sentence((name,), [0.4], [0.2 * sign], [True], again=again)
            assert told == f"The mean moved by +6 (+{6 - half:.4g} to +{6 + half:.4g})."


def test_a_change_that_began_earlier_says_so() -> None:
    """Both windows are as far away, so the longer mean is surer: its error is that of two windows."""
    for name, told in (("below ", "The mean moved by +6"), ("below 10.0", "percentage points: below 10 +20.00")):
        found = sentence((name,), [0.4], [0.2], [True], earlier=0.2)
        assert told in found and found.endswith(") over 2 windows.")


def test_moved_shares_and_quantiles_are_told_largest_first() -> None:
    """Three series at once, so each at 95 % / 3. Below 20 moved most, then below 10; the median passes both:
    to 22, because the shares are sorted."""
    half = 100 * stats.norm.isf(0.025 / 3) * 0.01
    names = ("below 10.0", "below 20.0", "above 30.0")
    told = sentence(names, [0.55, 0.6, 0.3], [-0.1, -0.4, 0.0], [True, True, False], again=True)
    assert told == (
        "Quantiles moved: median from below 10 to 22. "
        "Shares of numbers moved, in percentage points: "
        f"below 20 -40.00 ({-40 - half:+.2f} to {-40 + half:+.2f}), "
        f"below 10 -10.00 ({-10 - half:+.2f} to {-10 + half:+.2f})."
    )


def test_a_quantile_that_was_at_an_edge_has_not_passed_it() -> None:
    told = sentence(("below 10.0", "below 20.0", "above 30.0"), [0.1, 0.5, 0.1], [0, 0.1, 0], [False, True, False])
    assert told.startswith("Shares of numbers moved, in percentage points: below 20 +10.00 (")


@pytest.mark.parametrize(
    ("q", "told"), [(0.1, "below 10"), (0.05, "below 10"), (0.2, "12.5"), (0.5, "20"), (0.8, "above 30")]
)
def test_where_a_quantile_is_told(q: float, told: str) -> None:
    """Not in the end bins, whose other ends are only nominal. With shares in any order."""
    assert _crossing(q, np.array([10.0, 20.0, 30.0]), np.array([0.5, 0.1, 0.8])) == told


def test_only_two_edges_are_named_and_shares_from_above_turned_round() -> None:
    half = 100 * stats.norm.isf(0.025 / 3) * 0.01
    names = ("below 10.0", "below 20.0", "above 30.0")
    told = sentence(names, [0.1, 0.2, 0.3], [0.05, 0.06, 0.25], [True, True, True], again=True)
    assert told == (
        "Quantiles moved: median from 26 to above 30. "
        "Shares of numbers moved, in percentage points: "
        f"below 30 -25.00 ({-25 - half:+.2f} to {-25 + half:+.2f}), "
        f"below 20 +6.00 ({6 - half:+.2f} to {6 + half:+.2f}), and 1 more."
    )
