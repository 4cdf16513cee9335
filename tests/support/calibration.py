"""Simulated windows, and whether estimates of them err as often and as much as they say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.support.tolerance import binomial_limits, chi_square_limits, normal_limit, within
from uldp_transforms.ldp import CohortCounts, Collection, Estimate


def windows(
    item: Collection, texts: Sequence[str], shares: np.ndarray, periods: int, n: int, *, rng: np.random.Generator
) -> list[CohortCounts]:
    """Counts of ``periods`` windows of n reports of independent people who send these texts with these shares."""
    people = rng.choice(texts, periods * n, p=shares).tolist()
    batch = item.perturb(people, rng, event_times=np.zeros(len(people), dtype=np.int64))
    rows = np.repeat(np.arange(periods) * item.num_cohorts, n) + batch.cohorts
    return item.count_groups(batch.payloads, rows, periods)


def assert_calibrated(
    estimates: list[Estimate],
    truth: np.ndarray,
    rest: float,
    *,
    slack: float = 0.0,
    cautious: np.ndarray | None = None,
    cautious_rest: bool = False,
) -> None:
    """Errors have mean 0, the reported mean square, and lie in the intervals in 95 % of the windows.

    R errors of a normal estimate have a mean square of chi-square(R) / R times their variance. With R = 1000 a standard
    error that is wrong by a quarter is found, with R = 300 one by a half.

    Args:
        slack: share by which the reported variances are too large on purpose.
        cautious: (S,) bool, values whose intervals and standard errors may be larger than they need to be.
        cautious_rest: the same for the unexplained mass.
    """
    cautious = np.zeros(len(truth), dtype=bool) if cautious is None else cautious
    errors = np.array([[*(e.raw_frequencies - truth), e.raw_unexplained_mass - rest] for e in estimates])
    variances = np.array([[*e.standard_errors, e.unexplained_standard_error] for e in estimates]) ** 2
    observed = variances.any(axis=0)  # the rest of a complete list is no estimate
    errors, variances = errors[:, observed], variances[:, observed]
    limit = normal_limit(errors.shape[1])
    assert (abs(errors.sum(axis=0)) <= limit * np.sqrt(variances.sum(axis=0))).all()
    low, high = chi_square_limits(len(errors), errors.shape[1])
    squares = (errors**2).sum(axis=0) / variances.mean(axis=0)
    enough = np.append(cautious, cautious_rest)[observed] | (low / (1 + slack) <= squares)
    assert (enough & (squares <= high)).all(), squares / len(errors)
    assert_covered(estimates, truth, cautious)


def assert_covered(estimates: list[Estimate], truth: np.ndarray, at_least: np.ndarray) -> None:
    """Intervals hold the truth in 95 % of the windows; where ``at_least`` (S,) says so, or more often."""
    covered = np.sum([(e.ci_low <= truth) & (truth <= e.ci_high) for e in estimates], axis=0)
    low, high = binomial_limits(len(estimates), np.full(len(truth), 0.95))
    assert within(covered, (low, np.where(at_least, len(estimates), high))).all(), covered / len(estimates)


def excess_slack(degrees: int) -> float:
    """Mean of max(x, 0), x normal with mean 0 and variance 2 / degrees: the residual variance beyond the expected one
    is added to least squares variances where it is positive."""
    return float(np.sqrt(2 / degrees / (2 * np.pi)))
