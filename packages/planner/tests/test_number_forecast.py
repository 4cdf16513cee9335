"""Forecasts for numbers: what is compared, ends that are open, and the least that a half width needs."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from uldp_transforms.ldp import Collection
from uldp_transforms_planner.planning.number_forecast import (
    _half,
    _half_of_mean,
    mechanisms,
    needed_for_mean,
    plan_numbers,
    with_mechanism,
)
from uldp_transforms_planner.utility.arguments import MAX_REPORTS


def numbers(mechanism: str = "krr", epsilon: float = 1.0, **alphabet: Any) -> Collection:
    spec = {"id": "ordered", "low": 0, "high": 80, "num_bins": 8} | alphabet
    mechanism_spec = {"id": mechanism, "epsilon": epsilon}
    return Collection.from_json({"id": "n", "version": 3, "alphabet": spec, "mechanism": mechanism_spec})


SOME = numbers("urr", others=["none"], sensitive=[[40, None]])


def test_mechanisms_that_protect_what_is_declared() -> None:
    every = [cls.id for cls in mechanisms(numbers().alphabet)]
    assert every[0] == "sw"
    assert set(every) == {"sw", "krr", "rappor", "ss", "hr"}
    some = [cls.id for cls in mechanisms(SOME.alphabet)]
    assert some[0] == "usw"
    assert set(some[1:5]) == {"urr", "urap", "uss", "uhr"} and set(some[5:]) == set(every[1:])


@pytest.mark.parametrize(("low", "high", "half"), [(10, 30, 10), (None, 30, 15), (10, None, 35), (None, None, 40)])
def test_an_open_end_is_the_end_of_the_range(low: float | None, high: float | None, half: float) -> None:
    edges = np.array([0.0, 10, 20, 80])
    own: Any = SimpleNamespace(low=low, high=high, display_low=12, display_high=18)
    smooth: Any = SimpleNamespace(low=12, high=18, display_low=low, display_high=high)
    assert _half(own, edges, False) == _half(smooth, edges, True) == half


def test_the_half_width_of_a_mean_has_both_ends() -> None:
    for low, high, half in ((10, 40, 15), (None, 40, None), (10, None, None)):
        assert _half_of_mean(SimpleNamespace(mean=SimpleNamespace(low=low, high=high))) == half  # type: ignore[arg-type]  # what is read of it is enough
    assert _half_of_mean(SimpleNamespace(mean=None)) is None  # type: ignore[arg-type]  # what is read of it is enough


def variance_of_mean(epsilon: float) -> float:
    """k-RR of 8 bins with centres from 5 to 75, in a uniform population, by its channel: n times the variance."""
    centres, e = np.arange(5.0, 80, 10), math.exp(epsilon)
    p, q = e / (e + 7), 1 / (e + 7)
    deviations = (centres - centres.mean()) / (p - q)  # what a report adds to the mean, as all are as likely
    return float((deviations**2).mean())


def test_what_a_half_width_of_a_mean_needs_is_the_least() -> None:
    """To a report, and to a thousandth of epsilon; exactly as wide as asked for is enough."""
    z, item = stats.norm.isf(0.025), numbers()
    found = needed_for_mean(item, 2.0, 20_000)
    assert found.num_reports == math.ceil(variance_of_mean(1.0) * (z / 2) ** 2)
    assert found.epsilon is not None

    def half(epsilon: float, number: int = 20_000) -> float:
        return float(z * math.sqrt(variance_of_mean(epsilon) / number))

    assert half(found.epsilon) <= 2 < half(found.epsilon - 0.001)
    assert needed_for_mean(item, half(0.7) * (1 + 1e-12), 20_000).epsilon == 0.7
    assert needed_for_mean(item, 1e6, 20_000).epsilon == 0.001
    assert needed_for_mean(item, half(16) * (1 + 1e-12), 20_000).epsilon == 16
    assert needed_for_mean(item, half(16) * (1 - 1e-9), 20_000).epsilon is None
    most = z * math.sqrt(variance_of_mean(1.0) / MAX_REPORTS)
    assert needed_for_mean(item, most * (1 + 1e-9), 1).num_reports is not None
    assert needed_for_mean(item, most * (1 - 1e-9), 1).num_reports is None


def test_people_without_a_number_have_no_part_in_a_mean() -> None:
    """A fifth has none: n times the variance by enumeration of the ten reports' contributions."""
    item = numbers(others=["none", "?"])
    shares = np.array([0.1] * 8 + [0.05, 0.15])
    centres = np.arange(5.0, 80, 10)
    weights = np.zeros(10)
    weights[:8] = (centres - centres.mean()) / 0.8
    e = math.e
    p, q = e / (e + 9), 1 / (e + 9)
    law = q + (p - q) * shares
    contributions = (weights - q * weights.sum()) / (p - q)
    variance = law @ contributions**2 - (law @ contributions) ** 2
    number = needed_for_mean(item, 1.5, 10, shares).num_reports
    assert number == math.ceil(variance * (stats.norm.isf(0.025) / 1.5) ** 2)


def test_the_recommended_one_has_the_shortest_report_among_nearly_as_good_ones() -> None:
    found, best = plan_numbers(numbers(), 4.0, 2000)
    limit = 1.05 * min(one.size for one in found)
    good = [one for one in found if one.size <= limit]
    assert best in good
    assert best == min(good, key=lambda one: (one.collection.mechanism.payload_size, one.size))


def test_a_question_keeps_its_name_and_its_values_with_another_mechanism() -> None:
    item = numbers(others=["none"])
    made = with_mechanism(item, mechanisms(item.alphabet)[0], 2.5)
    assert (made.id, made.version, made.alphabet, made.num_cohorts) == ("n", 3, item.alphabet, 1)
    assert made.mechanism.to_json() == {"id": "sw", "epsilon": 2.5}
