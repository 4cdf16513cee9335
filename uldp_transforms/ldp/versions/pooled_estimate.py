"""One estimate from the reports of several versions of a question.

Version a has n_a reports and unbiased frequencies u_a. The pooled frequency of a value is sum_a w_a u_a. The weights
depend on the numbers of reports and on the mechanisms, not on the answers, so the pooled frequency is unbiased and
linear in the counts, for every population. ``version_weights`` chooses them such that no version alone is more precise.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from scipy import special

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.counts.enough_reports import expected_reports, normal_distance
from uldp_transforms.ldp.errors import EstimationError, NoReportsError
from uldp_transforms.ldp.estimators import Estimate
from uldp_transforms.ldp.estimators.empirical import Empirical
from uldp_transforms.ldp.estimators.estimator import (
    OK,
    TOO_UNCERTAIN,
    Decoder,
    Problem,
    check_liars,
    interval_around,
)
from uldp_transforms.ldp.false_reports import Lies
from uldp_transforms.ldp.mechanisms.binomial_law import Confidence
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.repeated_people import with_repeated_people
from uldp_transforms.ldp.solvers.fitted_prior import Noisy
from uldp_transforms.ldp.solvers.intervals import ShownIntervals, moved_inside
from uldp_transforms.ldp.solvers.linear import estimate_linear
from uldp_transforms.ldp.solvers.pooled_versions import Agreement, PooledVersions
from uldp_transforms.ldp.solvers.public_blocks.in_blocks import pooled_in_blocks
from uldp_transforms.ldp.solvers.question import Intervals, LinearEstimate, ask
from uldp_transforms.ldp.solvers.simplex import clip_and_normalize
from uldp_transforms.ldp.versions.version_weights import version_weights

MOST_EXACT = 64
"""Maximum number of values for the chi-square test of agreement of all values together; its matrices have the square as
entries."""


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class PooledWindow:
    """The pooled estimate of one window.

    Attributes:
        estimate: from the reports of ``used``.
        loss: (S,) upper bound, for every population, of the pooled variance in units of that of the most precise
            version; it depends on the numbers of reports and the mechanisms only.
        used: positions of the versions that have reports and can be estimated.
        left_out: positions of the versions that have reports but cannot be estimated.
        agreement: test whether these versions describe one population; None if fewer than two have enough reports.
        versions: the models of ``used``.
        sizes: (A,) int64, their numbers of reports.
        weights: (A, S), of their own estimates in the pooled one.
    """

    estimate: Estimate
    loss: np.ndarray
    used: tuple[int, ...]
    left_out: tuple[int, ...]
    agreement: Agreement | None
    versions: tuple[Model, ...]
    sizes: np.ndarray
    weights: np.ndarray

    def lies(self, share: float) -> Lies:
        """What liars can do, for ``Estimate.with_lies``, if at most ``share`` of the reports of the window are lies.

        Liars may all send reports of one version, see ``uldp_transforms.ldp.false_reports.honest_bounds``.

        Args:
            share: in [0, 1).

        Raises:
            SpecError: if the share is not allowed, or the effect of a report on these values is not bounded.
        """
        for model in self.versions:
            check_liars("PooledWindow.lies", model, share)
        return Lies.of_versions(self.versions, self.estimate.values, share, self.sizes, self.weights)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class _Part:
    """One version: its own estimate of S values, and what the decoder knows of these."""

    model: Model
    counts: CohortCounts
    alone: Estimate
    problem: Problem


def pool(
    decoder: Decoder,
    versions: Sequence[Model],
    counts: Sequence[CohortCounts],
    candidates: tuple[str, ...] | None = None,
    times: Sequence[int | None] = (),
) -> PooledWindow:
    """The pooled estimate of one window.

    Args:
        decoder: estimator of the displayed shares.
        versions: A models over the same values, the newest last.
        counts: of each version; those without reports do not take part.
        candidates: values to estimate in open alphabets; None: all values of closed ones.
        times: for each version, the maximum number of reports per person, see ``with_repeated_people``; empty: 1.

    Raises:
        NoReportsError: if no version has reports.
        EstimationError: if no version can be estimated.
    """
    if not versions:
        raise NoReportsError("no pooled version of this question has reports")
    newest = versions[-1].alphabet
    values = newest.known_values or newest.estimated_values(candidates)
    parts: dict[int, _Part] = {}
    left_out, error = [], EstimationError("")
    for place, (model, of_version) in enumerate(zip(versions, counts, strict=True)):
        if not of_version.total:
            continue
        try:
            parts[place] = _part(decoder, model, of_version, values, times[place] if times else 1)
        except EstimationError as failed:
            left_out.append(place)
            error = failed
    if left_out and not parts:
        raise error
    if not parts:
        raise NoReportsError("the versions of this question have no reports")
    chosen = list(parts.values())
    sizes = np.array([part.counts.total for part in chosen])
    weights, loss = version_weights(tuple(part.model for part in chosen), values).of(sizes)
    estimate = _pooled(decoder, chosen, weights, values)
    return PooledWindow(
        estimate=estimate,
        loss=loss,
        used=tuple(parts),
        left_out=tuple(left_out),
        agreement=agreement_of(chosen, weights) if len(chosen) > 1 else None,
        versions=tuple(part.model for part in chosen),
        sizes=sizes,
        weights=weights,
    )


def _part(decoder: Decoder, model: Model, counts: CohortCounts, values: tuple[str, ...], times: int | None) -> _Part:
    question = ask(model, counts, values)
    linear = estimate_linear(question)
    alone = Empirical().of_linear(question, linear)
    problem = decoder.problem(question, linear)
    return _Part(
        model=model,
        counts=counts,
        alone=with_repeated_people(model, alone, times),
        problem=picked_problem(problem, question.picked),
    )


def picked_problem(problem: Problem, picked: np.ndarray) -> Problem:
    """The problem with the unknowns in the order of the values."""
    linear, noisy = problem.linear, problem.noisy
    names = ("raw", "joint", "null_errors", "frequencies", "standard_errors")
    return dataclasses.replace(
        problem,
        own=problem.own[picked],
        linear=dataclasses.replace(linear, **{name: getattr(linear, name)[picked] for name in names}),
        noisy=None
        if noisy is None
        else Noisy(noisy.estimates[picked], noisy.null[picked], noisy.slope[picked], noisy.trials),
    )


def _pooled(decoder: Decoder, parts: Sequence[_Part], weights: np.ndarray, values: tuple[str, ...]) -> Estimate:
    alone = [part.alone for part in parts]
    raw = mean_of_versions(weights, [each.raw_frequencies for each in alone])
    separate = mean_of_versions(weights**2, [each.standard_errors**2 for each in alone])
    common, added = _common(weights, alone)
    errors = np.sqrt(separate + added)
    intervals = functools.partial(pooled_intervals, weights, alone, raw, errors / np.sqrt(separate))
    problems = [part.problem for part in parts]
    problem = pooled_problem(problems, weights, raw, errors, intervals)
    shares = decoder.decode(problem)
    shown = shares[: len(values)]
    rest = float(_weights_of_rest(problems, weights) @ [each.raw_unexplained_mass for each in alone])
    rest_error = problem.linear.rest_standard_error
    is_noise, left_over = problem.linear.rest_is_noise, float(shares[len(values) :].sum())
    of_rest = functools.partial(interval_around, rest, rest_error, problem.linear.rest_spare)
    return Estimate(
        values=values,
        frequencies=shown,
        raw_frequencies=raw,
        standard_errors=errors,
        intervals=ShownIntervals(intervals, raw, shown),
        unclipped=intervals,
        num_reports=problem.num_reports,
        left_over=left_over,
        raw_unexplained_mass=rest,
        unexplained_standard_error=rest_error,
        unexplained_intervals=functools.partial(of_rest, shown=None if is_noise else left_over),
        unexplained_status=(TOO_UNCERTAIN if is_noise else OK) if rest_error else None,
        redistributed_mass=0.0,
        fit_p_value=_fit(alone),
        common_variances=common,
        in_blocks=pooled_in_blocks([each.in_blocks for each in alone], weights, shown, _intervals_of_means),
        estimator=decoder.id,
    )


def _intervals_of_means(weights: np.ndarray, parts: Sequence[Centred], raw: np.ndarray) -> Intervals:
    return functools.partial(pooled_intervals, weights, parts, raw, np.ones(len(raw)))


def mean_of_versions(weights: np.ndarray, of_versions: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
    """(S,) weighted sum over versions of (S,) arrays."""
    mean: np.ndarray = (weights * np.array(of_versions)).sum(axis=0)
    return mean


def _common(weights: np.ndarray, alone: Sequence[Estimate]) -> tuple[np.ndarray | None, np.ndarray | float]:
    """(S,) the part of the pooled variances that all windows share, and what it adds to independent versions.

    Versions with the same hash functions have the same hash noise, so it is added as if it were the same in all.
    """
    known = [each.common_variances for each in alone]
    if all(variances is None for variances in known):
        return None, 0.0
    of_versions = [np.zeros(weights.shape[1]) if one is None else np.maximum(one, 0) for one in known]
    whole = mean_of_versions(weights, [np.sqrt(one) for one in of_versions]) ** 2
    return whole, whole - mean_of_versions(weights**2, of_versions)


class Centred(Protocol):
    """Unbiased shares (S,) with intervals."""

    @property
    def raw_frequencies(self) -> np.ndarray: ...
    @property
    def unclipped(self) -> Intervals: ...


def pooled_intervals(
    weights: np.ndarray,
    alone: Sequence[Centred],
    raw: np.ndarray,
    stretch: np.ndarray,
    confidence: Confidence,
    strict: bool = False,
    at_edge: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals of a weighted sum from those of its independent terms; both ends (S,), not clipped.

    Source: Zou and Donner 2008 (method of variance estimates recovery).
    """
    if at_edge:
        raw = np.clip(raw, 0, 1)
        parts = [moved_inside(each.unclipped, each.raw_frequencies, confidence, strict) for each in alone]
    else:
        parts = [(each.raw_frequencies, *each.unclipped(confidence, strict)) for each in alone]
    below = mean_of_versions(weights**2, [(centre - low) ** 2 for centre, low, _ in parts])
    above = mean_of_versions(weights**2, [(high - centre) ** 2 for centre, _, high in parts])
    return raw - stretch * np.sqrt(below), raw + stretch * np.sqrt(above)


