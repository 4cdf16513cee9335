"""Means, quantiles and shares above limits of an ordered alphabet: unbiased with guaranteed intervals, and smooth.

Each figure is a weighted sum of unbiased frequencies (``number_sums``), or for a quantile the point at which such sums
change their sign. Where the alphabet has ``others``, figures are about the people whose value is a number: quotients.

The fields ``display_*`` come from the posterior of a smooth density (``log_smooth``): intervals that are shorter, and
that hold if neighbouring bins are alike. They are None where the counts have no such posterior.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from uldp_transforms.ldp.alphabets import Alphabet
from uldp_transforms.ldp.checks import describe, is_number
from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators.number_sums import NumberReports, NumberSums
from uldp_transforms.ldp.estimators.smooth_figures import CurveBin, SmoothFigures
from uldp_transforms.ldp.mechanisms.binomial_law import normal_quantile
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.solvers.intervals import cut, reaching

MAX_FIGURES = 64
"""Maximum number of limits, and of quantiles."""

QUANTILES = (0.1, 0.5, 0.9)
"""Quantiles of rows for which none are chosen."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mean:
    """The mean of the centres of people's bins.

    Attributes:
        value: unbiased and unclipped (a quotient of unbiased sums where the alphabet has ``others``); None if nobody
            seems to have a number.
        low, high: confidence interval, cut to the range of the centres (see ``cut``) and extended to ``value``;
            None if nearly nobody may have a number.
        half_bin: half the width of the widest bin, by which the mean of the numbers, once clamped to the ends, differs
            from ``value`` at most; no interval contains this difference.
        display_value, display_low, display_high: smooth estimate and its interval; None without a smooth posterior.
        standard_error: standard deviation of ``value``; None where ``value`` is.
        people_variance: part of its square that would remain if everybody reported the truth, because other people
            could have reported; nearly unbiased, so it can be below 0.
        common_variance: part of its square that windows of the same people share; None unless clients keep memos.
    """

    value: float | None
    low: float | None
    high: float | None
    half_bin: float
    display_value: float | None = None
    display_low: float | None = None
    display_high: float | None = None
    standard_error: float | None = None
    people_variance: float | None = None
    common_variance: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Quantile:
    """The number below which a share q of people lies.

    Attributes:
        q: in (0, 1).
        value: where the unbiased distribution function, once in order, reaches q, see ``QuantileTest``; None if
            nobody seems to have a number.
        low, high: confidence interval, if numbers are spread evenly within bins; without this assumption, the bins that
            it touches hold the quantile. None where the clamped end bin is among them.
        display_value, display_low, display_high: of the smooth distribution, linear within a bin, and its interval, an
            end of which is None in a clamped end bin; all None without a smooth posterior.
    """

    q: float
    value: float | None
    low: float | None
    high: float | None
    display_value: float | None = None
    display_low: float | None = None
    display_high: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShareAbove:
    """The share of people whose number is at least a limit.

    Attributes:
        limit: a number.
        value: unbiased and unclipped as in ``Mean``; linear within a bin if the limit is no edge.
        low, high: confidence interval in [0, 1], extended to ``value``; if the limit is no edge, from the share above
            the next edge to the share above the one before. None if nearly nobody may have a number.
        display_value, display_low, display_high: smooth estimate and its interval; None without a smooth posterior.
    """

    limit: float
    value: float | None
    low: float | None
    high: float | None
    display_value: float | None = None
    display_low: float | None = None
    display_high: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShareBelow:
    """The share of people whose number is below an inner edge: a point of the distribution function.

    Attributes:
        edge: between two bins.
        value: unbiased and unclipped as in ``Mean``.
        standard_error, common_variance: as in ``Mean``.
    """

    edge: float
    value: float
    standard_error: float
    common_variance: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sum:
    """The sum of the centres of the bins of all reports; other values count as 0.

    Attributes:
        value: unbiased and unclipped.
        low, high: confidence interval for the sum of exactly these reports, cut to what sums can be and extended to
            ``value``.
        half_bins: half the width of the widest bin, times the number of reports: by so much the sum of the numbers,
            once clamped to the ends, differs from ``value`` at most; no interval contains this difference.
    """

    value: float
    low: float
    high: float
    half_bins: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class NumberEstimate:
    """Figures of numbers in one window.

    Attributes:
        mean: None on the scale ``log``: bins of a heavy tail are wide, and the last one has no end, so that no mean of
            their centres would be near the mean.
        quantiles, shares_above: one for each that was asked for, in that order.
        curve: the smooth distribution, one entry for each bin; empty without a smooth posterior.
        below: the unbiased distribution function at all inner edges; empty if nobody seems to have a number.
        share: unbiased share of people whose value is a number; 1 without ``others``.
        sum: None on the scale ``log``, as the mean.
    """

    mean: Mean | None
    quantiles: tuple[Quantile, ...]
    shares_above: tuple[ShareAbove, ...]
    curve: tuple[CurveBin, ...] = ()
    below: tuple[ShareBelow, ...] = ()
    share: float = 1.0
    sum: Sum | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Numbers:
    """What figures of an estimate come from: a collection of numbers, and its counts.

    Attributes:
        model: with an alphabet ``ordered``.
        counts: of its reports.
    """

    model: Model
    counts: CohortCounts

    @property
    def edges(self) -> np.ndarray:
        """(B + 1,): edges of the bins, ascending."""
        edges = self.model.alphabet.bin_edges
        assert edges is not None
        return edges

    @property
    def limits(self) -> tuple[float, ...]:
        """At most three inner edges, a quarter of the bins apart: they do not depend on reports."""
        inner = self.edges[1:-1].tolist()
        return tuple(dict.fromkeys(inner[len(inner) * part // 4] for part in (1, 2, 3))) if inner else ()

    def figures(
        self,
        limits: Sequence[float] = (),
        quantiles: Sequence[float] = QUANTILES,
        confidence: float = CONFIDENCE,
        smooth: bool = True,
    ) -> NumberEstimate:
        """``estimate_numbers`` of these counts."""
        return estimate_numbers(
            self.model, self.counts, limits=limits, quantiles=quantiles, confidence=confidence, smooth=smooth
        )


def estimate_numbers(
    model: Model,
    counts: CohortCounts,
    *,
    limits: Sequence[float] = (),
    quantiles: Sequence[float] = (),
    confidence: float = CONFIDENCE,
    reports_of_a_person: int = 1,
    smooth: bool = True,
) -> NumberEstimate:
    """Estimate a mean, quantiles and shares above limits, from counts.

    Args:
        model: with an alphabet ``ordered`` and any mechanism.
        counts: of its reports.
        limits: from the first inner edge to the last; numbers beyond them are clamped.
        quantiles: in (0, 1).
        confidence: of each interval.
        reports_of_a_person: m; variances are multiplied by m, the worst case, in which all reports of a person agree.
            The smooth posterior has the counts divided by m.
        smooth: whether to fit the smooth posterior.

    Raises:
        SpecError: for another alphabet, or limits or quantiles that cannot be.
        NoReportsError: without reports.
    """
    check_limits(limits, [model.alphabet])
    check_quantiles(quantiles)
    sums = NumberSums([NumberReports(model, counts, reports_of_a_person)])
    return figures_of(sums, limits, quantiles, confidence, smooth)


def figures_of(
    sums: NumberSums,
    limits: Sequence[float],
    quantiles: Sequence[float],
    confidence: float = CONFIDENCE,
    smooth: bool = True,
) -> NumberEstimate:
    """The figures of sums; arguments as for ``estimate_numbers``, whose limits and quantiles are checked."""
    z, centres = float(normal_quantile(confidence)), sums.centres
    found = NumberEstimate(
        mean=None if centres is None else _mean(sums, centres, z),
        quantiles=tuple(_quantile(sums, float(q), z) for q in quantiles),
        shares_above=tuple(_share_above(sums, float(limit), z) for limit in limits),
        below=_below(sums),
        share=sums.people if sums.has_others else 1.0,
        sum=None if centres is None else _sum(sums, centres, z),
    )
    if not smooth or sums.smooth is None:
        return found
    return _with_smooth(found, SmoothFigures(sums.smooth, sums.edges, z), centres)


def _mean(sums: NumberSums, centres: np.ndarray, z: float) -> Mean:
    ratio, ends = sums.ratio(centres), centres[[0, -1]].tolist()
    low, high = _possible(ratio.value, ratio.interval(z), *ends)
    told, error, of_people, common = sums.per_person(centres), None, None, None
    if told is not None:
        error, of_people = float(np.sqrt(told.variances)), float(told.of_people)
        common = None if told.common is None else float(told.common)
    return Mean(
        standard_error=error,
        people_variance=of_people,
        common_variance=common,
        value=ratio.value,
        low=low,
        high=high,
        half_bin=float(np.diff(sums.edges).max() / 2),
    )


def _share_above(sums: NumberSums, limit: float, z: float) -> ShareAbove:
    value = sums.ratio(weights_above(sums.edges, limit)).value
    low, high = _possible(value, interval_above(sums, limit, z), 0.0, 1.0)
    return ShareAbove(limit=limit, value=value, low=low, high=high)


def _sum(sums: NumberSums, centres: np.ndarray, z: float) -> Sum:
    value, variance = sums.total(centres)
    reports, half = sum(one.counts.total for one in sums.reports), z * float(np.sqrt(variance))
    ends = [float(centres[0]), float(centres[-1]), *([0.0] if sums.has_others else [])]
    low, high = _possible(value, (value - half, value + half), reports * min(ends), reports * max(ends))
    assert low is not None and high is not None
    return Sum(value=value, low=low, high=high, half_bins=reports * float(np.diff(sums.edges).max() / 2))


def _possible(
    value: float | None, ends: tuple[float | None, float | None], least: float, most: float
) -> tuple[float | None, float | None]:
    """An interval, ``cut`` to the range of the figure and extended to its unbiased value; None where it is open."""
    low, high = ends
    if value is None or low is None or high is None:
        return None, None
    low, high = (float(end) for end in reaching(*cut(low, high, value, least, most), value))
    return low, high


def _below(sums: NumberSums) -> tuple[ShareBelow, ...]:
    """The distribution function at the inner edges."""
    told = sums.per_person(np.tri(sums.bins - 1, sums.bins))
    if told is None:
        return ()
    common = [None] * (sums.bins - 1) if told.common is None else told.common.tolist()
    columns = (sums.edges[1:-1].tolist(), told.values.tolist(), np.sqrt(told.variances).tolist(), common)
    return tuple(
        ShareBelow(edge=edge, value=value, standard_error=error, common_variance=same)
        for edge, value, error, same in zip(*columns)
    )


def interval_above(sums: NumberSums, limit: float, z: float) -> tuple[float | None, float | None]:
    """Interval of a share above a limit, not clipped: from that of the next edge to that of the edge before."""
    parts = weights_above(sums.edges, limit)
    return sums.ratio(np.floor(parts)).interval(z)[0], sums.ratio(np.ceil(parts)).interval(z)[1]


def _quantile(sums: NumberSums, q: float, z: float) -> Quantile:
    """The number below which a share q of people lies, with its interval."""
    test = sums.quantile(q)
    if test is None:
        return Quantile(q=q, value=None, low=None, high=None)
    low, high = test.interval(z)
    return Quantile(q=q, value=test.value, low=low, high=high)


def _with_smooth(found: NumberEstimate, smooth: SmoothFigures, centres: np.ndarray | None) -> NumberEstimate:
    """The same figures with their smooth estimates, and the curve."""
    mean = found.mean
    if mean is not None and centres is not None:
        mean = dataclasses.replace(mean, **smooth.mean(centres)._asdict())
    return dataclasses.replace(
        found,
        mean=mean,
        quantiles=tuple(dataclasses.replace(one, **smooth.quantile(one.q)._asdict()) for one in found.quantiles),
        shares_above=tuple(
            dataclasses.replace(one, **smooth.share_above(weights_above(smooth.edges, one.limit))._asdict())
            for one in found.shares_above
        ),
        curve=smooth.curve(),
    )


def weights_above(edges: np.ndarray, limit: float) -> np.ndarray:
    """(B,): the part of each bin that is at least the limit, if numbers are spread evenly within bins."""
    parts: np.ndarray = np.clip((edges[1:] - limit) / np.diff(edges), 0, 1)
    return parts


def check_limits(limits: Sequence[float], alphabets: Sequence[Alphabet]) -> None:
    """Refuse limits at which no alphabet has information, because numbers are clamped (raises SpecError)."""
    _check_number("limits", limits)
    ranges = [edges[[1, -2]].tolist() for edges in (alphabet.bin_edges for alphabet in alphabets) if edges is not None]
    if not ranges:
        raise SpecError(f"numbers need the alphabet ordered, got {', '.join(alphabet.id for alphabet in alphabets)}")
    for limit in limits:
        if not is_number(limit) or not any(first <= limit <= last for first, last in ranges):
            listed = " or ".join(f"from {first!r} to {last!r}" for first, last in ranges)
            raise SpecError(f"limits must be numbers {listed}, between inner edges, got {describe(limit)}")


def limits_within(limits: Sequence[float], alphabet: Alphabet) -> tuple[float, ...]:
    """Those limits of a job that lie between the inner edges of this alphabet."""
    edges = alphabet.bin_edges
    return () if edges is None else tuple(limit for limit in limits if edges[1] <= limit <= edges[-2])


def check_quantiles(quantiles: Sequence[float]) -> None:
    """Refuse numbers that are not quantiles (raises SpecError)."""
    _check_number("quantiles", quantiles)
    for q in quantiles:
        if not is_number(q) or not 0 < q < 1:
            raise SpecError(f"quantiles must be numbers in (0, 1), got {describe(q)}")


def _check_number(name: str, given: Sequence[float]) -> None:
    if len(given) > MAX_FIGURES or len(set(given)) < len(given):
        raise SpecError(f"{name} must be at most {MAX_FIGURES} different numbers, got {len(given)}, {describe(given)}")
