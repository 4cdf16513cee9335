"""The significance threshold: what is kept, what is filled, and how often noise alone gets through."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.support.calibration import windows
from tests.support.ldp.made_collections import made
from tests.support.tolerance import binomial_limits, generator, within
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators.threshold import keep_significant
from uldp_transforms.ldp.solvers.linear import estimate_linear
from uldp_transforms.ldp.solvers.question import ask

TEXTS = tuple(f"value {i}" for i in range(20))
SENSITIVE = TEXTS[:5]


def collection(alphabet: dict, mechanism: str, num_cohorts: int = 1, epsilon: float = 1.0) -> Collection:
    return made(alphabet, {"id": mechanism, "epsilon": epsilon}, num_cohorts=num_cohorts)


def closed(mechanism: str, sensitive: tuple[str, ...] = SENSITIVE, epsilon: float = 1.0) -> Collection:
    return collection({"id": "closed", "values": list(TEXTS), "sensitive": list(sensitive)}, mechanism, epsilon=epsilon)


def by_the_book(raw: np.ndarray, null_errors: np.ndarray) -> np.ndarray:
    """One entry after the other."""
    noisy = [error for error in null_errors if 0 < error < np.inf]
    kept = {}
    for i, (share, error) in enumerate(zip(raw, null_errors)):
        significant = error < np.inf and (error == 0 or share >= stats.norm.isf(0.05 / len(noisy)) * error)
        if share > 0 and significant:
            kept[i] = share
    total = sum(kept.values())
    others = [i for i in range(len(raw)) if i not in kept]
    result = np.zeros(len(raw))
    for i, share in kept.items():
        result[i] = share / total if total > 1 or not others else share
    for i in others:
        result[i] = max(1 - total, 0) / len(others)
    return result


entries = st.lists(
    st.tuples(st.floats(-1, 2), st.one_of(st.just(0.0), st.just(float("inf")), st.floats(1e-6, 0.5))),
    min_size=1,
    max_size=10,
)


@given(entries)
def test_it_is_the_rule_one_entry_after_the_other(rows):
    raw, null_errors = np.array(rows).T
    before = raw.copy()
    result = keep_significant(raw, null_errors)
    np.testing.assert_array_equal(raw, before)
    np.testing.assert_allclose(result, by_the_book(raw, null_errors), atol=1e-12)
    assert (result >= 0).all()
    assert result.sum() == pytest.approx(1)


# ---------------------------------------------------------------------- the limit


def noise_rates(mechanism: str, v: int, e: float) -> tuple[float, float]:
    """phi and eta: how often noise supports a symbol, and a second one with it."""
    if mechanism in ("urr", "krr"):
        return 1 / v, 0.0
    if mechanism in ("urap", "rappor"):
        return 1 / (1 + np.sqrt(e)), 1 / (1 + np.sqrt(e))
    size = min(range(1, v), key=lambda d: (d * e + v - d) ** 2 / (d * (v - d)))
    return size / v, (size - 1) / (v - 1)


def variance_of_nobody(mechanism: str, v: int, epsilon: float, sensitive: float) -> float:
    """n times the variance of the inverse of a sensitive symbol without holders; ``sensitive`` is all their share."""
    e = np.exp(epsilon)
    phi, eta = noise_rates(mechanism, v, e)
    divisor = 1 + (e - 1) * phi
    reveal = (e - 1) * phi / divisor
    miss, delta = phi * (1 + (e - 1) * eta) / divisor, reveal * (1 - eta)
    counted = phi / divisor * (1 + (e - 1) * eta * sensitive)
    return (counted + eta**2 * reveal * (1 - sensitive) - miss**2) / delta**2


MECHANISMS = [("urr", 5), ("urap", 5), ("uss", 5), ("krr", 20), ("rappor", 20), ("ss", 20)]


def test_golden_limit():
    """uRR with 5 sensitive values and 2000 reports."""
    counts = CohortCounts(np.array([2000]), np.full((1, 20), 100))
    errors = estimate_linear(ask(closed("urr"), counts, None)).null_errors
    np.testing.assert_allclose(errors, [0.0311188] * 5 + [0.0] * 15, atol=6e-8)
    for times, kept in ((2.32634, False), (2.32636, True)):
        raw = np.array([times * 0.0311188, *np.zeros(19)])
        assert (keep_significant(raw, np.array([0.0311188] * 5 + [0.0] * 15))[0] == raw[0]) == kept


@pytest.mark.parametrize(("mechanism", "v"), MECHANISMS[:3])
def test_noise_alone_gets_through_in_one_window_out_of_twenty(mechanism, v):
    """Nobody holds a sensitive value. Any of the five is kept in 1 - 0.99**5 of the windows, or 5 % at most."""
    item = closed(mechanism)
    shares = np.where(np.arange(20) < v, 0.0, 1 / (20 - v))
    n, repeats = 2000, 400
    counted = windows(item, TEXTS, shares, repeats, n, rng=generator("alarm", mechanism))
    raw = np.array([item.estimate(counts).raw_frequencies for counts in counted])
    sigma = np.sqrt(variance_of_nobody(mechanism, v, 1.0, 0.0) / n)
    significant = (raw[:, :v] > stats.norm.isf(0.01) * sigma).sum(axis=0)
    assert within(significant, binomial_limits(repeats, np.full(v, 0.01))).all()
    shown = np.array([item.estimate(counts, "threshold").frequencies for counts in counted])
    alarms = (shown[:, :v] == raw[:, :v]).any(axis=1).sum()
    assert alarms <= binomial_limits(repeats, 0.05)[1]
