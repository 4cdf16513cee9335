"""How often Pearson's statistic exceeds its limit, where few reports are expected: against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from uldp_transforms.ldp.counts.enough_reports import chi_square_tail, corrections
from uldp_transforms.ldp.sentinels import FALSE_ALARMS


def p_value(counts: np.ndarray, shares: np.ndarray) -> float:
    """Of counts (k,) of n reports with these probabilities."""
    n = int(counts.sum())
    statistic = float(((counts - n * shares) ** 2 / (n * shares)).sum())
    return chi_square_tail(statistic, len(shares) - 1, corrections(shares, n))


@pytest.mark.parametrize("n", [60, 100, 1000])
@pytest.mark.parametrize("expected", [5, 7, 10, 15, 20])
def test_two_counts_ring_in_one_of_a_thousand_windows_and_a_plain_test_in_three(n: int, expected: int) -> None:
    """The sum over all counts; the step of a count is what is left of the error, from expectation to expectation."""
    exact, plain = [], []
    for mean in np.linspace(expected, expected + 3, 40):
        shares, counts = np.array([mean, n - mean]) / n, np.arange(n + 1)
        law = stats.binom.pmf(counts, n, shares[0])
        law, counts = law[law > 1e-12], counts[law > 1e-12]  # the others are less than 1e-9 together
        squares = (counts - mean) ** 2 / (mean * shares[1])
        exact.append(law[np.array([p_value(np.array([x, n - x]), shares) for x in counts]) < FALSE_ALARMS].sum())
        plain.append(law[stats.chi2.sf(squares, 1) < FALSE_ALARMS].sum())
    assert np.mean(exact) <= 1.1 * FALSE_ALARMS
    assert max(exact) <= 1.7 * FALSE_ALARMS
    assert expected > 5 or max(plain) > 2.8 * FALSE_ALARMS


def test_three_counts_of_all_ways_to_answer() -> None:
    shares, n = np.array([0.1, 0.15, 0.75]), 60
    ways = np.array([(a, b, n - a - b) for a, b in itertools.product(range(n + 1), repeat=2) if a + b <= n])
    law = stats.multinomial.pmf(ways, n, shares)
    values = np.array([p_value(way, shares) for way in ways])
    plain = stats.chi2.sf(((ways - n * shares) ** 2 / (n * shares)).sum(axis=1), 2)
    assert law[values < FALSE_ALARMS].sum() <= 1.1 * FALSE_ALARMS < 1.4 * FALSE_ALARMS < law[plain < FALSE_ALARMS].sum()
    assert law[values < 0.05].sum() == pytest.approx(0.05, abs=0.003)


def test_far_tails_are_positive_and_large_counts_have_the_plain_tail() -> None:
    even, many = corrections(np.array([0.5, 0.5]), 60), corrections(np.full(6, 1 / 6), 1e9)
    for statistic in (0.0, 1.0, 30.0, 300.0, 1e4):
        assert chi_square_tail(statistic, 1, even) >= stats.chi2.sf(statistic, 1) / 2
        assert chi_square_tail(statistic, 5, np.zeros(4)) == pytest.approx(stats.chi2.sf(statistic, 5))
    assert chi_square_tail(20.0, 5, many) == pytest.approx(stats.chi2.sf(20.0, 5), rel=1e-5)
    assert chi_square_tail(0.0, 1, even) == 1
