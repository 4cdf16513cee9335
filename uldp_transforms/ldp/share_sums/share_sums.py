"""Weighted sums of the unbiased shares of values, with their variances, from the counts of one window.

The sum with the weights a is a'u, with the variance a'S a, where S is the covariance of the unbiased shares u: in
closed form where each value has a symbol, and that of the solver for hashed values. Of a complete list, the shares of
people sum to 1, and those in u need not. There a'u + c (1 - 1'u) is unbiased for every c, and has the least variance
for c = a'S 1 / 1'S 1 (regression on a known total). So the sum over all values is exactly 1, and a set and its
complement sum to 1.

If each of n reports has variance V and two reports of a person have the covariance L, and people report m times, the
variance is (V + (m - 1) L) / n. L is the variance of people's true values, and of their memos.

Several versions of a question have the sum w_1 (a'u_1) + w_2 (a'u_2) + ..., with weights that depend on the numbers of
reports only.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from uldp_transforms.ldp.errors import EstimationError, NoReportsError
from uldp_transforms.ldp.estimators.number_sums import NumberReports
from uldp_transforms.ldp.false_reports import Lies
from uldp_transforms.ldp.mechanisms import SetReportMechanism
from uldp_transforms.ldp.mechanisms.binomial_law import Confidence
from uldp_transforms.ldp.model import keeps_memos
from uldp_transforms.ldp.share_sums.named_sum import NamedSum, weights_of
from uldp_transforms.ldp.share_sums.sum_laws import SumLaws, laws_of
from uldp_transforms.ldp.solvers.linear import estimate_linear
from uldp_transforms.ldp.solvers.question import Question, ask
from uldp_transforms.ldp.solvers.simplex import clip_and_normalize
from uldp_transforms.ldp.versions.version_weights import version_weights

_NO_VARIANCE = 1e-9  # relative to the other variances: the sum of all shares is 1 but for rounding


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class _Alone:
    """The M sums of one version; arrays are (M,) unless noted.

    Attributes:
        question: with U unknowns.
        totals: unbiased sums.
        variances: of ``totals``.
        common: part of ``variances`` that comes from hash functions.
        of_people: part of ``variances`` that would remain if everybody reported the truth; nearly unbiased.
        people: the same, but possible.
        memos: part of ``variances`` that comes from memos; 0 if clients keep none.
        moved: (M, S), weights of the shares in ``totals``, which are these sums plus ``constants``.
        constants: see there.
        laws: of the intervals.
    """

    question: Question
    totals: np.ndarray
    variances: np.ndarray
    common: np.ndarray
    of_people: np.ndarray
    people: np.ndarray
    memos: np.ndarray
    moved: np.ndarray
    constants: np.ndarray
    laws: SumLaws

    @property
    def placed(self) -> np.ndarray:
        """(M, U) weights of the unknowns."""
        return _placed(self.question, self.moved)


class ShareSums:
    """M sums of one window, or of one group of people; arrays are (M,).

    Args:
        reports: of one model, or of the versions of a question, the newest last; those without reports, or that cannot
            be estimated, do not take part.
        sums: those of which ``values`` has all values are estimated.
        values: the S values of an estimate.

    Attributes:
        sums: the M sums.
        weights: (M, S).
        is_share: bool, whether a sum is the share of a set of values.
        totals: unbiased and unclipped.
        variances: of ``totals``, for independent people drawn from a population.
        common: part of ``variances`` that all windows of the same people share: hash noise, and memos.
        of_people: part of ``variances`` that would remain if everybody reported the truth; nearly unbiased, so it can
            be below 0.

    Raises:
        NoReportsError: without reports.
        EstimationError: if no version can be estimated.
    """

    def __init__(self, reports: Sequence[NumberReports], sums: tuple[NamedSum, ...], values: tuple[str, ...]):
        self.values = values
        self.sums, self.weights = weights_of(sums, values)
        self.is_share = np.array([one.is_share for one in self.sums], dtype=bool)
        self.reports, self._alone = _solved(reports, values, self.weights, self.is_share)
        pairs = list(zip(self.reports, self._alone))
        same = self._mean([np.sqrt(one.common) for one in self._alone]) ** 2
        self.totals = self._mean([one.totals for one in self._alone])
        alone = [one.variances - one.common + (of.times - 1) * (one.people + one.memos) for of, one in pairs]
        self.variances = same + self._independent(alone)
        self.of_people = self._independent([of.times * one.of_people for of, one in pairs])
        self.common = same + self._independent([of.times * one.memos for of, one in pairs])

    @functools.cached_property
    def least(self) -> np.ndarray:
        """The smallest numbers that the sums can be; an unlisted value has the weight 0."""
        least: np.ndarray = np.minimum(self.weights.min(axis=1), 0.0 if self._is_open else np.inf)
        return least

    @functools.cached_property
    def most(self) -> np.ndarray:
        """The largest ones."""
        most: np.ndarray = np.maximum(self.weights.max(axis=1), 0.0 if self._is_open else -np.inf)
        return most

    @property
    def spans(self) -> np.ndarray:
        """Lengths of the ranges; 1 of sums that are always the same."""
        return np.where(self.most > self.least, self.most - self.least, 1.0)

    def as_shares(self, numbers: np.ndarray) -> np.ndarray:
        """Numbers (..., M) of the sums, as shares of the way from ``least`` to ``most``."""
        shares: np.ndarray = (numbers - self.least) / self.spans
        return shares

    def in_units(self, shares: np.ndarray) -> np.ndarray:
        """The reverse of ``as_shares``."""
        numbers: np.ndarray = self.least + self.spans * shares
        return numbers

    def intervals(
        self, confidence: Confidence, strict: bool = False, at_edge: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Intervals (M,), (M,) of the sums ``as_shares``, not clipped to [0, 1]; arguments as for ``Intervals``.

        Those of several versions are combined as in ``pooled_intervals``.
        """
        below, above = np.zeros((2, len(self.sums)))
        for share, one in zip(self._shares, self._alone):
            centres = np.clip(one.totals, self.least, self.most) if at_edge else one.totals
            low, high = one.laws.intervals(centres, confidence, strict)
            below += share**2 * (centres - low) ** 2
            above += share**2 * (high - centres) ** 2
        centres = np.clip(self.totals, self.least, self.most) if at_edge else self.totals
        low, high = centres - self._stretch * np.sqrt(below), centres + self._stretch * np.sqrt(above)
        return self.as_shares(low), self.as_shares(high)

    @functools.cached_property
    def _stretch(self) -> np.ndarray:
        """Ratio of the standard errors to those of people who report once, in versions without common noise."""
        separate = self._independent([one.variances for one in self._alone])
        ratios: np.ndarray = np.sqrt(self.variances / np.where(separate > 0, separate, 1.0))
        return ratios

    def lies(self, share: float) -> Lies:
        """What liars can do to the sums ``as_shares`` if at most ``share`` of the reports are lies."""
        sizes = np.array([one.counts.total for one in self.reports])
        effects = [one.model.mechanism.effects_of_sums(each.placed) for one, each in zip(self.reports, self._alone)]
        constants = np.array([one.constants for one in self._alone])
        least, most = (self.as_shares(np.array(ends) + constants) for ends in zip(*effects))
        return Lies(share=share, sizes=sizes / sizes.sum(), weights=self._shares, least=least, most=most)

    @property
    def _is_open(self) -> bool:
        return self._alone[-1].question.open

    @functools.cached_property
    def _shares(self) -> np.ndarray:
        """(A, M) weights of the versions, which sum to 1: means of those of the values."""
        if len(self.reports) == 1:
            return np.ones((1, len(self.sums)))
        sizes = np.array([one.counts.total for one in self.reports])
        of_values = version_weights(tuple(one.model for one in self.reports), self.values).of(sizes)[0]
        sizes_of_weights = np.abs(self.weights) + np.finfo(np.float64).tiny
        shares: np.ndarray = of_values @ (sizes_of_weights / sizes_of_weights.sum(axis=1, keepdims=True)).T
        return shares

    def _mean(self, of_versions: Sequence[np.ndarray]) -> np.ndarray:
        mean: np.ndarray = (self._shares * np.array(of_versions)).sum(axis=0)
        return mean

    def _independent(self, variances: Sequence[np.ndarray]) -> np.ndarray:
        """Variance of the mean of independent versions."""
        found: np.ndarray = (self._shares**2 * np.array(variances)).sum(axis=0)
        return found


