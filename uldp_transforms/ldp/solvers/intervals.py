"""Intervals of hashed values, whose variance depends on the estimated frequency, and functions for all intervals."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import special

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.mechanisms import Mechanism, count_intervals
from uldp_transforms.ldp.mechanisms.binomial_law import Confidence
from uldp_transforms.ldp.solvers.observation import OwnNoise, Solution

Numbers = float | np.ndarray
Ends = tuple[np.ndarray, np.ndarray]


def quantile(spare: float, confidence: Confidence) -> np.ndarray:
    """Quantile of the standard normal distribution, or of Student's with ``spare`` degrees of freedom if it is
    finite."""
    level = (1 + np.asarray(confidence)) / 2
    quantiles: np.ndarray = special.stdtrit(spare, level) if np.isfinite(spare) else special.ndtri(level)
    return quantiles


def reaching(low: np.ndarray, high: np.ndarray, numbers: Numbers) -> tuple[np.ndarray, np.ndarray]:
    """Intervals, extended where they do not contain the displayed numbers.

    The displayed number is often a shrunk or smoothed estimate, not the one on which the interval is based. Extending
    an interval keeps its coverage.
    """
    return np.minimum(low, numbers), np.maximum(high, numbers)


def cut(
    low: Numbers, high: Numbers, raw: Numbers, least: Numbers = 0.0, most: Numbers = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals of numbers that lie between ``least`` and ``most``, cut to this range.

    An estimate outside says no more than one at the nearer end. The half towards the range therefore stays as long as
    it is: it is measured from the nearer end, not from the estimate.

    Args:
        low, high: ends of intervals around ``raw``.
        raw: unbiased estimates, which may lie outside the range.
        least, most: ends of the range.

    Returns:
        low, high: within the range, with the shape of ``raw``.
    """
    nearest = np.clip(raw, least, most)
    low, high = np.minimum(low, low + (nearest - raw)), np.maximum(high, high + (nearest - raw))
    return np.clip(low, least, most), np.clip(high, least, most)


