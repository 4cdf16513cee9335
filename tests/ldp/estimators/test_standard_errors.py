"""Standard errors where few reports are counted: never 0, and as large as errors are, by the law of the count itself.

The exact mean square of error / standard error of one symbol, and what weighting windows by 1 / standard error^2 does.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy import stats

from tests.support.ldp.made_collections import made
from uldp_transforms.ldp import CohortCounts, Collection

VALUES = ("rare", "sensitive", "common")
EXPECTED = (0.05, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 30.0, 100.0, 1000.0, 9000.0)


def collection(mechanism: str, epsilon: float, sensitive: tuple[str, ...]) -> Collection:
    alphabet = {"id": "closed", "values": list(VALUES), "sensitive": list(sensitive)}
    fields = {"id": mechanism, "epsilon": epsilon}
    return made(alphabet, fields)


@functools.cache
def law(mechanism: str, epsilon: float, expected: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Probabilities of the counts of "rare", its estimates and standard errors for each, and its share of 10,000."""
    n = 10_000
    item = collection(mechanism, epsilon, VALUES if mechanism == "krr" else VALUES[1:2])
    symbol = int(item.alphabet.symbol_table(("rare",), 1)[0, 0])
    others = [symbol_ for symbol_ in range(3) if symbol_ != symbol]
    share = expected / n
    rate = float(item.mechanism.response(np.eye(3)[symbol] * share + np.eye(3)[others[0]] * (1 - share))[symbol])
    counts = np.arange(*stats.binom.interval(1 - 1e-12, n, rate) + np.array([0, 1]), dtype=np.int64)
    found = []
    for count in counts:
        cells = np.zeros((1, 3), dtype=np.int64)
        cells[0, symbol], cells[0, others[0]] = count, n - count
        estimate = item.estimate(CohortCounts(np.array([n]), cells))
        found.append((estimate.raw_frequencies[0], estimate.standard_errors[0]))
    raw, errors = np.array(found).T
    return stats.binom.pmf(counts, n, rate), raw, errors, share


CASES = [("urr", 0.5), ("urr", 4.0), ("urap", 8.0), ("uss", 2.0), ("krr", 16.0)]


@pytest.mark.parametrize("expected", EXPECTED)
@pytest.mark.parametrize(("mechanism", "epsilon"), CASES)
def test_errors_are_as_large_as_they_say(mechanism, epsilon, expected):
    """Counted in reports the squared error is R - mean, and its estimate R + 1: E (R - m)^2 / (R + 1) is

    (m + 1)^2 (1 - e^-m) / m - (m + 1), at most 1.16, the square of 1.08, and above 0.72, that of 0.85, from a mean m
    of 1.5 on. Below, no function of the own count can be right, since nothing is counted: errors are said to be larger.
    """
    probabilities, raw, errors, share = law(mechanism, epsilon, expected)
    assert errors.min() > 0
    counted = expected * collection(mechanism, epsilon, VALUES[1:2]).mechanism.kappa
    ratio = np.sqrt(probabilities @ ((raw - share) / errors) ** 2)
    assert ratio < 1.1
    if counted >= 1.5 or (mechanism == "krr" and expected >= 1.5):
        assert ratio > 0.85


@pytest.mark.parametrize("expected", EXPECTED)
@pytest.mark.parametrize(("mechanism", "epsilon"), CASES)
def test_the_mean_of_windows_that_is_weighted_by_them_is_a_little_too_small(mechanism, epsilon, expected):
    """Of very many windows; by at most one report, and by less than half the standard error of one window.

    A low estimate has a low standard error, and counts more. Weights by numbers of reports have no such bias.
    """
    probabilities, raw, errors, share = law(mechanism, epsilon, expected)
    weights = probabilities / errors**2
    bias = weights @ raw / weights.sum() - share
    one = np.sqrt(probabilities @ (raw - share) ** 2)
    item = collection(mechanism, epsilon, VALUES if mechanism == "krr" else VALUES[1:2])
    report = item.mechanism.jumps[int(item.alphabet.symbol_table(("rare",), 1)[0, 0])] / 10_000
    assert -min(0.5 * one, 1.01 * report) < bias < 0.1 * one