def _solved(
    reports: Sequence[NumberReports], values: tuple[str, ...], weights: np.ndarray, is_share: np.ndarray
) -> tuple[list[NumberReports], list[_Alone]]:
    """The versions that take part, and their sums."""
    used, found, error = [], [], EstimationError("")
    for one in reports:
        if not one.counts.total:
            continue
        try:
            found.append(_sums_of(ask(one.model, one.counts, values), weights, is_share))
        except EstimationError as failed:
            error = failed
        else:
            used.append(one)
    if not found:
        raise error if any(one.counts.total for one in reports) else NoReportsError("sums need reports, got none")
    return used, found


def _sums_of(question: Question, weights: np.ndarray, is_share: np.ndarray) -> _Alone:
    """The sums of one version."""
    if question.open:
        linear = estimate_linear(question, _placed(question, weights))
        constants, (variances, common), moved = np.zeros(len(weights)), linear.of_sums, weights
    else:
        middle = (weights.max(axis=1) + weights.min(axis=1)) / 2  # equal weights become exactly 0
        moved = weights - middle[:, np.newaxis]
        largest = np.abs(moved).max(axis=1)
        unit = np.where(largest > 0, largest, 1.0)  # results must not depend on the units of weights
        scaled = moved / unit[:, np.newaxis]
        every = np.concatenate([scaled, scaled + 1, np.ones((1, weights.shape[1]))])
        linear = estimate_linear(question, _placed(question, every))
        alone, with_all, (of_all,) = np.split(linear.of_sums[0], [len(weights), 2 * len(weights)])
        along, common = (with_all - alone - of_all) / 2, unit**2 * linear.of_sums[1, : len(weights)]
        is_constant = of_all <= _NO_VARIANCE * alone.max(initial=0.0)
        slopes = np.where(moved.any(axis=1), 0.0 if is_constant else along / of_all, 0.0)
        variances = unit**2 * (alone - slopes * (2 * along - slopes * of_all))
        constants, moved = middle + unit * slopes, moved - (unit * slopes)[:, np.newaxis]
    shares = linear.frequencies[question.picked]
    spread = moved**2 @ shares - (moved @ shares) ** 2 + variances
    jumps = (np.abs(moved) * _jumps(question)).max(axis=1, initial=0.0)
    variances = np.where(moved.any(axis=1), np.maximum(variances, 0) + jumps**2, 0.0)
    of_people, largest = spread / question.counts.total, np.ptp(moved, axis=1) ** 2 / 4 / question.counts.total
    common, people = np.minimum(common, variances), np.clip(of_people, 0, largest)
    return _Alone(
        question=question,
        totals=constants + moved @ shares,
        variances=variances,
        common=common,
        of_people=of_people,
        people=people,
        memos=_noise_of_memos(question, moved, variances - common, people),
        moved=moved,
        constants=constants,
        laws=laws_of(question, _placed(question, moved), is_share, variances, jumps, linear.rest_spare),
    )


