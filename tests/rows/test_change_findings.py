"""Findings about changes and smoothed entries, by hand: what is named, how sure, and how rarely it rings by chance."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest
from scipy import stats

from tests.support.rows.delay_rows import delays, shares_of
from tests.support.rows.delay_rows import row_of as row_of_numbers
from tests.support.rows.history_rows import entry, row_of
from tests.support.tolerance import generator
from uldp_transforms.ldp.sentinels import Finding
from uldp_transforms.ldp.smoothing import Alarms, Change, Past, Shares, judge
from uldp_transforms.rows.entry_columns import EntryColumns
from uldp_transforms.rows.figure_history import rows_of_figures, series_of_figures
from uldp_transforms.rows.row_types import NumberFigures, WindowedEstimate
from uldp_transforms.rows.smoothed_rows import _finding, _joined, _sentence, _shown, filter_row, smooth_rows
from uldp_transforms.rows.window_history import Neighbours

NAN = np.nan


def finding(p_value: float, fired: bool, sentence: str, statistic: float = 1.0) -> Finding:
    return Finding(name="change", statistic=statistic, p_value=p_value, fired=fired, sentence=sentence)


def test_findings_about_several_kinds_are_one() -> None:
    """Of the least likely one, times the number of kinds; with the sentences of those that fired, in order."""
    mean, curve, entries = finding(0.3, True, "M."), finding(0.01, False, "no", 7.0), finding(0.2, True, "E.")
    assert _joined([mean, curve, entries]) == finding(0.03, True, "M. E.", 7.0)
    assert _joined([finding(0.6, False, "a"), finding(0.7, False, "b")]) == finding(1.0, False, "Nothing unusual.")
    assert _joined([mean]) == mean
    assert _joined([]) is None


def test_the_statistic_of_a_change_is_the_largest_in_units_of_its_error() -> None:
    zeros = np.zeros((2, 3))
    alarms = Alarms(
        moved=np.array([[False] * 3, [False, True, False]]),
        seen=zeros,
        p_value=np.array([1.0, 0.25]),
        expected=zeros,
        expected_variance=zeros,
        change=np.array([[0.4, 0.4, 0.4], [0.1, -0.6, 0.2]]),
        change_error=np.array([[0.1, 0.1, 0.1], [0.1, 0.2, 0.1]]),
        step=zeros,
        past=Past.empty(3),
    )
    assert _finding(alarms, 1, "s") == finding(0.25, True, "s", pytest.approx(3.0))
    assert _finding(alarms, 0, "s") == finding(1.0, False, "s", 0.0)


def test_five_values_are_named_with_the_largest_changes_first() -> None:
    """Each at 95 % / 9 values / the number of beginnings compared; a change that began earlier says so."""
    windows = Neighbours.of([row_of(0, [entry(f"v{i}", 0.1, 0.1) for i in range(9)])])
    size = np.array([0.01, -0.05, 0.04, 0.02, -0.03, 0.06, 0.005])
    change = Change(size, np.full(7, 0.001), np.array([1, 1, 2, 1, 3, 1, 1]), np.array([1, 2, 1, 1, 1, 1, 1]))
    half = {looks: 0.1 * stats.norm.isf(0.025 / 9 / looks) for looks in (1, 2)}

    def told(value: str, points: float, looks: int = 1, since: str = "") -> str:
        return f"'{value}' {points:+.2f} ({points - half[looks]:+.2f} to {points + half[looks]:+.2f}){since}"

    parts = [
        told("v7", 6),
        told("v2", -5, looks=2),
        told("v3", 4, since=" over 2 windows"),
        told("v5", -3, since=" over 3 windows"),
        told("v4", 2),
    ]
    moved = np.array([1, 2, 3, 4, 5, 7, 8])
    assert (
        _sentence(windows, change, moved, 0.95)
        == f"Shares moved, in percentage points: {', '.join(parts)}, and 2 more."
    )
    five = Change(*(getattr(change, field.name)[:5] for field in dataclasses.fields(Change)))
    assert _sentence(windows, five, moved[:5], 0.95).endswith("'v1' " + told("v1", 1).partition(" ")[2] + ".")


def test_smoothed_entries_by_hand() -> None:
    """Means of 0.7 and 0.5 are too much by 0.2, of which each gives half; those of a list that is not complete may
    leave a rest. Intervals are cut at 0 and 1, and reach what is shown. A value that is not in the windows is none."""
    shares = Shares(
        means=np.array([[0.7, 0.5, NAN], [0.3, 0.2, NAN]]),
        low=np.array([[0.65, 0.35, NAN], [-0.1, 0.1, NAN]]),
        high=np.array([[1.2, 0.55, NAN], [0.32, 0.38, NAN]]),
    )
    windows = Neighbours.of([row_of(0, [entry(value, 0.1, 0.1) for value in "abc"])])
    listed = row_of(0, [entry("b", 0.5, 0.1), entry("a", 0.7, 0.1)])
    with_rest = listed._replace(unexplained_standard_error=0.1)

    def smoothed(t: int, row: WindowedEstimate) -> dict[str, tuple[float, ...]]:
        [shown] = _shown([(t, row)], windows, shares)
        assert isinstance(shown.estimates, EntryColumns)
        assert [one.raw_frequency for one in shown.estimates] == [0.5, 0.7]
        return {one.value: (one.smoothed_frequency, one.smoothed_low, one.smoothed_high) for one in shown.estimates}

    assert smoothed(0, listed) == {"a": pytest.approx((0.6, 0.6, 1.0)), "b": pytest.approx((0.4, 0.35, 0.55))}
    assert smoothed(0, with_rest) == smoothed(0, listed)
    assert smoothed(1, with_rest) == {"a": pytest.approx((0.3, 0.0, 0.32)), "b": pytest.approx((0.2, 0.1, 0.38))}
    assert smoothed(1, listed) == {"a": pytest.approx((0.55, 0.0, 0.55)), "b": pytest.approx((0.45, 0.1, 0.45))}
    both = [shown.estimates for shown in _shown([(1, listed), (0, with_rest)], windows, shares)]
    assert both == [next(_shown([pair], windows, shares)).estimates for pair in ((1, listed), (0, with_rest))]


@functools.cache
def moved_rows() -> list[WindowedEstimate]:
    """Rows of numbers whose population moves in the last window; without chance in what people hold."""
    rng = generator("change findings")
    held = [np.rint(3000 * shares_of(middle)).astype(int) for middle in [6.0] * 9 + [7.5]]
    return [row_of_numbers(delays(), day, own, rng) for day, own in enumerate(held)]


@pytest.mark.parametrize("way", ["files", "stream"])
def test_kinds_of_figures_share_the_false_alarms(way: str) -> None:
    """Entries, mean and distribution function are three kinds: each rings a third as often as the rows are to ring,
    and rows without figures, which are of one kind, as often. What just rings, or just not, tells them apart."""
    rows = moved_rows()
    names = [one.value for kind in rows_of_figures(rows[0]) for one in kind.estimates]
    figures = zip(*(rows_of_figures(row, names) for row in rows))
    series = [Neighbours.of(rows).series(), *(series_of_figures(Neighbours.of(kind)) for kind in figures)]
    p_values = [float(judge(one, 1e9).p_value[-1]) for one in series]

    def last(some: list[WindowedEstimate], every: float) -> Finding:
        if way == "files":
            found = list(smooth_rows(some, 0.0, every))[-1][1]
        else:
            windows, found = Neighbours.of([], 0.0), None
            for row in some:
                windows, _, found = filter_row(windows, row, every)
        assert found is not None
        return found

    least = min(p_values)
    assert least < 1e-3
    plain = [row._replace(numbers=NumberFigures()) for row in rows]
    for share, fired in ((0.95, True), (1.05, False)):
        found = last(rows, share / least / 3)
        assert (found.fired, found.p_value) == (fired, pytest.approx(3 * least))
        found = last(plain, share / p_values[0])
        assert (found.fired, found.p_value) == (fired, pytest.approx(p_values[0]))
