"""TSP and UP: answers that may be missing, their promise enumerated over states in exact numbers.

Letters: d answers, symbol d is "missing"; rates are Pr(missing | state).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from tests.support.cases import MECHANISM_CASES, e_below, enumerated, exact_channel, label
from tests.support.tolerance import generator
from uldp_transforms.ldp.mechanisms import KaryRR, TwoStage, UniformPerturbation


def two_stage(d: int, epsilon: float, rates: Sequence[float]) -> TwoStage:
    return TwoStage(num_symbols=d + 1, num_sensitive=d + 1, epsilon=epsilon, missing_rates=tuple(rates))


def random_cases() -> list[TwoStage]:
    """2 to 4 states, rates from 1e-6 to 1 - 1e-6."""
    rng = generator("missing rates")
    cases = []
    for _ in range(40):
        size = int(rng.integers(2, 5))
        rare = 10.0 ** -rng.uniform(0, 6, size)
        rates = np.choose(rng.integers(0, 3, size), [rng.uniform(0.01, 0.99, size), rare * 0.9, 1 - rare * 0.9])
        cases.append(
            two_stage(int(rng.choice([2, 3, 7])), float(rng.choice([2.0**-10, 0.5, 1.0, 4.0])), rates.tolist())
        )
    return cases


CASES = [case for case in MECHANISM_CASES["tsp"] if case.num_symbols < 10] + random_cases()
cases = pytest.mark.parametrize("mechanism", CASES, ids=range(len(CASES)))


def largest_ratio(mechanism: TwoStage, answers: Sequence[Sequence[Fraction]]) -> Fraction:
    """Over reports and pairs of states, if everybody's answer follows one of these laws (d,), whatever the state."""
    _, rows = exact_channel(mechanism)
    rates = list(map(Fraction, mechanism.missing_rates))
    worst = Fraction(1)
    for row, answer in itertools.product(rows, answers):
        given = sum(share * q for share, q in zip(answer, row))
        shares = [rate * row[-1] + (1 - rate) * given for rate in rates]
        worst = max(worst, max(shares) / min(shares))
    return worst


def certain(d: int) -> list[list[Fraction]]:
    """Laws of one sure answer. A ratio is largest at one of them: it is linear in the law, above and below the line."""
    return [[Fraction(int(i == j)) for j in range(d)] for i in range(d)]


@cases
def test_answers_are_protected_against_each_other(mechanism):
    d, (_, rows) = mechanism.num_symbols - 1, exact_channel(mechanism)
    for row in rows:
        assert max(row[:d]) <= e_below(mechanism.epsilon) * min(row[:d])


@cases
def test_no_report_tells_two_states_apart_by_more_than_epsilon(mechanism):
    """Provided that the answer, if there is one, does not depend on the state."""
    d = mechanism.num_symbols - 1
    laws = [*certain(d), [Fraction(1, d)] * d]
    assert largest_ratio(mechanism, laws) <= e_below(mechanism.epsilon)


@cases
def test_effective_epsilon_is_the_largest_ratio(mechanism):
    d, (_, rows) = mechanism.num_symbols - 1, exact_channel(mechanism)
    answers = max(max(row[:d]) / min(row[:d]) for row in rows[:d])
    largest = max(answers, largest_ratio(mechanism, certain(d)))
    assert mechanism.exact_ratio == largest
    assert mechanism.effective_epsilon == pytest.approx(math.log(largest), rel=1e-9)
    assert mechanism.effective_epsilon <= mechanism.epsilon
    assert mechanism.effective_epsilon >= mechanism.epsilon - 1e-9, "less noise would do"


def epsilon_by_brute_force(mechanism: TwoStage) -> float:
    """Every pair of a declared rate and a sure answer is a state."""
    _, rows = exact_channel(mechanism)
    rates, d = list(map(Fraction, mechanism.missing_rates)), mechanism.num_symbols - 1
    return max(
        math.log(max(shares) / min(shares))
        for row in rows
        for shares in [[rate * row[d] + (1 - rate) * row[answer] for rate in rates for answer in range(d)]]
    )


@cases
def test_epsilon_if_the_state_is_the_value(mechanism):
    """The docstring's worst case, and a bound on what laws of the answer that depend on the state can do."""
    declared = mechanism.epsilon_if_state_is_value
    assert declared == pytest.approx(max(mechanism.effective_epsilon, epsilon_by_brute_force(mechanism)), rel=1e-9)
    _, probabilities, _, _ = enumerated(mechanism)
    d, rates = mechanism.num_symbols - 1, np.array(mechanism.missing_rates)
    for laws in generator("dependent", label(mechanism)).dirichlet(np.full(d, 0.2), (20, len(rates))):
        of_states = np.concatenate([(1 - rates)[:, np.newaxis] * laws, rates[:, np.newaxis]], axis=1)
        reports = probabilities @ of_states.T
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.log(reports.max(axis=1) / reports.min(axis=1))
        assert (ratios[reports.max(axis=1) > 0] <= declared + 1e-9).all()


@pytest.mark.parametrize("rates", [(0.4, 0.05), (0.95, 0.6), (0.9, 0.5, 0.6)])
@pytest.mark.parametrize(("d", "epsilon"), [(2, 0.5), (5, 1.0)])
def test_probabilities_are_those_of_the_two_stages(d, epsilon, rates):
    """The formulas of the source, in floating point."""
    e, high, low = math.exp(epsilon), max(rates), min(rates)
    if high / low < (1 - low) / (1 - high):
        high, low = 1 - low, 1 - high
    excess = max(high - low * e, 0)
    p2 = (e - 1 + excess) / (e - 1 + (d + 1) * excess)
    q2 = (1 - p2) / d
    p1 = min(1, (e * (p2 + d * q2 - 2 * q2) - q2 * (d - 1)) / ((d - 1 + e) * (p2 - q2)))
    q1 = (1 - p1) / (d - 1)
    expected = np.full((d + 1, d + 1), q1 * p2 + (1 - q1) * q2)
    np.fill_diagonal(expected, p1 * p2 + (1 - p1) * q2)
    expected[d], expected[:, d] = q2, q2
    expected[d, d] = p2
    np.testing.assert_allclose(enumerated(two_stage(d, epsilon, rates))[1], expected, rtol=1e-12)


@pytest.mark.parametrize("d", [2, 5])
def test_uniform_perturbation_is_krr_over_answers_and_missing(d):
    sizes = {"num_symbols": d + 1, "num_sensitive": d + 1, "epsilon": 1.0}
    assert exact_channel(UniformPerturbation(**sizes)) == exact_channel(KaryRR(**sizes))
