"""P-values of many pairs, found together: one search for the values of all of them, instead of one for each pair."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Sequence

import numpy as np

from uldp_transforms.ldp.estimators.estimator import Estimate
from uldp_transforms.ldp.mechanisms.binomial_law import Confidence
from uldp_transforms.ldp.solvers.intervals import StackedIntervals, moved_inside
from uldp_transforms.rows.figures.compared_figures import Ends, difference_interval, hull
from uldp_transforms_compare.comparisons.compare import order_of_values, p_values_of_sides
from uldp_transforms_compare.comparisons.interval_inversion import ComparedSide, confidence_at, p_values_at

ComparedPair = tuple[ComparedSide, ComparedSide]


def p_values_of_pairs(pairs: Sequence[ComparedPair], anytime_scale: float | None = None) -> list[np.ndarray]:
    """``p_values_of_sides`` of each pair; the same, bit for bit, whichever pairs are compared with it.

    Args:
        pairs: sides whose estimates have S values each; pairs without lies and with intervals of one kind are compared
            together.
        anytime_scale: as for ``compare``.

    Raises:
        SpecError: as for ``compare``.
    """
    alike: dict[Hashable, list[int]] = {}
    for place, pair in enumerate(pairs):
        kind = _kind(pair) if anytime_scale is None else None
        alike.setdefault((0, place) if kind is None else kind, []).append(place)
    found: dict[int, np.ndarray] = {}
    for places in alike.values():
        chosen = [pairs[place] for place in places]
        together = [p_values_of_sides(*chosen[0], anytime_scale)] if len(chosen) == 1 else _together(chosen)
        found.update(zip(places, together))
    return [found[place] for place in range(len(pairs))]


def _kind(pair: ComparedPair) -> Hashable | None:
    """Equal for pairs that are compared together; None if a pair is compared alone."""
    kinds = {_kind_of_side(side.estimate) for side in pair}
    return kinds.pop() if len(kinds) == 1 else None


def _kind_of_side(estimate: Estimate) -> Hashable | None:
    """Equal for intervals that are computed together; None if they allow for lies or are computed alone."""
    intervals = estimate.unclipped
    if estimate.lies is not None or estimate.by_chance is not None or not isinstance(intervals, StackedIntervals):
        return None
    return None if intervals.kind is None else (type(intervals), intervals.kind)


def _together(pairs: Sequence[ComparedPair]) -> list[np.ndarray]:
    stack = _Stack.of(pairs)
    p_values = p_values_at(lambda z: stack.interval(confidence_at(z)))
    return np.split(p_values, np.cumsum([len(first.estimate.values) for first, _ in pairs])[:-1])


@dataclasses.dataclass(frozen=True, eq=False)
class _Stack:
    """The N values of several pairs.

    Attributes:
        intervals: of 2 N shares: those of all first sides, then those of all second sides.
        raw: (2 N,), their unbiased frequencies.
        order: (N,), places of the values of the first sides in those of the second sides.
    """

    intervals: StackedIntervals
    raw: np.ndarray
    order: np.ndarray

    @classmethod
    def of(cls, pairs: Sequence[ComparedPair]) -> _Stack:
        """The stack of pairs whose intervals have one kind."""
        estimates = [one.estimate for side in zip(*pairs) for one in side]
        own = [one.unclipped for one in estimates]
        orders = [order_of_values(a.estimate.values, b.estimate.values) for a, b in pairs]
        starts = np.cumsum([0, *map(len, orders)])
        order = np.concatenate([one + start for one, start in zip(orders, starts.tolist())])
        raw = np.concatenate([one.raw_frequencies for one in estimates])
        return cls(type(own[0]).joined(own), raw, order)

    def interval(self, level: Confidence) -> Ends:
        """Ends (N,) of the intervals of the differences; ``level`` is a number or (N,)."""
        if np.ndim(level):
            of_second = np.empty(len(self.order))
            of_second[self.order] = level
            level = np.concatenate([np.asarray(level), of_second])
        ends = self.intervals(level)
        moved = moved_inside(self.intervals, self.raw, level, ends=ends)
        return hull(*(self._of_differences(*three) for three in ((self.raw, *ends), moved)))

    def _of_differences(self, shares: np.ndarray, low: np.ndarray, high: np.ndarray) -> Ends:
        (a, b), *ends = (self._sides(each) for each in (shares, low, high))
        (low_a, low_b), (high_a, high_b) = ends
        return difference_interval(a, b, low_a, high_a, low_b, high_b)

    def _sides(self, column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both sides, in the order of the first ones."""
        first, second = np.split(column, 2)
        return first, second[self.order]
