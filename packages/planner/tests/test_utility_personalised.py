"""Errors where part of the people hide their value behind a tag."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.cases import (
    each_mechanism,
    enumerated,
)
from tests.support.ldp.small_mechanisms import make
from tests.support.tolerance import generator
from uldp_transforms.ldp.alphabets import Tagged
from uldp_transforms_planner.utility import tagged_l1_bound, tagged_l2

VALUES = ("a", "b", "c")
HALF_KNOWN = Tagged(values=VALUES, tags=("home", "work"), sensitive=("a",), background={"home": {"b": 0.75, "c": 0.25}})
KNOWN = Tagged(
    values=VALUES,
    tags=("home", "work"),
    sensitive=("a",),
    background={"home": {"b": 0.75, "c": 0.25}, "work": {"c": 1.0}},
)
# symbols: a, home, work, b, c
VALUE_SYMBOLS = [0, 3, 4]
ESTIMATED = np.array([0.5, 0.15, 0.05, 0.2, 0.1])


def behind(*shares_of_b: float) -> np.ndarray:
    """(K, T): b with these shares behind each tag, c with the rest."""
    return np.array([[0.0, 0.0, 0.0, share, 1 - share] for share in shares_of_b]).T


def values_of(r: np.ndarray, behind_tags: np.ndarray) -> np.ndarray:
    return (r + behind_tags @ r[1:3])[VALUE_SYMBOLS]


def test_golden_redistribution():
    found = HALF_KNOWN.redistribute(ESTIMATED)[VALUE_SYMBOLS]
    np.testing.assert_allclose(found, [0.5, 0.345833, 0.154167], atol=5e-7)


def test_bound_by_hand():
    """Estimates are right, and "home" is b for everybody: 0.15 (0.25 + 0.25); "work" is shared out like the truth."""
    assert tagged_l1_bound(HALF_KNOWN, ESTIMATED, ESTIMATED, behind(1, 2 / 3)) == pytest.approx(0.075)


@pytest.mark.parametrize("alphabet", [HALF_KNOWN, KNOWN])
def test_the_bound_holds_also_with_negative_tags(alphabet):
    rng, negative = generator("theorem 1"), 0
    for _ in range(500):
        true, shares = rng.dirichlet(np.ones(5)), rng.uniform(size=2)
        estimated = true + rng.normal(scale=0.1, size=5)
        estimated[3:] = np.abs(estimated[3:])
        negative += (estimated[1:3] < 0).any()
        error = np.abs(alphabet.redistribute(estimated)[VALUE_SYMBOLS] - values_of(true, behind(*shares))).sum()
        assert error <= tagged_l1_bound(alphabet, estimated, true, behind(*shares)) + 1e-12
    assert negative > 50


def test_the_bound_is_attained():
    """No error of symbols, one tag that is guessed wrongly."""
    wrong = behind(0.0, 0.0)
    error = np.abs(KNOWN.redistribute(ESTIMATED)[VALUE_SYMBOLS] - values_of(ESTIMATED, wrong)).sum()
    assert tagged_l1_bound(KNOWN, ESTIMATED, ESTIMATED, wrong) == pytest.approx(error)


MECHANISMS = [
    make("urr", 5, 3, epsilon=1),
    make("urap", 5, 3, epsilon=1),
    make("uss", 5, 3, epsilon=1, subset_size=2),
]


@each_mechanism(MECHANISMS)
def test_squared_error_is_that_of_all_reports(mechanism):
    """One report and two, by enumeration; the background knowledge is wrong."""
    _, channel, _, inverse = enumerated(mechanism)
    r, truth = np.array([0.3, 0.2, 0.1, 0.3, 0.1]), behind(0.2, 0.5)
    target, probabilities = values_of(r, truth), channel @ r
    one = np.array([KNOWN.redistribute(row)[VALUE_SYMBOLS] for row in inverse]) - target
    two = (one[:, np.newaxis] + one) / 2
    expected = {1: probabilities @ (one**2).sum(axis=1)}
    expected[2] = probabilities @ (two**2).sum(axis=2) @ probabilities
    for n, error in expected.items():
        assert tagged_l2(KNOWN, mechanism, r, n, truth) == pytest.approx(error, rel=1e-9)


def test_unknown_tags_are_linear_in_the_limit():
    """Without knowledge the squared error is that of the map's derivative: compared with differences of the map."""
    mechanism, r = MECHANISMS[0], np.array([0.3, 0.2, 0.1, 0.3, 0.1])
    truth, step = behind(0.75, 0.75), 1e-6
    slopes = np.stack(
        [
            (HALF_KNOWN.redistribute(r + step * unit) - HALF_KNOWN.redistribute(r - step * unit)) / (2 * step)
            for unit in np.eye(5)
        ],
        axis=1,
    )
    noise = mechanism.variance_of(slopes[VALUE_SYMBOLS], r).sum() / 10
    bias = HALF_KNOWN.redistribute(r)[VALUE_SYMBOLS] - values_of(r, truth)
    assert tagged_l2(HALF_KNOWN, mechanism, r, 10, truth) == pytest.approx(noise + bias @ bias, rel=1e-6)
