"""Findings about changes and smoothed entries, by hand: what is named, how sure, and how rarely it rings by chance."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from tests.support.rows.delay_rows import delays, shares_of
from tests.support.rows.delay_rows import row_of as row_of_numbers
from tests.support.tolerance import generator
from uldp_transforms.ldp.sentinels import Finding
from uldp_transforms.ldp.smoothing import judge
from uldp_transforms.rows.figure_history import rows_of_figures, series_of_figures
from uldp_transforms.rows.row_types import NumberFigures, WindowedEstimate
from uldp_transforms.rows.smoothed_rows import _joined, filter_row, smooth_rows
from uldp_transforms.rows.window_history import Neighbours


def finding(p_value: float, fired: bool, sentence: str, statistic: float = 1.0) -> Finding:
    return Finding(name="change", statistic=statistic, p_value=p_value, fired=fired, sentence=sentence)


def test_findings_about_several_kinds_are_one() -> None:
    """Of the least likely one, times the number of kinds; with the sentences of those that fired, in order."""
    mean, curve, entries = finding(0.3, True, "M."), finding(0.01, False, "no", 7.0), finding(0.2, True, "E.")
    assert _joined([mean, curve, entries]) == finding(0.03, True, "M. E.", 7.0)
    assert _joined([finding(0.6, False, "a"), finding(0.7, False, "b")]) == finding(1.0, False, "Nothing unusual.")
    assert _joined([mean]) == mean
    assert _joined([]) is None


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
