"""Which shares a chi-square test can compare: those with enough expected reports, others merged.

A report that is counted for a value moves its estimate by the jump over n. So the variance of the estimate, in units of
(jump / n)^2, is the number of reports that are expected to be counted for it, whatever mechanism sends them. Where this
number is small, a single report is many standard errors, and a chi-square test fires far too often.
"""

from __future__ import annotations

import numpy as np
import scipy

LEAST_EXPECTED = 5.0
"""Minimum number of expected reports for a value, or for merged values, in a chi-square test (Cochran 1954)."""


def expected_reports(variances: np.ndarray | float, jumps: np.ndarray, num_reports: np.ndarray | float) -> np.ndarray:
    """Expected numbers of counted reports of values.

    Args:
        variances: n times the variances of the estimates.
        jumps: n times the effect of one more counted report; broadcast against ``variances``.
        num_reports: n; broadcast too.
    """
    expected: np.ndarray = num_reports * variances / np.square(jumps)
    return expected


def merged_values(covariance: np.ndarray, jumps: np.ndarray, num_reports: float) -> np.ndarray:
    """The sums of shares that have enough reports.

    From the rarest value on, values are added to a sum until it has enough. If the last sum has too few, it is added to
    the one before.

    Args:
        covariance: (K, K), n times that of the estimates.
        jumps: (K,), n times the effect of one more counted report.
        num_reports: n.

    Returns:
        (G, K) 0/1, one row per sum; G is 0 if fewer than two sums have enough reports.
    """
    size = len(covariance)
    order = np.argsort(expected_reports(np.diag(covariance), jumps, num_reports), kind="stable")
    sums: list[np.ndarray] = []
    members, variance, jump = np.zeros(size), 0.0, -np.inf
    for value in order.tolist():
        variance += float(covariance[value, value] + 2 * covariance[value] @ members)
        members[value] = 1
        jump = max(jump, float(jumps[value]))
        if num_reports * variance / jump**2 >= LEAST_EXPECTED:
            sums.append(members)
            members, variance, jump = np.zeros(size), 0.0, -np.inf
    if len(sums) < 2:
        return np.zeros((0, size))
    sums[-1] = sums[-1] + members
    return np.array(sums)


def corrections_of_bits(rates: np.ndarray, num_reports: float) -> np.ndarray:
    """(4,): ``corrections`` of independent counts, each of which is a test of two counts: with and without."""
    total: np.ndarray = np.sum([corrections(np.array([rate, 1 - rate]), num_reports) for rate in rates], axis=0)
    return total


def corrections(rates: np.ndarray, num_reports: float) -> np.ndarray:
    """(4,) by how much Pearson's statistic of k counts exceeds a limit more often than a chi-square variable.

    The probability is that of the chi-square variable, plus these numbers times those of variables with 0, 2, 4 and 6
    degrees more, up to terms of 1 / n^(3/2) (Yarnold 1972; Read and Cressie 1988, "Goodness-of-fit statistics for
    discrete multivariate data", section 5.3). With five expected reports the difference is up to threefold at .001.

    Args:
        rates: (k,) probabilities that a report is counted, above 0.
        num_reports: n.
    """
    k, n, inverse = len(rates), num_reports, float((1 / rates).sum())
    parts = [
        2 * (1 - inverse),
        3 * (3 * inverse - k**2 - 2 * k),
        -6 * (2 * inverse - k**2 - 2 * k + 1),
        5 * inverse - 3 * k**2 - 6 * k + 4,
    ]
    return np.array(parts) / (24 * n)


def rates_of(variances: np.ndarray, jumps: np.ndarray, certain: bool) -> np.ndarray:
    """(k,) probabilities that a report is counted for a sum of shares, of which the variance is p (1 - p).

    Args:
        variances: (k,), n times those of the sums.
        jumps: (k,), n times the effect of one more counted report.
        certain: whether the sums add up to a constant, as if each report is counted for one of them. Then the rate of
            the largest one is that of all others less than 1, where it is above a half.
    """
    rates: np.ndarray = (1 - np.sqrt(np.maximum(1 - 4 * variances / np.square(jumps), 0))) / 2
    largest = int(variances.argmax())
    others = float(rates.sum() - rates[largest])
    if certain and others < 1 / 2:
        rates[largest] = 1 - others
    return rates


def chi_square_tail(statistic: float, degrees: int, corrected: np.ndarray) -> float:
    """Probability of a statistic at least as large, with the sum of the ``corrections``: at least half of that of the
    chi-square variable, where a correction is larger than the tail itself.
    """
    tails = scipy.special.chdtrc(degrees + 2 * np.arange(len(corrected)), statistic)
    return float(np.clip(tails[0] + corrected @ tails, tails[0] / 2, 1))


def normal_distance(statistics: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Squared distances with the tail of a normal variable, of squared distances of counts in standard errors.

    A Poisson count with the mean e is at least e + d sqrt(e) about as often as a normal variable exceeds the root of

        2 e ((1 + x) ln(1 + x) - x),    x = d / sqrt(e),

    which is less than d. Counts below e are rarer than that.

    Args:
        statistics: d^2.
        expected: e, above 0.
    """
    x = np.sqrt(statistics / expected)
    squares: np.ndarray = 2 * expected * ((1 + x) * np.log1p(x) - x)
    return squares
