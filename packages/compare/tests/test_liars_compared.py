"""Comparisons for a declared share of liars: every pair of attacks by enumeration, coverage in exact numbers."""

from __future__ import annotations

import dataclasses
import functools
import itertools

import numpy as np
import pytest
from scipy import stats

from tests.support.cases import enumerated
from tests.support.ldp.lied_counts import CLOSED, counts_of, of
from tests.support.tolerance import generator
from uldp_transforms.ldp import CohortCounts, Collection, Estimate
from uldp_transforms.rows.figures.compared_figures import difference_interval
from uldp_transforms_compare.comparisons import compare
from uldp_transforms_compare.comparisons.compare import _Pair, difference_at


def without_chance(collection: Collection, payloads: np.ndarray, share: float | None) -> Estimate:
    """An estimate whose intervals are points, so that only the room for lies is left."""
    estimate = collection.estimate(counts_of(collection, payloads), "empirical")
    raw = estimate.raw_frequencies
    sure = dataclasses.replace(estimate, unclipped=lambda confidence, strict=False: (raw, raw))
    return sure if share is None else sure.with_liars(collection, share)


@pytest.mark.parametrize("name", ["krr", "urr", "ss", "rappor", "hr", "memos"])
def test_no_pair_of_attacks_breaks_the_bounds_and_some_pair_reaches_each(name: str) -> None:
    """For all pairs of reports that the liars of both sides send; another side may have fewer liars than declared."""
    collection = of(*CLOSED[name])
    values, codes = collection.alphabet.known_values, enumerated(collection.mechanism)[0]
    assert values is not None
    rng, liars = generator("liars compared", name), 6
    honest = [collection.perturb(rng.choice(values, 54).tolist(), rng).payloads for _ in range(2)]
    a, b = (without_chance(collection, side, None).raw_frequencies for side in honest)
    chosen = codes if len(codes) <= 16 else codes[rng.choice(len(codes), 16, replace=False)]
    sides = [
        [
            without_chance(collection, np.concatenate([side, np.repeat(code[np.newaxis], liars, axis=0)]), 0.1)
            for code in chosen
        ]
        for side in honest
    ]
    rooms, of_lifts = [], []
    for first, second in itertools.product(*sides):
        low, high = difference_at(first, second, 0.95)
        rooms.append([a - b - low, high - (a - b)])
        (_, lift_low, lift_high), known = _lifts(first, second), second.raw_frequencies > 0
        positive = known & (a > 0) & (b > 0)
        of_lifts.append([np.where(positive, each, 1.0) for each in (a / b - lift_low, lift_high - a / b)])
    least = np.array(rooms).min(axis=0)
    assert (least >= -1e-9).all() and (np.array(of_lifts) >= -1e-9).all()
    if len(chosen) == len(codes):
        np.testing.assert_allclose(least, 0, atol=1e-9)
    fewer = [without_chance(collection, side, 0.1) for side in honest]
    low, high = difference_at(*fewer, 0.95)
    assert (low <= a - b).all() and (a - b <= high).all()


@pytest.mark.parametrize("name", ["krr", "urr", "ss", "rappor", "hr", "memos"])
def test_values_of_a_side_may_be_in_another_order(name: str) -> None:
    """What liars can do to a value of the second side is that of this value, wherever it stands there."""
    collection = of(*CLOSED[name])
    values = collection.alphabet.known_values
    assert values is not None
    rng = generator("liars in another order", name)
    weights = np.arange(len(values), 0, -1) / np.arange(1, len(values) + 1).sum()
    first, second = (collection.perturb(rng.choice(values, 60, p=weights).tolist(), rng).payloads for _ in range(2))
    estimates = [collection.estimate(counts_of(collection, side), "empirical") for side in (first, second)]
    turned = collection.estimate(counts_of(collection, second), "empirical", candidates=values[::-1])
    a, b, c = (each.with_liars(collection, 0.1) for each in (*estimates, turned))
    assert c.values == values[::-1]
    np.testing.assert_allclose(difference_at(a, c, 0.95), difference_at(a, b, 0.95), rtol=1e-9)
    np.testing.assert_allclose(_lifts(a, c), _lifts(a, b), rtol=1e-9)
    np.testing.assert_allclose(compare(a, c).noticeable, compare(a, b).noticeable, rtol=1e-9)


