"""Drawn columns: estimates with their intervals on one axis, one row each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from uldp_transforms.rows.figures.figure import Figure
from uldp_transforms_report.tables.axis import Axis, axis_of_differences, axis_of_numbers, axis_of_shares, scales_of
from uldp_transforms_report.tables.columns import DRAWN, Cell, Column, Mark, mark_of
from uldp_transforms_report.tables.smoothed_columns import second_ends, second_marks

TOLD, UNTOLD, TRUTH, GROUP = "told", "untold", "truth", "group"
"""Kinds of marks: an estimate that is told apart from 0, one that is not, the truth, and the estimate of a group."""

_UPPER = 36  # percent of the height of a row with two marks


def drawn(axes: Sequence[Axis], marks: Iterable[Sequence[Mark]]) -> Column:
    """Pictures of R rows on one axis, or each on its own.

    Args:
        axes: (R,) the axis of each row.
        marks: (R,) what is drawn.
    """
    common = axes[0] if axes and all(axis == axes[0] for axis in axes) else None
    cells = [Cell(marks=own, axis=None if common else axis) for own, axis in zip(marks, axes)]
    return Column(title="picture", fields="-", kind=DRAWN, cells=cells, axis=common)


def drawn_on_scales(
    figures: Sequence[Figure],
    scales: Sequence[str],
    axis_of: Callable[[Sequence[Figure]], Axis],
    marks_of: Callable[[int, Axis], Sequence[Mark]],
) -> Column:
    """Pictures of R rows, those of one scale on one axis.

    Args:
        figures: (R,) figures of the rows.
        scales: (R,) names of their scales, as ``scales_of`` gives them.
        axis_of: the axis of the figures of one scale.
        marks_of: what is drawn of the row at a place.
    """
    by_scale = {
        scale: axis_of([one for one, own in zip(figures, scales) if own == scale]) for scale in dict.fromkeys(scales)
    }
    axes = [by_scale[scale] for scale in scales]
    return drawn(axes, (marks_of(at, axis) for at, axis in enumerate(axes)))


def drawn_shares(figures: Sequence[Figure]) -> Column:
    """Shares from 0, with their truth and with the estimate over neighbouring windows."""
    return drawn_figures(figures, scales_of(figures))


def drawn_figures(figures: Sequence[Figure], scales: Sequence[str]) -> Column:
    """Shares from 0, and numbers of each scale between their ends, with the interval without smoothness."""

    def marks(at: int, axis: Axis) -> Sequence[Mark]:
        is_untold = figures[at].is_share and not figures[at].told_apart
        return _marks(figures[at], axis, UNTOLD if is_untold else TOLD)

    return drawn_on_scales(figures, scales, axis_of_figures, marks)


def axis_of_figures(figures: Sequence[Figure]) -> Axis:
    """The axis of estimates of one scale."""
    are_shares = all(one.is_share for one in figures)
    ends = [
        end
        for one in figures
        for end in (one.value, one.high, *second_ends(one), *((one.truth,) if are_shares else (one.low,)))
    ]
    return axis_of_shares(ends) if are_shares else axis_of_numbers(ends)


def drawn_differences(
    figures: Sequence[Figure], are_told: Sequence[bool], scales: Sequence[str] | None = None
) -> Column:
    """Differences around 0, those of one scale on one axis; one that is unknown has a mark without a place."""

    def axis_of(own: Sequence[Figure]) -> Axis:
        return axis_of_differences((end for one in own for end in (one.value, one.low, one.high)), own[0].is_share)

    def marks(at: int, axis: Axis) -> Sequence[Mark]:
        return [interval(figures[at], axis, TOLD if are_told[at] else UNTOLD)]

    return drawn_on_scales(figures, scales or scales_of(figures), axis_of, marks)


def interval(figure: Figure, axis: Axis, kind: str, at: float = 50) -> Mark:
    """The estimate of a figure with its interval."""
    return mark_of(axis, kind, figure.value, figure.low, figure.high, at)


def _marks(one: Figure, axis: Axis, kind: str) -> list[Mark]:
    """The estimate, a thin second one below it, and the truth."""
    second = second_marks(one, axis)
    truth = [] if one.truth is None else [Mark(kind=TRUTH, value=axis.place(one.truth))]
    return [interval(one, axis, kind, _UPPER if second else 50), *second, *truth]
