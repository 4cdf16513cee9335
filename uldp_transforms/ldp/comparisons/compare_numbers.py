"""Differences of means, quantiles, and shares above limits, between two groups of people.

Means and shares are sums of unbiased frequencies, so their differences are unbiased, with the intervals of Zou and
Donner (2008). For two quantiles, e_i says by how many standard errors bin i is refuted as that of the quantile of group
a, and f_j the same for bin j and group b. The interval of the difference contains all x - y with x in bin i, y in
bin j, and e_i^2 + f_j^2 at most z^2: where the distribution functions are linear, this is the profile likelihood, and
the interval that Zou and Donner make of the two single ones. It is made of whole bins; nothing is assumed in a bin.
Bins contain their lower edge and not the upper one, so it does not contain its ends.

The fields ``display_*`` are differences of smooth estimates, which are posterior means of independent posteriors.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.comparisons.compare import difference_interval, p_values_at
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators.number_estimates import (
    check_limits,
    check_quantiles,
    interval_above,
    weights_above,
)
from uldp_transforms.ldp.estimators.number_sums import NumberSums, Ratio
from uldp_transforms.ldp.estimators.smooth_figures import Smooth, SmoothFigures
from uldp_transforms.ldp.mechanisms.binomial_law import normal_quantile
from uldp_transforms.ldp.solvers.linear import CONFIDENCE

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
        difference: unbiased, of means and shares. Of quantiles: of their smooth estimates, or else of those nearest to
            the unbiased ones, moved into the interval.
        low, high: ends of its interval, which for a quantile are not in it. None where it is not bounded: for a
            quantile in a clamped end bin, or where nearly nobody may have a number.
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
            ratios = [side.ratio(centres) for side in self._sides]
            shown = self._shown(lambda smooth: smooth.mean(centres))
            yield from self._of_sums(MEAN, None, ratios, [one.interval for one in ratios], shown)
        for q in map(float, quantiles):
            yield from self._of_quantiles(q)
        for limit in map(float, limits):
            parts = weights_above(self._edges, limit)
            ratios = [side.ratio(parts) for side in self._sides]
            intervals = [functools.partial(interval_above, side, limit) for side in self._sides]
            shown = self._shown(operator.methodcaller("share_above", parts))
            yield from self._of_sums(SHARE_ABOVE, limit, ratios, intervals, shown)

    def _of_sums(
        self, figure: str, at: float | None, ratios: Sequence[Ratio], intervals: Sequence[Interval], shown: _Shown
    ) -> Iterator[FigureDifference]:
        a, b = (one.value for one in ratios)
        if a is None or b is None:
            return

        def ends(z: float) -> tuple[np.ndarray, np.ndarray]:
            (low_a, high_a), (low_b, high_b) = (interval(z) for interval in intervals)
            given = (a, b, _or(low_a, -np.inf), _or(high_a, np.inf), _or(low_b, -np.inf), _or(high_b, np.inf))
            return difference_interval(*(np.array([number]) for number in given))

        low, high = (float(end[0]) for end in ends(self._z))
        yield FigureDifference(
            figure=figure,
            at=at,
            difference=a - b,
            low=_finite(low),
            high=_finite(high),
            p_value=float(p_values_at(ends)[0]),
            **shown._asdict(),
        )

    def _of_quantiles(self, q: float) -> Iterator[FigureDifference]:
        crossings = [side.crossing(q) for side in self._sides]
        if crossings[0] is None or crossings[1] is None:
            return
        scores = np.hypot.outer(*(side.refuted(q) for side in self._sides))
        lower = np.append(-np.inf, self._edges[1:-1])
        upper = np.append(self._edges[1:-1], np.inf)
        least, most = np.subtract.outer(lower, upper), np.subtract.outer(upper, lower)
        possible = scores <= max(self._z, float(scores.min()))
        low, high = float(least[possible].min()), float(most[possible].max())
        shown = self._shown(lambda smooth: smooth.quantile(q))
        difference = shown.display_difference
        if difference is None:
            difference = crossings[0][0] - crossings[1][0]
        equal = max(float(scores[side].min()) for side in (least < 0, most > 0))
        yield FigureDifference(
            figure=QUANTILE,
            at=q,
            difference=min(max(difference, low), high),
            low=_finite(low),
            high=_finite(high),
            p_value=float(min(2 * special.ndtr(-equal), 1.0)),
            **shown._asdict(),
        )

    def _shown(self, figure: Callable[[SmoothFigures], Smooth]) -> _Shown:
        """The difference of smooth estimates, with an interval from those of both."""
        if len(self._smooth) < 2:
            return _Shown()
        a, b = (figure(smooth) for smooth in self._smooth)
        if a.display_value is None or b.display_value is None:
            return _Shown()
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
