"""P-values of many pairs together: the same, bit for bit, as of each pair alone."""

from __future__ import annotations

import dataclasses
from unittest import mock

import numpy as np
import pytest

from tests.support.cases import ALL_COLLECTIONS
from tests.support.compared_sides import sides_of
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.estimators import Estimate
from uldp_transforms_compare.comparisons import stacked_pairs
from uldp_transforms_compare.comparisons.compare import p_values_of_sides
from uldp_transforms_compare.comparisons.interval_inversion import ComparedSide
from uldp_transforms_compare.comparisons.stacked_pairs import ComparedPair, p_values_of_pairs

LISTED = [of for of in ALL_COLLECTIONS.values() if of.alphabet.known_values]


def pairs_of(of: Collection, rng: np.random.Generator) -> list[ComparedPair]:
    """Pairs of several sizes; one side has one value alone, whose estimate may be above 1, and one is in two pairs."""
    values = of.alphabet.known_values or ()
    every = [sides_of(of, number, rng) for number in (60, 900, 20_000)]
    one = of.estimate(of.count(of.perturb([values[0]] * 90, rng)), "empirical")
    compared = [tuple(map(ComparedSide, each)) for each in (*every, (one, every[0][1]))]
    return [*compared, (compared[0][1], compared[1][0])]


def as_alone(pairs: list[ComparedPair]) -> None:
    found = p_values_of_pairs(pairs)
    fresh = [tuple(ComparedSide(side.estimate) for side in pair) for pair in pairs]
    for together, (a, b) in zip(found, fresh, strict=True):
        np.testing.assert_array_equal(together, p_values_of_sides(a, b))


@pytest.mark.parametrize("start", range(4))
def test_pairs_together_have_the_p_values_that_they_have_alone(start: int) -> None:
    rng, stacked = np.random.default_rng(start), 0
    for of in LISTED[start::4]:
        pairs = pairs_of(of, rng)
        with mock.patch.object(stacked_pairs, "_together", wraps=stacked_pairs._together) as together:
            as_alone(pairs)
        stacked += together.call_count
        assert together.call_count == (stacked_pairs._kind(pairs[0]) is not None)
    assert stacked > 3


def test_pairs_of_several_kinds_keep_their_places() -> None:
    """Pairs of two mechanisms in turn, with values in other orders, and some with lies, which are compared alone."""
    rng = np.random.default_rng(1)
    krr = ALL_COLLECTIONS["closed-krr"]
    first, second = (pairs_of(of, rng) for of in (krr, ALL_COLLECTIONS["closed-rappor"]))
    liars = [tuple(ComparedSide(side.estimate.with_liars(krr, 0.01)) for side in pair) for pair in first[:2]]
    turned = tuple(ComparedSide(each) for each in (first[1][0].estimate, _turned(first[1][1].estimate)))
    as_alone([first[0], second[0], liars[0], first[1], turned, second[1], liars[1], first[2]])


def _turned(estimate: Estimate) -> Estimate:
    """The same estimate with its values in the opposite order."""
    order = np.arange(len(estimate.values))[::-1]
    intervals = dataclasses.replace(estimate.unclipped, chosen=estimate.unclipped.chosen[order])
    return dataclasses.replace(
        estimate,
        values=estimate.values[::-1],
        frequencies=estimate.frequencies[order],
        raw_frequencies=estimate.raw_frequencies[order],
        standard_errors=estimate.standard_errors[order],
        unclipped=intervals,
    )


def test_looks_are_compared_pair_by_pair() -> None:
    pairs = pairs_of(LISTED[0], np.random.default_rng(2))
    for together, (a, b) in zip(p_values_of_pairs(pairs, 100), pairs, strict=True):
        np.testing.assert_array_equal(together, p_values_of_sides(a, b, 100))
