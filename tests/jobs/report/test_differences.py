"""Differences between two windows: their intervals hold for all values at once."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from uldp_transforms.jobs.report.differences import FigurePanel, Panel, PanelRows, as_json, reach_of

FALSE_ALARM = 1e-6
TRIALS, PEOPLE, VALUES, EPSILON = 4000, 4000, 8, 1.0


def randomized_response(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Raw estimates and standard errors (TRIALS, VALUES) of k-RR by its definition, with equally frequent values."""
    weight = np.exp(EPSILON)
    true, other = weight / (weight + VALUES - 1), 1 / (weight + VALUES - 1)
    counts = np.random.default_rng(seed).multinomial(
        PEOPLE, np.full(VALUES, 1 / VALUES), TRIALS
    )  # k-RR keeps them equal
    seen = counts / PEOPLE
    return (seen - other) / (true - other), np.sqrt(seen * (1 - seen) / PEOPLE) / (true - other)


def test_intervals_hold_for_all_values_at_once() -> None:
    """At most 5 % of comparisons miss anywhere; without the correction far more do."""
    (first, first_error), (second, second_error) = (randomized_response(seed) for seed in (1, 2))
    missed = {}
    for number in (VALUES, 1):
        wrong = 0
        for trial in range(TRIALS):
            panel = Panel(
                values=[str(value) for value in range(VALUES)],
                sides=["first", "second"],
                raw=np.array([first[trial], second[trial]]),
                error=np.array([first_error[trial], second_error[trial]]),
                reach=reach_of(number),
            )
            wrong += any(one.told_apart for one in panel.differences(1, 0))  # the true difference is 0
        missed[number] = wrong
    assert missed[VALUES] <= stats.binom.isf(FALSE_ALARM, TRIALS, 0.05)
    assert missed[1] > stats.binom.isf(FALSE_ALARM, TRIALS, 0.05)


def test_the_panel_has_the_latest_windows_with_numbers() -> None:
    rows = PanelRows(4, ["a", "b"])
    for window in (0, 1, 3):
        entry = {"value": "a", "raw_frequency": window / 10, "standard_error": 0.01}
        rows.add(window, [entry, entry | {"value": "unlisted"}])
    names = ["one", "two", "three", "four"]
    panel = rows.panel(names, 2, 100)
    assert panel is not None and list(panel.sides) == ["one", "two", "four"]
    few = rows.panel(names, 2, 4)
    assert few is not None and list(few.sides) == ["two", "four"]
    assert json.loads(few.as_json())["raw"] == [[0.1, None], [0.3, None]]
    assert PanelRows(4, ["a"]).panel(names, 1, 100) is None


def test_no_text_ends_a_script() -> None:
    text = as_json({"values": ["</script><!--&"]})
    assert not set(text) & set("<>&") and json.loads(text) == {"values": ["</script><!--&"]}


def test_figures_have_the_intervals_of_zou_and_donner_and_may_be_open() -> None:
    """a - b has the ends d - sqrt((a - l_a)^2 + (u_b - b)^2) and d + sqrt((u_a - a)^2 + (b - l_b)^2)."""
    panel = FigurePanel(
        values=["mean", "p90"],
        is_share=[False, False],
        sides=["old", "new"],
        value=np.array([[10.0, 40.0], [13.0, 50.0]]),
        low=np.array([[9.0, 30.0], [12.0, 45.0]]),
        high=np.array([[11.0, np.nan], [17.0, 60.0]]),
    )
    mean, p90 = panel.differences(1, 0)
    assert (mean.difference, mean.low, mean.high) == pytest.approx((3.0, 3 - 2**0.5, 3 + 17**0.5))
    assert mean.told_apart and mean.half == pytest.approx((2**0.5 + 17**0.5) / 2)
    assert (p90.difference, p90.low, p90.high) == (10.0, None, pytest.approx(10 + 200**0.5))
    assert not p90.told_apart and p90.half == pytest.approx(200**0.5)
    assert json.loads(panel.as_json())["high"] == [[11.0, None], [17.0, 60.0]]
