"""Empirical Bayes: posterior means of the frequencies under a prior fitted to all of them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
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
from uldp_transforms.ldp.solvers.linear import Inverses, estimate_linear, invert_each
from uldp_transforms.ldp.solvers.question import LinearEstimate, Question, ask
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
        parts = [one.question for one in linear.within]
        if any(parts):
            inside = [self.problem(one.question, one.linear) for one in linear.within if one.question is not None]
            return _with_noise(super().problem(question, linear), inside)
        sharper = sharpened(question, linear)
        problem = dataclasses.replace(super().problem(question, sharper), noisy=noise_of(question, sharper))
        return _noise_within(problem)

    def decode(self, problem: Problem) -> np.ndarray:
        (shares,) = self._decode_each([problem])
        return shares

    def estimate_each(
        self, windows: Sequence[tuple[Model, CohortCounts]], candidates: tuple[str, ...] | None = None
    ) -> list[Estimate | EstimationError]:
        linears = _linear_each(windows, candidates)
        problems = [self.problem(*found) for found in linears if not isinstance(found, EstimationError)]
        shares = iter(self._decode_each(problems))
        return [
            found if isinstance(found, EstimationError) else self._assemble(*found, next(shares), None)
            for found in linears
        ]

    def _decode_each(self, problems: Sequence[Problem]) -> list[np.ndarray]:
        """The shares of each problem; priors are fitted to all of them together."""
        parts = [[] if _share_of_many(problem) <= 0 else _parts_of(problem) for problem in problems]
        means = iter(posterior_means([frequencies for each in parts for _, frequencies in each]))
        few = _shares_of_few([problem for problem in problems if _share_of_many(problem) < 1])
        shares = []
        for problem, each in zip(problems, parts):
            many = _share_of_many(problem)
            found = [many * _shares_of_many(problem, [(part, next(means)) for part, _ in each])] if many > 0 else []
            if many < 1:
                found.append((1 - many) * next(few))
            shares.append(sum(found[1:], start=found[0]))
        return shares


def _linear_each(
    windows: Sequence[tuple[Model, CohortCounts]], candidates: tuple[str, ...] | None
) -> list[tuple[Question, LinearEstimate] | EstimationError]:
    """The question and linear estimate of each window, or why there is none."""
    asked = [or_error(functools.partial(ask, *window, candidates)) for window in windows]
    inverses = iter(invert_each([one for one in asked if not isinstance(one, EstimationError)]))
    return [
        one if isinstance(one, EstimationError) else or_error(functools.partial(_linear, one, next(inverses)))
        for one in asked
    ]


def _linear(question: Question, inverses: Inverses | None) -> tuple[Question, LinearEstimate]:
    return question, estimate_linear(question, None, inverses)


def _share_of_many(problem: Problem) -> float:
    """Weight of the estimate under fitted priors: 0 for few values, 1 for many."""
    return min(max(len(problem.linear.null_errors) / FEW - 1, 0.0), 1.0)


def _shares_of_few(problems: Sequence[Problem]) -> Iterator[np.ndarray]:
    """The shares of each problem without a prior; those of all problems, and all blocks, are computed together."""
    inside = [[one.problem for one in problem.within] or [problem] for problem in problems]
    found = iter(shares_of_few([one for each in inside for one in each]))
    for problem, each in zip(problems, inside):
        shares = [next(found) for _ in each]
        yield problem.joined(shares) if problem.within else shares[0]


def _parts_of(problem: Problem) -> list[tuple[np.ndarray, Frequencies]]:
    """The two kinds of values (U,) bool that have a prior of their own, and their frequencies.

    Of values in public blocks, these are shares within the block, in units of the mean share there if the list is
    complete. So all blocks share the priors, and few reports of a block are drawn towards what is common in the others.
    """
    if not problem.within:
        return [(chosen, frequencies) for chosen, frequencies in _kinds_of(problem) if frequencies is not None]
    parts = []
    for kinds in zip(*(_kinds_of(one.problem) for one in problem.within)):
        chosen, lists = np.zeros(len(problem.own), dtype=bool), list[Frequencies]()
        places = list[np.ndarray]()
        for one, (mask, frequencies) in zip(problem.within, kinds):
            if frequencies is not None:
                places.append(one.positions[mask])
                lists.append(_in_units(frequencies, _unit(one.problem, mask)))
        if lists:
            order = np.concatenate(places)
            chosen[order] = True
            parts.append((chosen, _stacked(lists, np.argsort(order))))
    return parts


def _kinds_of(problem: Problem) -> list[tuple[np.ndarray, Frequencies | None]]:
    """Values of which only holders are counted, and all others: (U,) bool, with frequencies unless there are none."""
    assert problem.noisy is not None, "EmpiricalBayes.problem"
    noisy, certain = problem.noisy, problem.linear.null_errors == 0
    held, sums_up = float(problem.linear.raw[certain].sum()), not problem.open
    mass = min(held, 1.0)
    clear = others = None
    if held > 0:
        given = _given_total(noisy, certain, mass)
        clear = Frequencies(given, mass / np.count_nonzero(certain), sums_up)
    if not certain.all():
        most = max(_most(problem, mass), 1 / problem.num_reports)
        others = Frequencies(_part(noisy, ~certain), most / np.count_nonzero(~certain), sums_up)
    return [(certain, clear), (~certain, others)]


def _unit(problem: Problem, chosen: np.ndarray) -> float:
    """The share of a value in a block that counts as 1: the even share of a complete list."""
    return 1.0 if problem.open else 1 / np.count_nonzero(chosen)


def _in_units(frequencies: Frequencies, unit: float) -> Frequencies:
    return dataclasses.replace(frequencies, noisy=frequencies.noisy.scaled(1 / unit), bound=frequencies.bound / unit)


def _stacked(lists: Sequence[Frequencies], order: np.ndarray) -> Frequencies:
    """One list of all frequencies, in the given order, with one bound of their mean."""
    sizes = [len(one.noisy.estimates) for one in lists]
    estimates, null, slope = (
        np.concatenate([getattr(one.noisy, name) for one in lists])[order] for name in ("estimates", "null", "slope")
    )
    trials = np.concatenate([np.broadcast_to(one.noisy.trials, size) for one, size in zip(lists, sizes)])[order]
    noisy = Noisy(estimates, null, slope, trials)
    bound = float(np.dot([one.bound for one in lists], sizes) / sum(sizes))
    return Frequencies(noisy, bound, lists[0].sums_up)


def _shares_of_many(problem: Problem, parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Shares (U,), or (U + 1,) if the problem is open, from the posterior means of the parts."""
    means = np.zeros(len(problem.own))
    if problem.within:
        shares = []
        for part, of_part in parts:
            means[part] = of_part
        for one in problem.within:
            own = means[one.positions]
            for chosen, frequencies in _kinds_of(one.problem):
                if frequencies is not None:
                    own[chosen] *= _unit(one.problem, chosen)
            shares.append(_distribution(one.problem, own))
        return problem.joined(shares)
    for part, of_part in parts:
        means[part] = of_part
    return _distribution(problem, means)


