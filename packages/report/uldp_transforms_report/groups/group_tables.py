"""Tables of groups: one row per value with a dot for each group, and all numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from uldp_transforms.rows.figures.figure import Figure
from uldp_transforms_report.colours import GROUPS
from uldp_transforms_report.differences import Panel
from uldp_transforms_report.groups.group_facts import GroupLine, GroupPart
from uldp_transforms_report.groups.group_labels import GroupLabels
from uldp_transforms_report.tables import columns as of
from uldp_transforms_report.tables.axis import Axis, scales_of
from uldp_transforms_report.tables.drawings import GROUP, axis_of_figures, drawn, interval
from uldp_transforms_report.texts_for_readers import named

_SHAPES = (
    "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0Z",
    "M-4-4H4V4H-4Z",
    "M0-5.5L5.5 0L0 5.5L-5.5 0Z",
    "M0-5L5.2 4H-5.2Z",
    "M0 5L5.2-4H-5.2Z",
    "M-4-4L4 4M4-4L-4 4",
)
SHAPES = dict(zip(GROUPS, _SHAPES))
"""Shape of each colour of groups, around its middle: a circle, a square, a diamond, triangles, and a cross."""

_IN_COLUMNS = 6  # maximum number of groups with a column of numbers


def group_lines_table(caption: str, title: str, groups: GroupPart, labels: GroupLabels) -> of.Table:
    """One row for each value in each group.

    Args:
        caption: what the table has.
        title: head of the estimates.
        groups: the groups.
        labels: how they are called.
    """
    lines, figures, forms = groups.lines, [one.figure for one in groups.lines], [one.form for one in groups.lines]
    estimates, intervals = of.figure_columns(title, groups.levels, figures, forms)
    return of.Table(
        caption=caption,
        columns=[
            of.names("value" if title == "share" else "figure", figures),
            of.sides(labels.head, "group", (one.group for one in lines), labels.labels),
            of.Column(title=title, fields="share", kind=of.NUMBER, cells=estimates.cells),
            intervals,
            of.counts("reports", "num_reports", (one.num_reports for one in lines)),
        ],
        flags=["told" if one.told_apart else "" for one in figures],
        told="told",
        island=of.names_in(figures),
    )


def group_dots_table(
    caption: str, title: str, groups: GroupPart, labels: Mapping[str, str], colours: Mapping[str, str]
) -> of.Table:
    """One row for each value, with a dot and an interval for each group; ``colours`` are those of the page."""
    names = sorted({line.group for line in groups.lines})
    by_value: dict[str, dict[str, GroupLine]] = {}
    for line in groups.lines:
        by_value.setdefault(line.figure.name, {})[line.group] = line
    rows = list(by_value.values())
    firsts = [next(iter(row.values())).figure for row in rows]
    columns = [
        of.names("value" if title == "share" else "figure", firsts),
        _drawn(rows, labels, {name: colours[name] for name in names}),
    ]
    if len(names) <= _IN_COLUMNS:
        columns += [_estimates(name, labels[name], rows) for name in names]
    return of.Table(caption=caption, columns=columns, island=of.names_in(firsts))


def compared_groups(panel: Panel, labels: Mapping[str, str]) -> Panel:
    """The panel with the labels of its groups."""
    return dataclasses.replace(panel, sides=[labels[name] for name in panel.sides])


def _drawn(rows: Sequence[Mapping[str, GroupLine]], labels: Mapping[str, str], colours: Mapping[str, str]) -> of.Column:
    """The dots; ``colours`` are those of the groups, in the order from the top of a row."""
    scales = scales_of([next(iter(row.values())).figure for row in rows])
    figures: dict[str, list[Figure]] = {}
    for row, scale in zip(rows, scales):
        figures.setdefault(scale, []).extend(_alone(line.figure) for line in row.values())
    by_scale = {scale: axis_of_figures(own) for scale, own in figures.items()}
    axes = [by_scale[scale] for scale in scales]
    heights = {name: round(100 * (at + 0.5) / len(colours), 1) for at, name in enumerate(colours)}
    marks = (
        [_mark(line, labels[name], axis, heights[name], colours[name]) for name, line in row.items()]
        for row, axis in zip(rows, axes)
    )
    return drawn(axes, marks)


def _alone(figure: Figure) -> Figure:
    """A figure with the numbers that are drawn of a group."""
    return Figure(name=figure.name, is_share=figure.is_share, value=figure.value, low=figure.low, high=figure.high)


def _mark(line: GroupLine, label: str, axis: Axis, at: float, colour: str) -> of.Mark:
    said = f"{named(label, 80)}: {_words(line)}"
    mark = interval(line.figure, axis, GROUP, at)
    return dataclasses.replace(mark, said=said, colour=colour, shape=shape_of(colour))


def shape_of(colour: str) -> str:
    """The path of a group's mark; groups without a colour of their own have circles."""
    return SHAPES.get(colour, _SHAPES[0])


def _words(line: GroupLine) -> str:
    return line.form.words(line.figure.value, line.figure.low, line.figure.high)


def _estimates(name: str, label: str, rows: Sequence[Mapping[str, GroupLine]]) -> of.Column:
    cells = [
        of.Cell(text=row[name].form.text(row[name].figure.value), exact=of.exact(row[name].figure.value))
        if name in row
        else of.Cell(exact="")
        for row in rows
    ]
    return of.Column(title=named(label, 40), fields="_".join(named(name).split()), kind=of.NUMBER, cells=cells)
