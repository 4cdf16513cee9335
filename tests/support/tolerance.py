"""Acceptance limits of statistical tests, as functions of a stated false-alarm rate.

All statistical tests of the suite together raise a false alarm with probability at most BUDGET. The budget is divided
evenly among COMPARISONS single comparisons (union bound; nothing is assumed about dependence), and every function below
counts the comparisons that its limits are for. No limit is tuned:
when a test fails, the code or the model is wrong.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

BUDGET = 1e-9
COMPARISONS = 1_000_000
RATE = BUDGET / COMPARISONS

_spent = 0


def generator(*names: object) -> np.random.Generator:
    """A generator named after its test, so that a failure can be repeated and no seed is chosen by hand."""
    return np.random.default_rng(list("/".join(map(str, names)).encode()))


def normal_limit(comparisons: int = 1, rate: float = RATE) -> float:
    """L with Pr(|Z| > L) = rate, for this many standard normal numbers; about 8.0 at the suite's rate."""
    _spend(comparisons)
    return float(stats.norm.isf(rate / 2))


def student_limit(repetitions: int, comparisons: int = 1, rate: float = RATE) -> float:
    """L with Pr(|mean - truth| > L standard errors) = rate, the error being that of so many repetitions."""
    _spend(comparisons)
    return float(stats.t.isf(rate / 2, repetitions - 1))


def binomial_limits(
    trials: np.ndarray | int, probability: np.ndarray | float, rate: float = RATE
) -> tuple[np.ndarray, np.ndarray]:
    """(low, high) with Pr(X < low) and Pr(X > high) at most rate / 2 each, from the exact tails."""
    trials, probability = np.broadcast_arrays(trials, probability)
    _spend(trials.size)
    failures = stats.binom.ppf(rate / 2, trials, 1 - probability)  # isf warns where it cannot bracket its root
    return stats.binom.ppf(rate / 2, trials, probability), trials - failures


def chi_square_limits(degrees: float, comparisons: int = 1, rate: float = RATE) -> tuple[float, float]:
    """(low, high) with Pr(X < low) and Pr(X > high) equal to rate / 2 each, for this many chi-square numbers."""
    _spend(comparisons)
    return float(stats.chi2.ppf(rate / 2, degrees)), float(stats.chi2.isf(rate / 2, degrees))


def within(values: np.ndarray, limits: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Which values lie within their limits."""
    low, high = limits
    return (low <= values) & (values <= high)


def _spend(comparisons: int) -> None:
    global _spent  # noqa: PLW0603  # one count for all tests
    _spent += comparisons
    assert _spent <= COMPARISONS, "the suite compares more than its budget of false alarms allows: raise COMPARISONS"