def _noise_of_memos(question: Question, moved: np.ndarray, noise: np.ndarray, people: np.ndarray) -> np.ndarray:
    """(M,) variance of sums with the weights ``moved`` if nothing but memos were random.

    Where values are hashed or named by tags, all noise is taken as that of memos, which is the worst case.
    """
    model, counts, mechanism = question.model, question.counts, question.model.mechanism
    if not keeps_memos(model):
        return np.zeros(len(moved))
    shares = clip_and_normalize(mechanism.invert(counts.pooled())[0])
    is_plain = question.of_symbols and model.alphabet.redistribution(shares) is None
    if is_plain and isinstance(mechanism, SetReportMechanism):
        noise = mechanism.memo.variance_of(_placed(question, moved), shares) / counts.total
    found: np.ndarray = np.maximum(noise - people, 0)
    return found


def _placed(question: Question, weights: np.ndarray) -> np.ndarray:
    """(R, U) weights of the unknowns, from those of the S values."""
    placed = np.zeros((len(weights), len(question.own)))
    placed[:, question.picked] = weights
    return placed


def _jumps(question: Question) -> np.ndarray:
    """(S,) contribution of one more counted report to the share of a value with a symbol of its own; 0 for others.

    As with single shares, variances are as if one more had been counted: with 0 reports the error is not 0.
    """
    effects = np.zeros(len(question.own))
    if question.own.any():
        effects[question.own] = question.model.mechanism.jumps[question.table(question.own)[0]]
    jumps: np.ndarray = effects[question.picked] / question.counts.total
    return jumps
