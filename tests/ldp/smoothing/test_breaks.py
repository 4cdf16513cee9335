"""Breaks in the course of a value: odds, branches and intervals against whole normal laws, and what is put together."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special, stats

from uldp_transforms.ldp.smoothing import Series, course_of, own_shares
from uldp_transforms.ldp.smoothing import breaks as breaks_module
from uldp_transforms.ldp.smoothing import smoothed_shares as shares_module
from uldp_transforms.ldp.smoothing.breaks import Broken, _found, _log_odds, branches, breaks_of, suspects
from uldp_transforms.ldp.smoothing.drift_fit import of_values
from uldp_transforms.ldp.smoothing.series import Law


def some_values(raw: np.ndarray, shifts: Any = 0, pulses: Any = 0, deviation: float = 0.02) -> Broken:
    """Values of which the windows say with this deviation what drifts a little; some share their noise."""
    size = raw.shape
    series = Series(
        raw=raw,
        variances=np.full(size, deviation**2),
        common=np.linspace(0, 1e-4, size[1]),
        num_reports=np.full(size[0], 1000),
        steps=1 + np.arange(size[0]) % 2,
    )
    noise = deviation**2 * (1 + np.arange(size[0]) % 3)[:, np.newaxis] * np.ones(size)
    law = Law(np.full(size[1], 0.2), noise, np.full(size, 1e-5))
    drift, nugget = np.linspace(1e-6, 1e-5, size[1]), np.linspace(1e-4, 2e-4, size[1])
    return Broken.of(series, law, drift, nugget, shifts + np.zeros(size), pulses + np.zeros(size))


def a_walk(windows: int, values: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng([83, seed])
    return 0.2 + np.cumsum(rng.normal(0, 0.003, (windows, values)), axis=0) + rng.normal(0, 0.03, (windows, values))


def covariance_of(values: Broken, value: int) -> np.ndarray:
    """(T, T) of what the windows say."""
    steps = values.series.steps * values.drift[value] + values.shifts[:, value] + np.eye(1, len(values.shifts))[0]
    walk = np.cumsum(steps)
    alone = values.law.noise + values.law.people + values.pulses
    return np.minimum.outer(walk, walk) + np.diag(alone[:, value] + values.nugget[value])


def test_odds_of_a_change_are_those_of_the_whole_normal_law() -> None:
    """A change has 16 times the variance of a window, and .2 of either kind are expected in a series."""
    raw, shifts, pulses = a_walk(7, 3, 1), np.zeros((7, 3)), np.zeros((7, 3))
    raw[4:, 0] += 0.1
    raw[2, 1], shifts[5, 1], pulses[3, 2] = np.nan, 0.03, 0.01
    values = some_values(raw, shifts, pulses)
    found = _log_odds(values)
    for value in range(3):
        seen, covariance = values.series.seen[:, value], covariance_of(values, value)
        width = 16 * ((values.law.noise + values.law.people)[:, value].mean() + values.nugget[value])

        def log_density(more: np.ndarray) -> float:
            law = (covariance + more)[np.ix_(seen, seen)]  # noqa: B023  # called in this turn
            return float(stats.multivariate_normal.logpdf(raw[seen, value], cov=law))  # noqa: B023

        for t in range(7):
            for kind, direction in enumerate((np.arange(7) >= t, np.arange(7) == t)):
                known = (shifts, pulses)[kind][t, value] > 0
                expected = log_density(width * np.outer(direction, direction)) - log_density(np.zeros((7, 7)))
                expected += np.log(0.2 / 7)
                impossible = known or not seen[t] or (kind, t) == (0, 0)
                assert found[kind, t, value] == (-np.inf if impossible else pytest.approx(expected, abs=1e-6))


def test_changes_are_found_the_likeliest_first_with_their_own_size() -> None:
    """One that lasts and one of a window; the third value has none. Their variance is their square, or the least."""
    raw = np.full((20, 3), 0.2)
    raw[12:, 0] += 0.4
    raw[5, 1] -= 0.5
    values = some_values(raw, deviation=0.01)
    shifts, pulses = _found(values)
    assert np.argwhere(shifts).tolist() == [[12, 0]] and np.argwhere(pulses).tolist() == [[5, 1]]
    course = values.course
    assert shifts[12, 0] == pytest.approx((course.shift[12, 0] / course.shift_information[12, 0]) ** 2)
    assert pulses[5, 1] == pytest.approx((course.pulse[5, 1] / course.pulse_information[5, 1]) ** 2)
    raw[12:, 0] -= 0.35
    least = 16 * (values.law.noise[:, 0].mean() + 1e-5 + values.nugget[0])
    assert least > 0.06**2
    assert _found(some_values(raw, deviation=0.01))[0][12, 0] == pytest.approx(least)


def test_a_change_is_accepted_from_odds_of_twenty_on() -> None:
    """That there is any one, wherever it is."""

    def pulsed(size: float) -> Broken:
        raw = np.full((12, 1), 0.2)
        raw[6] += size
        return some_values(raw)

    limit = optimize.brentq(lambda x: special.logsumexp(_log_odds(pulsed(x))) - np.log(20), 0.03, 0.5)
    assert [np.count_nonzero(_found(pulsed(factor * limit))[1]) for factor in (0.995, 1.005)] == [0, 1]


def test_a_value_has_at_most_eight_changes() -> None:
    raw = np.full((40, 1), 0.2)
    raw[2::4] += 0.5
    shifts, pulses = _found(some_values(raw, deviation=0.01))
    assert (np.count_nonzero(shifts), np.count_nonzero(pulses)) == (0, 8)


class Scales:
    """Scales whose marginal likelihoods, with and without changes, are given."""

    def __init__(self, before: np.ndarray, after: np.ndarray):
        self._logs, self.asked = (before, after), []

    def likelihoods(self, series: Series, law: Law, shifts: Any = None, bend: float = 3.0) -> int:
        assert bend == np.inf
        self.asked.append((law, shifts))
        return len(self.asked) - 1

    def posterior(self, which: int) -> tuple[str, np.ndarray]:
        return f"chances {which}", self._logs[which]

    def means(self, chances: str, law: Law) -> tuple[np.ndarray, np.ndarray]:
        assert chances == "chances 1"
        return np.full(len(law.shares), 7e-6), np.full(len(law.shares), 8e-5)


def test_changes_are_kept_if_they_explain_more_than_they_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each change of ten windows costs a factor of .2 / 10; the first value has none, the others one, one and two."""
    values = some_values(a_walk(10, 4, 2))
    shifts, pulses = np.zeros((2, 10, 4))
    shifts[3, 1], pulses[4, 2], shifts[5, 3], pulses[6, 3] = 0.1, 0.2, 0.3, 0.4
    monkeypatch.setattr(breaks_module, "_found", lambda common: (shifts, pulses))
    cost, before = np.log(10 / 0.2), np.array([1.0, -2.0, 3.0])
    scales: Any = Scales(before, before + cost * np.array([1, 1, 2]) + np.array([0.01, -0.01, 0.01]))
    found = breaks_of(values, values, scales)
    np.testing.assert_array_equal(found.shifts, shifts)
    np.testing.assert_array_equal(found.pulses, pulses * [1, 1, 0, 1])
    kept = np.array([False, True, False, True])
    np.testing.assert_array_equal(found.drift, np.where(kept, 7e-6, values.drift))
    np.testing.assert_array_equal(found.nugget, np.where(kept, 8e-5, values.nugget))
    assert found.changed.tolist() == kept.tolist()
    course = course_of(values.series, values.law, found.drift, found.nugget, found.shifts, found.pulses)
    np.testing.assert_allclose(found.course.mean, course.mean)
    (plain, nothing), (changed, told) = scales.asked
    assert nothing is None and (told == shifts[:, 1:]).all()
    np.testing.assert_allclose(changed.people - plain.people, pulses[:, 1:])
    monkeypatch.setattr(breaks_module, "_found", lambda common: (0 * shifts, 0 * pulses))
    assert breaks_of(values, values, scales) is values


