"""Empirical Bayes: the mean of what each frequency may be, under a prior that all of them together make likely."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from uldp_transforms.ldp.estimators.empirical_bayes import Noisy, fit_prior
from uldp_transforms.ldp.estimators.estimator import Estimator
from uldp_transforms.ldp.estimators.likelihood import project_in_metric
from uldp_transforms.ldp.estimators.linear import LinearEstimate
from uldp_transforms.ldp.estimators.question import Question
from uldp_transforms.ldp.mechanisms import Mechanism, SetReportMechanism

_REACH = 2.0  # standard errors by which listed values may hold more than they seem to
_LEAST = 1e-12  # of the largest posterior variance: what is missing reaches frequencies that seem certain, too


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmpiricalBayes(Estimator):
    """Posterior means under fitted priors: one for values with noise, one for those of which only holders are counted.

    The mean of a prior is at most an equal part of what its values hold together. What the means lack to sum to 1, or
    have too much, is shared out in proportion to the variances of the posteriors; in an open alphabet what they lack
    is unlisted.

    Source: Robbins 1956, Kiefer and Wolfowitz 1956; the bound, the law of counts and the parts are derived in
    docs/estimation.md.
    """

    id: ClassVar[str] = "eb"

    def shares(self, question: Question, linear: LinearEstimate) -> tuple[np.ndarray, float | None]:
        noisy, certain = noise_of(question, linear), linear.null_errors == 0
        means, variances = np.zeros(len(certain)), np.zeros(len(certain))
        held = float(linear.raw[certain].sum())
        mass = min(held, 1.0)
        if held > 0:
            fitted = fit_prior(_given_total(noisy, certain, mass), mass / np.count_nonzero(certain))
            means[certain], variances[certain] = fitted.means, fitted.variances
        if not certain.all():
            most = 1 - mass
            if question.open and linear.rest_is_known:
                listed = float(linear.raw[~certain].sum())
                most = min(most, listed + _REACH * linear.rest_standard_error)
            bound = max(most, 1 / question.counts.total) / np.count_nonzero(~certain)
            fitted = fit_prior(_part(noisy, ~certain), bound)
            means[~certain], variances[~certain] = fitted.means, fitted.variances
        missing = 1 - float(means.sum())
        if question.open and missing >= 0:
            return np.append(means, missing), None
        shares = share_out(means, variances)
        return np.append(shares, 0.0) if question.open else shares, None


def share_out(means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """The distribution max(means + level variances, 0), (S,): means and variances (S,) given that the sum is 1."""
    largest = variances.max()
    return project_in_metric(means, 1 / np.maximum(variances, _LEAST * largest if largest > 0 else 1.0))


def noise_of(question: Question, linear: LinearEstimate) -> Noisy:
    """The law of all U raw frequencies.

    Symbols of their own: the mechanism's. Hashed ones: the standard error is that of the estimated frequency, and
    what a value adds to the noise of its own buckets is taken off to have it at 0.
    """
    mechanism, alphabet, n = question.model.mechanism, question.model.alphabet, question.counts.total
    slope = np.zeros(len(question.own))
    null = linear.null_errors**2
    own = np.flatnonzero(question.own)
    if len(own):
        symbols = question.table(question.own)[0]
        slope[own] = _own_slopes(mechanism)[symbols] / n
    hashed = np.flatnonzero(~question.own)
    if len(hashed):
        assert isinstance(mechanism, SetReportMechanism), "others need values with symbols of their own"
        revealed = linear.null_errors[hashed] == 0
        slope[hashed] = np.where(revealed, 1 / mechanism.kappa, _hashed_slope(mechanism, alphabet.num_sensitive)) / n
        held = np.maximum(linear.raw[hashed], 0)
        null[hashed] = np.maximum(linear.standard_errors[hashed] ** 2 - slope[hashed] * held + held**2 / n, 0)
    return Noisy(linear.raw, null, slope, float(n))


def _part(noisy: Noisy, chosen: np.ndarray) -> Noisy:
    return Noisy(noisy.estimates[chosen], noisy.null[chosen], noisy.slope[chosen], noisy.trials)


def _given_total(noisy: Noisy, chosen: np.ndarray, mass: float) -> Noisy:
    """Estimates of which only holders are counted, if together they hold a mass.

    Their counts are then shares of as many trials as there were such reports, and the number of these is no noise.
    """
    part = _part(noisy, chosen)
    held = part.estimates.sum()
    scale = mass / held
    return Noisy(scale * part.estimates, scale**2 * part.null, scale * part.slope, float(held / part.slope.mean()))


def _own_slopes(mechanism: Mechanism) -> np.ndarray:
    """(K,) n times what a frequency p adds to the variance of its symbol's estimate, for each p, but for its square.

    It does not depend on the others, so that any frequencies tell it.
    """
    even = np.full(mechanism.num_symbols, 1 / mechanism.num_symbols)
    slopes: np.ndarray = (mechanism.variances(even) - mechanism.null_variances(even)) / even + even
    return slopes


def _hashed_slope(mechanism: SetReportMechanism, num_buckets: int) -> float:
    """The same of hashed values, for equal cohorts: a value makes its own buckets fuller and all others emptier."""
    one = np.zeros(mechanism.num_symbols)
    one[0] = 1
    full, empty = mechanism.private_variances(one)[:2] if num_buckets > 1 else (0.0, 0.0)
    buckets = min(float(mechanism.num_hashes), num_buckets / 2)
    share = buckets / num_buckets
    return float((full - empty) * (1 - 2 * share) / (buckets * (1 - share)))
