"""Expected losses against enumeration of all reports, the closed forms of the papers, and simulation."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import special

from tests.support.cases import (
    MECHANISMS_TO_TEST,
    each_mechanism,
    enumerated,
)
from tests.support.ldp.small_mechanisms import SIX_DIGITS, make, zipf
from tests.support.tolerance import chi_square_limits, generator, within
from uldp_transforms.ldp import CohortCounts
from uldp_transforms.ldp.mechanisms import Mechanism
from uldp_transforms.ldp.sampling import SeededSource
from uldp_transforms_planner.utility import (
    expected_l1,
    expected_l2,
    expected_total_variation,
    l1_without_privacy,
    l2_without_privacy,
    mean_absolute_deviation,
)

# ---------------------------------------------------------------------- golden numbers


@pytest.mark.parametrize(("name", "loss"), [("urr", 0.00614672), ("krr", 0.0756292)])
def test_golden_losses_without_replacement(name, loss):
    result = expected_l2(
        make(name, 20, 5, epsilon=1), zipf(20), 2000, model="without_replacement", population_size=4000
    )
    assert result == pytest.approx(loss, rel=SIX_DIGITS)


# ---------------------------------------------------------------------- the mean absolute deviation


@pytest.mark.parametrize("n", [1, 2, 3, 7, 40])
def test_mean_absolute_deviation_is_the_sum_over_all_outcomes(n):
    m = np.append(np.linspace(0, 1, 41), np.arange(n + 1) / n)
    outcomes = np.arange(n + 1)[:, np.newaxis]
    probabilities = special.binom(n, outcomes) * m**outcomes * (1 - m) ** (n - outcomes)
    expected = (probabilities * np.abs(outcomes - n * m)).sum(axis=0)
    np.testing.assert_allclose(mean_absolute_deviation(n, m), expected, rtol=1e-12, atol=1e-13)


def test_mean_absolute_deviation_broadcasts():
    result = mean_absolute_deviation(np.array([[1], [10]]), np.array([0.0, 0.3, 1.0]))
    assert result.shape == (2, 3)
    np.testing.assert_allclose(result[:, [0, 2]], 0)


@pytest.mark.parametrize("n", [10**9, 10**12, 10**15])
def test_mean_absolute_deviation_keeps_its_digits_for_many_trials(n):
    m = np.array([0.5, 0.3, 0.01])
    normal = np.sqrt(2 * n * m * (1 - m) / np.pi)  # wrong by a share of about 1 / (8 n m (1 - m)), plus the lattice
    np.testing.assert_allclose(mean_absolute_deviation(n, m), normal, rtol=1 / (n * 0.01))


# ---------------------------------------------------------------------- enumeration

SMALL = [m for m in MECHANISMS_TO_TEST if m.num_symbols <= 3]
MODELS = ("population", "sample", "without_replacement")


def all_outcomes(mechanism: Mechanism, inputs: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Probability and estimate of every tuple of reports of people with these symbols."""
    _, channel, _, inverse = enumerated(mechanism)
    probabilities, sums = np.ones(1), np.zeros((1, mechanism.num_symbols))
    for symbol in inputs:
        possible = channel[:, symbol] > 0
        probabilities = (probabilities[:, np.newaxis] * channel[possible, symbol]).ravel()
        sums = (sums[:, np.newaxis] + inverse[possible]).reshape(-1, mechanism.num_symbols)
    return probabilities, sums / len(inputs)


def enumerated_loss(
    mechanism: Mechanism, samples: list[tuple[float, tuple[int, ...]]], power: int, target: Any
) -> float:
    """Mean loss over weighted samples of inputs; ``target``: what the estimate is compared with, None: the sample."""
    total, k = 0.0, mechanism.num_symbols
    for weight, inputs in samples:
        truth = np.bincount(inputs, minlength=k) / len(inputs) if target is None else target
        probabilities, estimates = all_outcomes(mechanism, inputs)
        total += weight * (probabilities @ (np.abs(estimates - truth) ** power).sum(axis=1))
    return total


def independent(p: np.ndarray, n: int) -> list[tuple[float, tuple[int, ...]]]:
    return [(math.prod(p[list(i)]), i) for i in itertools.product(range(len(p)), repeat=n)]


