"""Which shares a chi-square test can compare: those with enough expected reports, others merged.

A report that is counted for a value moves its estimate by the jump over n. So the variance of the estimate, in units of
(jump / n)^2, is the number of reports that are expected to be counted for it, whatever mechanism sends them. Where this
number is small, a single report is many standard errors, and a chi-square test fires far too often.
"""

from __future__ import annotations

import numpy as np

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
    members, variance = np.zeros(size), 0.0
    for value in order:
        variance += covariance[value, value] + 2 * covariance[value] @ members
        members[value] = 1
        jump = jumps[members > 0].max()
        if expected_reports(variance, jump, num_reports) >= LEAST_EXPECTED:
            sums.append(members)
            members, variance = np.zeros(size), 0.0
    if len(sums) < 2:
        return np.zeros((0, size))
    sums[-1] = sums[-1] + members
    return np.array(sums)


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