def _weights_of_rest(problems: Sequence[Problem], weights: np.ndarray) -> np.ndarray:
    """(A,) weights of the versions for the unlisted values, which are hashed like listed ones."""
    hashed = ~problems[0].own
    of_rest: np.ndarray = weights[:, hashed].mean(axis=1) if hashed.any() else weights.mean(axis=1)
    return of_rest


def pooled_problem(
    problems: Sequence[Problem], weights: np.ndarray, raw: np.ndarray, errors: np.ndarray, intervals: Intervals
) -> Problem:
    """What the decoder is told: the weighted means of what it knows of each version."""
    linears = [problem.linear for problem in problems]
    of_rest = _weights_of_rest(problems, weights)
    linear = LinearEstimate(
        raw=mean_of_versions(weights, [each.raw for each in linears]),
        joint=mean_of_versions(weights, [each.joint for each in linears]),
        null_errors=np.sqrt(mean_of_versions(weights**2, [each.null_errors**2 for each in linears])),
        frequencies=raw,
        standard_errors=errors,
        intervals=intervals,
        rest_standard_error=float(of_rest @ [each.rest_standard_error for each in linears]),
        rest_spare=min(each.rest_spare for each in linears),
    )
    laws = [problem.noisy for problem in problems if problem.noisy is not None]
    noisy = None
    if laws:
        shrink = float((weights.mean(axis=1) ** 2 / [law.trials for law in laws]).sum())
        null = mean_of_versions(weights**2, [law.null for law in laws])
        noisy = Noisy(linear.raw, null, mean_of_versions(weights**2, [law.slope for law in laws]), 1 / shrink)
    return Problem(
        linear=linear,
        noisy=noisy,
        own=np.all([problem.own for problem in problems], axis=0),
        open=problems[0].open,
        num_reports=sum(problem.num_reports for problem in problems),
    )


