"""P-values from intervals: the largest confidence at which an interval does not contain 0, found by a search.

Both ends of a side's intervals are kept for the quantiles that all pairs need, so they are computed once for a side.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from scipy import special

from uldp_transforms.ldp.estimators.estimator import Estimate
from uldp_transforms.ldp.mechanisms.binomial_law import Confidence
from uldp_transforms.ldp.solvers.intervals import moved_inside
from uldp_transforms.rows.figures.compared_figures import Ends

GRID = np.linspace(0.05, 8.2, 164)
"""Normal quantiles for p-values; beyond the last one a confidence is 1 in floating point, and distances from 0 are
extrapolated."""

LEAST = float(np.finfo(np.float64).tiny)
"""Smallest p-value: 0 would say that a difference is certain."""

_LAST = len(GRID) - 1
_COARSE = (0, 39)
"""Places in ``GRID`` at which all intervals are computed first, z = 0.05 and 2; the search needs the first one."""

_INTERPOLATED = 4
"""Number of places found by interpolation; further ones are found by bisection."""


class Looks(Protocol):
    """Many looks at a difference while reports arrive."""

    def p_values(self, quantiles: np.ndarray) -> np.ndarray:
        """P-values of the normal quantiles at which intervals of one look touch 0."""


@dataclasses.dataclass(frozen=True, eq=False)
class ComparedSide:
    """An estimate with the ends of its intervals, for all pairs that it is in.

    Attributes:
        estimate: the estimate.
    """

    estimate: Estimate
    _kept: dict[tuple[bool, float], tuple[np.ndarray, ...]] = dataclasses.field(default_factory=dict, init=False)
    _latest: list[Any] = dataclasses.field(default_factory=lambda: [None, ()], init=False)

    def by_chance(self, level: Confidence) -> tuple[np.ndarray, ...]:
        """Ends (S,), (S,) of the intervals for chance alone, not clipped.

        Args:
            level: confidence of all intervals, or (S,), with nan where no interval is needed.
        """
        estimate = self.estimate
        return self._known(estimate.by_chance or estimate.unclipped, level, moved=False)

    def moved(self, level: Confidence) -> tuple[np.ndarray, ...]:
        """The shares (S,), moved into [0, 1], and both ends (S,), see ``moved_inside``; arguments as for
        ``by_chance``."""
        estimate = self.estimate
        ends = None if estimate.by_chance else self.by_chance(level)
        return self._known(
            functools.partial(moved_inside, estimate.unclipped, estimate.raw_frequencies, ends=ends), level, moved=True
        )

    def _known(
        self, find: Callable[[Confidence], tuple[np.ndarray, ...]], level: Confidence, *, moved: bool
    ) -> tuple[np.ndarray, ...]:
        """What a function finds at a level; kept if it is the level of all values. Of other levels, the ends by chance
        are kept until the next ones are asked for."""
        if np.ndim(level) and moved:
            return find(level)
        if np.ndim(level):
            if self._latest[0] is not level:
                self._latest[:] = level, find(level)
            latest: tuple[np.ndarray, ...] = self._latest[1]
            return latest
        key = moved, float(level)
        if key not in self._kept:
            self._kept[key] = find(float(level))
        return self._kept[key]


def confidence_at(z: Confidence) -> Confidence:
    """The confidence of normal quantiles."""
    confidence: Confidence = 1 - 2 * special.ndtr(-z)
    return confidence


def p_values_at(interval: Callable[[Confidence], Ends], looks: Looks | None = None) -> np.ndarray:
    """P-values from the normal quantile z at which each interval touches 0: longer ones contain it.

    The distance of an interval from 0 is nearly linear in z. It is interpolated between two neighbours of ``GRID``, and
    beyond it extrapolated from the first and the last one: p-values below 1e-15 are less exact than others. The
    neighbours are found by a search, because intervals that contain 0 at a z contain it at all larger ones.

    Args:
        interval: function from z, a number or (S,) with nan where no interval is needed, to both ends (S,).
        looks: None: one look.

    Returns:
        (S,) above 0.
    """
    search = _Search.started(interval)
    step = 0
    while (open_ := search.is_open()).any():
        places = search.next_places(interpolate=step < _INTERPOLATED)
        search.narrow(places, _distances(interval, np.where(open_, GRID[places], np.nan)), open_)
        step += 1
    touching, contains = search.touching()
    of_touching = 2 * special.ndtr(-touching) if looks is None else looks.p_values(touching)
    p_values: np.ndarray = np.where(contains, 1.0, np.maximum(of_touching, LEAST))
    return p_values


def _distances(interval: Callable[[Confidence], Ends], z: Confidence) -> np.ndarray:
    """Distances (S,) of the intervals from 0; not above 0 where they contain it."""
    low, high = interval(z)
    found: np.ndarray = np.maximum(low, -high)
    return found


@dataclasses.dataclass(eq=False)
class _Search:
    """For each of S intervals, two places in ``GRID``: the last one that is known to be without 0, and the first one
    that is known to contain it, ``_LAST + 1`` if none is known.

    Attributes:
        first: (S,), distance from 0 at the first place.
        below, above: (S,) int64, the places.
        outside, inside: (S,), distances from 0 there; ``inside`` is nan if no place is known.
    """

    first: np.ndarray
    below: np.ndarray
    above: np.ndarray
    outside: np.ndarray
    inside: np.ndarray

    @classmethod
    def started(cls, interval: Callable[[Confidence], Ends]) -> _Search:
        """With the coarse places."""
        start, *others = (_distances(interval, float(GRID[place])) for place in _COARSE)
        shape = start.shape
        found = cls(start, np.zeros(shape, np.int64), np.full(shape, _LAST + 1), start, np.full(shape, np.nan))
        for place, distances in zip(_COARSE[1:], others):
            found.narrow(np.full(shape, place), distances, found.is_open())
        return found

    def is_open(self) -> np.ndarray:
        """(S,) bool, whether there are places between both; not if the first place contains 0."""
        is_open: np.ndarray = (self.first > 0) & (self.above - self.below > 1)
        return is_open

    def narrow(self, places: np.ndarray, distances: np.ndarray, chosen: np.ndarray) -> None:
        """Take the distances (S,) at some places (S,) into account, where ``chosen`` (S,) is True."""
        without, within = chosen & (distances > 0), chosen & ~(distances > 0)
        self.below, self.outside = np.where(without, places, self.below), np.where(without, distances, self.outside)
        self.above, self.inside = np.where(within, places, self.above), np.where(within, distances, self.inside)

    def next_places(self, *, interpolate: bool) -> np.ndarray:
        """(S,) int64, places between both: by interpolation of the distances, or the middle."""
        known, most = np.minimum(self.above, _LAST), np.minimum(self.above - 1, _LAST)
        places = (self.below + most + 1) // 2
        if interpolate:
            with np.errstate(invalid="ignore", divide="ignore"):
                slopes = np.where(
                    self.above <= _LAST,
                    (self.outside - self.inside) / (GRID[known] - GRID[self.below]),
                    (self.first - self.outside) / (GRID[self.below] - GRID[0]),
                )
                reached = (GRID[self.below] + self.outside / slopes - GRID[0]) / (GRID[1] - GRID[0])
            is_found = np.isfinite(reached) & (reached >= 0)
            places = np.where(is_found, np.minimum(reached, _LAST), places).astype(np.int64)
        found: np.ndarray = np.clip(places, np.minimum(self.below + 1, most), most)
        return found

    def touching(self) -> tuple[np.ndarray, np.ndarray]:
        """(S,) normal quantiles at which the distance is 0, and (S,) bool, whether the first place contains 0."""
        contains, never = ~(self.first > 0), self.above > _LAST
        above = np.minimum(self.above, _LAST)
        with np.errstate(invalid="ignore", divide="ignore"):  # both may be infinite where the first place contains 0
            steps = self.outside / (self.outside - self.inside)
            beyond = GRID[0] + (GRID[-1] - GRID[0]) * self.first / (self.first - self.outside)
        between = GRID[self.below] + steps * (GRID[above] - GRID[self.below])
        return np.where(contains, 0.0, np.where(never, beyond, between)), contains
