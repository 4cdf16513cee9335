"""Estimates over neighbouring windows, and intervals without smoothness: their columns and their marks."""

from __future__ import annotations

from collections.abc import Sequence

from uldp_transforms.rows.figures.figure import Figure
from uldp_transforms.rows.figures.figure_words import NumberFormat
from uldp_transforms_report.tables.axis import Axis
from uldp_transforms_report.tables.columns import Column, Mark, mark_of, spans, values

SMOOTHED, SURE = "smoothed", "sure"
"""Kinds of marks."""

_LOWER = 70  # percent of the height of a row with two marks


def second_columns(figures: Sequence[Figure], forms: Sequence[NumberFormat]) -> list[Column]:
    """The estimate over neighbouring windows and its interval; none if no row has one."""
    if all(one.smoothed is None for one in figures):
        return []
    ends = ((one.smoothed_low, one.smoothed_high, one.smoothed) for one in figures)
    return [
        values("smoothed", "smoothed", (one.smoothed for one in figures), forms),
        spans("its interval", "smoothed_low smoothed_high", ends, forms),
    ]


def sure_column(figures: Sequence[Figure], forms: Sequence[NumberFormat]) -> Column:
    """The interval that does not depend on smoothness."""
    ends = ((one.sure_low, one.sure_high, None) for one in figures)
    return spans("without smoothness", "sure_low sure_high", ends, forms)


def second_ends(figure: Figure) -> list[float | None]:
    """The numbers that the axis of a figure also needs."""
    return [figure.smoothed, figure.smoothed_low, figure.smoothed_high, figure.sure_low, figure.sure_high]


def second_marks(figure: Figure, axis: Axis) -> list[Mark]:
    """The thin mark below that of a figure: the smoothed one, or the interval without smoothness if it is another."""
    if figure.smoothed is not None:
        return [mark_of(axis, SMOOTHED, figure.smoothed, figure.smoothed_low, figure.smoothed_high, _LOWER)]
    if (figure.sure_low, figure.sure_high) in ((figure.low, figure.high), (None, None)):
        return []
    return [mark_of(axis, SURE, None, figure.sure_low, figure.sure_high, _LOWER)]
