"""Differences and ratios of two estimates, value by value.

With the interval (l, u) of each of two independent shares, a difference has the interval

    d - sqrt((p_a - l_a)^2 + (u_b - p_b)^2)  to  d + sqrt((u_a - p_a)^2 + (p_b - l_b)^2)

(Zou and Donner 2008), and a ratio the one of Donner and Zou (2012). They inherit what single intervals do for rare
values.

A share below 0 says no more than a share of 0, and one above 1 no more than 1. So these intervals are extended to those
of the shares moved into [0, 1], see ``solvers.intervals.moved_inside``; but not if some reports are lies, because the
mean of all reports may then lie outside.

If a share b of the reports of both are lies, and one report adds between a_min and a_max to n times an estimate, the
interval [L, U] of the difference of the means of all reports becomes

    (L - b (a_max - a_min)) / (1 - b)  to  (U + b (a_max - a_min)) / (1 - b)

for the difference among honest people, and the ends of a ratio are those of (p_a - b a_max) / (p_b - b a_min) and of
(p_a - b a_min) / (p_b - b a_max). The errors of chance are added in squares, those of lies are not.

In estimates of several versions, liars choose the versions whose reports they send (``utility.Lies``), and so the
weight that they have in the estimate. Of each share, the lies that move it furthest have the weight b and add a on
average. With B the largest weight that lies can have in one of the two estimates, a share p among all is then at most

    (p - B a - (B - b) / (1 - b) (p - a)) / (1 - B)

among honest people, and at least that with the lies that move it down. So the formulas above hold with B for b, and
with that term added to B a. Without errors of chance they are exact. With them, they are never too short, because
1 / (1 - B) is the largest factor of these errors; they are too long if lies have less weight in one of the estimates.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators.anytime import anytime_confidence
from uldp_transforms.ldp.estimators.estimator import ANYTIME, Estimate
from uldp_transforms.ldp.false_reports import Pushed
from uldp_transforms.ldp.mechanisms.binomial_law import Confidence, normal_quantile
from uldp_transforms.ldp.solvers.intervals import reaching
from uldp_transforms.rows.figures.compared_figures import Ends, clearest_first, difference_interval, hull
from uldp_transforms_compare.comparisons.difference_columns import Differences, Subject
from uldp_transforms_compare.comparisons.interval_inversion import ComparedSide, confidence_at, p_values_at

if TYPE_CHECKING:
    import pandas

Numbers = TypeVar("Numbers", float, np.ndarray)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """The first estimate compared with the second; arrays have one entry for each of the S values.

    Examples:
        >>> import numpy as np
        >>> from uldp_transforms.ldp import Collection
        >>> from uldp_transforms_compare.comparisons import compare
        >>> collection = Collection.from_json("C.json")
        >>> rng = np.random.default_rng(1)
        >>> arms = (["flu"] * 6000 + ["cold"] * 4000, ["flu"] * 3000 + ["cold"] * 7000)
        >>> new, control = (
        ...     collection.estimate(collection.count(collection.perturb(arm, rng)), "eb")
        ...     for arm in arms
        ... )
        >>> lift = compare(new, control).lifts[0]
        >>> bool(1.5 < lift < 2.7)
        True

    Attributes:
        values: the values, in the order of the first estimate.
        differences: first minus second raw frequency, unbiased.
        low, high: ends of the intervals of the differences, each at the requested confidence.
        p_values: 1 minus the largest confidence at which the interval of the difference does not contain 0.
        q_values: p-values adjusted for all S values (Benjamini and Hochberg 1995): of the values with a q-value of at
            most a, at most a share a is expected not to differ, if their errors are independent.
        selected_low, selected_high: for the values with a q-value of at most 1 - confidence, ends of longer intervals
            of the differences, of which a share of 1 - confidence at most is expected to miss although the values were
            selected by the same data (Benjamini and Yekutieli 2005); NaN for the others.
        noticeable: differences that would have a p-value below 1 - confidence in at least about 80 of 100 cases,
            whatever declared liars send; smaller ones are often missed.
        lifts: ratio of the raw frequencies; NaN where the second is not above 0.
        lift_low, lift_high: ends of the intervals of the ratios. NaN where ``lifts`` is; ``lift_high`` is infinite
            where the second share may be 0.
    """

    values: tuple[str, ...]
    differences: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p_values: np.ndarray
    q_values: np.ndarray
    selected_low: np.ndarray
    selected_high: np.ndarray
    noticeable: np.ndarray
    lifts: np.ndarray
    lift_low: np.ndarray
    lift_high: np.ndarray

    def to_frame(self) -> pandas.DataFrame:
        """A pandas frame with one row per value, in the order of ``clearest_first``.

        Raises:
            ImportError: if pandas is not installed.
        """
        import pandas as pd  # noqa: PLC0415  # of the extra notebook

        columns = {name: getattr(self, attribute) for name, attribute in _COLUMNS.items()}
        frame = pd.DataFrame({"value": list(self.values), **columns})
        order = clearest_first(self.p_values, self.differences, self.low, self.high)
        return frame.iloc[order].reset_index(drop=True)


_COLUMNS = {
    "difference": "differences",
    "low": "low",
    "high": "high",
    "p_value": "p_values",
    "q_value": "q_values",
    "lift": "lifts",
    "lift_low": "lift_low",
    "lift_high": "lift_high",
    "selected_low": "selected_low",
    "selected_high": "selected_high",
    "noticeable": "noticeable",
}


def compare(
    first: Estimate, second: Estimate, confidence: float = CONFIDENCE, anytime_scale: float | None = None
) -> Comparison:
    """Compare two estimates of the same values from different people.

    Errors are taken as independent, so the people must be different. If the same people report in both, as in two
    windows of a collection with memos, intervals are too long or, for a value that people swap, too short.

    Examples:
        >>> import numpy as np
        >>> from uldp_transforms.ldp import Collection
        >>> from uldp_transforms_compare.comparisons import compare
        >>> collection = Collection.from_json("C.json")
        >>> rng = np.random.default_rng(1)
        >>> arms = (["flu"] * 6000 + ["cold"] * 4000, ["flu"] * 3000 + ["cold"] * 7000)
        >>> new, control = (
        ...     collection.estimate(collection.count(collection.perturb(arm, rng)), "eb")
        ...     for arm in arms
        ... )
        >>> comparison = compare(new, control)
        >>> comparison.values[0], bool(comparison.low[0] > 0), bool(comparison.q_values[0] < 0.01)
        ('flu', True, True)

    Args:
        first, second: estimates, whose values may be in different orders. Of ``Estimate.with_liars``: all intervals and
            p-values are then of differences and ratios among honest people, whatever the liars of both send.
        confidence: of each interval of a difference or lift.
        anytime_scale: if the comparison is repeated while reports arrive: number of reports, above 0, chosen before any
            report is seen and the same at all looks, as for ``Estimate.anytime``. Intervals then hold jointly at all
            looks, and the probability that a p-value of equal shares is ever at most alpha is alpha. None (default):
            one look.

    Raises:
        SpecError: if the values or the shares of liars differ, the confidence is not between 0 and 1, the scale is not
            above 0, or there is a scale and an estimate is anytime already.
    """
    of = differences_of_shares(first, second, confidence, anytime_scale)
    adjusted = q_values(of.columns["p_value"])
    found = adjusted <= 1 - confidence
    selected_low, selected_high = of.selected(found, selected_confidence(found, 1 - confidence))
    return Comparison(
        values=first.values,
        q_values=adjusted,
        selected_low=selected_low,
        selected_high=selected_high,
        **{_COLUMNS[name]: column for name, column in of.columns.items()},
    )


def differences_of_shares(
    first: Estimate, second: Estimate, confidence: float = CONFIDENCE, anytime_scale: float | None = None
) -> Differences:
    """The differences of all values; arguments and errors as for ``compare``."""
    return differences_of_sides(ComparedSide(first), ComparedSide(second), confidence, anytime_scale)


def differences_of_sides(
    first: ComparedSide,
    second: ComparedSide,
    confidence: float = CONFIDENCE,
    anytime_scale: float | None = None,
    p_values: np.ndarray | None = None,
) -> Differences:
    """The differences of all values of two sides, which may be in other pairs too.

    Args:
        first, second, confidence, anytime_scale: as for ``compare``.
        p_values: (S,), if they are known.

    Raises:
        SpecError: as for ``compare``.
    """
    return _Pair.of_sides(first, second, confidence, anytime_scale).differences(confidence, p_values)


def p_values_of_sides(first: ComparedSide, second: ComparedSide, anytime_scale: float | None = None) -> np.ndarray:
    """The p-values (S,) of the differences alone; arguments and errors as for ``compare``."""
    return _Pair.of_sides(first, second, CONFIDENCE, anytime_scale).p_values()


def difference_at(first: Estimate, second: Estimate, confidence: float, anytime_scale: float | None = None) -> Ends:
    """Ends (S,), (S,) of the intervals of the differences alone; arguments and errors as for ``compare``."""
    return _Pair.of(first, second, confidence, anytime_scale).interval(confidence)


@dataclasses.dataclass(frozen=True)
class _Pair:
    """Two estimates with the values in one order: raw frequencies ``a`` and ``b``, and their intervals."""

    sides: tuple[ComparedSide, ComparedSide]
    order: np.ndarray
    looks: _Looks | None

    @classmethod
    def of(cls, first: Estimate, second: Estimate, confidence: float, anytime_scale: float | None) -> _Pair:
        """Check the arguments of ``compare``."""
        return cls.of_sides(ComparedSide(first), ComparedSide(second), confidence, anytime_scale)

    @classmethod
    def of_sides(cls, one: ComparedSide, other: ComparedSide, confidence: float, anytime_scale: float | None) -> _Pair:
        """Check the arguments of ``compare``, for sides that may be in other pairs too."""
        first, second = one.estimate, other.estimate
        if not 0 < confidence < 1:
            raise SpecError(f"compare.confidence must be between 0 and 1, got {confidence!r}")
        if anytime_scale is not None and not anytime_scale > 0:
            raise SpecError(f"compare.anytime_scale must be above 0 or None, got {anytime_scale!r}")
        if anytime_scale is not None and ANYTIME in (first.interval, second.interval):
            raise SpecError(
                f"compare.anytime_scale must be None for estimates of Estimate.anytime, got {anytime_scale!r}"
            )
        if first.liars != second.liars:
            raise SpecError(
                f"compare needs estimates with the same share of liars, got {first.liars!r} and {second.liars!r}"
            )
        looks = None if anytime_scale is None else _Looks(_number_of_both(first, second), anytime_scale)
        return cls((one, other), order_of_values(first.values, second.values), looks)

    def p_values(self) -> np.ndarray:
        """``Comparison.p_values``."""
        return p_values_at(lambda z: self.of_look(confidence_at(z)), self.looks)

    def differences(self, confidence: float, p_values: np.ndarray | None = None) -> Differences:
        """The differences of all values, with intervals at this confidence, and their p-values, if they are known."""
        low, high = self.interval(confidence)
        lifts, lift_low, lift_high = self.lifts(confidence)
        columns = {
            "difference": self.a - self.b,
            "low": low,
            "high": high,
            "p_value": self.p_values() if p_values is None else p_values,
            "noticeable": self.noticeable(confidence),
            "lift": lifts,
            "lift_low": lift_low,
            "lift_high": lift_high,
        }
        return Differences([Subject(value=value) for value in self.first.values], columns, self.interval)

    @property
    def first(self) -> Estimate:
        return self.sides[0].estimate

    @property
    def second(self) -> Estimate:
        return self.sides[1].estimate

    @property
    def a(self) -> np.ndarray:
        return self.first.raw_frequencies

    @property
    def b(self) -> np.ndarray:
        found: np.ndarray = self.second.raw_frequencies[self.order]
        return found

    def level(self, confidence: float) -> float:
        """The level of this look."""
        return confidence if self.looks is None else self.looks.level(confidence)

    def levels(self, level: Confidence) -> Confidence:
        """Levels in the order of the second estimate."""
        if not np.ndim(level):
            return level
        found = np.empty(len(self.order))
        found[self.order] = level
        return found

    def ends(self, level: Confidence, of_second: Confidence) -> tuple[np.ndarray, ...]:
        """Ends of the intervals of both for one look, for chance alone, at the levels of both."""
        first, second = self.sides
        low_b, high_b = second.by_chance(of_second)
        return *first.by_chance(level), low_b[self.order], high_b[self.order]

    def moved(self, level: Confidence, of_second: Confidence) -> tuple[np.ndarray, ...]:
        """Both shares, moved into [0, 1], and their ends (see ``moved_inside``), as ``lift_interval`` takes them."""
        first, second = self.sides
        a, *ends_of_a = first.moved(level)
        b, *ends_of_b = (part[self.order] for part in second.moved(of_second))
        return a, b, *ends_of_a, *ends_of_b

    def interval(self, confidence: float) -> Ends:
        """Ends of the intervals of the differences."""
        return self.of_look(self.level(confidence))

    def of_look(self, level: Confidence) -> Ends:
        """Ends of the intervals of the differences for one look."""
        levels = level, self.levels(level)
        low, high = difference_interval(self.a, self.b, *self.ends(*levels))
        if not self.share:
            low, high = hull((low, high), difference_interval(*self.moved(*levels)))
        downwards, upwards = self.rooms
        return (low - downwards) / (1 - self.weight), (high + upwards) / (1 - self.weight)

    @property
    def share(self) -> float:
        """Share of liars."""
        return self.first.liars or 0.0

    @functools.cached_property
    def weight(self) -> np.ndarray:
        """(S,): the largest weight that lies can have in one of the two estimates."""
        a, b = self.first.lies, self.second.lies
        if a is None or b is None:
            return np.zeros(len(self.order))
        largest: np.ndarray = np.maximum(a.largest_weight, b.largest_weight[self.order])
        return largest

    @functools.cached_property
    def pushed(self) -> tuple[_Pushed, _Pushed, _Pushed, _Pushed]:
        """The lies that lower and raise the first estimate, and the second one, most: those behind the largest and the
        smallest shares among honest people."""
        a, b = self.first.lies, self.second.lies
        assert a is not None and b is not None, "both have lies"
        sides = ((a, self.first, slice(None)), (b, self.second, self.order))
        lowest_a, highest_a, lowest_b, highest_b = (
            _Pushed.of(lies.furthest(one.raw_frequencies, up), one.raw_frequencies, order, self.weight)
            for lies, one, order in sides
            for up in (False, True)
        )
        return lowest_a, highest_a, lowest_b, highest_b

    @property
    def rooms(self) -> Ends:
        """By how much lies can raise and lower the difference of the means of all reports: (S,), (S,)."""
        if self.first.lies is None:
            return np.zeros(len(self.order)), np.zeros(len(self.order))
        lowest_a, highest_a, lowest_b, highest_b = self.pushed
        upwards = self.weight * (lowest_b.effect - highest_a.effect) + (lowest_b.more - highest_a.more)
        return self.weight * (lowest_a.effect - highest_b.effect) + (lowest_a.more - highest_b.more), upwards

    def noticeable(self, confidence: float) -> np.ndarray:
        """``Comparison.noticeable``: lies may hide as much as they may pretend."""
        level = self.level(confidence)
        low, high = difference_interval(self.a, self.b, *self.ends(level, level))
        downwards, upwards = self.rooms
        noticed: np.ndarray = (noticeable_difference(high - low, confidence) + downwards + upwards) / (1 - self.weight)
        return noticed

    def lifts(self, confidence: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Lifts, and the ends of their intervals."""
        level = self.level(confidence)
        ends = self.ends(level, level)
        lifts, low, high = lift_interval(self.a, self.b, *ends)
        known = ~np.isnan(lifts)
        if self.first.lies is None:
            low, high = hull((low, high), lift_interval(*self.moved(level, level))[1:])
        else:
            lowest_a, highest_a, lowest_b, highest_b = (self.weight * each.effect + each.more for each in self.pushed)
            low = self._shifted_lifts(ends, lowest_a, highest_b)[1]
            high = self._shifted_lifts(ends, highest_a, lowest_b)[2]
            high = np.where(np.isnan(high), np.inf, high)
        low, high = reaching(low, high, lifts)
        return lifts, np.where(known, low, np.nan), np.where(known, high, np.nan)

    def _shifted_lifts(
        self, ends: tuple[np.ndarray, ...], from_a: np.ndarray, from_b: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``lift_interval`` of what remains after numbers are subtracted from both shares."""
        subtracted = (from_a, from_b, from_a, from_a, from_b, from_b)
        return lift_interval(*(each - less for each, less in zip((self.a, self.b, *ends), subtracted)))


@dataclasses.dataclass(frozen=True, eq=False)
class _Pushed:
    """Lies that move one share furthest: the mean of what they add, and what is added to B times it; both (S,)."""

    effect: np.ndarray
    more: np.ndarray

    @classmethod
    def of(cls, lies: Pushed, raw: np.ndarray, order: np.ndarray | slice, largest: np.ndarray) -> _Pushed:
        """In the order of the first estimate, with ``largest`` (S,) the largest weight of lies on both sides."""
        effect, weight = lies.effect[order], lies.weight[order]
        return cls(effect, (largest - weight) / (1 - weight) * (raw[order] - effect))


@dataclasses.dataclass(frozen=True)
class _Looks:
    """Many looks at a difference while reports arrive.

    For independent people, the difference of the means so far, divided by its variance, is a Brownian motion in the
    time 1 / variance, however the two groups grow: the covariance of two looks is the variance of the later one, as for
    one mean (Lan and Zucker 1993). So the boundary of one mean holds, with the number of reports ``number`` that each
    of two equal groups with the same variance would have.
    """

    number: float
    scale: float

    def level(self, confidence: float) -> float:
        """The level of one look."""
        return float(anytime_confidence(confidence, self.number, self.scale))

    def p_values(self, quantiles: np.ndarray) -> np.ndarray:
        """P-values of the normal quantiles at which intervals of one look touch 0: ``level`` solved for alpha."""
        share = self.number / (self.number + self.scale)
        found: np.ndarray = np.minimum(np.sqrt(1 + self.number / self.scale) * np.exp(-(quantiles**2) * share / 2), 1)
        return found


def _number_of_both(first: Estimate, second: Estimate) -> float:
    return 2 / (1 / first.num_reports + 1 / second.num_reports)


def selected_confidence(found: np.ndarray, rate: float = 1 - CONFIDENCE) -> float:
    """Level of intervals of differences that were selected by their q-values, among all that are marked or not.

    Of the intervals of the selected ones, a share ``rate`` at most is expected to miss: with R of m selected, the level
    is 1 - R rate / m. None of them contains 0.

    Source: Benjamini and Yekutieli 2005, False discovery rate-adjusted multiple confidence intervals.
    """
    return 1 - rate * max(int(np.count_nonzero(found)), 1) / max(len(found), 1)


_USUALLY = 0.84
"""Normal quantile of 80 of 100 cases."""


def noticeable_difference(length: Numbers, confidence: float = CONFIDENCE) -> Numbers:
    """The difference that would have a p-value below 1 - confidence in about 80 of 100 cases, from the length of its
    interval."""
    reach = round(float(normal_quantile(confidence)), 2)
    return (reach + _USUALLY) / reach / 2 * length


def order_of_values(first: tuple[str, ...], second: tuple[str, ...]) -> np.ndarray:
    """Positions of the first estimate's values in the second."""
    places = {value: place for place, value in enumerate(second)}
    alone = set(first) ^ set(second)
    if alone:
        raise SpecError(f"compare needs estimates of the same values, got {len(alone)} value(s) that only one has")
    return np.array([places[value] for value in first], dtype=np.int64)


def lift_interval(
    a: np.ndarray, b: np.ndarray, low_a: np.ndarray, high_a: np.ndarray, low_b: np.ndarray, high_b: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ratio a / b and its interval; NaN where b is not above 0.

    Source: Donner and Zou 2012. The lower end is written without a difference of large numbers.
    """
    known, product = b > 0, a * b
    low_a, low_b = np.maximum(low_a, 0), np.maximum(low_b, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        root = np.sqrt(np.maximum(product**2 - low_a * high_b * (2 * a - low_a) * (2 * b - high_b), 0))
        low = np.where((low_a > 0) & (a > 0), low_a * (2 * a - low_a) / (product + root), 0.0)
        root = np.sqrt(np.maximum(product**2 - high_a * low_b * (2 * a - high_a) * (2 * b - low_b), 0))
        high = np.where(low_b > 0, (product + root) / (low_b * (2 * b - low_b)), np.inf)
        lift = np.where(known, a / b, np.nan)
    return lift, np.where(known, low, np.nan), np.where(known, high, np.nan)


def q_values(p_values: np.ndarray) -> np.ndarray:
    """Adjusted p-values (S,): the least false discovery rate at which each is still a discovery.

    Source: Benjamini and Hochberg 1995.
    """
    size = len(p_values)
    order = np.argsort(p_values)[::-1]
    adjusted = p_values[order]
    adjusted *= size  # in place: of many windows these are the largest arrays
    adjusted /= np.arange(size, 0, -1)
    found = np.empty(size)
    found[order] = np.minimum(np.minimum.accumulate(adjusted, out=adjusted), 1, out=adjusted)
    return found
