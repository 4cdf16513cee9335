"""Empirical Bayes: posterior means of the frequencies under a prior fitted to all of them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import EstimationError
from uldp_transforms.ldp.estimators.estimator import Decoder, Estimate, Problem, or_error
from uldp_transforms.ldp.estimators.few_values import FEW, shares_of_few
from uldp_transforms.ldp.estimators.stacked_priors import Frequencies, posterior_means
from uldp_transforms.ldp.mechanisms import Mechanism
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.solvers.fitted_prior import Noisy
from uldp_transforms.ldp.solvers.linear import LinearEstimate, estimate_linear
from uldp_transforms.ldp.solvers.question import Question, ask
from uldp_transforms.ldp.solvers.sharpened import sharpened
from uldp_transforms.ldp.solvers.simplex import clip_and_normalize, nearest_distribution

_REACH = 2.0  # standard errors by which the total of listed values may exceed its estimate


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmpiricalBayes(Decoder):
    """Posterior means under two fitted priors: one for noisy values, one for values of which only holders are counted.

    The mean of each prior is at most the total share of its values divided by their number. If the posterior means do
    not sum to 1, they are replaced by the nearest distribution, with distances in units of the noise; in an open
    alphabet the unlisted values receive the missing mass. Up to 12 values are estimated without a prior, see
    ``few_values``; from 13 to 23 the two estimates are averaged.

    Source: Robbins 1956, Kiefer and Wolfowitz 1956; docs/estimation.md derives the bound, the distribution of the
    counts, and the treatment of the two kinds of values.
    """

    id: ClassVar[str] = "eb"
    is_continuous: ClassVar[bool] = True

    def problem(self, question: Question, linear: LinearEstimate) -> Problem:
        sharper = sharpened(question, linear)
        return dataclasses.replace(super().problem(question, sharper), noisy=noise_of(question, sharper))

    def decode(self, problem: Problem) -> np.ndarray:
        (shares,) = self._decode_each([problem])
        return shares

    def estimate_each(
        self, windows: Sequence[tuple[Model, CohortCounts]], candidates: tuple[str, ...] | None = None
    ) -> list[Estimate | EstimationError]:
        linears = [or_error(functools.partial(_linear, *window, candidates)) for window in windows]
        problems = [self.problem(*found) for found in linears if not isinstance(found, EstimationError)]
        shares = iter(self._decode_each(problems))
        return [
            found if isinstance(found, EstimationError) else self._assemble(*found, next(shares), None)
            for found in linears
        ]

    def _decode_each(self, problems: Sequence[Problem]) -> list[np.ndarray]:
        """The shares of each problem; priors are fitted to all of them together."""
        parts = [() if _share_of_many(problem) <= 0 else _parts_of(problem) for problem in problems]
        means = iter(posterior_means([frequencies for each in parts for _, frequencies in each]))
        shares = []
        for problem, each in zip(problems, parts):
            many = _share_of_many(problem)
            found = [many * _shares_of_many(problem, [(part, next(means)) for part, _ in each])] if many > 0 else []
            if many < 1:
                assert problem.noisy is not None, "EmpiricalBayes.problem"
                variances = _variances_of_equal(problem.noisy, problem.linear.null_errors == 0)
                found.append((1 - many) * shares_of_few(problem, variances))
            shares.append(sum(found[1:], start=found[0]))
        return shares


def _linear(model: Model, counts: CohortCounts, candidates: tuple[str, ...] | None) -> tuple[Question, LinearEstimate]:
    question = ask(model, counts, candidates)
    return question, estimate_linear(question)


def _share_of_many(problem: Problem) -> float:
    """Weight of the estimate under fitted priors: 0 for few values, 1 for many."""
    return min(max(len(problem.linear.null_errors) / FEW - 1, 0.0), 1.0)


def _parts_of(problem: Problem) -> list[tuple[np.ndarray, Frequencies]]:
    """The two kinds of values (U,) bool that have a prior of their own, and their frequencies."""
    assert problem.noisy is not None, "EmpiricalBayes.problem"
    noisy, certain = problem.noisy, problem.linear.null_errors == 0
    held, sums_up = float(problem.linear.raw[certain].sum()), not problem.open
    mass = min(held, 1.0)
    parts = []
    if held > 0:
        given = _given_total(noisy, certain, mass)
        parts.append((certain, Frequencies(given, mass / np.count_nonzero(certain), sums_up)))
    if not certain.all():
        most = max(_most(problem, mass), 1 / problem.num_reports)
        parts.append((~certain, Frequencies(_part(noisy, ~certain), most / np.count_nonzero(~certain), sums_up)))
    return parts


def _shares_of_many(problem: Problem, parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Shares (U,), or (U + 1,) if the problem is open, from the posterior means of the parts."""
    noisy = problem.noisy
    assert noisy is not None, "EmpiricalBayes.problem"
    means = np.zeros(len(problem.linear.raw))
    for part, of_part in parts:
        means[part] = of_part
    missing = 1 - float(means.sum())
    if problem.open and missing >= 0:
        return np.append(means, missing)
    means = clip_and_normalize(nearest_distribution(means, noisy.variances(means)))
    return np.append(means, 0.0) if problem.open else means