def _fit(alone: Sequence[Estimate]) -> float | None:
    """The smallest goodness of fit of the versions, times their number (Bonferroni); None if none is known."""
    known = [each.fit_p_value for each in alone if each.fit_p_value is not None]
    return min(1.0, len(known) * min(known)) if known else None


def agreement_of(parts: Sequence[_Part], weights: np.ndarray) -> Agreement | None:
    """Whether versions describe one population; None if fewer than two have enough reports to be compared.

    For up to ``MOST_EXACT`` values with symbols of their own, the chi-square test of all values together. Otherwise the
    value that differs most, in units of its standard errors, with the p-value times the number of values (Bonferroni).
    """
    raw = np.array([part.alone.raw_frequencies for part in parts])
    sizes = np.array([part.counts.total for part in parts], dtype=np.float64)
    if raw.shape[1] <= MOST_EXACT and all(part.problem.own.all() for part in parts):
        plausible = clip_and_normalize(mean_of_versions(weights, raw))
        return _together(tuple(part.model for part in parts), parts[0].alone.values).agreement(raw, plausible, sizes)
    return _of_each_value(parts, raw, sizes)


def _of_each_value(parts: Sequence[_Part], raw: np.ndarray, sizes: np.ndarray) -> Agreement:
    """The value that differs most, judged by the tail of counts of the version that expects the fewest."""
    errors = np.array([part.alone.standard_errors for part in parts])
    jumps = np.array([_jumps(part.model, part.alone.values) for part in parts])
    expected = expected_reports(errors**2 * sizes[:, np.newaxis], jumps, sizes[:, np.newaxis]).min(axis=0)
    precisions = 1 / errors**2
    nearest = (precisions * raw).sum(axis=0) / precisions.sum(axis=0)
    statistics = normal_distance((precisions * (raw - nearest) ** 2).sum(axis=0), expected)
    statistic, degrees = float(statistics.max()), len(parts) - 1
    return Agreement(statistic, degrees, min(1.0, raw.shape[1] * float(special.chdtrc(degrees, statistic))))


def _jumps(model: Model, values: tuple[str, ...]) -> np.ndarray:
    """(S,): effects of a counted report on the symbols that values have in the first cohort."""
    jumps: np.ndarray = model.mechanism.jumps[model.alphabet.symbol_table(values, 1)[0]]
    return jumps


@functools.lru_cache(maxsize=64)
def _together(models: tuple[Model, ...], values: tuple[str, ...]) -> PooledVersions:
    """Cached between windows, with the sums that have no noise."""
    return PooledVersions(models, values)