def _lifts(first: Estimate, second: Estimate) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``compare`` would compute p-values, too."""
    return _Pair.of(first, second, 0.95, None).lifts(0.95)


@functools.cache
def both_sides() -> tuple[list[list[Estimate]], list[np.ndarray]]:
    """Estimates of 0 to 90 people on each side, with 10 liars beside them, and their raw shares and both ends."""
    collection, liars, sides = of(*CLOSED["two"]), 10, []
    for lies in (liars, 0):
        counts = [CohortCounts(np.array([100]), np.array([[100 - yes - lies, yes + lies]])) for yes in range(91)]
        sides.append([collection.estimate(each, "empirical") for each in counts])
    raw, low, high = (
        np.array([[pick(one)[1] for one in side] for side in sides])
        for pick in (
            lambda one: one.raw_frequencies,
            lambda one: one.unclipped(0.95)[0],
            lambda one: one.unclipped(0.95)[1],
        )
    )
    return sides, [side[at][:, None] if at == 0 else side[at][None, :] for side in (raw, low, high) for at in (0, 1)]


def missed(declared: float | None, share_a: float, share_b: float) -> float:
    """Exact probability that the interval of the difference misses it, if 10 liars beside 90 people on each side send
    what moves the second of two values towards the other side's."""
    collection = of(*CLOSED["two"])
    keep = float(np.e / (1 + np.e))
    honest, (sides, both) = np.arange(91), both_sides()
    a, b, low_a, low_b, high_a, high_b = both
    lowest, highest = difference_interval(a, b, low_a, high_a, low_b, high_b)
    if declared is not None:
        example = [sides[0][45].with_liars(collection, declared), sides[1][45].with_liars(collection, declared)]
        chance, allowed = difference_at(sides[0][45], sides[1][45], 0.95), difference_at(*example, 0.95)
        room = float(allowed[1][1] * (1 - declared) - chance[1][1])
        lowest, highest = (lowest - room) / (1 - declared), (highest + room) / (1 - declared)
    laws = [stats.binom.pmf(honest, 90, p * keep + (1 - p) * (1 - keep)) for p in (share_a, share_b)]
    misses = (share_a - share_b < lowest - 1e-12) | (share_a - share_b > highest + 1e-12)
    return float(laws[0] @ misses @ laws[1])


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.1, 0.1), (0.6, 0.3), (1.0, 0.0)])
def test_differences_hold_whatever_liars_send(shares: tuple[float, float]) -> None:
    """By the law of every pair of counts. Without the declaration, more than 5 % miss."""
    assert missed(0.1, *shares) <= 0.05
    assert missed(None, *shares) > 0.08


def test_liars_lengthen_intervals_at_one_look_and_at_many() -> None:
    """Errors of chance are added in squares, those of lies are not; nobody's lies change nothing."""
    collection, rng = of(*CLOSED["urap"]), generator("liars at many looks")
    sides = [
        collection.estimate(collection.count(collection.perturb(rng.choice(list("abcde"), n).tolist(), rng)), "eb")
        for n in (900, 700)
    ]
    lied, nobodys = ([one.with_liars(collection, share) for one in sides] for share in (0.02, 0.0))
    effects = collection.mechanism.largest_effects, collection.mechanism.smallest_effects
    symbols = collection.alphabet.symbol_table(sides[0].values, 1)[0]
    room = 0.02 * (effects[0] - effects[1])[symbols]
    for scale in (None, 100):
        short, long = compare(*sides, anytime_scale=scale), compare(*lied, anytime_scale=scale)
        np.testing.assert_allclose(long.low, (short.low - room) / 0.98)
        np.testing.assert_allclose(long.high, (short.high + room) / 0.98)
        np.testing.assert_allclose(long.noticeable, (short.noticeable + 2 * room) / 0.98)
        np.testing.assert_array_equal(long.differences, short.differences)
        assert (long.p_values >= short.p_values).all()
        known = ~np.isnan(short.lifts)
        assert (long.lift_low[known] <= short.lift_low[known]).all()
        assert (long.lift_high[known] >= short.lift_high[known]).all()
    same, plain = compare(*nobodys), compare(*sides)
    for name in ("low", "high", "p_values", "lift_low", "lift_high", "noticeable"):
        np.testing.assert_allclose(getattr(same, name), getattr(plain, name), atol=1e-12)
