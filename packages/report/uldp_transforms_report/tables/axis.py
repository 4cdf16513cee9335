"""The axis of a drawn column: from numbers to places in percent of its width, with ticks for its head."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

from uldp_transforms.rows.figures.figure import SUM, Figure

_MOST_STEPS = 5
_STEPS = (1, 2, 5, 10)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Axis:
    """A linear scale.

    Attributes:
        low, high: ends of the axis.
        is_share: whether its labels are percentages; those of differences are percentage points.
        is_signed: whether it is of differences, with 0 in the middle.
    """

    low: float
    high: float
    is_share: bool
    is_signed: bool = False

    def place(self, number: float | None) -> float | None:
        """Place of a number in percent of the width, inside of it; None if the number is unknown."""
        if number is None or not math.isfinite(number):
            return None
        return round(min(max(100 * (number - self.low) / (self.high - self.low), 0), 100), 2)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Place and text of each tick: at most six, at multiples of 1, 2 or 5 times a power of ten."""
        scale = 100 if self.is_share else 1
        step = step_of(scale * (self.high - self.low))
        first, last = (scale * self.low / step, scale * self.high / step)
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        sign, unit = "+" if self.is_signed else "", " %" if self.is_share and not self.is_signed else ""
        found = []
        for number in range(math.ceil(first - 1e-9), math.floor(last + 1e-9) + 1):
            text = f"{step * number:{sign if number else ''},.{digits}f}{unit}"
            place = self.place(step * number / scale)
            assert place is not None
            found.append((place, text))
        return found

    @property
    def ends(self) -> list[tuple[float, str]]:
        """The first and the last tick."""
        ticks = self.ticks
        return [ticks[0], ticks[-1]] if len(ticks) > 1 else ticks

    @property
    def grid(self) -> str:
        """The lines of the grid as a path in a box of 100 by 1."""
        return "".join(f"M{place:g} 0V1" for place, _ in self.ticks)


def step_of(length: float) -> float:
    """The smallest of 1, 2 or 5 times a power of ten that divides a length into at most five steps."""
    power = 10.0 ** math.floor(math.log10(length / _MOST_STEPS))
    return next(factor * power for factor in _STEPS if factor * power >= length / _MOST_STEPS * (1 - 1e-9))


def scale_of(name: str, is_share: bool) -> str:
    """The scale of a figure: that of shares, of numbers of one person, or of sums over all people."""
    return "share" if is_share else SUM if name == SUM else "number"


def scales_of(figures: Sequence[Figure]) -> list[str]:
    """(R,) the scales of figures; those of one scale are drawn on one axis."""
    return [scale_of(one.name, one.is_share) for one in figures]


def axis_of_shares(ends: Iterable[float | None]) -> Axis:
    """From 0 to the largest number."""
    return Axis(low=0, high=max(_known(ends), default=0) or 1, is_share=True)


def axis_of_numbers(ends: Iterable[float | None]) -> Axis:
    """From the smallest to the largest number."""
    known = _known(ends)
    low, high = min(known, default=0), max(known, default=0)
    return Axis(low=low, high=high if high > low else low + 1, is_share=False)


def axis_of_differences(ends: Iterable[float | None], is_share: bool) -> Axis:
    """As far on both sides of 0 as the number that is farthest from it."""
    most = max(map(abs, _known(ends)), default=0) or 1
    return Axis(low=-most, high=most, is_share=is_share, is_signed=True)


def _known(ends: Iterable[float | None]) -> list[float]:
    return [number for number in ends if number is not None and math.isfinite(number)]
