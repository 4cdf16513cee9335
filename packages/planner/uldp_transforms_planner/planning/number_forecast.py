"""Expected intervals of means and quantiles of an ordered alphabet, for every mechanism."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from uldp_transforms.ldp.alphabets import Alphabet
from uldp_transforms.ldp.checks import is_number, require_number
from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators.number_estimates import NumberEstimate, Quantile, estimate_numbers
from uldp_transforms.ldp.mechanisms import Mechanism, SquareWave, UtilityOptimizedSquareWave
from uldp_transforms.ldp.mechanisms.binomial_law import normal_quantile
from uldp_transforms.ldp.mechanisms.mechanism import MAX_EPSILON
from uldp_transforms_planner.planning.planned_question import comparable
from uldp_transforms_planner.planning.planning import NEARLY_BEST, STEPS_OF_EPSILON
from uldp_transforms_planner.utility.arguments import MAX_REPORTS, require_epsilon, require_reports

PLANNED = (0.5, 0.9)
"""Quantiles whose intervals are forecast."""

_NEAR_ZERO = 1e-300


@dataclasses.dataclass(frozen=True, kw_only=True)
class NumberForecast:
    """Half widths of intervals, in the unit of the numbers. An open end counts as the end of the range.

    Attributes:
        collection: collection with one mechanism.
        mean: of the unbiased mean; None on the scale ``log``.
        quantiles: of the median and the 90 % quantile, by the smooth posterior if the mechanism has one.
        sure_quantiles: the same, without smoothness.
    """

    collection: Collection
    mean: float | None
    quantiles: tuple[float, ...]
    sure_quantiles: tuple[float, ...]

    @property
    def size(self) -> float:
        """Geometric mean of the half widths of mean and quantiles."""
        halves = [*self.quantiles, *([] if self.mean is None else [self.mean])]
        return math.exp(sum(math.log(max(half, _NEAR_ZERO)) for half in halves) / len(halves))


def forecast_numbers(
    collection: Collection, num_reports: int, shares: np.ndarray | None = None, confidence: float = CONFIDENCE
) -> NumberForecast:
    """Forecast the intervals of a collection, which are those of its expected counts.

    Args:
        collection: with an ordered alphabet and one cohort.
        num_reports: n.
        shares: (K,) shares of people with each symbol (default: equal shares of all bins).
        confidence: of the intervals.

    Raises:
        SpecError: for another alphabet, or a number of reports that cannot be.
    """
    require_reports("forecast_numbers.num_reports", num_reports)
    edges, mechanism = _edges(collection), collection.mechanism
    shares = _equal(collection) if shares is None else shares
    expected = num_reports * mechanism.response(shares)
    cells = np.rint(expected)
    if not cells.any():  # of hardly any reports: sums are rounded, so that there are as many as planned
        cells = np.diff(np.rint(np.cumsum(expected)), prepend=0.0)
    cells = cells.astype(np.int64)[np.newaxis]
    number = cells.sum(axis=1) if mechanism.one_place else np.array([num_reports])
    found = estimate_numbers(collection, CohortCounts(number, cells), quantiles=PLANNED, confidence=confidence)
    return NumberForecast(
        collection=collection,
        mean=_half_of_mean(found),
        quantiles=tuple(_half(one, edges, one.display_value is not None) for one in found.quantiles),
        sure_quantiles=tuple(_half(one, edges, False) for one in found.quantiles),
    )


def plan_numbers(
    collection: Collection,
    epsilon: float,
    num_reports: int,
    shares: np.ndarray | None = None,
    confidence: float = CONFIDENCE,
    target: float | None = None,
) -> tuple[list[NumberForecast], NumberForecast]:
    """Compare all mechanisms that protect what the alphabet of a collection declares sensitive.

    Args:
        collection: with an ordered alphabet; its mechanism has no effect.
        epsilon: of one report, in (0, 16].
        num_reports: n.
        shares, confidence: see ``forecast_numbers``.
        target: for the half width of the mean; None: no target.

    Returns:
        the forecasts, and the recommended one: with the shortest report among those whose ``size`` is at most 5 %
        above the least. If some mechanisms meet the target, one of these is recommended.

    Raises:
        SpecError: for another alphabet, or if an argument is out of range.
    """
    require_epsilon("plan_numbers.epsilon", epsilon)
    _edges(collection)
    makers = mechanisms(collection.alphabet)
    found = [
        forecast_numbers(with_mechanism(collection, make, epsilon), num_reports, shares, confidence) for make in makers
    ]
    good = found
    if target is not None:
        weights = _equal(collection) if shares is None else shares
        halves = [_half_width_of_mean(one.collection, num_reports, weights, confidence) for one in found]
        good = [one for one, half in zip(found, halves) if half <= target] or found
    limit = NEARLY_BEST * min(one.size for one in good)
    best = min(
        (one for one in good if one.size <= limit),
        key=lambda one: (one.collection.mechanism.payload_size, one.size),
    )
    return found, best


@dataclasses.dataclass(frozen=True, kw_only=True)
class NeededForMean:
    """What one mechanism needs for a half width of the unbiased mean's interval.

    Attributes:
        num_reports: least number of reports; None if more than can be planned.
        epsilon: least epsilon with the planned number of reports, in steps of 1/1000; None if more than 16.
        half_width: with the planned number of reports and the epsilon of the collection.
    """

    num_reports: int | None
    epsilon: float | None
    half_width: float


def needed_for_mean(
    collection: Collection,
    half_width: float,
    num_reports: int,
    shares: np.ndarray | None = None,
    confidence: float = CONFIDENCE,
) -> NeededForMean:
    """Reports and epsilon with which the mean of a collection has an interval of this half width.

    Args:
        collection: with an ordered alphabet, one cohort, and a mechanism whose class takes epsilon alone.
        half_width: above 0, in the unit of the numbers.
        num_reports: n, for the least epsilon.
        shares, confidence: see ``forecast_numbers``.

    Raises:
        SpecError: for another alphabet, and for the scale ``log``, which has no mean.
    """
    _edges(collection)
    require_reports("needed_for_mean.num_reports", num_reports)
    is_above_0 = is_number(half_width) and 0 < half_width < math.inf
    require_number("needed_for_mean.half_width", half_width, "a number above 0", is_above_0)
    if collection.alphabet.bin_centres is None:
        raise SpecError("a half width can be planned for a mean only, and numbers on the scale log have none")
    shares = _equal(collection) if shares is None else shares
    half = _half_width_of_mean(collection, num_reports, shares, confidence)
    needed = math.ceil(num_reports * (half / half_width) ** 2)
    reports = needed if needed <= MAX_REPORTS else None

    def meets(step: int) -> bool:
        changed = with_mechanism(collection, type(collection.mechanism), step / STEPS_OF_EPSILON)
        return _half_width_of_mean(changed, num_reports, shares, confidence) <= half_width

    low, high = 0, round(MAX_EPSILON * STEPS_OF_EPSILON)
    if not meets(high):
        return NeededForMean(num_reports=reports, epsilon=None, half_width=half)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return NeededForMean(num_reports=reports, epsilon=high / STEPS_OF_EPSILON, half_width=half)


def least_epsilon_of_mean(
    collection: Collection,
    half_width: float,
    num_reports: int,
    shares: np.ndarray | None = None,
    confidence: float = CONFIDENCE,
) -> float | None:
    """Smallest epsilon with which some mechanism gives the mean an interval of this half width; None: none up to 16.

    Args and errors: see ``needed_for_mean``; the mechanism of the collection has no effect.
    """
    _edges(collection)
    needed = (
        needed_for_mean(with_mechanism(collection, make, MAX_EPSILON), half_width, num_reports, shares, confidence)
        for make in mechanisms(collection.alphabet)
    )
    return min((one.epsilon for one in needed if one.epsilon is not None), default=None)


def _half_width_of_mean(collection: Collection, num_reports: int, shares: np.ndarray, confidence: float) -> float:
    """Half width of the interval of the unbiased mean."""
    z = float(normal_quantile(confidence))
    return z * math.sqrt(_variance_of_mean(collection, shares) / num_reports)


def _variance_of_mean(collection: Collection, shares: np.ndarray) -> float:
    """n times the variance of the mean, among the people whose value is a number."""
    alphabet, centres = collection.alphabet, collection.alphabet.bin_centres
    assert centres is not None
    bins = alphabet.symbols_in_order[: len(centres)]
    people, weights = float(shares[bins].sum()), np.zeros(len(shares))
    weights[bins] = (centres - float(shares[bins] @ centres) / people) / people
    return float(collection.mechanism.variance_of(weights, shares))


def _equal(collection: Collection) -> np.ndarray:
    """(K,) equal shares of all bins."""
    shares = np.zeros(collection.alphabet.num_symbols)
    bins = len(_edges(collection)) - 1
    shares[collection.alphabet.symbols_in_order[:bins]] = 1 / bins
    return shares


def mechanisms(alphabet: Alphabet) -> list[type[Mechanism]]:
    """The square wave, and the mechanisms for values of any kind; utility-optimised ones if some values are not
    sensitive."""
    others = comparable().values()
    if alphabet.num_sensitive == alphabet.num_symbols:
        return [SquareWave, *(cls for cls in others if cls.protects_all)]
    return [UtilityOptimizedSquareWave, *sorted(others, key=lambda cls: cls.protects_all)]


def with_mechanism(collection: Collection, make: type[Mechanism], epsilon: float) -> Collection:
    """The same question, in one cohort, with a mechanism of the class ``make``."""
    alphabet = collection.alphabet
    mechanism = make(
        num_symbols=alphabet.num_symbols,
        num_sensitive=alphabet.num_sensitive,
        num_others=alphabet.num_others,
        epsilon=epsilon,
    )
    return Collection(id=collection.id, version=collection.version, alphabet=alphabet, mechanism=mechanism)


def _edges(collection: Collection) -> np.ndarray:
    edges = collection.alphabet.bin_edges
    if edges is None:
        raise SpecError(f"numbers need the alphabet ordered, got {collection.alphabet.id}")
    return edges


def _half_of_mean(found: NumberEstimate) -> float | None:
    mean = found.mean
    return None if mean is None or mean.low is None or mean.high is None else (mean.high - mean.low) / 2


def _half(one: Quantile, edges: np.ndarray, is_smooth: bool) -> float:
    low, high = (one.display_low, one.display_high) if is_smooth else (one.low, one.high)
    return float((edges[-1] if high is None else high) - (edges[0] if low is None else low)) / 2
