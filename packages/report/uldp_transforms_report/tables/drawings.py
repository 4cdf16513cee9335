"""Drawn columns: estimates with their intervals on one axis, one row each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from uldp_transforms.rows.figures.figure import SUM, Figure
from uldp_transforms_report.tables.axis import Axis, axis_of_differences, axis_of_numbers, axis_of_shares
from uldp_transforms_report.tables.columns import DRAWN, Cell, Column, Mark, mark_of
from uldp_transforms_report.tables.smoothed_columns import second_ends, second_marks

TOLD, UNTOLD, TRUTH, GROUP = "told", "untold", "truth", "group"
"""Kinds of marks: an estimate that is told apart from 0, one that is not, the truth, and the estimate of a group."""

_UPPER = 36  # percent of the height of a row with two marks


def drawn(axis: Axis, marks: Iterable[Sequence[Mark]]) -> Column:
    return Column(title="picture", fields="-", kind=DRAWN, cells=[Cell(marks=own) for own in marks], axis=axis)


def drawn_shares(figures: Sequence[Figure]) -> Column:
    """Shares from 0, with their truth and with the estimate over neighbouring windows."""
    ends = [end for one in figures for end in (one.high, one.value, one.truth, *second_ends(one))]
    axis = axis_of_shares(ends)
    return drawn(axis, (_marks(one, axis, TOLD if one.told_apart else UNTOLD) for one in figures))


def drawn_numbers(figures: Sequence[Figure], are_drawn: Sequence[bool]) -> Column:
    """Numbers of one unit, with the interval without smoothness; other rows have no picture."""
    own = [one for one, is_drawn in zip(figures, are_drawn) if is_drawn]
    axis = axis_of_numbers(end for one in own for end in (one.value, one.low, one.high, *second_ends(one)))
    return drawn(axis, (_marks(one, axis, TOLD) if is_drawn else () for one, is_drawn in zip(figures, are_drawn)))


def drawn_differences(figures: Sequence[Figure], are_told: Sequence[bool], are_drawn: Sequence[bool]) -> Column:
    """Differences of one unit around 0; a difference that is unknown has a mark without a place."""
    own = [one for one, is_drawn in zip(figures, are_drawn) if is_drawn]
    ends = (end for one in own for end in (one.value, one.low, one.high))
    axis = axis_of_differences(ends, is_share=bool(own) and own[0].is_share)
    marks = (
        [interval(one, axis, TOLD if is_told else UNTOLD)] if is_drawn else ()
        for one, is_told, is_drawn in zip(figures, are_told, are_drawn)
    )
    return drawn(axis, marks)


def drawn_together(figures: Sequence[Figure]) -> list[bool]:
    """Whether each figure is on the one axis of a table: shares if all are, otherwise numbers of one person."""
    if all(one.is_share for one in figures):
        return [True] * len(figures)
    return [not one.is_share and one.name != SUM for one in figures]


def interval(figure: Figure, axis: Axis, kind: str, at: float = 50) -> Mark:
    """The estimate of a figure with its interval."""
    return mark_of(axis, kind, figure.value, figure.low, figure.high, at)


def _marks(one: Figure, axis: Axis, kind: str) -> list[Mark]:
    """The estimate, a thin second one below it, and the truth."""
    second = second_marks(one, axis)
    truth = [] if one.truth is None else [Mark(kind=TRUTH, value=axis.place(one.truth))]
    return [interval(one, axis, kind, _UPPER if second else 50), *second, *truth]
