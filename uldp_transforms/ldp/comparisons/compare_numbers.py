"""Differences of means, quantiles, and shares above limits, between two groups of people.

Means and shares are sums of unbiased frequencies, so their differences are unbiased, with the intervals of Zou and
Donner (2008), and so have differences of quantiles, from the intervals of ``QuantileTest``: numbers are taken to be
spread evenly within bins.

The fields ``display_*`` are differences of smooth estimates, which are posterior means of independent posteriors.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.comparisons.compare import difference_interval, hull, p_values_at
from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators.number_estimates import (
    check_limits,
    check_quantiles,
    interval_above,
    weights_above,
)
from uldp_transforms.ldp.estimators.number_sums import NumberSums
from uldp_transforms.ldp.estimators.smooth_figures import Smooth, SmoothFigures
from uldp_transforms.ldp.mechanisms.binomial_law import normal_quantile

MEAN, QUANTILE, SHARE_ABOVE = "mean", "quantile", "share_above"
"""Names of the kinds of figures."""

Interval = Callable[[float], tuple[float | None, float | None]]
"""Function from a number of standard errors to the interval of a figure; an end is None where it is not bounded."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class FigureDifference:
    """A figure of the first group minus that of the second.

    Attributes:
        figure: ``"mean"``, ``"quantile"`` or ``"share_above"``.
        at: the limit, or q; None for a mean.
        difference: unbiased, of means and shares; of quantiles, where the unbiased distribution functions reach q.
        low, high: ends of its interval. None where it is not bounded: for a quantile that may be in a clamped end bin,
            or where nearly nobody may have a number.
        p_value: 1 minus the largest confidence at which the interval does not contain 0.
        display_difference, display_low, display_high: of the smooth estimates; None without smooth posteriors.
    """

    figure: str
    at: float | None
    difference: float
    low: float | None
    high: float | None
    p_value: float
    display_difference: float | None = None
    display_low: float | None = None
    display_high: float | None = None


def compare_numbers(
    first: NumberSums,
    second: NumberSums,
    limits: Sequence[float] = (),
    quantiles: Sequence[float] = (),
    confidence: float = CONFIDENCE,
    smooth: bool = True,
) -> list[FigureDifference]:
    """Compare the numbers of two groups of different people.

    Args:
        first, second: with the same bins.
        limits, quantiles: as for ``estimate_numbers``.
        confidence: of each interval.
        smooth: whether to compare smooth estimates, too.

    Returns:
        the mean, unless the scale is ``log``, then the quantiles, then the shares; without those that one of the groups
        does not have, because nobody in it seems to have a number.

    Raises:
        SpecError: if bins differ, or a limit, quantile or the confidence cannot be.
    """
    check_limits(limits, [side.reports[0].model.alphabet for side in (first, second)])
    check_quantiles(quantiles)
    if not 0 < confidence < 1:
        raise SpecError(f"compare_numbers.confidence must be between 0 and 1, got {confidence!r}")
    if not np.array_equal(first.edges, second.edges):
        ends = [side.edges[[0, -1]].tolist() for side in (first, second)]
        raise SpecError(f"compare_numbers needs the same bins in both groups, got {describe(ends)} as their ends")
    return list(_Pair(first, second, float(normal_quantile(confidence)), smooth).differences(limits, quantiles))


class _Pair:
    """Two groups.

    Args:
        z: half of an interval's length, in standard errors.
    """

    def __init__(self, first: NumberSums, second: NumberSums, z: float, smooth: bool):
        self._sides, self._z, self._edges = (first, second), z, first.edges
        posteriors = [side.smooth for side in self._sides if smooth]
        self._smooth = [SmoothFigures(one, self._edges, z) for one in posteriors if one is not None]

    def differences(self, limits: Sequence[float], quantiles: Sequence[float]) -> Iterator[FigureDifference]:
        centres = self._sides[0].centres
        if centres is not None:
            shown = self._shown(lambda smooth: smooth.mean(centres))
            intervals, ends = [side.ratio(centres).interval for side in self._sides], centres[[0, -1]].tolist()
            yield from self._of_sums(MEAN, None, centres, intervals, ends, shown)
        for q in map(float, quantiles):
            yield from self._of_quantiles(q)
        for limit in map(float, limits):
            parts = weights_above(self._edges, limit)
            intervals = [functools.partial(interval_above, side, limit) for side in self._sides]
            yield from self._of_sums(
                SHARE_ABOVE, limit, parts, intervals, (0, 1), self._shown(operator.methodcaller("share_above", parts))
            )

    def _of_sums(
        self,
        figure: str,
        at: float | None,
        weights: np.ndarray,
        intervals: Sequence[Interval],
        within: Sequence[float],
        shown: _Shown,
    ) -> Iterator[FigureDifference]:
        values = [side.ratio(weights).value for side in self._sides]
        if None not in values:
            yield self._difference(figure, at, values, intervals, shown, within)

    def _of_quantiles(self, q: float) -> Iterator[FigureDifference]:
        tests = [test for test in (side.quantile(q) for side in self._sides) if test is not None]
        if len(tests) == len(self._sides):
            shown = self._shown(operator.methodcaller("quantile", q))
            yield self._difference(QUANTILE, q, [one.value for one in tests], [one.interval for one in tests], shown)

    def _difference(
        self,
        figure: str,
        at: float | None,
        values: Sequence[Any],
        intervals: Sequence[Interval],
        shown: _Shown,
        within: Sequence[float] = (-np.inf, np.inf),
    ) -> FigureDifference:
        """Also contains the interval of the two figures moved into the range ``within``; see ``moved_inside``."""
        a, b = values
        of_a, of_b = (min(max(value, within[0]), within[1]) - value for value in values)
        shifts = np.array([of_a, of_b, of_a, of_a, of_b, of_b])

        def ends(z: float) -> tuple[np.ndarray, np.ndarray]:
            (low_a, high_a), (low_b, high_b) = (interval(z) for interval in intervals)
            given = [a, b, _or(low_a, -np.inf), _or(high_a, np.inf), _or(low_b, -np.inf), _or(high_b, np.inf)]
            own, moved = (difference_interval(*np.array(given + by)[:, np.newaxis]) for by in (0 * shifts, shifts))
            return hull(own, moved)

        low, high = (float(end[0]) for end in ends(self._z))
        return FigureDifference(
            figure=figure,
            at=at,
            difference=a - b,
            low=_finite(low),
            high=_finite(high),
            p_value=float(p_values_at(ends)[0]),
            **shown._asdict(),
        )

    def _shown(self, figure: Callable[[SmoothFigures], Smooth]) -> _Shown:
        """The difference of smooth estimates, with an interval from those of both."""
        if len(self._smooth) < 2:
            return _Shown()
        a, b = (figure(smooth) for smooth in self._smooth)
        assert a.display_value is not None and b.display_value is not None, "ends alone can be open"
        ends = (_or(end, sign * np.inf) for one in (a, b) for sign, end in zip((-1, 1), one[1:]))
        given = (np.array([float(number)]) for number in (a.display_value, b.display_value, *ends))
        low, high = (float(end[0]) for end in difference_interval(*given))
        return _Shown(a.display_value - b.display_value, _finite(low), _finite(high))


class _Shown(NamedTuple):
    """The fields ``display_*`` of ``FigureDifference``."""

    display_difference: float | None = None
    display_low: float | None = None
    display_high: float | None = None


def _or(end: float | None, otherwise: float) -> float:
    return otherwise if end is None else end


def _finite(end: float) -> float | None:
    return end if np.isfinite(end) else None
