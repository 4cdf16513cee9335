"""Means and quantiles over windows: the series that are smoothed, rows of files and of streams, alarms."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest

from tests.support.rows.delay_rows import BINS, HIGH, LOW, delays, row_of, shares_of
from tests.support.tolerance import binomial_limits, generator, student_limit
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.smoothing.alarm import LEAST_HISTORY
from uldp_transforms.rows.figure_history import _digits, rows_of_figures, series_of_figures
from uldp_transforms.rows.row_types import NumberFigures, WindowedEstimate
from uldp_transforms.rows.smoothed_rows import filter_row, smooth_rows
from uldp_transforms.rows.window_history import Neighbours

EVERY = 1000  # windows between false alarms


def rows_of(
    item: Collection, middles: Sequence[float], rng: np.random.Generator, people: int = 5000
) -> tuple[list[WindowedEstimate], np.ndarray]:
    """Rows of days, and the shares of the people of each day."""
    held = np.array([rng.multinomial(people, shares_of(middle)) for middle in middles])
    return [row_of(item, day, own, rng) for day, own in enumerate(held)], held / people


def quantile_of(shares: np.ndarray, q: float) -> float:
    return float(np.interp(q, np.append(0, np.cumsum(shares)), np.linspace(LOW, HIGH, BINS + 1)))


@pytest.mark.parametrize(("edges", "copies"), [(1, 1.0), (4, 1.0), (5, 1.25), (15, 3.75)])
def test_four_edges_say_as_much_as_all_of_a_series(edges: int, copies: float):
    """The other edges are copies for the filter, which learns how fast shares move from all of them."""
    windows = Neighbours.of(rows_of_figures(row_of(delays(), 0, np.full(BINS, 2000), generator("copies")))[1:])
    few = dataclasses.replace(windows, values=windows.values[:edges])
    assert len(windows.values) == BINS - 1
    assert series_of_figures(few).copies == copies


def test_smoothed_figures_are_shorter_in_order_and_the_same_in_any_order():
    item, rng = delays(), generator("smoothed numbers")
    rows, _ = rows_of(item, [6.0] * 14, rng)
    order = rng.permutation(14)
    smooth = [row for row, _ in smooth_rows(rows, 0.0, EVERY)]
    assert [row for row, _ in smooth_rows([rows[at] for at in order], 0.0, EVERY)] == [smooth[at] for at in order]
    for row in smooth:
        mean, numbers = row.numbers.mean, row.numbers
        assert LOW < mean.smoothed_low < mean.smoothed_value < mean.smoothed_high < HIGH
        for one in numbers.quantiles:
            assert one.smoothed_low < one.smoothed_value < one.smoothed_high
        at_edge, inside = numbers.shares_above
        assert 0 <= at_edge.smoothed_low < at_edge.smoothed_value < at_edge.smoothed_high <= 1
        assert inside.smoothed_high == at_edge.smoothed_high  # from 20: between the edges 15 and 30
        assert inside.smoothed_low < at_edge.smoothed_low
    own, other = (
        np.mean([getattr(row.numbers.mean, high) - getattr(row.numbers.mean, low) for row in smooth])
        for low, high in (("low", "high"), ("smoothed_low", "smoothed_high"))
    )
    assert other < 0.8 * own


def test_rows_without_numbers_pass():
    item = delays()
    rows, _ = rows_of(item, [6.0] * 3, generator("without numbers"))
    withheld = rows[1]._replace(status="suppressed", estimates=[], numbers=NumberFigures(), num_reports=None)
    smooth = list(smooth_rows([rows[0], withheld, rows[2]], 0.0, EVERY))
    assert smooth[1] == (withheld, None)
    assert smooth[0][0].numbers.mean.smoothed_value is not None
    logs = delays(low=1, scale="log")
    [(row, _)] = smooth_rows([row_of(logs, 0, np.full(BINS, 2000), generator("log"))], 0.0, EVERY)
    assert row.numbers.mean.smoothed_value is None
    assert row.numbers.quantiles[1].smoothed_value is not None


def test_a_stream_has_the_figures_and_alarms_of_its_windows_so_far():
    """Its last row is that of files, though its state went through bytes; one window was late; the mean moves."""
    item = delays()
    rows, _ = rows_of(item, [6.0] * 12 + [9.0] * 2, generator("stream of numbers"), people=20_000)
    windows, changes = Neighbours.of([], 0.0), []
    for at in (0, 1, 2, 4, 3, *range(5, 14)):
        windows, row, change = filter_row(Neighbours.from_bytes(windows.to_bytes()), rows[at], EVERY)
        changes.append(change)
    whole = list(smooth_rows(rows, 0.0, EVERY))
    assert row.numbers == whole[-1][0].numbers
    assert changes[5:] == [change for _, change in whole[5:]]
    assert [change.fired for change in changes] == [False] * 12 + [True, False]
    sentence = changes[12].sentence
    assert "The mean moved by +4" in sentence
    assert "Quantiles moved: p10 from" in sentence
    assert "Shares of numbers moved, in percentage points: below" in sentence
    assert len(windows.figures) == 2
    kept = filter_row(windows, rows[13], EVERY, horizon=5)[0]
    assert [len(kind) for kind in kept.figures] == [5, 5]
    late = filter_row(kept, rows[1], EVERY, horizon=5)
    assert late == (kept, rows[1], None)


@pytest.mark.parametrize(
    ("low", "high", "scale", "told"),
    [
        (0, 1.6e-12, "linear", ["The mean moved by +2.", "e-13 (+", "median from 6.", "e-13 to 9.", "below 8e-13 -"]),
        (1.7e9, 1.7e9 + 16, "linear", ["The mean moved by +2.9", "median from 170000000", "below 1700000008 -"]),
        (-1.6e12, 1.6e12, "linear", ["The mean moved by +5", "e+11 (", "median from -", "below 0 -"]),
        (1e-4, 1e12, "log", ["Quantiles moved: p10 from ", "below 10000 -"]),
    ],
)
def test_sentences_about_numbers_of_any_size(low: float, high: float, scale: str, told: list[str]):
    """With digits enough to tell edges and quantiles apart."""
    item, rng = delays(low=low, high=high, scale=scale), generator("numbers of any size")
    held = [np.rint(20_000 * shares_of(middle)).astype(int) for middle in [6.0] * 9 + [9.0]]
    rows = [row_of(item, day, own, rng, limits=None) for day, own in enumerate(held)]
    sentence = list(smooth_rows(rows, 0.0, EVERY))[-1][1].sentence
    assert [part for part in told if part not in sentence] == [], sentence
    assert "+0.00" not in sentence


@pytest.mark.parametrize(
    ("number", "width", "digits"),
    [(1.7e9, 1.0, 12), (-1.7e9, 1.0, 12), (123.4, 0.01, 7), (5e11, 1e11, 4), (6.1e-13, 1e-13, 4), (0.0, 8.0, 4)],
)
def test_digits_tell_the_hundredth_part_of_a_bin(number: float, width: float, digits: int):
    assert _digits(number, width) == digits


@pytest.mark.slow
def test_intervals_of_smoothed_figures_hold():
    """Populations that stay, vary by day, walk and jump: 10 series of 40 windows each.

    Windows of a series are dependent, so that limits are those of the mean over series.
    """
    item, rng, days = delays(1.0), generator("coverage of smoothed numbers"), np.arange(40)
    series = {
        "still": lambda: np.full(40, 6.0),
        "days": lambda: 6 + rng.normal(0, 0.3, 40),
        "walk": lambda: 6 + np.cumsum(rng.normal(0, 0.1, 40)),
        "jump": lambda: 6 + 1.0 * (days >= 20),
    }
    centres = np.linspace(LOW + 7.5, HIGH - 7.5, BINS)
    for name, middles in series.items():
        for people in (2000, 20_000):
            held = np.zeros((10, 5))
            for run in range(10):
                rows, own = rows_of(item, middles().tolist(), rng, people)
                for (row, _), shares in zip(smooth_rows(rows, 0.0, EVERY), own):
                    numbers = row.numbers
                    told = [(numbers.mean, shares @ centres), (numbers.shares_above[0], shares[5:].sum())]
                    told += [(one, quantile_of(shares, one.q)) for one in numbers.quantiles]
                    for place, (figure, true) in enumerate(told):
                        low = -np.inf if figure.smoothed_low is None else figure.smoothed_low
                        high = np.inf if figure.smoothed_high is None else figure.smoothed_high
                        held[run, place] += low <= true <= high
            covered = held / 40
            print(name, people, covered.mean(axis=0).round(3))
            errors = covered.std(axis=0, ddof=1) / np.sqrt(10)
            assert (covered.mean(axis=0) > 0.9 - student_limit(9, 40) * errors).all(), (name, people)


@pytest.mark.slow
def test_figures_of_honest_streams_ring_as_rarely_as_stated():
    """1 in 50 windows at most is allowed here, so that rings could be seen: 30 streams of 60 windows of each kind.

    Windows with an alarm are at most binomial of rate 1 / 50; the limit is exceeded with probability 1e-6.
    """
    item, rng, rings, judged = delays(2.0), generator("false alarms of numbers"), 0, 0
    for spread in (0.0, 0.1) * 30:
        rows, _ = rows_of(item, (6 + rng.normal(0, spread, 60)).tolist(), rng, 3000)
        rings += sum(change.fired for _, change in smooth_rows(rows, 0.0, 50) if change is not None)
        judged += 60 - LEAST_HISTORY
    print(rings, "rings in", judged, "windows")
    assert rings <= binomial_limits(judged, 1 / 50, rate=1e-6)[1]