def _variances_of_equal(noisy: Noisy, certain: np.ndarray) -> np.ndarray:
    """(U,) variances of differences between estimates if all noisy values had equal shares, and all others too."""
    share = np.zeros(len(certain))
    for part in (certain, ~certain):
        if part.any():
            share[part] = max(float(noisy.estimates[part].mean()), 0.0)
    variances: np.ndarray = noisy.null + noisy.slope * share
    return variances


def _most(problem: Problem, mass: float) -> float:
    """Upper bound of the total share of the noisy values, given the total ``mass`` of those without noise."""
    most, linear = 1 - mass, problem.linear
    if problem.open and not linear.rest_is_noise:
        listed = float(linear.raw[linear.null_errors > 0].sum())
        most = min(most, listed + _REACH * linear.rest_standard_error)
    return most


def noise_of(question: Question, linear: LinearEstimate) -> Noisy:
    """The distribution of all U raw frequencies.

    For symbols that stand for one value, the noise is that of the mechanism. For hashed values, the standard error at 0
    is that of the estimate less the contribution of the value to the noise of its own buckets.
    """
    mechanism, alphabet, n = question.model.mechanism, question.model.alphabet, question.counts.total
    slope = np.zeros(len(question.own))
    null = linear.null_errors**2
    own = np.flatnonzero(question.own)
    if len(own):
        symbols = question.table(question.own)[0]
        slope[own] = mechanism.own_slopes[symbols] / n
    hashed = np.flatnonzero(~question.own)
    if len(hashed):
        revealed = linear.null_errors[hashed] == 0
        slope[hashed] = (
            np.where(revealed, 1 / mechanism.reveal_rate, _hashed_slope(mechanism, alphabet.num_sensitive)) / n
        )
        held = np.maximum(linear.raw[hashed], 0)
        null[hashed] = np.maximum(linear.standard_errors[hashed] ** 2 - slope[hashed] * held + held**2 / n, 0)
    return Noisy(linear.raw, null, slope, float(n))


def _part(noisy: Noisy, chosen: np.ndarray) -> Noisy:
    return Noisy(noisy.estimates[chosen], noisy.null[chosen], noisy.slope[chosen], noisy.trials)


def _given_total(noisy: Noisy, chosen: np.ndarray, mass: float) -> Noisy:
    """Estimates of values of which only holders are counted, given their total share ``mass``.

    Their counts are then multinomial given the number of such reports, which adds no noise.
    """
    part = _part(noisy, chosen)
    held = part.estimates.sum()
    scale = mass / held
    return Noisy(scale * part.estimates, scale**2 * part.null, scale * part.slope, float(held / part.slope.mean()))


def _hashed_slope(mechanism: Mechanism, num_buckets: int) -> float:
    """The slope of hashed values, for equal cohorts: a value fills its own buckets and empties all others."""
    one = np.zeros(mechanism.num_symbols)
    one[0] = 1
    full, empty = mechanism.private_variances(one)[:2] if num_buckets > 1 else (0.0, 0.0)
    buckets = min(float(mechanism.num_hashes), num_buckets / 2)
    share = buckets / num_buckets
    return float((full - empty) * (1 - 2 * share) / (buckets * (1 - share)))