def _distribution(problem: Problem, means: np.ndarray) -> np.ndarray:
    """The shares from posterior means (U,) of all unknowns."""
    noisy = problem.noisy
    assert noisy is not None, "EmpiricalBayes.problem"
    missing = 1 - float(means.sum())
    if problem.open and missing >= 0:
        return np.append(means, missing)
    means = clip_and_normalize(nearest_distribution(means, noisy.variances(means)))
    return np.append(means, 0.0) if problem.open else means


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


def _noise_within(problem: Problem) -> Problem:
    """The problem, with the noise of the shares within each public block from that of the shares of all people."""
    if not problem.within:
        return problem
    assert problem.noisy is not None, "EmpiricalBayes.problem"
    within = tuple(
        dataclasses.replace(one, problem=dataclasses.replace(one.problem, noisy=noisy))
        for one, noisy in (
            (one, _part(problem.noisy, one.positions).scaled(1 / one.mass, one.problem.num_reports))
            for one in problem.within
        )
    )
    return dataclasses.replace(problem, within=within)


def _with_noise(problem: Problem, inside: Sequence[Problem]) -> Problem:
    """The problem, with the noise of all shares from that within each public block."""
    size = len(problem.own)
    noisy = Noisy(problem.linear.raw, problem.linear.null_errors**2, np.zeros(size), float(problem.num_reports))
    within = []
    for one, found in zip(problem.within, inside):
        assert found.noisy is not None, "EmpiricalBayes.problem"
        scaled = found.noisy.scaled(one.mass)
        noisy.null[one.positions], noisy.slope[one.positions] = scaled.null, scaled.slope
        within.append(dataclasses.replace(one, problem=found))
    return dataclasses.replace(problem, noisy=noisy, within=tuple(within))


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
