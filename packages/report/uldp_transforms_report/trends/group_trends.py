"""Figures of the largest groups over the windows, figure by figure."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from uldp_transforms.rows.figures.figure import Figure, Trend, figures_of, share_of, table_of, trend_of

VALUES = 3
"""Maximum number of figures of which groups have charts: shares of the first values of the page, or of numbers."""

MOST = 12
"""Maximum number of groups with charts: those with the most reports."""

_FEWEST = 2  # minimum number of windows with numbers of a group

Row = Mapping[str, Any]
Entries = Callable[[Iterable[Row]], Iterable[tuple[Row, Sequence[Row]]]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupTrends:
    """One figure of several groups over W windows.

    Attributes:
        name: the value, or the name of the figure.
        trends: group -> its trend over the windows, in order of name; each is estimated from its own reports.
        left_out: number of groups without a chart.
    """

    name: str
    trends: Mapping[str, Trend]
    left_out: int


def group_trends_of(
    values: Sequence[str], unit: str, starts: Sequence[str | None], rows: Sequence[Row], entries: Entries
) -> list[GroupTrends]:
    """The figures of groups over the windows of everybody; empty without groups that have numbers in two of them.

    Args:
        values: the values that the page shows, the most important first.
        unit: unit of numbers.
        starts: beginnings of the windows.
        rows: the valid row of each window and group.
        entries: reads the entries of rows.
    """
    at_start = {start: at for at, start in enumerate(starts)}
    told = [row for row in rows if row["status"] == "ok" and row["window_start"] in at_start]
    largest = _largest(told)
    found: dict[str, dict[str, dict[int, Figure]]] = defaultdict(lambda: defaultdict(dict))
    for row, given in entries([row for row in told if row["group"] in largest]):
        for figure in _figures(row, given, values[:VALUES], unit):
            found[figure.name][row["group"]][at_start[row["window_start"]]] = figure
    groups = {row["group"] for row in rows}
    parts = []
    for name in sorted(found, key=[*values[:VALUES], *found].index):
        trends = {group: _trend(found[name][group], len(starts)) for group in sorted(found[name])}
        trends = {group: trend for group, trend in trends.items() if np.isfinite(trend.value).sum() >= _FEWEST}
        parts.append(GroupTrends(name=name, trends=trends, left_out=len(groups) - len(trends)))
    return [part for part in parts if part.trends]


def _largest(rows: Sequence[Row]) -> set[str]:
    reports: dict[str, int] = defaultdict(int)
    for row in rows:
        reports[row["group"]] += row["num_reports"] or 0
    return set(sorted(reports, key=lambda group: (-reports[group], group))[:MOST])


def _figures(row: Row, given: Sequence[Row], values: Sequence[str], unit: str) -> list[Figure]:
    """Figures of numbers if the row has any, else shares of the values."""
    if figures := [figure for figure in figures_of(row, unit) if not figure.is_share]:
        return figures[:VALUES]
    return [share_of(entry, single=True) for entry in given if entry["value"] in values]


def _trend(figures: Mapping[int, Figure], number: int) -> Trend:
    return trend_of(figures[max(figures)], table_of([figures.get(at) for at in range(number)]))
