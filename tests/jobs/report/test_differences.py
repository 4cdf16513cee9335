"""Differences between two windows: their intervals hold for all values at once."""

from __future__ import annotations

import json

import numpy as np
from scipy import stats

from uldp_transforms.jobs.report.differences import Panel, PanelRows, as_json, reach_of

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
                windows=["first", "second"],
                raw=np.array([first[trial], second[trial]]),
                error=np.array([first_error[trial], second_error[trial]]),
                reach=reach_of(number),
            )
            difference, half = panel.difference(0, 1)
            wrong += bool((np.abs(difference) > half).any())  # the true difference is 0
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
    assert panel is not None and list(panel.windows) == ["one", "two", "four"]
    few = rows.panel(names, 2, 4)
    assert few is not None and list(few.windows) == ["two", "four"]
    assert json.loads(few.as_json())["raw"] == [[0.1, None], [0.3, None]]
    assert PanelRows(4, ["a"]).panel(names, 1, 100) is None


def test_no_text_ends_a_script() -> None:
    text = as_json({"values": ["</script><!--&"]})
    assert not set(text) & set("<>&") and json.loads(text) == {"values": ["</script><!--&"]}
