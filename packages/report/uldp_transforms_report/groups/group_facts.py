"""The groups of a window or of the whole period, by value, from rows of ``uldp estimate`` and ``uldp reestimate``."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from uldp_transforms.rows.figures.figure import Figure, figures_of, share_of, sum_figures_of
from uldp_transforms.rows.figures.figure_words import NumberFormat, format_of
from uldp_transforms_report.differences import Panel, PanelRows
from uldp_transforms_report.levels import Levels
from uldp_transforms_report.numbers.number_facts import figure_panel

VALUES = 10
"""Maximum number of values of which groups are shown: those at the top of the page's table."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupLine:
    """A value in a group.

    Attributes:
        group: such as ``country=DE,arm=new``.
        figure: the share of the value, or a figure of numbers.
        num_reports: of the group.
        form: how it is written; equal for all shares, and for one figure in all groups.
    """

    group: str
    figure: Figure
    num_reports: int
    form: NumberFormat


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupPart:
    """What a page says about the groups of a collection.

    Attributes:
        window: the latest window that has groups with numbers, or the whole period, as its name for readers.
        lines: by value, then by group.
        left_out: number of lines that are not shown.
        number: number of groups with numbers.
        without: status of groups without numbers -> their names.
        panel: numbers for comparing two groups; None if fewer than two have numbers.
        levels: confidences of the intervals.
    """

    window: str
    lines: Sequence[GroupLine]
    left_out: int
    number: int
    without: Mapping[str, Sequence[str]]
    panel: Panel | None
    levels: Levels

    @property
    def names(self) -> set[str]:
        """All groups, with and without numbers."""
        told = {line.group for line in self.lines}.union(*self.without.values())
        return told.union(self.panel.sides) if self.panel else told


Row = Mapping[str, Any]
Entries = Callable[[Iterable[Row]], Iterable[tuple[Row, Sequence[Row]]]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class GroupsAsked:
    """What a page shows of groups.

    Attributes:
        values: values of the table of everybody, the largest first.
        num_values: number of values that were estimated.
        unit: unit of numbers.
        most: maximum number of lines.
        most_cells: maximum number of groups times values that can be compared.
        is_compared: whether two groups can be compared.
    """

    values: Sequence[str]
    num_values: int
    unit: str
    most: int
    most_cells: int
    is_compared: bool


def groups_of(asked: GroupsAsked, rows: Sequence[Row], entries: Entries, name: Callable[[Row], str]) -> list[GroupPart]:
    """The groups of the latest window of one collection; empty if no group has numbers.

    Args:
        asked: what is shown.
        rows: the valid row of each window and group.
        entries: reads the entries of rows.
        name: gives a window its name.
    """
    told = [row for row in rows if row["status"] == "ok"]
    if not told:
        return []
    window = max(row["window_start"] or "" for row in told)
    latest = [row for row in rows if (row["window_start"] or "") == window]
    given = sorted(entries([row for row in latest if row["status"] == "ok"]), key=lambda pair: str(pair[0]["group"]))
    figures = sorted(_figures(asked, given), key=lambda found: found[0])
    lines = _lines([one for _, one in figures])
    return [
        GroupPart(
            window=name(given[0][0]),
            lines=lines[: asked.most],
            left_out=max(0, len(lines) - asked.most),
            number=len(given),
            without=_without(latest),
            panel=_panel(asked, given) if asked.is_compared else None,
            levels=Levels.of(row for row, _ in given),
        )
    ]


def _without(rows: Sequence[Row]) -> dict[str, list[str]]:
    """The names of groups without numbers by their status, both in alphabetical order."""
    names = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row["status"], row["group"])):
        names[row["status"]].append(row["group"])
    names.pop("ok", None)
    return dict(names)


def _panel(asked: GroupsAsked, given: Sequence[tuple[Row, Sequence[Row]]]) -> Panel | None:
    names = [row["group"] for row, _ in given]
    if figures := figure_panel(names, [row for row, _ in given], asked.unit):
        return figures
    if not asked.values:
        return None
    rows = PanelRows(len(given), asked.values)
    for at, (_, shares) in enumerate(given):
        rows.add(at, shares, given[at][0].get("confidence"))
    return rows.panel(names, asked.num_values, asked.most_cells)


_Told = tuple[Row, Figure]


def _figures(asked: GroupsAsked, given: Sequence[tuple[Row, Sequence[Row]]]) -> Iterator[tuple[tuple[int, str], _Told]]:
    """Yield each figure with its position and row: figures of numbers if rows have any, else shares; then sums."""
    places = {value: at for at, value in enumerate(asked.values[:VALUES])}
    for row, shares in given:
        figures = [(at, _with_one_interval(one)) for at, one in enumerate(figures_of(row, asked.unit))]
        if not figures:
            figures = [(places[one["value"]], share_of(one, single=True)) for one in shares if one["value"] in places]
        figures += [(VALUES + at, one) for at, one in enumerate(sum_figures_of(row))]
        for at, figure in figures:
            yield (at, row["group"]), (row, figure)


def _with_one_interval(figure: Figure) -> Figure:
    """Without the second interval, for which a table of groups has no column, and no decimals."""
    return dataclasses.replace(figure, sure_low=None, sure_high=None)


def _lines(told: Sequence[_Told]) -> list[GroupLine]:
    """The lines, with as many decimals as the shortest interval of a share, or of a figure, needs."""
    alike = defaultdict(list)
    for _, figure in told:
        alike[_kind(figure)].append(figure)
    forms = {kind: format_of(*figures) for kind, figures in alike.items()}
    return [
        GroupLine(group=row["group"], figure=figure, num_reports=row["num_reports"], form=forms[_kind(figure)])
        for row, figure in told
    ]


def _kind(figure: Figure) -> str:
    """Name of the figures that are written alike; all shares are."""
    return "" if figure.is_share else figure.name
