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
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from uldp_transforms.ldp.checks import describe
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
from uldp_transforms.ldp.mechanisms.binomial_law import Confidence, normal_quantile
from uldp_transforms.rows.figures.compared_figures import MEAN, QUANTILE, SHARE_ABOVE, Ends, difference_interval, hull
from uldp_transforms_compare.comparisons.compare import noticeable_difference
from uldp_transforms_compare.comparisons.difference_columns import Difference, Differences, Subject
from uldp_transforms_compare.comparisons.interval_inversion import p_values_at

Interval = Callable[[float], tuple["float | None", "float | None"]]
"""Function from a number of standard errors to the interval of a figure; an end is None where it is not bounded."""


def compare_numbers(
    first: NumberSums,
    second: NumberSums,
    limits: Sequence[float] = (),
    quantiles: Sequence[float] = (),
    confidence: float = CONFIDENCE,
    smooth: bool = True,
) -> list[Difference]:
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
    return list(differences_of_numbers(first, second, limits, quantiles, confidence, smooth))


def differences_of_numbers(
    first: NumberSums,
    second: NumberSums,
    limits: Sequence[float] = (),
    quantiles: Sequence[float] = (),
    confidence: float = CONFIDENCE,
    smooth: bool = True,
    p_values: np.ndarray | None = None,
) -> Differences:
    """The differences of all figures; arguments and errors as for ``compare_numbers``, and ``p_values`` (D,) if they
    are known."""
    check_limits(limits, [side.reports[0].model.alphabet for side in (first, second)])
    check_quantiles(quantiles)
    if not 0 < confidence < 1:
        raise SpecError(f"compare_numbers.confidence must be between 0 and 1, got {confidence!r}")
    if not np.array_equal(first.edges, second.edges):
        bounds = [side.edges[[0, -1]].tolist() for side in (first, second)]
        raise SpecError(f"compare_numbers needs the same bins in both groups, got {describe(bounds)} as their ends")
    figures = [one for one in _figures((first, second), limits, quantiles) if np.isfinite(one.values).all()]
    ends = functools.partial(_ends, figures)
    z = float(normal_quantile(confidence))
    low, high = ends(z)
    columns = {
        "difference": np.array([one.values[0] - one.values[1] for one in figures]),
        "low": low,
        "high": high,
        "p_value": p_values_at(functools.partial(_ends_at, figures)) if p_values is None else p_values,
        "noticeable": noticeable_difference(high - low, confidence),
    }
    posteriors = [side.smooth for side in (first, second) if smooth]
    known = [SmoothFigures(one, first.edges, z) for one in posteriors if one is not None]
    if len(known) == 2:
        columns |= _smooth(figures, known)
    return Differences([one.subject for one in figures], columns, lambda level: ends(float(normal_quantile(level))))


@dataclasses.dataclass(frozen=True, eq=False)
class _Figure:
    """A figure of both sides.

    Attributes:
        subject: which one.
        values: (2,), of each side; nan if nobody in it seems to have a number.
        intervals: of each side.
        smooth: function from the smooth figures of a side to this one.
        within: range of its possible values.
    """

    subject: Subject
    values: np.ndarray
    intervals: Sequence[Interval]
    smooth: Callable[[SmoothFigures], Smooth]
    within: tuple[float, float] = (-np.inf, np.inf)


def _figures(sides: Sequence[NumberSums], limits: Sequence[float], quantiles: Sequence[float]) -> Iterator[_Figure]:
    """The figures in the order of ``compare_numbers``."""
    centres = sides[0].centres
    if centres is not None:
        means, ends = [side.ratio(centres) for side in sides], (float(centres[0]), float(centres[-1]))
        values, of_mean = _numbers(one.value for one in means), operator.methodcaller("mean", centres)
        yield _Figure(Subject(figure=MEAN), values, [one.interval for one in means], of_mean, ends)
    for q in map(float, quantiles):
        tests = [side.quantile(q) for side in sides]
        values = _numbers(None if one is None else one.value for one in tests)
        intervals = [one.interval for one in tests if one is not None]
        yield _Figure(Subject(figure=QUANTILE, at=q), values, intervals, operator.methodcaller("quantile", q))
    for limit in map(float, limits):
        parts = weights_above(sides[0].edges, limit)
        values = _numbers(side.ratio(parts).value for side in sides)
        intervals = [functools.partial(interval_above, side, limit) for side in sides]
        of_share = operator.methodcaller("share_above", parts)
        yield _Figure(Subject(figure=SHARE_ABOVE, at=limit), values, intervals, of_share, (0, 1))


def _ends_at(figures: Sequence[_Figure], z: Confidence) -> Ends:
    """The intervals of the differences, each at its own z if there are several; nan where z is."""
    if not np.ndim(z):
        return _ends(figures, float(z))
    low, high = np.full((2, len(figures)), np.nan)
    for at in np.flatnonzero(~np.isnan(z)).tolist():
        (low[at],), (high[at],) = _ends(figures[at : at + 1], float(np.asarray(z)[at]))
    return low, high


def _ends(figures: Sequence[_Figure], z: float) -> Ends:
    """The intervals of the differences, which contain those of the figures moved into the range ``within``; see
    ``moved_inside``."""
    given = _columns([*one.values, *(end for of in one.intervals for end in _bounds(of(z)))] for one in figures)
    moved = (np.clip(one.values, *one.within) - one.values for one in figures)
    shifts = _columns([a, b, a, a, b, b] for a, b in moved)
    return hull(difference_interval(*given), difference_interval(*(given + shifts)))


def _smooth(figures: Sequence[_Figure], sides: Sequence[SmoothFigures]) -> dict[str, np.ndarray]:
    """The differences of smooth estimates, with intervals from those of both."""
    pairs = ([one.smooth(side) for side in sides] for one in figures)
    given = _columns([a.display_value, b.display_value, *_bounds(a[1:]), *_bounds(b[1:])] for a, b in pairs)
    low, high = difference_interval(*given)
    return {"display_difference": given[0] - given[1], "display_low": low, "display_high": high}


def _bounds(ends: Sequence[float | None]) -> Iterator[float]:
    """Both ends of an interval, infinite where it is not bounded."""
    return (sign * np.inf if end is None else end for sign, end in zip((-1, 1), ends))


def _columns(rows: Iterable[Sequence[float | None]]) -> np.ndarray:
    """(6, D): the arguments of ``difference_interval``, from those of each difference."""
    columns: np.ndarray = _numbers(number for row in rows for number in row).reshape(-1, 6).T
    return columns


def _numbers(given: Iterable[float | None]) -> np.ndarray:
    """Numbers as an array; nan for None."""
    return np.array(list(given), dtype=np.float64)
