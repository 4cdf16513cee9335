"""Differences between two windows: their intervals hold for all values at once."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tests.support.tolerance import binomial_limits, generator
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators import Estimate
from uldp_transforms_compare.comparisons import compare
from uldp_transforms_compare.comparisons.compare import difference_at
from uldp_transforms_report.differences import Panel, PanelRows, as_json

VALUES = 8
SHARES = np.array([0.6, 0.3, 0.06, 0.04, 0, 0, 0, 0])


@functools.cache
def collection() -> Collection:
    alphabet = {"id": "closed", "values": [f"v{at}" for at in range(VALUES)]}
    mechanism = {"id": "krr", "epsilon": 1.0}
    return Collection.from_json({"id": "q", "version": 1, "alphabet": alphabet, "mechanism": mechanism})


def estimates(name: str, people: int, trials: int, shares: np.ndarray = SHARES) -> list[Estimate]:
    """Of counts by the definition of k-RR, of so many people in each trial."""
    true = np.e / (np.e + VALUES - 1)
    law = true * shares + (1 - true) / (VALUES - 1) * (1 - shares)
    counts = generator(name, people).multinomial(people, law, trials)
    return [collection().estimate(CohortCounts(np.array([people]), each[np.newaxis]), "empirical") for each in counts]


def entries(estimate: Estimate) -> list[Mapping[str, Any]]:
    columns = {
        "value": estimate.values,
        "raw_frequency": estimate.raw_frequencies,
        "standard_error": estimate.standard_errors,
        "ci_low": estimate.ci_low,
        "ci_high": estimate.ci_high,
    }
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


def panel_of(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]], num_values: int) -> Panel:
    """Of the entries of two rows."""
    rows = PanelRows(2, [entry["value"] for entry in first])
    rows.add(0, first)
    rows.add(1, second)
    panel = rows.panel(["first", "second"], num_values, 100)
    assert panel is not None
    return panel


@pytest.mark.parametrize("people", [200, 4000])
def test_intervals_hold_for_all_values_at_once(people: int) -> None:
    """At most 5 % of comparisons miss anywhere, also where half of the values are nobody's; uncorrected, more."""
    trials = 1000
    sides = [map(entries, estimates(name, people, trials)) for name in ("first", "second")]
    pairs = [*zip(*sides)]
    _, most = binomial_limits(np.array(trials), np.array(0.05))
    missed = [
        sum(any(one.told_apart for one in panel_of(*pair, number).differences(1, 0)) for pair in pairs)
        for number in (VALUES, 1)
    ]
    assert missed[0] <= most
    assert people == 200 or missed[1] > most


@pytest.mark.parametrize(("people", "most"), [(200, 0.08), (4000, 0.02)])
def test_the_page_has_the_intervals_of_compare(people: int, most: float) -> None:
    """Equal ones of one value, unless a row has cut an end or an estimate is outside [0, 1]; else the standard error
    takes the place of the uncut end, and for all values at once halves grow in proportion, which is a small part of
    the length."""
    outside, pairs = 0, [*zip(estimates("old", people, 50), estimates("new", people, 50))]
    for first, second in pairs[:2]:  # which takes long
        assert compare(first, second).differences == pytest.approx(first.raw_frequencies - second.raw_frequencies)
    for first, second in pairs:
        differences = (first.raw_frequencies - second.raw_frequencies).tolist()
        inside = (np.minimum(first.ci_low, second.ci_low) > 0) & (np.maximum(first.ci_high, second.ci_high) < 1)
        outside += np.count_nonzero(first.raw_frequencies < 0)
        for number, confidence in ((1, 0.95), (VALUES, 1 - 0.05 / VALUES)):
            page = panel_of(entries(first), entries(second), number).differences(0, 1)
            found = difference_at(first, second, confidence)
            length = found[1] - found[0]
            assert [one.value for one in page] == pytest.approx(differences)
            for end, exact in zip(np.array([[one.low, one.high] for one in page]).T, found):
                assert (np.abs(end - exact) <= most * length).all()
                if number == 1:
                    np.testing.assert_allclose(end[inside], exact[inside], rtol=1e-6)
    assert outside > 20


def test_the_panel_has_the_latest_windows_with_numbers() -> None:
    rows = PanelRows(4, ["a", "b"])
    for window in (0, 1, 3):
        entry = {"value": "a", "raw_frequency": window / 10, "standard_error": 0.01, "ci_low": 0.0, "ci_high": 0.5}
        rows.add(window, [entry, entry | {"value": "unlisted"}])
    names = ["one", "two", "three", "four"]
    panel = rows.panel(names, 2, 100)
    assert panel is not None and list(panel.sides) == ["one", "two", "four"]
    few = rows.panel(names, 2, 4)
    assert few is not None and list(few.sides) == ["two", "four"]
    assert json.loads(few.as_json())["value"] == [[0.1, None], [0.3, None]]
    assert PanelRows(4, ["a"]).panel(names, 1, 100) is None


def test_no_text_ends_a_script() -> None:
    text = as_json({"values": ["</script><!--&"]})
    assert not set(text) & set("<>&") and json.loads(text) == {"values": ["</script><!--&"]}


def test_figures_have_the_intervals_of_zou_and_donner_and_may_be_open() -> None:
    """a - b has the ends d - sqrt((a - l_a)^2 + (u_b - b)^2) and d + sqrt((u_a - a)^2 + (b - l_b)^2)."""
    panel = Panel(
        values=["mean", "p90"],
        is_of_figures=True,
        is_share=[False, False],
        sides=["old", "new"],
        value=np.array([[10.0, 40.0], [13.0, 50.0]]),
        low=np.array([[9.0, 30.0], [12.0, 45.0]]),
        high=np.array([[11.0, np.nan], [17.0, 60.0]]),
        inner=np.full((2, 2), np.nan),
    )
    mean, p90 = panel.differences(1, 0)
    assert (mean.value, mean.low, mean.high) == pytest.approx((3.0, 3 - 2**0.5, 3 + 17**0.5))
    assert mean.told_apart and mean.halves[0] == pytest.approx((2**0.5 + 17**0.5) / 2)
    assert (p90.value, p90.low, p90.high) == (10.0, None, pytest.approx(10 + 200**0.5))
    assert not p90.told_apart and p90.halves[0] == pytest.approx(200**0.5)
    assert json.loads(panel.as_json())["high"] == [[11.0, None], [17.0, 60.0]]
