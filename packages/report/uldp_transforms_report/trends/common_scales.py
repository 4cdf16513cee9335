"""Scales of charts that stand beside each other: one for all of them, with round numbers on the axis."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

import numpy as np

_MOST_STEPS = 4  # between the ends of the data
_ROUND = (1, 2, 5, 10)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scale:
    """The vertical axis of a chart.

    Attributes:
        low, high: its ends, multiples of ``step``.
        step: distance of its labels.
    """

    low: float
    high: float
    step: float

    @property
    def ticks(self) -> list[float]:
        """The numbers with a label, from ``low`` to ``high``."""
        number = round((self.high - self.low) / self.step)
        return [float(f"{self.low + at * self.step:.12g}") for at in range(number + 1)]

    @property
    def ends(self) -> str:
        """The ends as the page's script reads them."""
        return f"{self.low:.12g} {self.high:.12g}"


def scale_of(columns: Iterable[np.ndarray], is_share: bool) -> Scale:
    """The scale that contains all numbers.

    Args:
        columns: arrays of any shapes; NaN is not drawn.
        is_share: whether the axis begins at 0.
    """
    drawn = np.concatenate([[0.0] if is_share else [], *map(np.ravel, columns)])
    drawn = drawn[np.isfinite(drawn)]
    low, high = (float(drawn.min()), float(drawn.max())) if len(drawn) else (0.0, 1.0)
    step = _step((high - low) or abs(high) or 1.0)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return Scale(low=first * step, high=max(last, first + 1) * step, step=step)


def _step(length: float) -> float:
    least = length / _MOST_STEPS
    power: float = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in _ROUND if factor * power >= least * (1 - 1e-9))
