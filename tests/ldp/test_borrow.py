"""Groups that borrow: the risk estimate by enumeration, and errors where groups are alike or not."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from scipy import optimize, stats

from labs.experiments.drawn_counts import draw_counts
from tests.support.messages_cases import AOUE, KRR, LISTED, TAGGED, numbered
from tests.support.tolerance import generator
from uldp_transforms.ldp import CohortCounts, Collection, SpecError
from uldp_transforms.ldp.borrowing import borrow, borrowed_shares
from uldp_transforms.ldp.borrowing.borrow import _common, _Side, _signs, _weights
from uldp_transforms.ldp.estimators import ESTIMATORS, Estimator
from uldp_transforms.ldp.solvers.simplex import clip_and_normalize

EB, EMPIRICAL, PROJECTED = (ESTIMATORS[name]() for name in ("eb", "empirical", "projected"))


def collection(size: int, mechanism: str = "krr", sensitive: int | None = None, epsilon: float = 2.0) -> Collection:
    fields = {"id": mechanism, "epsilon": epsilon}
    return Collection.from_json(
        {"id": "c", "version": 1, "alphabet": numbered(size, sensitive), "mechanism": fields, "num_cohorts": 1}
    )


def counts(*cells: int) -> CohortCounts:
    return CohortCounts(np.array([sum(cells)]), np.array([cells], dtype=np.int64))


def drawn(of: Collection, people: np.ndarray, rng: np.random.Generator) -> CohortCounts:
    return draw_counts(of, tuple(of.alphabet.known_values or ()), people, rng)


def all_signs(size: int) -> np.ndarray:
    return np.array(list(itertools.product((-1.0, 1.0), repeat=size)))


@pytest.mark.parametrize(
    ("of", "found"),
    [(collection(4), counts(20, 30, 30, 20)), (collection(4, "urr", 2), counts(10, 30, 40, 20))],
    ids=["krr", "urr"],
)
def test_traces_over_all_signs_are_exact(of: Collection, found: CohortCounts) -> None:
    with mock.patch("uldp_transforms.ldp.borrowing.borrow._signs", all_signs):
        linear, projected = (_Side(of, found, estimator) for estimator in (EMPIRICAL, PROJECTED))
        plausible = clip_and_normalize(linear.raw)
        covariance = of.mechanism.covariance(plausible) / found.total
        assert linear.trace(linear) == pytest.approx(np.trace(covariance))
        kept = projected.shares > 0
        slope = np.diag(kept.astype(float)) - np.outer(kept, kept) / kept.sum()
        assert projected.trace(projected) == pytest.approx(np.trace(covariance @ slope))


@pytest.mark.parametrize("estimator", [EMPIRICAL, PROJECTED], ids=["empirical", "projected"])
def test_the_variance_of_a_weight_is_that_of_its_derivative(estimator: Estimator) -> None:
    """The diagonal of the derivative of a projection on n shares above 0 is 1 - 1 / n there."""
    of, found, weight = collection(4), counts(2, 30, 30, 20), 0.3
    with mock.patch("uldp_transforms.ldp.borrowing.borrow._signs", all_signs):
        side = _Side(of, found, estimator)
        apart = side.shares - np.array([0.4, 0.3, 0.2, 0.1])
        variance = side.variance_of_weight(apart, weight)
    kept = side.shares > 0
    diagonal = np.where(kept, 1 - 1 / kept.sum(), 0.0) if estimator is PROJECTED else np.ones(4)
    weights = diagonal * (apart + (side.shares - side.raw) - 2 * weight * apart) - apart
    covariance = of.mechanism.covariance(clip_and_normalize(side.raw)) / found.total
    assert variance == pytest.approx(weights @ covariance @ weights)


GROUPS = 12


def told(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights of the groups alone, which differ by more than their variances, and these; and their distances D."""
    return rng.normal(0.5, 0.3, GROUPS), rng.uniform(0.01, 0.04, GROUPS), rng.uniform(0.01, 0.1, GROUPS)


def risk_of(own: np.ndarray, variances: np.ndarray, distances: np.ndarray, spread: float, middle: float) -> float:
    """The estimate of the risk for a spread A and a common weight, group by group, without a constant."""
    total = 0.0
    for weight, variance, distance in zip(own, variances, distances):
        kept = spread / (spread + variance)
        total += distance * ((1 - kept) ** 2 * (weight - middle) ** 2 + (2 * kept - 1) * variance)
    return total


