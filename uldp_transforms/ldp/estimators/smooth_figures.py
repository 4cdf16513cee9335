"""Figures of numbers from a smooth posterior: the curve with its band, a mean, shares above limits, quantiles."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from uldp_transforms.ldp.estimators.log_smooth import LogSmooth
from uldp_transforms.ldp.solvers.intervals import cut, reaching


class Smooth(NamedTuple):
    """A smooth estimate and its interval; an end is None where it lies in a clamped end bin."""

    display_value: float | None = None
    display_low: float | None = None
    display_high: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class CurveBin:
    """One bin of the smooth curve, among the people whose value is a number.

    Attributes:
        low, high: edges of the bin; None where it is open because numbers are clamped.
        share: smooth share of people in the bin.
        display_low, display_high: interval of that share, in [0, 1].
    """

    low: float | None
    high: float | None
    share: float
    display_low: float
    display_high: float


@dataclasses.dataclass(frozen=True, eq=False)
class SmoothFigures:
    """Figures of a distribution over bins.

    Attributes:
        posterior: of the B bins.
        edges: (B + 1,) float64, increasing.
        z: half of an interval's length, in standard deviations.
    """

    posterior: LogSmooth
    edges: np.ndarray
    z: float

    def mean(self, centres: np.ndarray) -> Smooth:
        """The mean of the (B,) centres of people's bins."""
        first, last = centres[[0, -1]].tolist()
        return self._sum(centres, first, last, middle=float(centres.mean()))

    def share_above(self, weights: np.ndarray) -> Smooth:
        """The share of people in bins with the (B,) weights, in [0, 1]."""
        return self._sum(weights, 0.0, 1.0)

    def quantile(self, q: float) -> Smooth:
        """The number below which a share q lies, and where the ends of the interval of the distribution function
        reach q."""
        below, half = self._below
        return crossing_of(q, self.edges, below, below - half, below + half)

    def curve(self) -> tuple[CurveBin, ...]:
        """The share of each bin, with a pointwise band."""
        shares, deviations = self.posterior.of(np.eye(len(self.edges) - 1))
        half = self.z * deviations
        low, high = (end.tolist() for end in reaching(*cut(shares - half, shares + half, shares), shares))
        inner: list[float | None] = [None, *self.edges[1:-1].tolist(), None]
        return tuple(
            CurveBin(low=inner[place], high=inner[place + 1], share=share, display_low=low[place], display_high=end)
            for place, (share, end) in enumerate(zip(shares.tolist(), high))
        )

    @property
    def _below(self) -> tuple[np.ndarray, np.ndarray]:
        """(B + 1,) shares below each edge, and the halves of their intervals; the ends are certain."""
        values, deviations = self.posterior.of(np.tril(np.ones((len(self.edges) - 2, len(self.edges) - 1))))
        ends = np.concatenate([[0.0], values, [1.0]]), np.concatenate([[0.0], self.z * deviations, [0.0]])
        return ends

    def _sum(self, weights: np.ndarray, least: float, most: float, middle: float = 0.0) -> Smooth:
        """Computed about ``middle``: squares of numbers far from 0 would hide their differences."""
        value, deviation = (float(number) for number in self.posterior.of(weights - middle))
        value, half = value + middle, self.z * deviation
        low, high = reaching(*cut(value - half, value + half, value, least, most), value)
        return Smooth(value, float(low), float(high))


def crossing_of(q: float, edges: np.ndarray, below: np.ndarray, low: np.ndarray, high: np.ndarray) -> Smooth:
    """The number at which a distribution function reaches q, linear within bins, and those at which its interval does.

    Args:
        q: in (0, 1).
        edges: (B + 1,) float64, increasing.
        below: (B + 1,) shares below the edges, not decreasing.
        low, high: (B + 1,) ends of their intervals, which need not be monotone.
    """
    upper, lower = np.maximum.accumulate(high), np.minimum.accumulate(low[::-1])[::-1]
    value, first, last = (float(np.interp(q, shares, edges)) for shares in (below, upper, lower))
    return Smooth(value, first if first >= edges[1] else None, last if last <= edges[-2] else None)
