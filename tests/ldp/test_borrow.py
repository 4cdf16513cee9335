"""Groups that borrow: the risk estimate by enumeration, and errors where groups are alike or not."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from scipy import stats

from labs.experiments.drawn_counts import draw_counts
from tests.support.ldp.borrowing_estimators import EB, EMPIRICAL, PROJECTED, all_signs
from tests.support.ldp.made_collections import made
from tests.support.messages_cases import numbered
from tests.support.tolerance import generator
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.borrowing import borrow, borrowed_shares
from uldp_transforms.ldp.borrowing.borrow import _evidence, _signs, side_of
from uldp_transforms.ldp.borrowing.weights import Evidence, _costs, weights_of
from uldp_transforms.ldp.estimators import Estimator
from uldp_transforms.ldp.solvers.simplex import clip_and_normalize


def collection(size: int, mechanism: str = "krr", sensitive: int | None = None, epsilon: float = 2.0) -> Collection:
    fields = {"id": mechanism, "epsilon": epsilon}
    return made(numbered(size, sensitive), fields, num_cohorts=1)


def counts(*cells: int) -> CohortCounts:
    return CohortCounts(np.array([sum(cells)]), np.array([cells], dtype=np.int64))


def drawn(of: Collection, people: np.ndarray, rng: np.random.Generator) -> CohortCounts:
    return draw_counts(of, tuple(of.alphabet.known_values or ()), people, rng)


@pytest.mark.parametrize(
    ("of", "found"),
    [(collection(4), counts(20, 30, 30, 20)), (collection(4, "urr", 2), counts(10, 30, 40, 20))],
    ids=["krr", "urr"],
)
def test_traces_over_all_signs_are_exact(of: Collection, found: CohortCounts) -> None:
    with mock.patch("uldp_transforms.ldp.borrowing.borrow._signs", all_signs):
        linear, projected = (side_of(of, found, estimator) for estimator in (EMPIRICAL, PROJECTED))
        plausible = clip_and_normalize(linear.raw)
        covariance = of.mechanism.covariance(plausible) / found.total
        assert linear.trace == pytest.approx(np.trace(covariance))
        kept = projected.shares > 0
        slope = np.diag(kept.astype(float)) - np.outer(kept, kept) / kept.sum()
        assert projected.trace == pytest.approx(np.trace(covariance @ slope))


@pytest.mark.parametrize("estimator", [EMPIRICAL, PROJECTED], ids=["empirical", "projected"])
def test_the_variance_of_a_weight_is_that_of_its_derivative(estimator: Estimator) -> None:
    """The diagonal of the derivative of a projection on n shares above 0 is 1 - 1 / n there."""
    of, found, weight = collection(4), counts(2, 30, 30, 20), 0.3
    with mock.patch("uldp_transforms.ldp.borrowing.borrow._signs", all_signs):
        side = side_of(of, found, estimator)
        apart = side.shares - np.array([0.4, 0.3, 0.2, 0.1])
        variance = side.variance_of_weight(apart, weight)
    kept = side.shares > 0
    diagonal = np.where(kept, 1 - 1 / kept.sum(), 0.0) if estimator is PROJECTED else np.ones(4)
    weights = diagonal * (apart + (side.shares - side.raw) - 2 * weight * apart) - apart
    covariance = of.mechanism.covariance(clip_and_normalize(side.raw)) / found.total
    assert variance == pytest.approx(weights @ covariance @ weights)


def evidence(**changes: Any) -> Evidence:
    """Five groups that are alike as far as their reports say, the first one with few reports."""
    expected = np.array([4e-2, 1e-3, 1e-3, 1e-3, 1e-3])
    told = {
        "distance": expected,
        "gain": np.zeros(5),
        "gain_variance": 1e-30 * expected**2,
        "product": expected,
        "expected": expected,
        "noise": 2 * expected**2 / 10,
    }
    return Evidence(**{name: np.array(changes.get(name, values)) for name, values in told.items()})


def test_groups_that_say_much_tell_those_that_say_little_how_much_groups_differ() -> None:
    """The own estimate of each gain is nothing at all, and of the first group seems certain: noise has its floor."""
    alike = evidence()
    assert (weights_of(alike) > 0.8).all() and weights_of(alike)[0] > 0.99
    apart = evidence(product=[4e-2, 0.1, 0.2, 0.1, 0.15], distance=[4e-2, 0.1, 0.2, 0.1, 0.15])
    assert weights_of(apart)[0] < 0.5, "who says little is taken for what the others are"
    assert (weights_of(apart)[1:] < 0.02).all()


def test_a_group_apart_keeps_its_shares_among_others_that_are_alike() -> None:
    apart = [0.8, 1e-3, 1e-3, 1e-3, 1e-3]
    found = weights_of(evidence(product=apart, distance=apart, gain=[0.0, 1e-3, 1e-3, 1e-3, 1e-3]))
    assert found[0] < 0.1 and (found[1:] > 0.6).all()


def test_costs_are_posterior_means_by_quadrature() -> None:
    """One group: its cost has the flat law of a logarithm, whatever the spread, between a hundredth of a standard
    deviation and 2, apart from what spreads push over the ends."""
    product, expected, degrees = np.array([0.05]), np.array([0.01]), np.array([30.0])
    logs = np.linspace(np.log(0.01 * 0.01 * np.sqrt(2 / 30)), np.log(2.0), 20_001)
    means = 0.01 + np.exp(logs)
    law = np.exp(-15 * (np.log(means) + 0.05 / means))
    mean = (np.exp(logs) * law).sum() / law.sum()
    square = (np.exp(2 * logs) * law).sum() / law.sum()
    found, variance = _costs(product, expected, degrees)
    assert found[0] == pytest.approx(mean, rel=0.02)
    assert variance[0] == pytest.approx(square - mean**2 + (found[0] * (10 ** (1 / 20) - 1)) ** 2, rel=0.1)


def test_weights_are_between_0_and_1_whatever_is_told() -> None:
    rng = generator("weights of anything")
    for _ in range(50):
        told = Evidence(*(10.0 ** rng.uniform(-12, 0, (6, 7))))
        told = dataclasses.replace(told, gain=told.gain * rng.choice([-1, 1], 7), product=told.product - 1e-3)
        found = weights_of(told)
        assert (found >= 0).all() and (found <= 1).all()
    empty = Evidence(*np.zeros((6, 0)))
    assert weights_of(empty).shape == (0,)


def test_what_a_group_like_all_would_say_is_the_mean_over_its_noise() -> None:
    """Over all counts of 400 people, with the shares of all reports; the estimator is linear near them."""
    of, truth, n = collection(2), np.array([0.7, 0.3]), 400
    chance = float(of.mechanism.response(truth)[0])
    law = stats.binom.pmf(np.arange(n + 1), n, chance)
    products = np.zeros(n + 1)
    for first in np.flatnonzero(law > 1e-12).tolist():
        side = side_of(of, counts(first, n - first), PROJECTED)
        products[first] = (side.raw - truth) @ (side.shares - truth)
    mean, variance = side_of(of, counts(200, 200), PROJECTED).if_like(truth)
    assert mean == pytest.approx(law @ products, rel=0.01)
    assert variance == pytest.approx(law @ products**2 - (law @ products) ** 2, rel=0.02)


def test_a_biased_estimator_adds_the_noise_along_its_bias() -> None:
    """Of shares that are moved by .05: the product has 4 b^T V b more than its own variance."""
    of = collection(4)
    moved: Any = SimpleNamespace(shares=lambda question, linear: (linear.joint + BIAS, None))
    plain: Any = SimpleNamespace(shares=lambda question, linear: (linear.joint, None))
    truth, found = np.array([0.4, 0.3, 0.2, 0.1]), counts(20, 30, 30, 20)
    (mean, variance), (same, less) = (side_of(of, found, each).if_like(truth) for each in (moved, plain))
    assert mean == pytest.approx(same)
    assert variance - less == pytest.approx(4 * float(of.mechanism.variance_of(BIAS, truth)) / 100)


BIAS = np.array([0.05, -0.05, 0.02, -0.02])


@pytest.mark.parametrize("estimator", [EB, PROJECTED], ids=["eb", "projected"])
def test_a_small_group_beside_large_ones_like_it_uses_the_reports_of_all(estimator: Estimator) -> None:
    """200 people beside 4 x 5,000: alone, their error is 50 times that of all together, and a weight of 0 keeps it.

    The mean of 20 errors of all together varies by less than a half of itself, as does that of what is shown.
    """
    of, rng, shares = collection(10, epsilon=1.0), generator("small beside large"), 1 / np.arange(1.0, 11)
    people = np.array([np.round(n * shares / shares.sum()).astype(int) for n in (200, 5000, 5000, 5000, 5000)])
    truth = people[0] / people[0].sum()
    alone = pooled = shown = 0.0
    for _ in range(20):
        groups = [drawn(of, row, rng) for row in people]
        total = sum(groups[1:], groups[0])
        first = borrow(of, total, groups, estimator)[0].frequencies
        alone += float(((of.estimate(groups[0], estimator.id).frequencies - truth) ** 2).sum())
        pooled += float(((of.estimate(total, estimator.id).frequencies - truth) ** 2).sum())
        shown += float(((first - truth) ** 2).sum())
    assert alone > 20 * pooled
    assert shown < 1.5 * pooled


@pytest.mark.parametrize(("trace", "own"), [(0.02, 0.4), (0.06, 2.4), (0.0, -0.6)])
def test_evidence_is_what_is_gained_and_what_a_group_like_all_would_say(trace: float, own: float) -> None:
    """The gain (a - u) . (a - t) + tr(V da/du) - tr(C dt/du) is -.01 + trace - .002, and D is .02.

    A quarter of all reports here. The product (u - t) . (a - t) is .03, and the variance of a gain is taken at the
    weight that would be shown.
    """
    asked = []
    everybody: Any = SimpleNamespace(shares=np.array([0.5, 0.5]), trace=9.0)

    def variance_of_weight(apart: np.ndarray, weight: float) -> float:
        asked.append((apart.tolist(), weight))
        return 1e-12

    side: Any = SimpleNamespace(shares=np.array([0.6, 0.4]), raw=np.array([0.65, 0.35]), trace=trace)
    side.trace_of_all, side.part_of_all = (lambda of: 0.002), (lambda of: 0.25)
    side.variance_of_weight = variance_of_weight
    for mean in (0.5, 0.0):
        side.if_like = lambda shares, mean=mean: (mean, 0.16)
        found = Evidence(*_evidence(everybody, side, np.array([0.1, -0.1])))
        gain = trace - 0.012
        assert (found.distance, found.gain, found.gain_variance) == pytest.approx((0.02, gain, 1e-12))
        assert (found.product, found.noise) == pytest.approx((0.03, 0.75**2 * 0.16))
        assert found.expected == pytest.approx(max(0.01 + gain, 0.75 * mean))
    assert asked[0] == (pytest.approx([0.1, -0.1]), pytest.approx(min(max(own, 0), 1)))


def test_signs_are_balanced_and_differ() -> None:
    for size in (2, 3, 8, 64, 300):
        signs = _signs(size)
        assert signs.shape == ({2: 2, 3: 4, 8: 8}.get(size, 4), size)
        assert set(signs.ravel().tolist()) == {-1.0, 1.0}
        if size in (2, 8):
            assert (signs.T @ signs == size * np.eye(size)).all()
        if size == 64:
            assert (signs.sum(axis=1) == 0).all() and np.linalg.matrix_rank(signs) == len(signs)
    few = side_of(collection(64), drawn(collection(64), np.arange(1, 65) * 20, generator("signs")), EB)
    with mock.patch("uldp_transforms.ldp.borrowing.borrow._PROBES", 40):
        many = side_of(collection(64), drawn(collection(64), np.arange(1, 65) * 20, generator("signs")), EB)
        expected = many.trace
    assert few.trace == pytest.approx(expected, rel=0.2)


def test_the_estimate_of_the_risk_is_right_on_average() -> None:
    """Over all counts of 400 people: the mean of the estimated gain is that of the true one, up to the normal limit.

    The gain is half the slope of the risk at the group's own estimate, (a - p) . (a - t).
    """
    of, rest, truth, n = collection(2), counts(300, 300), np.array([0.7, 0.3]), 400
    chance = 1 / (np.exp(2.0) + 1) + (1 - 2 / (np.exp(2.0) + 1)) * truth[0]
    law = stats.binom.pmf(np.arange(n + 1), n, chance)
    estimated = true = 0.0
    for first in np.flatnonzero(law > 1e-9).tolist():
        found = counts(first, n - first)
        side, everybody = side_of(of, found, PROJECTED), side_of(of, found + rest, PROJECTED)
        apart = side.shares - everybody.shares
        gain = (side.shares - side.raw) @ apart + side.trace - side.trace_of_all(everybody)
        estimated += law[first] * float(gain)
        true += law[first] * float((side.shares - truth) @ apart)
    assert estimated == pytest.approx(true, rel=0.01)


def mean_errors(of: Collection, people: np.ndarray, estimator: Estimator, runs: int) -> tuple[float, float]:
    """Mean squared errors of the groups alone, and of what they borrow."""
    rng, truth = generator("errors", of.mechanism.id), people / people.sum(axis=1, keepdims=True)
    alone = shown = 0.0
    for _ in range(runs):
        groups = [drawn(of, row, rng) for row in people]
        found = borrow(of, sum(groups[1:], groups[0]), groups, estimator)
        own = np.array([of.estimate(each, estimator.id).frequencies for each in groups])
        alone += float(((own - truth) ** 2).sum())
        shown += float(((np.array([each.frequencies for each in found]) - truth) ** 2).sum())
    return alone, shown


@pytest.mark.parametrize("of", [collection(30), collection(30, "urr", 20), collection(3, epsilon=0.5)], ids=str)
def test_groups_that_are_alike_borrow_and_others_do_not(of: Collection) -> None:
    """Eight groups of 2,000: the pooled estimate has an eighth of the variance."""
    size = of.mechanism.num_symbols
    shares = 1 / np.arange(1.0, size + 1)
    alike = np.tile((2_000 * shares / shares.sum()).astype(int) + 1, (8, 1))
    alone, shown = mean_errors(of, alike, PROJECTED, 4)
    assert shown < 0.6 * alone
    apart = np.array([np.roll(row, place * size // 8) * 20 for place, row in enumerate(alike)])
    alone, shown = mean_errors(of, apart, PROJECTED, 4)
    assert shown < 1.05 * alone


def test_shares_sum_to_one_and_only_the_shown_figures_change() -> None:
    of, rng = collection(20), generator("row")
    groups = [drawn(of, np.arange(1, 21) * 10, rng) for _ in range(5)]
    total = sum(groups[1:], groups[0])
    found = borrow(of, total, groups, EB)
    again = borrow(of, total, groups, EB)
    for each, other, own in zip(found, again, groups):
        assert each.frequencies.tolist() == other.frequencies.tolist()
        assert each.frequencies.sum() == pytest.approx(1) and each.frequencies.min() >= 0 and 0 <= each.weight <= 1
        plain = of.estimate(own, "eb")
        shown = plain.with_borrowed(each.frequencies, each.weight)
        assert shown.raw_frequencies is plain.raw_frequencies and shown.standard_errors is plain.standard_errors
        low, high = np.clip(plain.unclipped(0.95), 0, 1)
        assert (shown.ci_low <= np.minimum(low, each.frequencies)).all()
        assert (shown.ci_high >= np.maximum(high, each.frequencies)).all()
    assert max(each.weight for each in found) > 0.3
    [alone] = borrow(of, total, [total], EB)
    assert alone.frequencies == pytest.approx(of.estimate(total, "eb").frequencies)


def test_derivatives_are_differences_over_a_fifth_of_a_standard_error() -> None:
    """From a tenth below to a tenth above; a cubic function shows how far the estimates are moved."""
    of, found = collection(4), counts(20, 30, 30, 20)
    cubic: Any = SimpleNamespace(shares=lambda question, linear: (1e4 * linear.joint**3 + linear.raw, None))
    side = side_of(of, found, cubic)
    steps = 0.1 * np.sqrt(of.mechanism.variances(clip_and_normalize(side.raw)) / 100) * _signs(4)
    ahead, behind = (1e4 * (side.raw + way) ** 3 + side.raw + way for way in (steps, -steps))
    np.testing.assert_allclose(side.responses, (ahead - behind) / 0.2, rtol=1e-9)


def test_shares_are_in_the_order_of_values() -> None:
    """Symbols of sensitive values come first: here that of the last value."""
    of = made({"id": "closed", "values": ["a", "b", "c"], "sensitive": ["c"]}, {"id": "urr", "epsilon": 2.0})
    found = of.count(of.perturb(["a"] * 50 + ["b"] * 200 + ["c"] * 500, generator("order of values")))
    [shown] = borrow(of, found, [found], PROJECTED)
    np.testing.assert_allclose(shown.frequencies, of.estimate(found, "projected").frequencies)
    assert (np.diff(shown.frequencies) > 0.1).all()


def test_groups_with_enough_reports_have_borrowed_shares() -> None:
    of = collection(3)
    groups = {"nobody": counts(0, 0, 0), "few": counts(3, 3, 3), "enough": counts(4, 3, 3), "many": counts(40, 9, 9)}
    total = sum(list(groups.values())[1:], groups["nobody"])
    for least, shown in ((0, ["few", "enough", "many"]), (1, ["few", "enough", "many"]), (10, ["enough", "many"])):
        found = borrowed_shares(of, total, groups, PROJECTED, least)
        assert list(found) == shown
        expected = borrow(of, total, [groups[name] for name in shown], PROJECTED)
        for one, other in zip(found.values(), expected):
            assert (one.frequencies.tolist(), one.weight) == (other.frequencies.tolist(), other.weight)
    assert borrowed_shares(of, None, groups, PROJECTED, 1) == {}, "all reports are unknown"
    assert borrowed_shares(of, total, groups, PROJECTED, 1000) == {}
    assert borrowed_shares(of, counts(0, 0, 0), groups, PROJECTED, 1) == {}, "all reports allow no estimate"