@pytest.mark.parametrize("spread", [0.001, 0.03, 2.0])
def test_the_common_weight_is_the_one_with_the_least_risk(spread: float) -> None:
    own, variances, distances = told(generator("common weight", spread))
    risk, weights = _common(own, variances, distances, spread)
    middles = np.linspace(0, 1, 2001)
    risks = [risk_of(own, variances, distances, spread, middle) for middle in middles]
    best = middles[np.argmin(risks)]
    assert risk == pytest.approx(min(risks), rel=1e-4) and risk <= min(risks) + 1e-15
    np.testing.assert_allclose(weights, best + spread / (spread + variances) * (own - best), atol=5e-4)


class Told:
    """A side whose own weight and variance are given: the others' shares are (.5, .5), and t moves with nothing."""

    number = 100

    def __init__(self, weight: float, variance: float, distance: float):
        self.shares = self.raw = 0.5 + np.sqrt(distance / 2) * np.array([1, -1])
        self._trace, self._variance = weight * distance, variance * distance**2

    def trace(self, of: Any) -> float:
        return self._trace if of is self else 0.0

    def variance_of_weight(self, apart: np.ndarray, weight: float) -> float:
        return self._variance


def test_weights_are_drawn_together_by_the_spread_with_the_least_risk() -> None:
    """Spreads that are tried differ by a factor of 10^(1/4): the best one is one of the two around the least risk, and
    the best of those from 1e-6 to 10^1.5."""
    own, variances, distances = told(generator("spread of weights"))
    everybody: Any = Told(0.0, 0.0, 0.0)
    sides: Any = [Told(*each) for each in zip(own, variances, distances)]
    found = _weights(everybody, sides)
    risks = {}
    for spread in np.logspace(-6, 2, 321):
        kept = spread / (spread + variances)
        pull = distances * (1 - kept) ** 2
        middle = np.clip((pull * own).sum() / pull.sum(), 0, 1)
        risks[spread] = risk_of(own, variances, distances, spread, middle), middle
    best = min(risks, key=lambda spread: risks[spread][0])
    assert 1e-3 < best < 1, "an inner minimum"
    around = [spread for spread in risks if abs(np.log10(spread / best)) <= 1 / 4]
    near = [risks[spread][1] + spread / (spread + variances) * (own - risks[spread][1]) for spread in around]
    assert any(np.abs(np.clip(each, 0, 1) - found).max() < 0.01 for each in near)
    tried = []
    for spread in 10 ** np.linspace(-6, 1.5, 31):
        kept = spread / (spread + variances)
        pull = distances * (1 - kept) ** 2
        middle = np.clip((pull * own).sum() / pull.sum(), 0, 1)
        tried.append((risk_of(own, variances, distances, spread, middle), middle + kept * (own - middle)))
    np.testing.assert_allclose(found, np.clip(min(tried, key=lambda one: one[0])[1], 0, 1), rtol=1e-9)


@pytest.mark.parametrize(("trace", "own"), [(0.02, 0.4), (0.06, 2.4), (0.0, -0.6)])
def test_a_weight_is_what_is_gained_by_the_squared_distance(trace: float, own: float) -> None:
    """(a - u) . (a - t) + tr(V da/du) - tr(V dt/du) is -.01 + trace - .008 / 4, and D is .02; a quarter reports here.

    The variance of a weight is taken at what is shown of it.
    """
    asked = []
    everybody: Any = SimpleNamespace(number=400, shares=np.array([0.5, 0.5]), trace=lambda of: 9.0)

    def variance_of_weight(apart: np.ndarray, weight: float) -> float:
        asked.append((apart.tolist(), weight))
        return 1e-12

    side: Any = SimpleNamespace(number=100, shares=np.array([0.6, 0.4]), raw=np.array([0.65, 0.35]))
    side.trace, side.variance_of_weight = (lambda of: 0.008 if of is everybody else trace), variance_of_weight
    shown = min(max(own, 0), 1)
    assert _weights(everybody, [side]).tolist() == pytest.approx([shown])
    assert asked == [(pytest.approx([0.1, -0.1]), pytest.approx(shown))]


@pytest.mark.parametrize(("own", "expected"), [(0.1, 0.0), (0.2, 0.2), (0.8, 0.8), (0.9, 1.0)])
def test_a_common_weight_is_0_or_1_within_its_standard_error(own: float, expected: float) -> None:
    """sqrt(.1^2 * .04 * 2) / .2 = .14."""
    _, weights = _common(np.full(2, own), np.full(2, 0.04), np.full(2, 0.1), 0.0)
    assert weights.tolist() == pytest.approx([expected] * 2)


