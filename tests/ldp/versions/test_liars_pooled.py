"""Intervals of questions for a declared share of liars: every attack on every version, coverage, and comparisons."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from labs.experiments.drawn_counts import draw_counts
from tests.support.cases import enumerated
from tests.support.ldp.question_versions import of, version
from tests.support.tolerance import binomial_limits, generator
from uldp_transforms.ldp import CohortCounts, Collection, Estimate, compare
from uldp_transforms.ldp.comparisons.compare import _Pair, difference_at
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.liars.false_reports import Lies
from uldp_transforms.ldp.versions import PooledWindow
from uldp_transforms.ldp.versions.version_weights import version_weights

VALUES = list("abcd")
TRUTH = np.array([0.4, 0.3, 0.2, 0.1])
EMPIRICAL = ESTIMATORS["empirical"]()
QUESTIONS: dict[str, tuple[tuple[Collection, ...], tuple[int, ...]]] = {
    "alone": ((version(1, "krr", 1.0, VALUES),), (40,)),
    "alike": ((version(1, "krr", 1.0, VALUES), version(2, "krr", 1.0, VALUES)), (30, 10)),
    "small and noisy": ((version(1, "krr", 0.5, VALUES), version(2, "krr", 2.0, VALUES)), (6, 34)),
    "small and sharp": ((version(1, "krr", 4.0, VALUES), version(2, "rappor", 0.5, VALUES)), (5, 35)),
    "other order": ((version(1, "krr", 1.0, VALUES), version(2, "ss", 1.0, VALUES[::-1])), (20, 20)),
    "some sensitive": ((version(1, "uss", 1.0, VALUES), version(2, "krr", 2.0, VALUES)), (25, 15)),
    "three": (
        (version(1, "krr", 3.0, VALUES), version(2, "urr", 1.0, VALUES), version(3, "krr", 1.0, VALUES)),
        (4, 16, 20),
    ),
}


@functools.cache
def codes_of(model: Collection) -> np.ndarray:
    return enumerated(model.mechanism)[0]


@functools.cache
def effects_of(model: Collection) -> np.ndarray:
    """(R, S): what each report adds to the sum of estimates, by inverting it alone."""
    one = np.zeros(1, dtype=np.int64)
    reports = [model.mechanism.count(code[np.newaxis], one, 1) for code in codes_of(model)]
    added = [model.mechanism.invert(CohortCounts(np.ones(1, dtype=np.int64), each))[0] for each in reports]
    return np.array(added)[:, model.alphabet.symbol_table(tuple(VALUES), 1)[0]]


def allocations(sizes: Sequence[int], lies: int) -> list[tuple[int, ...]]:
    """All numbers of lies by version that are as many as declared."""
    whole = itertools.product(*(range(min(size, lies) + 1) for size in sizes))
    return [numbers for numbers in whole if sum(numbers) == lies]


def means(versions: Sequence[Collection], sizes: Sequence[int], lies: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights (A, S), and the means (M, S) of the pooled estimate that each attack makes: all liars of a version send
    the report that adds most to a value, or least."""
    weights = version_weights(tuple(versions), tuple(VALUES)).of(np.array(sizes))[0]
    effects = [effects_of(one) for one in versions]
    found = []
    for pick in (np.min, np.max):
        for numbers in allocations(sizes, lies):
            shares = np.array(numbers) / np.array(sizes)
            sent = np.array([pick(each, axis=0) for each in effects])
            mixed = (1 - shares)[:, np.newaxis] * TRUTH + shares[:, np.newaxis] * sent
            found.append((weights * mixed).sum(axis=0))
    return weights, np.array(found)


@pytest.mark.parametrize("lies", [1, 4, 12, 39])
@pytest.mark.parametrize("name", QUESTIONS)
def test_no_attack_breaks_the_bounds_and_some_attack_reaches_each(name: str, lies: int) -> None:
    """For all numbers of lies in each version, without errors of chance; 39 of 40 reports: all versions but a report
    may be false."""
    versions, sizes = QUESTIONS[name]
    weights, seen = means(versions, sizes, lies)
    told = Lies.of_versions(versions, tuple(VALUES), lies / 40, np.array(sizes), weights)
    low, high = (np.array(each) for each in zip(*(told.bounds(raw, raw) for raw in seen)))
    rooms = np.array([TRUTH - low, high - TRUTH])
    assert (rooms >= -1e-9).all()
    np.testing.assert_allclose(rooms.min(axis=1), 0, atol=1e-9)


