"""Figures of numbers as plain data, from the field ``numbers`` of rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from uldp_transforms.rows.figures.figure import (
    COLUMNS,
    SUM,
    Figure,
    Trend,
    figures_of,
    sum_figures_of,
    table_of,
    trend_of,
)
from uldp_transforms.rows.figures.figure_words import advice_on_few_reports
from uldp_transforms_report.differences import Panel
from uldp_transforms_report.levels import USUAL, Levels
from uldp_transforms_report.tables.axis import scales_of

Row = Mapping[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bar:
    """One bin of the curve: its share with its band, and edges for drawing."""

    figure: Figure
    begin: float
    end: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class NumberPart:
    """What a page says about the numbers of a collection.

    Attributes:
        unit: unit of the numbers; may be empty.
        is_smooth: whether figures are smooth estimates.
        figures: those of the latest window with numbers.
        bars: its curve; empty if the row has none.
        trends: of the mean and the quantiles; empty if there is one window.
        scales: the scale of each of the figures, which are drawn on one axis if it is the same.
        num_reports: of the latest window with numbers; None if unknown.
        levels: confidences of the intervals of the figures; ``trend_levels`` of all windows.
    """

    unit: str
    is_smooth: bool
    figures: Sequence[Figure]
    bars: Sequence[Bar]
    trends: Sequence[Trend]
    scales: Sequence[str] = ()
    num_reports: int | None = None
    levels: Levels = USUAL
    trend_levels: Levels = USUAL

    def beside(self, trend: Trend) -> list[Trend]:
        """The trends on the scale of this one."""
        scales = {figure.name: scale for figure, scale in zip(self.figures, self.scales)}
        return [one for one in self.trends if scales[one.figure.name] == scales[trend.figure.name]]

    @property
    def advice(self) -> str:
        """What to know about smooth intervals of few reports; empty if there are none."""
        return advice_on_few_reports(self.num_reports, self.is_smooth)


def numbers_of(rows: Sequence[Row], unit: str) -> NumberPart | None:
    """The part about W rows in order of time; None if the latest row with estimates has no figures of numbers."""
    return _part_of(rows, unit, [figures_of(row, unit) for row in rows], scales_of, _has_trend, _curve)


def sums_part(rows: Sequence[Row]) -> NumberPart | None:
    """The part about sums over chosen values, as that about numbers; None if the latest row with estimates has none."""
    return _part_of(rows, "", [sum_figures_of(row) for row in rows], _scales_of_sums, lambda _: True)


def _part_of(
    rows: Sequence[Row],
    unit: str,
    figures: Sequence[Sequence[Figure]],
    scales: Callable[[Sequence[Figure]], Sequence[str]],
    has_trend: Callable[[Figure], bool],
    curve_of: Callable[[Row], Sequence[Row]] = lambda _: (),
) -> NumberPart | None:
    """The part about the figures of W rows in order of time."""
    told = [(row, of) for row, of in zip(rows, figures) if row["status"] == "ok"]
    if not told or not told[-1][1]:
        return None
    (latest, shown), by_window = told[-1], [{one.name: one for one in of} for of in figures]
    return NumberPart(
        unit=unit,
        is_smooth=bool(curve_of(latest)),
        figures=shown,
        bars=_bars(curve_of(latest)),
        trends=[
            trend_of(figure, table_of([found.get(figure.name) for found in by_window]))
            for figure in shown
            if has_trend(figure) and len(rows) > 1
        ],
        scales=scales(shown),
        num_reports=latest.get("num_reports"),
        levels=Levels.of([latest]),
        trend_levels=Levels.of(row for row, _ in told),
    )


def figure_panel(sides: Sequence[str], rows: Sequence[Mapping[str, Any]], unit: str) -> Panel | None:
    """The figures of windows or groups, for comparing two of them; None if fewer than two rows have some.

    Args:
        sides: names of the windows or groups.
        rows: their rows.
        unit: unit of the numbers.
    """
    by_side = {side: {one.name: one for one in figures_of(row, unit)} for side, row in zip(sides, rows)}
    told = {side: figures for side, figures in by_side.items() if figures}
    if len(told) < 2:
        return None
    last = [*told.values()][-1]
    found = np.array([table_of([own.get(name) for name in last]) for own in told.values()])
    tables = {name: found[:, :, COLUMNS.index(name)] for name in ("value", "low", "high")}
    is_share = [one.is_share for one in last.values()]
    inner = np.full_like(tables["value"], np.nan)
    return Panel(
        values=[*last],
        is_share=is_share,
        sides=[*told],
        inner=inner,
        is_of_figures=True,
        levels=Levels.of(row for side, row in zip(sides, rows) if side in told),
        **tables,
    )


def _curve(row: Row) -> Sequence[Row]:
    return (row.get("numbers") or {}).get("curve") or ()


def _scales_of_sums(figures: Sequence[Figure]) -> list[str]:
    """Sums with weights have units that the job does not know: each has its own scale."""
    return ["share" if one.is_share else f"sum {one.name}" for one in figures]


def _has_trend(figure: Figure) -> bool:
    return not figure.is_share and figure.name != SUM


def _bars(curve: Sequence[Mapping[str, Any]]) -> list[Bar]:
    """The bins; the two open ones are drawn with the widths of their neighbours."""
    if len(curve) < 3:
        return []
    low, high = [one["low"] for one in curve], [one["high"] for one in curve]
    low[0] = 2 * high[0] - high[1]
    high[-1] = 2 * low[-1] - low[-2]
    names = [f"{one['low']:g} to {one['high']:g}" for one in curve[1:-1]]
    return [
        Bar(
            figure=Figure(
                name=name, is_share=True, value=one["share"], low=one["display_low"], high=one["display_high"]
            ),
            begin=begin,
            end=end,
        )
        for name, begin, end, one in zip(
            [f"below {curve[0]['high']:g}", *names, f"from {curve[-1]['low']:g}"], low, high, curve
        )
    ]
