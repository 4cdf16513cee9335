"""The least favourable distributions against random ones, and against the closed forms of the papers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support.cases import (
    MECHANISM_CASES,
    MECHANISMS_TO_TEST,
    each_mechanism,
)
from tests.support.ldp.small_mechanisms import make
from tests.support.tolerance import generator
from uldp_transforms.ldp.mechanisms import MECHANISMS
from uldp_transforms_planner.utility import (
    expected_l1,
    expected_l2,
    worst_case_distribution,
    worst_case_l1,
    worst_case_l2,
)

LOSSES = {"l1": (expected_l1, worst_case_l1), "l2": (expected_l2, worst_case_l2)}


def test_every_mechanism_is_looked_at():
    assert set(MECHANISM_CASES) == set(MECHANISMS)


@each_mechanism([mechanism for mechanism in MECHANISMS_TO_TEST if mechanism.alike_in_blocks])
@pytest.mark.parametrize("loss", LOSSES)
def test_no_distribution_is_worse(mechanism, loss):
    """Neither a random one, nor one near the worst one; and the loss is the one of that distribution."""
    expected, worst = LOSSES[loss]
    k, rng = mechanism.num_symbols, generator("worst", loss)
    p = worst_case_distribution(mechanism, loss)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    others = np.concatenate([rng.dirichlet(np.full(k, size), size=50) for size in (0.02, 0.3, 1, 30)])
    near = [(1 - step) * p + step * others for step in (1e-3, 0.03, 1)]
    largest = worst(mechanism, 100)
    assert largest == pytest.approx(expected(mechanism, p, 100), rel=1e-12)
    assert np.max([expected(mechanism, rows, 100).max() for rows in near]) <= largest * (1 + 1e-12)


SETTINGS = [(w, v, epsilon) for w, v in ((3, 2), (12, 5), (41, 39), (30, 1), (200, 10)) for epsilon in (0.3, 1, 3, 7)]


@pytest.mark.parametrize(("w", "v", "epsilon"), SETTINGS)
def test_urr_propositions_7_8_15_and_16(w, v, epsilon):
    others, u, n = w - v, math.expm1(epsilon), 1000
    c = math.sqrt(2 / (math.pi * n))
    mechanism = make("urr", w, v, epsilon=epsilon)
    if u <= others:
        l1 = c * (v * math.sqrt(v + u - 1) / u + math.sqrt(v * others / u + others - 1))
        l2 = v * (v + 2 * u - 1) / (n * u**2) + (1 - 1 / others) / n
        p = np.repeat([0, 1 / others], [v, others])
    else:
        factor = (v + u) / u
        l1, l2 = factor * math.sqrt(2 * (w - 1) / (math.pi * n)), factor**2 * (1 - 1 / w) / n
        p = np.repeat([(1 - others / u) / w, (1 + v / u) / w], [v, others])
    assert worst_case_l1(mechanism, n) == pytest.approx(l1, rel=1e-7)
    assert worst_case_l2(mechanism, n) == pytest.approx(l2, rel=1e-7)
    np.testing.assert_allclose(worst_case_distribution(mechanism, "l2"), p, atol=1e-9)
    np.testing.assert_allclose(worst_case_distribution(mechanism, "l1"), p, atol=1e-6)


@pytest.mark.parametrize(("w", "v", "epsilon"), SETTINGS)
def test_urap_proposition_10_and_the_other_case(w, v, epsilon):
    others, h, n = w - v, math.exp(epsilon / 2), 1000
    mechanism = make("urap", w, v, epsilon=epsilon, inversion="marginal")
    if 2 * math.sinh(epsilon / 2) <= others:
        share = 0.0
        root = math.sqrt(h * others / (h - 1) - 1)
        l1 = math.sqrt(2 / (math.pi * n)) * (math.exp(epsilon / 4) * v / (h - 1) + root)
        assert worst_case_l1(mechanism, n) == pytest.approx(l1, rel=1e-7)
    else:
        of_sensitive, of_others = 2 * (h - 1) / (v * (h + 1)), 2 * (h - 1) / (others * h)
        share = (of_others - 2 / (h + 1)) / (of_sensitive + of_others)
    assert worst_case_distribution(mechanism, "l1")[:v].sum() == pytest.approx(share, abs=1e-6)


@pytest.mark.parametrize(("w", "v", "epsilon"), SETTINGS)
def test_urap_proposition_18_and_the_other_case(w, v, epsilon):
    others, h, n = w - v, math.exp(epsilon / 2), 1000
    mechanism = make("urap", w, v, epsilon=epsilon, inversion="marginal")
    at_none = 1 + ((v + 1) * h - 1) / (h - 1) ** 2 - 1 / others
    if h <= others / 2 + 1:
        share, more = 0.0, 0.0
    else:
        share = v / w * (1 - others / (2 * (h - 1)))
        more = (1 / others - 1 / (2 * (h - 1))) ** 2 * v * others / w
    assert worst_case_l2(mechanism, n) == pytest.approx((at_none + more) / n, rel=1e-7)
    assert worst_case_distribution(mechanism, "l2")[:v].sum() == pytest.approx(share, abs=1e-7)