def moved_inside(
    intervals: Callable[..., tuple[np.ndarray, np.ndarray]],
    raw: np.ndarray,
    confidence: Confidence,
    strict: bool = False,
    ends: tuple[np.ndarray, ...] | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Estimates of shares, moved into [0, 1], with their intervals; those that are inside keep theirs.

    The half of an interval towards the range is at least that of the estimate itself, and at least that of an estimate
    of 0 or 1.

    Args:
        intervals: as ``Intervals``; called with ``at_edge`` only if an estimate is outside.
        raw: (S,) unbiased estimates.
        confidence, strict: as for ``Intervals``.
        ends: of the intervals, if they are known.

    Returns:
        nearest, low, high: (S,) each; the ends are not cut.
    """
    nearest = np.clip(raw, 0, 1)
    low, high = (end + (nearest - raw) for end in ends or intervals(confidence, strict))
    outside = nearest != raw
    if outside.any():
        at_edge = intervals(np.where(outside, confidence, np.nan), strict, at_edge=True)
        low = np.where(raw > 1, np.minimum(low, at_edge[0]), low)
        high = np.where(raw < 0, np.maximum(high, at_edge[1]), high)
    return nearest, low, high


def possible(
    intervals: Callable[..., tuple[np.ndarray, np.ndarray]], raw: np.ndarray, confidence: Confidence, strict: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals of shares (S,), cut to [0, 1].

    An estimate below 0 says no more than an estimate of 0, so its upper end is at least that of an estimate of 0. An
    estimate above 1 has a lower end of at most that of an estimate of 1. No end moves inwards. Arguments as for
    ``moved_inside``.
    """
    low, high = intervals(confidence, strict)
    if (raw < 0).any() or (raw > 1).any():
        _, moved_low, moved_high = moved_inside(intervals, raw, confidence, strict, (low, high))
        low, high = np.minimum(low, moved_low), np.maximum(high, moved_high)
    return np.clip(low, 0, 1), np.clip(high, 0, 1)


def score_intervals(
    solution: Solution, confidence: Confidence, strict: bool = False, at_edge: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Score intervals: all p whose distance from ``raw`` is acceptable under the variance of raw at frequency p.

    Args:
        solution: with S frequencies.
        confidence: of all intervals; may be (S,), with nan where no interval is needed.
        strict: give rare values this coverage too, with a binomial distribution of the same variance, and at the lower
            end with the distribution of collisions with frequent unlisted texts.
        at_edge: take frequencies outside [0, 1] as the nearer end of it.

    Returns:
        low, high: (S,), not clipped to [0, 1].
    """
    z, raw, own = quantile(solution.spare, confidence), solution.frequencies, solution.own
    raw = np.clip(raw, 0, 1) if at_edge else raw
    if own is None and not strict:
        half = z * np.sqrt(np.maximum(solution.variances, 0))
        return raw - half, raw + half
    own = own or _law_of_counts(raw, solution.variances)
    low, high = count_intervals.score_intervals(
        raw,
        own.null,
        own.slope,
        own.curvature,
        solution.jump,
        solution.counted,
        confidence=confidence,
        z=z,
        strict=strict,
    )
    if strict and solution.chance is not None:
        z = np.broadcast_to(z, raw.shape)
        low = np.minimum(low, solution.chance.lower_ends(raw - solution.jump / 2, own.slope, z))
    return low, high


def _law_of_counts(raw: np.ndarray, variances: np.ndarray) -> OwnNoise:
    """Variance of counts: jump (raw + 2 jump), as if two more reports had been counted, with slope ``jump``."""
    seen, zeros = np.maximum(raw, 0), np.zeros(len(raw))
    jumps = (np.sqrt(seen**2 + 8 * np.maximum(variances, 0)) - seen) / 4
    return OwnNoise(null=zeros, slope=jumps, curvature=zeros, least=zeros)


_NEARLY_ALL = 1 - 1e-9
"""Estimate above which a window is looked at alone: it may be above 1."""


class StackedIntervals(abc.ABC):
    """Intervals of one window, or of several windows: all arrays have the entries of the first one, then those of the
    second, and so on. The intervals of a window are the same, bit for bit, as alone."""

    @property
    @abc.abstractmethod
    def kind(self) -> int | None:
        """Equal for intervals that ``joined`` takes together; None if they are computed alone."""

    @classmethod
    @abc.abstractmethod
    def joined(cls, parts: Sequence[Any]) -> StackedIntervals:
        """The intervals of all windows of the parts, which have one class and one kind."""

    @abc.abstractmethod
    def __call__(self, confidence: Confidence, strict: bool = False, at_edge: bool = False) -> Ends:
        """See ``Intervals``."""


@dataclasses.dataclass(frozen=True, eq=False)
class SymbolIntervals(StackedIntervals):
    """The mechanism's own intervals of its symbols.

    An estimate of 0 is that of the counts which the nearest distribution lets expect, and an estimate of 1 that of the
    counts which are expected if everybody has the symbol.

    Attributes:
        mechanism: of K symbols.
        counts: of W windows, one row each.
        plausible: (W, K), the nearest distributions.
    """

    mechanism: Mechanism
    counts: CohortCounts
    plausible: np.ndarray

    @property
    def kind(self) -> int | None:
        return id(self.mechanism)

    @classmethod
    def joined(cls, parts: Sequence[SymbolIntervals]) -> SymbolIntervals:
        num_reports, cells = (
            np.concatenate([getattr(one.counts, name) for one in parts]) for name in ("num_reports", "cells")
        )
        plausible = np.concatenate([one.plausible for one in parts])
        return cls(parts[0].mechanism, CohortCounts(num_reports, cells), plausible)

    def __call__(self, confidence: Confidence, strict: bool = False, at_edge: bool = False) -> Ends:
        shape = self.plausible.shape
        if shape[0] == 1:
            return self._of_window(0, confidence, strict, at_edge)
        if not at_edge:
            levels = np.reshape(confidence, shape) if np.ndim(confidence) else confidence
            low, high = self.mechanism.intervals_of_windows(self.counts, self.plausible, levels, strict)
            return low.reshape(-1), high.reshape(-1)
        levels, ends = np.broadcast_to(confidence, self.plausible.size).reshape(shape), np.full((2, *shape), np.nan)
        some = np.flatnonzero(~np.isnan(levels).all(axis=1))
        if len(some):
            counts = CohortCounts(self.counts.num_reports[some], self.counts.cells[some])
            ends[:, some] = self.mechanism.intervals_at_windows(
                self.plausible[some], counts.num_reports, np.ceil, levels[some], strict
            )
            for window in some[(self.mechanism.invert(counts) > _NEARLY_ALL).any(axis=1)].tolist():
                ends[0, window] = self._if_everybody(window, ends[0, window], levels[window], strict)
        return ends[0].reshape(-1), ends[1].reshape(-1)

    def _of_window(self, window: int, confidence: Confidence, strict: bool, at_edge: bool) -> Ends:
        rows, plausible, mechanism = slice(window, window + 1), self.plausible[window], self.mechanism
        counts = CohortCounts(self.counts.num_reports[rows], self.counts.cells[rows])
        if not at_edge:
            return mechanism.intervals(counts, plausible, confidence, strict)
        low, high = mechanism.intervals_at(plausible, counts.total, np.ceil, confidence, strict)
        return self._if_everybody(window, low, confidence, strict), high

    def _if_everybody(self, window: int, low: np.ndarray, confidence: Confidence, strict: bool) -> np.ndarray:
        """Lower ends (K,) of a window at the edge: of symbols with an estimate above 1, those if everybody has it."""
        rows = slice(window, window + 1)
        counts = CohortCounts(self.counts.num_reports[rows], self.counts.cells[rows])
        above = self.mechanism.invert(counts)[0] > 1
        if not above.any():
            return low
        levels = np.where(above, confidence, np.nan)
        return np.where(above, self.mechanism.lower_ends_of_everybody(counts.total, levels, strict), low)


@dataclasses.dataclass(frozen=True, eq=False)
class PickedIntervals(StackedIntervals):
    """Some of the intervals of ``size`` unknowns: those at the positions ``chosen``."""

    intervals: Callable[..., Ends]
    chosen: np.ndarray
    size: int

    @property
    def kind(self) -> int | None:
        return self.intervals.kind if isinstance(self.intervals, StackedIntervals) else None

    @classmethod
    def joined(cls, parts: Sequence[PickedIntervals]) -> PickedIntervals:
        first = np.cumsum([0, *(one.size for one in parts)]).tolist()
        chosen = np.concatenate([one.chosen + start for one, start in zip(parts, first)])
        return cls(_joined([one.intervals for one in parts]), chosen, first[-1])

    def __call__(self, confidence: Confidence, strict: bool = False, at_edge: bool = False) -> Ends:
        of_all = confidence
        if np.ndim(confidence):
            of_all = np.full(self.size, np.nan)
            of_all[self.chosen] = confidence
        low, high = self.intervals(of_all, strict, at_edge)
        return low[self.chosen], high[self.chosen]


@dataclasses.dataclass(frozen=True, eq=False)
class ShownIntervals(StackedIntervals):
    """Intervals of the requested values, cut to [0, 1] (see ``possible``) and extended to contain the displayed shares.

    Attributes:
        unclipped: intervals of S values.
        raw: (S,) unbiased frequencies.
        frequencies: (S,) displayed shares.
    """

    unclipped: Callable[..., Ends]
    raw: np.ndarray
    frequencies: np.ndarray

    @property
    def kind(self) -> int | None:
        return self.unclipped.kind if isinstance(self.unclipped, StackedIntervals) else None

    @classmethod
    def joined(cls, parts: Sequence[ShownIntervals]) -> ShownIntervals:
        raw, frequencies = (np.concatenate([getattr(one, name) for one in parts]) for name in ("raw", "frequencies"))
        return cls(_joined([one.unclipped for one in parts]), raw, frequencies)

    def __call__(self, confidence: Confidence, strict: bool = False, at_edge: bool = False) -> Ends:
        return reaching(*possible(self.unclipped, self.raw, confidence, strict), self.frequencies)


def _joined(parts: Sequence[Any]) -> StackedIntervals:
    joined: StackedIntervals = type(parts[0]).joined(parts)
    return joined
