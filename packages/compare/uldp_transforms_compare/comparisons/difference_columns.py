"""Differences between two sides, of shares or of figures of numbers: what every comparison consists of."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from uldp_transforms.rows.figures.compared_figures import Ends


class Subject(NamedTuple):
    """What differs: the share of a value, a figure of numbers, or a sum over chosen values.

    Attributes:
        value: the value, or the name of the sum; None for a figure of numbers.
        figure: see ``compared_figures``; None for the share of a value.
        at: the limit, or q; None for others.
    """

    value: str | None = None
    figure: str | None = None
    at: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Difference:
    """A share or figure of the first side minus that of the second.

    Attributes:
        value, figure, at: as in ``Subject``.
        difference: unbiased, of shares and means; of quantiles, where the unbiased distribution functions reach q.
        low, high: ends of its interval. None where it is not bounded: for a quantile that may be in a clamped end bin,
            or where nearly nobody may have a number.
        p_value: 1 minus the largest confidence at which the interval does not contain 0.
        noticeable: difference that would have a p-value below .05 in at least about 80 of 100 cases; None where the
            interval is not bounded.
        lift, lift_low, lift_high: ratio of two shares and the ends of its interval; None for figures other than
            ``SUM``, and where the second share may be 0.
        display_difference, display_low, display_high: of smooth estimates of numbers; None without smooth posteriors.
    """

    value: str | None
    figure: str | None
    at: float | None
    difference: float
    low: float | None
    high: float | None
    p_value: float
    noticeable: float | None
    lift: float | None = None
    lift_low: float | None = None
    lift_high: float | None = None
    display_difference: float | None = None
    display_low: float | None = None
    display_high: float | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Differences:
    """D differences between two sides.

    Attributes:
        subjects: what differs.
        columns: (D,) each field of ``Difference`` that is a number; nan or infinite where it is None.
        interval: function from a confidence to the ends (D,), (D,) of the intervals.
    """

    subjects: Sequence[Subject]
    columns: Mapping[str, np.ndarray]
    interval: Callable[[float], Ends]

    def __iter__(self) -> Iterator[Difference]:
        for subject, *numbers in zip(self.subjects, *map(known, self.columns.values())):
            yield Difference(**subject._asdict(), **dict(zip(self.columns, numbers)))

    def from_place(self, first: int) -> Differences:
        """The differences without those before a place."""

        def interval(confidence: float) -> Ends:
            low, high = self.interval(confidence)
            return low[first:], high[first:]

        columns = {name: column[first:] for name, column in self.columns.items()}
        return Differences(self.subjects[first:], columns, interval)

    def selected(self, found: np.ndarray, confidence: float) -> Ends:
        """Ends of the intervals at another confidence of the differences that are marked in ``found`` (D,); nan for the
        others."""
        low, high = self.interval(confidence) if found.any() else (np.nan, np.nan)
        return np.where(found, low, np.nan), np.where(found, high, np.nan)


def known(column: np.ndarray) -> list[float | None]:
    """The numbers of a column; None where it is nan or infinite."""
    return [number if finite else None for number, finite in zip(column.tolist(), np.isfinite(column).tolist())]