def test_one_version_has_the_bounds_of_a_collection_to_the_bit() -> None:
    (model,), _ = QUESTIONS["alone"]
    counts = draw_counts(model, tuple(VALUES), np.array([40, 30, 20, 10]), generator("one version"))
    window = of(model).estimate({model.fingerprint: counts}, EMPIRICAL)
    for share in (0.0, 0.03, 0.9):
        ends = (np.array([-0.3, 0.1, 0.2, np.nan]), np.array([0.1, 0.2, np.nan, 1.4]))
        of_collection = Lies.of(model, tuple(VALUES), share)
        for one, other, end, effect in zip(
            window.lies(share).bounds(*ends),
            of_collection.bounds(*ends),
            ends,
            (of_collection.most, of_collection.least),
        ):
            np.testing.assert_array_equal(one, (end - share * effect[0]) / (1 - share))
            np.testing.assert_array_equal(one, other)


# ------------------------------------------------------------------------------------------------------------ coverage

SIZES = {
    "small and noisy": (400, 12_000),
    "small and sharp": (400, 12_000),
    "some sensitive": (6_000, 4_000),
    "other order": (5_000, 5_000),
    "three": (500, 4_000, 5_000),
}


def attacked(
    versions: Sequence[Collection], lied: Sequence[int], sizes: Sequence[int], place: int, up: bool, rng: Any
) -> dict[bytes, CohortCounts]:
    """Counts with honest people, and ``lied`` liars in each version who raise a value, or lower it."""
    found = {}
    for model, lies, size in zip(versions, lied, sizes):
        honest = draw_counts(model, tuple(VALUES), rng.multinomial(size - lies, TRUTH), rng)
        codes, adding = codes_of(model), effects_of(model)[:, place]
        code = codes[int(adding.argmax() if up else adding.argmin())]
        sent = model.mechanism.count(np.repeat(code[np.newaxis], lies, axis=0), np.zeros(lies, dtype=np.int64), 1)
        found[model.fingerprint] = honest + CohortCounts(np.array([lies]), sent)
    return found


def first_to_last(sizes: Sequence[int], order: Sequence[int], lies: int) -> list[int]:
    """Lies that fill the versions in this order."""
    found = [0] * len(sizes)
    for at in order:
        found[at] = min(sizes[at], lies)
        lies -= found[at]
    return found


def missed(name: str, up: bool, declared: float | None, runs: int) -> dict[tuple[int, ...], int]:
    """Number of windows whose interval of the third value misses its share among honest people, for each order in which
    3 % of lies fill the versions: the whole estimate is made anew, with weights from the sizes that liars see."""
    (versions, _), sizes = QUESTIONS[name], SIZES[name]
    rng, found = generator("pooled liars", name, up), {}
    for order in itertools.permutations(range(len(versions))):
        lied = first_to_last(sizes, order, int(0.03 * sum(sizes)))
        misses = 0
        for _ in range(runs):
            window = of(*versions).estimate(attacked(versions, lied, sizes, 2, up, rng), ESTIMATORS["projected"]())
            estimate = window.estimate if declared is None else window.estimate.with_lies(window.lies(declared))
            misses += not estimate.ci_low[2] <= TRUTH[2] <= estimate.ci_high[2]
        found[order] = misses
    return found


@pytest.mark.parametrize("up", [False, True])
@pytest.mark.parametrize("name", SIZES)
def test_intervals_hold_wherever_liars_are(name: str, up: bool) -> None:
    """Without the declaration, some place of the liars who raise the share makes most intervals miss it."""
    runs = 400
    _, most = binomial_limits(runs, 0.05)
    assert max(missed(name, up, 0.03, runs).values()) <= most
    undeclared = missed(name, True, None, 20)
    assert max(undeclared.values()) > 10, undeclared


def test_intervals_hold_in_brief() -> None:
    """The liars who do most: all in the sharp version, or in the large one."""
    _, most = binomial_limits(60, 0.05)
    assert max(missed("some sensitive", True, 0.03, 60).values()) <= most
    assert max(missed("some sensitive", True, None, 20).values()) > 10


def test_fewer_liars_than_declared_are_covered_too_and_more_are_not() -> None:
    assert max(missed("small and sharp", True, 0.06, 50).values()) == 0
    assert max(missed("small and sharp", True, 0.001, 50).values()) > 25


# --------------------------------------------------------------------------------------------------------- comparisons


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
        *itertools.product(("small and noisy", "small and sharp", "alike"), ((6, 34), (5, 35), (20, 20))),
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
