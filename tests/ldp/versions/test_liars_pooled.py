"""Intervals of questions for a declared share of liars: every attack on every version, and coverage."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from labs.experiments.drawn_counts import draw_counts
from tests.support.ldp.attacked_versions import QUESTIONS, SIZES, TRUTH, VALUES, attacked, first_to_last, means
from tests.support.ldp.question_versions import of
from tests.support.tolerance import binomial_limits, generator
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.false_reports import Lies

EMPIRICAL = ESTIMATORS["empirical"]()


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
