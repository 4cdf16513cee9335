"""Comparisons of questions for a declared share of liars: every pair of attacks, and coverage."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from labs.experiments.drawn_counts import draw_counts
from tests.support.ldp.attacked_versions import QUESTIONS, SIZES, VALUES, attacked, first_to_last, means
from tests.support.ldp.question_versions import of
from tests.support.tolerance import binomial_limits, generator
from uldp_transforms.ldp import Estimate
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.false_reports import Lies
from uldp_transforms.ldp.versions import PooledWindow
from uldp_transforms_compare.comparisons import compare
from uldp_transforms_compare.comparisons.compare import _Pair, difference_at

EMPIRICAL = ESTIMATORS["empirical"]()


def sides_of(name: str, sizes: Sequence[int], lies: int) -> list[Estimate]:
    """Estimates that each attack makes of TRUTH, without errors of chance."""
    versions, _ = QUESTIONS[name]
    weights, seen = means(versions, sizes, lies)
    told = Lies.of_versions(versions, tuple(VALUES), lies / sum(sizes), np.array(sizes), weights)
    counts = draw_counts(versions[0], tuple(VALUES), np.array([4, 3, 2, 1]), generator("sides"))
    plain = versions[0].estimate(counts, "empirical")
    return [
        dataclasses.replace(
            plain, raw_frequencies=raw, unclipped=lambda confidence, strict=False, raw=raw: (raw, raw)
        ).with_lies(told)
        for raw in seen
    ]


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("small and noisy", (20, 20)),
        ("small and sharp", (6, 34)),
        ("alike", (5, 35)),
        ("three", (10, 10, 20)),
    ],
)
def test_no_pair_of_attacks_breaks_the_bounds_of_differences_and_lifts(name: str, others: tuple[int, ...]) -> None:
    """Both sides have the same shares among honest people, and versions of other sizes."""
    _, sizes = QUESTIONS[name]
    least, lifts = np.full((2, 4), np.inf), np.full((2, 4), np.inf)
    for a, b in itertools.product(sides_of(name, sizes, 4), sides_of(name, others, 4)):
        low, high = difference_at(a, b, 0.95)
        least = np.minimum(least, [-low, high])
        found = compared_lifts(a, b)
        known = b.raw_frequencies > 0
        lifts = np.minimum(lifts, np.where(known, [1 - found[1], found[2] - 1], np.inf))
    assert (least >= -1e-9).all() and (lifts >= -1e-9).all()
    np.testing.assert_allclose(least, 0, atol=1e-9)


@pytest.mark.parametrize("name", ["small and sharp", "three"])
def test_errors_of_chance_are_stretched_by_the_largest_weight_of_lies_on_either_side(name: str) -> None:
    """Liars who have that weight leave 1 - weight of an estimate to honest people, whose errors are as much larger."""
    versions, sizes = QUESTIONS[name]
    other = [2, 38] if len(versions) == 2 else [2, 8, 30]
    both = sides_of(name, sizes, 4)[0], sides_of(name, other, 4)[0]
    assert not np.allclose(*(one.lies.largest_weight for one in both if one.lies is not None), atol=1e-3)
    length = np.array([0.01, 0.02, 0.03, 0.04])
    for place, side in enumerate(both):
        raw = side.raw_frequencies
        uncertain = dataclasses.replace(
            side, by_chance=lambda confidence, strict=False, raw=raw: (raw - length, raw + length)
        )
        pair = (uncertain, both[1]) if place == 0 else (both[0], uncertain)
        ends, certain = difference_at(*pair, 0.95), difference_at(*both, 0.95)
        assert side.lies is not None
        for moved in (certain[0] - ends[0], ends[1] - certain[1]):
            assert (moved >= length / (1 - side.lies.largest_weight) - 1e-12).all()


def compared_lifts(a: Estimate, b: Estimate) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``compare`` would compute p-values, too."""
    return _Pair.of(a, b, 0.95, None).lifts(0.95)


@pytest.mark.parametrize("name", ["small and sharp", "small and noisy"])
def test_differences_hold_wherever_liars_of_both_sides_are(name: str) -> None:
    (versions, _), sizes = QUESTIONS[name], SIZES[name]
    rng, runs, undeclared = generator("liars of both sides", name), 200, []
    _, most = binomial_limits(runs, 0.05)
    for order in itertools.permutations(range(2)):
        lied, misses = first_to_last(sizes, order, int(0.03 * sum(sizes))), np.zeros(2)
        for _ in range(runs):
            pair = [
                of(*versions).estimate(attacked(versions, lied, sizes, 2, up, rng), EMPIRICAL) for up in (True, False)
            ]
            plain = difference_at(*(one.estimate for one in pair), 0.95)
            told = difference_at(*(one.estimate.with_lies(one.lies(0.03)) for one in pair), 0.95)
            misses += [not low[2] <= 0 <= high[2] for low, high in (told, plain)]
        assert misses[0] <= most
        undeclared.append(misses[1])
    assert max(undeclared) > most


def test_p_values_and_noticeable_differences_follow_from_the_bounds() -> None:
    (versions, _), sizes = QUESTIONS["small and sharp"], (300, 4_000)
    rng = generator("p-values of pooled liars")
    windows: list[PooledWindow] = [
        of(*versions).estimate(attacked(versions, (0, 0), sizes, 0, True, rng), EMPIRICAL) for _ in range(2)
    ]
    plain = compare(*(one.estimate for one in windows))
    told = compare(*(one.estimate.with_lies(one.lies(0.01)) for one in windows))
    assert (told.low <= plain.low).all() and (told.high >= plain.high).all()
    assert (told.p_values >= plain.p_values).all() and (told.noticeable > plain.noticeable).all()
    room = (told.high - told.low) * (1 - windows[0].lies(0.01).largest_weight) - (plain.high - plain.low)
    assert (room > 0.01).all()
