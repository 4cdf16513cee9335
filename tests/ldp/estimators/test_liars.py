"""Intervals for a declared share of liars: every attack by enumeration, coverage in exact numbers, and refusals."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.support.cases import enumerated
from tests.support.ldp.lied_counts import CLOSED, counts_of, of
from tests.support.ldp.made_collections import made
from tests.support.tolerance import generator
from uldp_transforms.ldp import CohortCounts, Collection, Estimate, SpecError
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.false_reports import honest_bounds
from uldp_transforms.ldp.mechanisms import KaryRR
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.repeated_people import with_repeated_people

KRR = made({"id": "closed", "values": ["a", "b", "c"]}, {"id": "krr", "epsilon": math.log(4)})


def test_bounds_of_honest_people_by_hand() -> None:
    """k-RR of three values keeps with 2/3 and draws each other one with 1/6: a report adds (1 - q) / (p - q) = 5/3 to
    its value, and -q / (p - q) = -1/3 to each other one. A fifth of the reports lie."""
    low, high = honest_bounds(KRR, ("c", "a"), np.array([0.5, 0.1]), np.array([0.7, 0.2]), 0.2)
    assert low == pytest.approx([(0.5 - 0.2 * 5 / 3) / 0.8, (0.1 - 0.2 * 5 / 3) / 0.8])
    assert high == pytest.approx([(0.7 + 0.2 / 3) / 0.8, (0.2 + 0.2 / 3) / 0.8])


def raw_of(collection: Collection, payloads: np.ndarray) -> np.ndarray:
    return ESTIMATORS["empirical"]().estimate(collection, counts_of(collection, payloads)).raw_frequencies


@pytest.mark.parametrize("name", CLOSED)
def test_no_attack_breaks_the_bounds_and_some_attack_reaches_each(name: str) -> None:
    """For every report that liars can send, all of them the same one, and half of them with a second one."""
    collection = of(*CLOSED[name])
    values, codes = collection.alphabet.known_values, enumerated(collection.mechanism)[0]
    assert values is not None
    rng = generator("liars", name)
    honest = collection.perturb(rng.choice(values, 90).tolist(), rng).payloads
    truth = raw_of(collection, honest)
    rooms = []
    for code in codes:
        for second in (code, codes[rng.integers(len(codes))]):
            lies = np.concatenate([np.repeat(each[np.newaxis], 5, axis=0) for each in (code, second)])
            seen = raw_of(collection, np.concatenate([honest, lies]))
            low, high = honest_bounds(collection, values, seen, seen, 0.1)
            rooms.append([truth - low, high - truth])
    least = np.array(rooms).min(axis=0)
    assert (least >= -1e-9).all()
    np.testing.assert_allclose(least, 0, atol=1e-9)
    assert not np.allclose(honest_bounds(collection, values, truth, truth, 0.1)[0], truth, atol=0.05)


@functools.cache
def strict_interval(collection: Collection, yes: int, declared: float | None) -> tuple[float, float]:
    """Of the second of two values, which ``yes`` of 200 reports name."""
    estimate = collection.estimate(CohortCounts(np.array([200]), np.array([[200 - yes, yes]])), "empirical")
    if declared is not None:
        estimate = estimate.with_liars(collection, declared)
    low, high = estimate.intervals(np.full(2, 0.95), strict=True)
    return float(low[1]), float(high[1])


def missed(collection: Collection, share: float, lies: int, declared: float | None) -> float:
    """Exact probability that the strict interval of the second of two values misses its share among 180 honest people,
    if 20 liars are against it: they send the first value (-1) or the second (1)."""
    honest, liars = 180, 20
    keep = 1 / (1 + np.exp(-collection.mechanism.effective_epsilon))
    rate = share * keep + (1 - share) * (1 - keep)
    counted = np.arange(honest + 1)
    inside = []
    for yes in counted + (liars if lies > 0 else 0):
        low, high = strict_interval(collection, int(yes), declared)
        inside.append(low - 1e-12 <= share <= high + 1e-12)
    return float(stats.binom.pmf(counted, honest, rate) @ ~np.array(inside))


@pytest.mark.parametrize("lies", [-1, 1])
@pytest.mark.parametrize("share", [0.0, 0.03, 0.25, 0.5, 0.8, 1.0])
def test_what_misses_is_at_most_the_promised_share_whatever_liars_send(share: float, lies: int) -> None:
    """By the law of every count; a sum of trials of different probabilities has thinner tails than the binomial with
    their mean (Hoeffding 1956), so that liars who are there for certain only add to the coverage."""
    assert missed(of(*CLOSED["two"]), share, lies, 0.1) <= 0.05


@pytest.mark.parametrize("lies", [-1, 1])
def test_undeclared_liars_make_more_intervals_miss(lies: int) -> None:
    assert missed(of(*CLOSED["two"]), 0.5, lies, None) > 0.25


def ends_of(estimate: Estimate) -> list[np.ndarray]:
    """Both ends of all intervals of rows."""
    return [*estimate.intervals(0.95), *estimate.display_intervals(2), *estimate.unclipped(0.95)]


@pytest.mark.parametrize("estimator", ["eb", "projected", "threshold"])
@pytest.mark.parametrize("name", ["krr", "urap", "memos"])
def test_liars_lengthen_every_interval_also_of_repeated_people_and_many_looks(name: str, estimator: str) -> None:
    collection = of(*CLOSED[name], client_window="1d")
    rng = generator("liars lengthen", name)
    batch = collection.perturb(rng.choice(list("abcde"), 4000, p=[0.6, 0.2, 0.1, 0.1, 0]).tolist(), rng)
    plain = collection.estimate(collection.count(batch), estimator)
    for times in (1, 7):
        often = with_repeated_people(collection, plain, times)
        lied = often.with_liars(collection, 0.02)
        for one, other in ((often, lied), (often.anytime(100), lied.anytime(100))):
            for place, (short, long) in enumerate(zip(ends_of(one), ends_of(other))):
                assert (long <= short + 1e-12).all() if place % 2 == 0 else (long >= short - 1e-12).all()
            assert (other.ci_low <= other.frequencies).all() and (other.frequencies <= other.ci_high).all()
            assert (other.ci_low >= 0).all() and (other.ci_high <= 1).all()
        low, high = often.unclipped(0.95)
        expected = honest_bounds(collection, lied.values, low, high, 0.02)
        np.testing.assert_allclose(lied.unclipped(0.95), expected)
        assert lied.liars == 0.02 and lied.anytime(100).liars == 0.02 and often.liars is None
        np.testing.assert_array_equal(lied.frequencies, plain.frequencies)
        np.testing.assert_array_equal(lied.standard_errors, often.standard_errors)


def test_a_declared_share_of_nobody_changes_no_interval() -> None:
    collection = of(*CLOSED["krr"])
    plain = collection.estimate(collection.count(collection.perturb(list("abcde") * 50, generator("nobody"))), "eb")
    none = plain.with_liars(collection, 0.0)
    for one, other in zip(ends_of(plain), ends_of(none)):
        np.testing.assert_allclose(one, other, atol=1e-12)


class Silent(KaryRR):
    """As a mechanism of another package that does not state the smallest effect."""

    smallest_effects = None  # type: ignore[assignment]  # as mechanisms of others


REFUSED: list[tuple[Any, str]] = [
    ({"id": "hashed", "num_buckets": 4}, "a list of all values, each with a symbol of its own"),
    ({"id": "ordered", "low": 0, "high": 10, "num_bins": 5}, "values that are not numbers"),
    ({"id": "tagged", "values": ["0", "1", "2"], "tags": ["t"]}, "values that clients name, without tags"),
]


@pytest.mark.parametrize(
    ("alphabet", "need"), REFUSED, ids=lambda case: case.get("id") if isinstance(case, dict) else ""
)
def test_a_collection_whose_estimates_are_not_bounded_is_refused(alphabet: dict[str, Any], need: str) -> None:
    asked, refused = of(*CLOSED["krr"]), of(alphabet, {"id": "krr", "epsilon": 1.0}, num_cohorts=4)
    estimate = asked.estimate(asked.count(asked.perturb(["a"] * 50)), "eb")
    with pytest.raises(SpecError) as found:
        estimate.with_liars(refused, 0.1)
    assert str(found.value) == f"Estimate.with_liars needs {need}, got collection 'c'"


def test_wrong_shares_and_mechanisms_that_state_no_effect_are_refused() -> None:
    collection = of(*CLOSED["krr"])
    estimate = collection.estimate(collection.count(collection.perturb(["a"] * 50)), "eb")
    for wrong in (1, -0.1, float("nan"), "0.1", None, True):
        with pytest.raises(SpecError) as found:
            estimate.with_liars(collection, wrong)  # type: ignore[arg-type]  # wrong types too
        assert str(found.value) == f"Estimate.with_liars must have a share in [0, 1), got {wrong!r}"
    mechanism = Silent(num_symbols=5, num_sensitive=5, epsilon=1.0)
    silent = Model(id="c", alphabet=collection.alphabet, mechanism=mechanism)
    with pytest.raises(SpecError) as found:
        estimate.with_liars(silent, 0.1)
    need = "a mechanism that states the smallest effect of a report"
    assert str(found.value) == f"Estimate.with_liars needs {need}, got collection 'c'"