def test_without_a_change_a_value_is_as_before_it() -> None:
    shifts = np.zeros((8, 3))
    shifts[3, 0], shifts[5, 0], shifts[2, 2] = 0.1, 0.2, 0.3
    values = some_values(a_walk(8, 3, 3), shifts, 1e-3 * (np.arange(3) == 2))
    others, places = values.without()
    assert places.tolist() == [2, 0, 0]
    left = [np.zeros(8), shifts[:, 0] * (np.arange(8) == 5), shifts[:, 0] * (np.arange(8) == 3)]
    np.testing.assert_array_equal(others.shifts, np.array(left).T)
    np.testing.assert_array_equal(others.pulses, values.pulses[:, places])
    for column, value in enumerate(places.tolist()):
        one, here = of_values(values.series, np.array([value])), np.array([value])
        own = (values.drift[here], values.nugget[here], others.shifts[:, [column]], values.pulses[:, here])
        course = course_of(one, values.law.values(here), *own)
        np.testing.assert_allclose(others.course.mean[:, column], course.mean[:, 0])
    none, nowhere = some_values(a_walk(8, 3, 3)).without()
    assert len(nowhere) == 0 and none.shifts.shape == (8, 0)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize("windows", [6, 30])
def test_branches_are_averaged_by_their_odds_and_span_all_that_are_credible(windows: int, level: float) -> None:
    """Each possible change as a course of its own: the 48 likeliest, and of these what the confidence of odds is on."""
    z = stats.norm.isf((1 - level) / 2)
    raw = a_walk(windows, 2, 4)
    raw[windows // 2 :, 0] += 0.06
    raw[2, 1] -= 0.05
    values = some_values(raw)
    odds = _log_odds(values)
    for value in range(2):
        means, low, high = branches(values.values(np.array([value])), level)
        one, own = of_values(values.series, here := np.array([value])), values.law.values(here)
        every = [(0.0, None, 0)] + [(odds[kind, t, value], kind, t) for kind in (0, 1) for t in range(windows)]
        every = sorted((each for each in every if np.isfinite(each[0])), key=lambda each: -each[0])
        changes = [each for each in every if each[1] is not None][:48]
        kept = [each for each in every if each[1] is None or each in changes]
        chances = np.exp([each[0] for each in kept])
        number = int(np.searchsorted(np.cumsum(chances), level * chances.sum())) + 1
        averaged = kept[:number] if (0.0, None, 0) in kept[:number] else [*kept[:number], (0.0, None, 0)]
        chances = np.exp([each[0] for each in averaged])
        parts = []
        for _, kind, t in averaged:
            change = np.zeros((windows, 1))
            change[t] = 1e6 * (kind is not None)
            changed = (change, 0 * change) if kind == 0 else (0 * change, change)
            course = course_of(one, own, values.drift[here], values.nugget[here], *changed)
            mean, variance = own_shares(one, own, course)
            parts.append((mean[:, 0], z * np.sqrt(variance[:, 0])))
        assert number > 1 or level < 0.95
        assert number < len(kept) or windows == 6
        mean = chances / chances.sum() @ np.array([mean for mean, _ in parts])
        np.testing.assert_allclose(means[:, 0], mean, atol=2e-5)
        credible = parts[:number]
        np.testing.assert_allclose(low[:, 0], np.min([mean - half for mean, half in credible], axis=0), atol=2e-5)
        np.testing.assert_allclose(high[:, 0], np.max([mean + half for mean, half in credible], axis=0), atol=2e-5)


# ------------------------------------------------------------------------------------------- what is shown


def test_lines_across_breaks_average_over_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each lasting change adds what its branches are away by; intervals contain all of them, at the same confidence."""
    rng = np.random.default_rng(89)
    around, own, moved = rng.normal(size=(3, 5, 3)), rng.normal(size=(3, 5, 3)), rng.normal(size=(3, 5, 2))
    asked = []

    def told(which: str, confidence: float) -> Any:
        asked.append((which, confidence))
        return {"own": own, "moved": moved}[which]

    class Values(SimpleNamespace):
        series = law = course = None

    values: Any = Values(without=lambda: ("moved", np.array([2, 2])))
    monkeypatch.setattr(shares_module, "_around", lambda *_: around.copy())
    monkeypatch.setattr(shares_module, "branches", lambda of, level: told("own" if of is values else of, level))
    means, low, high = shares_module._across(values, np.zeros((5, 3)), 0.9)
    assert asked == [("own", 0.9), ("moved", 0.9)]
    expected = around[0].copy()
    expected[:, 2] += (moved[0] - around[0][:, [2]]).sum(axis=1)
    np.testing.assert_allclose(means, expected)
    lows, highs = np.minimum(around[1], own[1]), np.maximum(around[2], own[2])
    lows[:, 2] = np.minimum(lows[:, 2], moved[1].min(axis=1))
    highs[:, 2] = np.maximum(highs[:, 2], moved[2].max(axis=1))
    np.testing.assert_array_equal([low, high], [lows, highs])
    values.without = lambda: ("moved", np.zeros(0, dtype=int))
    asked.clear()
    means, _, _ = shares_module._across(values, np.zeros((5, 3)), 0.9)
    np.testing.assert_array_equal(means, around[0])
    assert len(asked) == 1


def test_each_value_is_shown_by_its_own_scales_and_its_breaks() -> None:
    """Intervals by means of deviations, lines by geometric means, breaks under the scales of the search; one by one."""
    raw = a_walk(30, 4, 5)
    raw[15:, 1] += 0.25
    raw[9, 2] += 0.14
    values = some_values(raw)
    series, law = values.series, values.law
    law = dataclasses.replace(law, shares=np.array([0.1, 0.2, 0.3, 0.4]))
    scales, _ = shares_module.scales_of(series, law)
    own, likely = np.array([[1e-6, 2e-6, 3e-6, 4e-6], [2e-4, 3e-4, 4e-4, 5e-4]]), np.array([[1e-7] * 4, [1e-4] * 4])
    model = shares_module._Fitted(series, law, scales, own, likely, None)
    found, broken = shares_module._of_values(model, np.arange(4), 0.9), []
    for value in range(4):
        one, few = of_values(series, here := np.array([value])), law.values(here)
        nothing = np.zeros((30, 1))
        usual = [np.atleast_1d(scale * law.shares[value]) for scale in model.searched]
        wide, line, common = (
            Broken.of(one, few, *scale, nothing, nothing) for scale in (own[:, here], likely[:, here], usual)
        )
        _, low, high = shares_module._around(one, few, wide.course, nothing, 0.9)
        means, _ = own_shares(one, few, line.course)
        if len(suspects(common.course)):
            changes = breaks_of(common, wide, scales)
            across, low, high = shares_module._across(changes, nothing, 0.9)
            means = across if changes.changed[0] else means
            broken.append((value, bool(changes.changed[0])))
        np.testing.assert_allclose(found[:, :, [value]], [means, low, high], rtol=1e-6, atol=1e-9)
    assert {(1, True), (2, False)} <= set(broken), "one that breaks, and one that is examined and does not"
