"""Weighted sums of the frequencies of bins, with their variances: what every figure of numbers is made of.

Each sum m'u of the unbiased frequencies u of bins, and of other values behind them, is unbiased for m'p, with the
variance V(m) / n, V(m) = ``Mechanism.variance_of``: the larger one of that at u, which is nearly unbiased, as V is
linear but for (m'p)^2, and that at the distribution nearest to u, which is below it on average but not where few people
are. Several versions of a question have the frequencies sum_a w_a u_a. The weights w_a are proportional to n_a / V_a,
with V_a the variance of the mean position of bins from one report of version a in a uniform population: they do not
depend on the answers, so sums stay unbiased.

Sources: Fieller 1954 (quotients); Woodruff 1952 (a quantile's interval from that of its distribution function);
Chernozhukov, Fernandez-Val and Galichon 2009, "Improving point and interval estimators of monotone functions by
rearrangement".
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import NoReportsError
from uldp_transforms.ldp.estimators.log_smooth import LogSmooth, fit_versions
from uldp_transforms.ldp.mechanisms import Mechanism, SetReportMechanism
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.solvers.simplex import project_onto_simplex

_NO_VARIANCE, _DIGITS = 1e-9, 12  # where the sum of unbiased frequencies is 1 but for rounding

PARTS = 4
"""Number of points in each bin at which its distribution function is compared with the share of a quantile."""


@dataclasses.dataclass(frozen=True, eq=False)
class NumberReports:
    """Reports of numbers by clients of one model.

    Attributes:
        model: with an alphabet ``ordered`` and any mechanism.
        counts: of the reports.
        times: m, maximum number of reports per person; variances are multiplied by m, the worst case, in which all
            reports of a person agree.
    """

    model: Model
    counts: CohortCounts
    times: int = 1


@dataclasses.dataclass(frozen=True)
class Ratio:
    """A sum per person whose value is a number, with its variances.

    Attributes:
        total: the sum.
        people: estimated share of people whose value is a number.
        of_sum, of_people, covariance: variances and covariance of the two; those of ``people`` are 0 where every value
            is a number.
    """

    total: float
    people: float
    of_sum: float
    of_people: float
    covariance: float

    @property
    def value(self) -> float | None:
        """None if nobody seems to have a number."""
        return self.total / self.people if self.people > 0 else None

    def interval(self, z: float) -> tuple[float | None, float | None]:
        """All r for which the sum less r times ``people`` is at most z standard errors from 0; None if unbounded."""
        curvature = self.people**2 - z**2 * self.of_people
        if self.people <= 0 or curvature <= 0:
            return None, None
        slope = self.total * self.people - z**2 * self.covariance
        square = self.people**2 * self.of_sum - 2 * self.total * self.people * self.covariance
        square += self.total**2 * self.of_people + z**2 * (self.covariance**2 - self.of_sum * self.of_people)
        half = z * math.sqrt(max(square, 0))
        return (slope - half) / curvature, (slope + half) / curvature


class PerPerson(NamedTuple):
    """Sums per person whose value is a number, with the parts of their variances; all of one shape.

    Attributes:
        values: unbiased, or quotients of unbiased sums.
        variances: of ``values``, by linearisation where they are quotients.
        of_people: part of ``variances`` that would remain if everybody reported the truth, because other people could
            have reported; nearly unbiased, can be below 0.
        common: part that windows of the same people share, because clients keep memos; None if they keep none.
    """

    values: np.ndarray
    variances: np.ndarray
    of_people: np.ndarray
    common: np.ndarray | None


@dataclasses.dataclass(frozen=True, eq=False)
class QuantileTest:
    """Confidence intervals of the number x below which a share q of people lies, if they are spread evenly within bins.

    A point is refuted at the level z if the unbiased distribution function F is more than z standard errors s away from
    q there. Where bins hold less than the noise, F is not monotone, and points between refuted ones are not refuted.
    The interval is that of F + z s and F - z s in order (rearranged): it begins as many bins behind the first edge as
    are refuted because F is too small, and ends likewise. It is connected, and where bins hold more than the noise it
    consists of the points that are not refuted. However numbers are spread, x is in a bin that the interval touches.

    Attributes:
        excess: (P,) float64, F - q at ``numbers``.
        errors: (P,) float64, its standard errors.
        numbers: (P,) float64, from the first edge to the last, ``PARTS`` for each bin.
    """

    excess: np.ndarray
    errors: np.ndarray
    numbers: np.ndarray

    @property
    def value(self) -> float:
        """Where F, once in order, reaches q: in the interval of each level."""
        return self._root(self.excess)

    def interval(self, z: float) -> tuple[float | None, float | None]:
        """The numbers that are not refuted by z standard errors; an end is None unless its clamped bin is refuted."""
        upper, lower = self.excess + z * self.errors, self.excess - z * self.errors
        low, high = self._root(upper), self._root(lower)
        first, last = PARTS, -PARTS - 1  # the inner edges, behind which numbers are clamped
        return (
            low if low >= self.numbers[first] and upper[first] < 0 else None,
            high if high <= self.numbers[last] and lower[last] > 0 else None,
        )

    def _root(self, values: np.ndarray) -> float:
        return float(np.interp(0.0, np.sort(values), self.numbers))


class NumberSums:
    """Sums of one window, or of one group of people.

    Args:
        reports: of one model, or of several with the same bins and ``others``; those without reports do not take part.

    Raises:
        NoReportsError: without reports.
    """

    def __init__(self, reports: Sequence[NumberReports]):
        self.reports = tuple(one for one in reports if one.counts.total)
        if not self.reports:
            raise NoReportsError("no reports")
        alphabet = self.reports[0].model.alphabet
        edges = alphabet.bin_edges
        assert edges is not None
        self.edges, self.centres, self.bins = edges, alphabet.bin_centres, len(edges) - 1
        self.is_number = np.arange(alphabet.num_symbols) < self.bins
        self._each = np.array(
            [
                one.model.mechanism.invert(one.counts.pooled())[0][one.model.alphabet.symbols_in_order]
                for one in self.reports
            ]
        )
        self._shares = _shares_of_versions(self.reports, self.bins)
        self._unbiased = self._shares @ self._each
        self._nearest = project_onto_simplex(self._unbiased)

    @property
    def people(self) -> float:
        """Estimated share of people whose value is a number."""
        return float(self._unbiased[: self.bins].sum())

    @functools.cached_property
    def smooth(self) -> LogSmooth | None:
        """The smooth posterior among the people whose value is a number; None if the counts have none."""
        if self.people <= 0:
            return None
        posterior = fit_versions([(one.model, one.counts, one.times) for one in self.reports])
        return None if posterior is None else posterior.given(self.is_number)

    def ratio(self, of_bins: np.ndarray) -> Ratio:
        """The sum with the (B,) weights, per person whose value is a number."""
        weights = self._weights(of_bins)
        total = float(weights @ self._unbiased)
        if not self._others:
            return Ratio(total, 1.0, float(self.variances(weights)), 0.0, 0.0)
        numbers = self.is_number.astype(np.float64)
        every = np.array([weights + numbers, weights - numbers, weights, numbers])
        plus, minus, of_sum, of_numbers = self.variances(every).tolist()
        return Ratio(total, self.people, of_sum, of_numbers, (plus - minus) / 4)

    def per_person(self, of_bins: np.ndarray) -> PerPerson | None:
        """Sums with the weights (..., B); None if nobody seems to have a number."""
        people = self.people if self._others else 1.0
        if people <= 0:
            return None
        values = of_bins @ self._unbiased[: self.bins] / people
        apart, weights = np.zeros((2, *np.shape(values), len(self.is_number)))
        apart[..., : self.bins] = (of_bins - values[..., np.newaxis]) / people
        weights[..., : self.bins] = of_bins
        weights = apart if self._others else weights
        variances = self.variances(weights)
        spread = apart**2 @ self._unbiased + variances  # the squares are those of differences from an estimate
        if not self._others:  # the sum of unbiased frequencies is not 1 with some mechanisms
            spread = spread - values**2 * np.round(self._unbiased.sum() - 1, _DIGITS)
        number = sum(share**2 * one.times / one.counts.total for share, one in zip(self._shares.tolist(), self.reports))
        return PerPerson(values, variances, spread * number, self._common(weights))

    def total(self, of_bins: np.ndarray) -> tuple[float, float]:
        """The sum with the (B,) weights over all reports, in which other values count as 0, and its variance.

        The values are those of exactly these reports, so the variance is that of their noise. The noise of different
        reports is independent, whoever sends them, unless clients keep memos: then all reports of a person may agree.
        """
        weights, found, variance = self._weights(of_bins), 0.0, 0.0
        for one, unbiased in zip(self.reports, self._each):
            found += one.counts.total * float(weights @ unbiased)
            noise = max(
                float(_variance_of(one.model, weights, at)) - float((weights - weights @ at) ** 2 @ at)
                for at in (self._unbiased, self._nearest)
            )
            times = 1 if _memo_of(one.model.mechanism) is None else one.times
            variance += one.counts.total * times * max(noise, 0.0)
        return found, variance

    def _common(self, weights: np.ndarray) -> np.ndarray | None:
        """Variances of sums with the weights (..., K) if nothing but memos were random."""
        memos = [_memo_of(one.model.mechanism) for one in self.reports]
        if not any(memos):
            return None
        found, spread = np.zeros(weights.shape[:-1]), weights**2 @ self._nearest - (weights @ self._nearest) ** 2
        for share, one, memo in zip(self._shares.tolist(), self.reports, memos):
            if memo is not None:
                noise = _variance_of(one.model, weights, self._nearest, memo) - spread
                found += share**2 * one.times * np.maximum(0, noise) / one.counts.total
        return found

    def quantile(self, q: float) -> QuantileTest | None:
        """How far the unbiased distribution function is from q; None if nobody seems to have a number."""
        if self.people <= 0:
            return None
        places = np.arange(PARTS * self.bins + 1) / PARTS
        below = np.clip(places[:, np.newaxis] - np.arange(self.bins), 0, 1)
        weights = np.concatenate([below - q, np.zeros((len(places), self._others))], axis=1)
        return QuantileTest(
            excess=weights @ self._unbiased,
            errors=np.sqrt(self.variances(weights)),
            numbers=np.interp(places, np.arange(self.bins + 1), self.edges),
        )

    @property
    def has_others(self) -> bool:
        """Whether some values are not numbers."""
        return self._others > 0

    @property
    def _others(self) -> int:
        return len(self.is_number) - self.bins

    def _weights(self, of_bins: np.ndarray) -> np.ndarray:
        return np.append(of_bins, np.zeros(self._others))

    def variances(self, weights: np.ndarray) -> np.ndarray:
        """Variances of sums with these weights, (..., K) -> (...)."""
        found = np.zeros(weights.shape[:-1])
        for share, one in zip(self._shares.tolist(), self.reports):
            each = [_variance_of(one.model, weights, at) for at in (self._unbiased, self._nearest)]
            found += share**2 * one.times * np.maximum(0, np.maximum(*each)) / one.counts.total
        return found


def _variance_of(
    model: Model, weights: np.ndarray, frequencies: np.ndarray, mechanism: Mechanism | None = None
) -> np.ndarray:
    """``Mechanism.variance_of`` for weights and frequencies of bins and, after them, the other values.

    Weights are moved towards 0 where this changes no variance, because unbiased frequencies sum to 1: numbers such as
    seconds since 1970 are far from 0 and near each other, and their squares would hide the difference.
    """
    order, mechanism = np.argsort(model.alphabet.symbols_in_order), mechanism or model.mechanism
    if mechanism.variance_of(np.ones(len(order)), np.full(len(order), 1 / len(order))) < _NO_VARIANCE:
        weights = weights - weights.mean(axis=-1, keepdims=True)
    return mechanism.variance_of(weights[..., order], frequencies[order])


def _memo_of(mechanism: Mechanism) -> Mechanism | None:
    """The channel from values to memos; None if clients keep none."""
    if isinstance(mechanism, SetReportMechanism) and mechanism.epsilon_inf is not None:
        return mechanism.memo
    return None


def _shares_of_versions(reports: Sequence[NumberReports], bins: int) -> np.ndarray:
    """(A,) weights of the versions, with the sum 1."""
    if len(reports) == 1:
        return np.ones(1)
    symbols = reports[0].model.alphabet.num_symbols
    ranks = np.append(np.arange(bins) - (bins - 1) / 2, np.zeros(symbols - bins))
    even = np.full(symbols, 1 / symbols)
    precisions = np.array(
        [one.counts.total / one.times / float(_variance_of(one.model, ranks, even)) for one in reports]
    )
    shares: np.ndarray = precisions / precisions.sum()
    return shares