@each_mechanism(SMALL)
@pytest.mark.parametrize("n", [1, 2])
def test_squared_losses_are_those_of_all_reports(mechanism, n):
    k = mechanism.num_symbols
    people = (0, 0, 1, k - 1)
    f = np.bincount(people, minlength=k) / len(people)
    p = np.arange(1.0, k + 1) / np.arange(1, k + 1).sum()
    inputs = people[1 : n + 1]
    truth = {
        "population": enumerated_loss(mechanism, independent(p, n), 2, p),
        "sample": enumerated_loss(mechanism, [(1.0, inputs)], 2, None),
        "without_replacement": enumerated_loss(
            mechanism, [(1 / math.perm(4, n), chosen) for chosen in itertools.permutations(people, n)], 2, f
        ),
    }
    at = {"population": p, "sample": np.bincount(inputs, minlength=k) / n, "without_replacement": f}
    size = {"without_replacement": len(people)}
    for model in MODELS:
        found = expected_l2(mechanism, at[model], n, model=model, population_size=size.get(model))
        assert found == pytest.approx(truth[model], rel=1e-9), model


TWO_VALUED = [
    make("krr", 3, 3, epsilon=1),
    make("urr", 3, 2, epsilon=1),
    make("urr", 3, 1, epsilon=2),
    make("rappor", 3, 3, epsilon=1, theta=0.7),
    make("urap", 3, 2, epsilon=1, inversion="marginal"),
    make("ss", 3, 3, epsilon=1, subset_size=2),
    make("uss", 3, 2, epsilon=1, subset_size=1),
    make("up", 3, 3, epsilon=1),
    make("agrr", 3, 3, epsilon=1, priors=[[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]),
    make("aoue", 3, 3, epsilon=1, priors=[[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]),
]


@each_mechanism(TWO_VALUED)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_exact_absolute_losses_are_those_of_all_reports(mechanism, n):
    p = np.array([0.5, 0.2, 0.3])
    expected = enumerated_loss(mechanism, independent(p, n), 1, p)
    assert expected_l1(mechanism, p, n, method="exact") == pytest.approx(expected, rel=1e-9)
    assert expected_total_variation(mechanism, p, n, method="exact") == pytest.approx(expected / 2, rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_losses_without_privacy_are_those_of_all_samples(n):
    p = np.array([0.5, 0.2, 0.3])
    shares = [(weight, np.bincount(inputs, minlength=3) / n) for weight, inputs in independent(p, n)]
    for power, loss in ((1, l1_without_privacy), (2, l2_without_privacy)):
        expected = sum(weight * (np.abs(share - p) ** power).sum() for weight, share in shares)
        assert loss(p, n) == pytest.approx(expected, rel=1e-12)


@each_mechanism(TWO_VALUED)
def test_the_normal_absolute_loss_is_the_limit_of_the_exact_one(mechanism):
    p = np.array([0.5, 0.2, 0.3])
    exact = expected_l1(mechanism, p, 10**10, method="exact")
    assert expected_l1(mechanism, p, 10**10) == pytest.approx(exact, rel=1e-7)


@each_mechanism(SMALL)
def test_distributions_may_be_stacked(mechanism):
    p = generator("stacked", mechanism.num_symbols).dirichlet(np.ones(mechanism.num_symbols), size=(2, 4))
    for loss in (expected_l1, expected_l2):
        single = [[loss(mechanism, row, 7) for row in rows] for rows in p]
        np.testing.assert_allclose(loss(mechanism, p, 7), single)


# ---------------------------------------------------------------------- the closed forms of the papers

SETTINGS = [(w, v, epsilon) for w, v in ((4, 2), (12, 5), (40, 39), (30, 1)) for epsilon in (0.3, 1.0, 3.5)]


@pytest.mark.parametrize(("k", "_v", "epsilon"), SETTINGS)
def test_kairouz_propositions_3_and_4(k, _v, epsilon):
    p, n = zipf(k), 500
    u, h, c = math.expm1(epsilon), math.exp(epsilon / 2), math.sqrt(2 / (math.pi * n))
    krr, rappor = make("krr", k, k, epsilon=epsilon), make("rappor", k, k, epsilon=epsilon)
    sampling = (1 - p @ p) / n
    l1_krr = c * np.sqrt((u * p + 1) * (u * (1 - p) + k - 1)).sum() / u
    l1_rappor = c * np.sqrt(((h - 1) * p + 1) * ((h - 1) * (1 - p) + 1)).sum() / (h - 1)
    assert expected_l2(krr, p, n) == pytest.approx(sampling + (k - 1) / n * (k + 2 * u) / u**2, rel=1e-7)
    assert expected_l2(rappor, p, n) == pytest.approx(sampling + k * h / (n * (h - 1) ** 2), rel=1e-7)
    assert expected_l1(krr, p, n) == pytest.approx(l1_krr, rel=1e-7)
    assert expected_l1(rappor, p, n) == pytest.approx(l1_rappor, rel=1e-7)


@pytest.mark.parametrize(("w", "v", "epsilon"), SETTINGS)
def test_murakami_propositions_6_9_14_and_17(w, v, epsilon):
    p, n = zipf(w), 500
    sensitive, clear, share = p[:v], p[v:], p[:v].sum()
    u, h, c = math.expm1(epsilon), math.exp(epsilon / 2), math.sqrt(2 / (math.pi * n))
    big, root = (v + u) / u, h / (h - 1)
    urr, urap = make("urr", w, v, epsilon=epsilon), make("urap", w, v, epsilon=epsilon, inversion="marginal")
    l1_urr = np.sqrt((sensitive + 1 / u) * (big - sensitive - 1 / u)).sum() + np.sqrt(clear * (big - clear)).sum()
    l1_urap = np.sqrt((sensitive + 1 / (h - 1)) * (root - sensitive)).sum() + np.sqrt(clear * (root - clear)).sum()
    l2_urr = (2 * u * (v - share) + v * (v - 1)) / u**2 + 1 - p @ p
    l2_urap = 1 + ((v + 1) * h - 1) / (h - 1) ** 2 - share / (h - 1) - p @ p
    assert expected_l1(urr, p, n) == pytest.approx(c * l1_urr, rel=1e-7)
    assert expected_l1(urap, p, n) == pytest.approx(c * l1_urap, rel=1e-7)
    assert expected_l2(urr, p, n) == pytest.approx(l2_urr / n, rel=1e-7)
    assert expected_l2(urap, p, n) == pytest.approx(l2_urap / n, rel=1e-7)


def test_reports_that_a_target_takes():
    per_report = expected_l2(make("urr", 20, 5, epsilon=1), zipf(20), 1)
    assert math.ceil(per_report / 1e-3) == 12732


@pytest.mark.parametrize(("k", "crossover"), [(8, 0.780924), (16, 1.55811), (64, 2.69217), (256, 3.67139)])
def test_where_one_symbol_becomes_better_than_bits(k, crossover):
    def difference(epsilon: float) -> float:
        losses = (expected_l2(make(name, k, k, epsilon=epsilon), np.full(k, 1 / k), 1) for name in ("krr", "rappor"))
        return float(next(losses) - next(losses))

    assert difference(crossover * (1 - 1e-5)) > 0 > difference(crossover * (1 + 1e-5))


# ---------------------------------------------------------------------- simulation


@pytest.mark.parametrize("name", ["krr", "urr", "urap", "uss"])
def test_squared_errors_of_simulated_clients(name):
    """Per symbol, squared errors over their expectation are chi-square; each symbol has its own limits."""
    runs, n, k = 200, 3000, 8
    mechanism, f = make(name, k, 3, epsilon=1), np.array([300, 450, 150, 600, 750, 300, 300, 150]) / 3000
    symbols = np.tile(np.repeat(np.arange(k), np.rint(f * n).astype(int)), runs)
    payloads = mechanism.perturb(symbols, SeededSource(generator("losses", name)))
    cells = mechanism.count(payloads, np.repeat(np.arange(runs), n), runs)
    estimates = mechanism.invert(CohortCounts(np.full(runs, n), cells))
    squares = ((estimates - f) ** 2).sum(axis=0)
    share = mechanism.variances(f) - f * (1 - f)
    expected = expected_l2(mechanism, f, n, model="sample") * share / share.sum()
    assert within(squares / expected, chi_square_limits(runs, comparisons=k)).all()