@pytest.mark.parametrize(("gap", "differ"), [(0.95, False), (1.05, True)])
def test_weights_differ_only_where_the_risk_falls_by_its_standard_error(gap: float, differ: bool) -> None:
    """Own weights are .5 +- x: the x is found whose risk falls by this much."""
    everybody: Any = Told(0.0, 0.0, 0.0)
    variance, distance, limit = 1e-3, 0.1, gap * np.sqrt(2 * 2) * 0.1 * 1e-3

    def fall(apart: float) -> float:
        own, both = np.array([0.5 - apart, 0.5 + apart]), np.full(2, variance)
        risks = [risk_of(own, both, np.full(2, distance), spread, 0.5) for spread in (1e-12, *np.logspace(-6, 1.5, 31))]
        return risks[0] - min(risks)

    apart = optimize.brentq(lambda x: fall(x) - limit, 0.03, 0.4)
    weights = _weights(everybody, [Told(0.5 + way * apart, variance, distance) for way in (-1, 1)])
    assert (weights[1] - weights[0] > 0.01) == differ


def test_signs_are_balanced_and_differ() -> None:
    for size in (2, 3, 8, 64, 300):
        signs = _signs(size)
        assert signs.shape == ({2: 2, 3: 4, 8: 8}.get(size, 4), size)
        assert set(signs.ravel().tolist()) == {-1.0, 1.0}
        if size in (2, 8):
            assert (signs.T @ signs == size * np.eye(size)).all()
        if size == 64:
            assert (signs.sum(axis=1) == 0).all() and np.linalg.matrix_rank(signs) == len(signs)
    few = _Side(collection(64), drawn(collection(64), np.arange(1, 65) * 20, generator("signs")), EB)
    with mock.patch("uldp_transforms.ldp.borrowing.borrow._PROBES", 40):
        many = _Side(collection(64), drawn(collection(64), np.arange(1, 65) * 20, generator("signs")), EB)
        expected = many.trace(many)
    assert few.trace(few) == pytest.approx(expected, rel=0.2)


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
        side, everybody = _Side(of, found, PROJECTED), _Side(of, found + rest, PROJECTED)
        apart = side.shares - everybody.shares
        gain = (side.shares - side.raw) @ apart + side.trace(side)
        gain -= side.number / everybody.number * side.trace(everybody)
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
    side = _Side(of, found, cubic)
    steps = 0.1 * np.sqrt(of.mechanism.variances(clip_and_normalize(side.raw)) / 100) * _signs(4)
    ahead, behind = (1e4 * (side.raw + way) ** 3 + side.raw + way for way in (steps, -steps))
    np.testing.assert_allclose(side.responses, (ahead - behind) / 0.2, rtol=1e-9)


def test_shares_are_in_the_order_of_values() -> None:
    """Symbols of sensitive values come first: here that of the last value."""
    spec = {"id": "c", "version": 1, "alphabet": {"id": "closed", "values": ["a", "b", "c"], "sensitive": ["c"]}}
    of = Collection.from_json(spec | {"mechanism": {"id": "urr", "epsilon": 2.0}})
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


def refused(of: Collection, estimator: str = "eb") -> Callable[[], Any]:
    empty = CohortCounts.empty(of.num_cohorts, of.num_cells)
    return lambda: borrow(of, empty, [empty], ESTIMATORS[estimator]())


NUMBERS = Collection.from_json(
    {
        "id": "ages",
        "version": 1,
        "alphabet": {"id": "ordered", "edges": [0, 10, 20]},
        "mechanism": {"id": "krr", "epsilon": 1},
    }
)
REFUSED: list[tuple[type[Exception], Callable[[], Any], str]] = [
    (
        SpecError,
        refused(KRR, "em"),
        "borrow needs an estimator whose shares are a continuous function of the unbiased ones, such as eb or "
        "projected, got collection 'krr' and estimator 'em'",
    ),
    (
        SpecError,
        refused(LISTED),
        "borrow needs a list of all values, each with a symbol of its own, got collection 'listed' and estimator 'eb'",
    ),
    (SpecError, refused(NUMBERS), "borrow needs values that are not numbers, got collection 'ages' and estimator 'eb'"),
    (
        SpecError,
        refused(TAGGED),
        "borrow needs values that clients name, without tags, got collection 'tagged' and estimator 'eb'",
    ),
]


@pytest.mark.parametrize(("kind", "call", "sentence"), REFUSED, ids=[row[2][:40] for row in REFUSED])
def test_refusals(kind: type[Exception], call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == sentence


def test_other_mechanisms_are_supported() -> None:
    rng = generator("others")
    groups = [AOUE.count(AOUE.perturb(["0", "1", "2"] * 100, rng)) for _ in range(3)]
    assert len(borrow(AOUE, sum(groups[1:], groups[0]), groups, EB)) == 3
