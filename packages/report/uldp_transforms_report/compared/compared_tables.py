"""Tables of comparisons: what differs, and what cannot be told, drawn on one axis."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from uldp_transforms.rows.figures.compared_figures import p_text
from uldp_transforms.rows.figures.figure_words import NumberFormat, format_of
from uldp_transforms_report.compared.compared_rows import Comparisons, Difference
from uldp_transforms_report.groups.group_labels import GroupLabels
from uldp_transforms_report.tables import columns as of
from uldp_transforms_report.tables.drawings import drawn_differences
from uldp_transforms_report.tables.smooth_differences import smooth_columns


def compared_tables(compared: Comparisons) -> tuple[of.Table, of.Table]:
    """The differences that are found, with q-values, and the others, with what would usually be noticed."""
    found, untold = list(compared.found), list(compared.untold)
    labels = GroupLabels.of(side for one in found + untold for side in (one.a, one.b))
    figures = [one.figure for one in found + untold]
    are_told = [True] * len(found) + [False] * len(untold)
    drawn = drawn_differences(figures, are_told)
    shares = format_of(*compared.shares)
    forms = [shares if one.is_share else format_of(one) for one in figures]
    of_found, of_untold = slice(len(found)), slice(len(found), None)
    q_values = [of.Cell(text=p_text(one.q_value, 2, one.rate), exact=of.exact(one.q_value)) for one in found]
    noticed = [
        of.Cell(text=form.signed(one.noticeable).lstrip("+"), exact=of.exact(one.noticeable))
        for one, form in zip(untold, forms[of_untold])
    ]
    return (
        of.Table(
            caption="Differences that are found, the clearest first",
            columns=[
                *_columns("selected interval", compared, found, forms[of_found], _rows(drawn, of_found)),
                of.Column(title="q", fields="q_value", kind=of.NUMBER, cells=q_values),
                *_sides(found, labels),
            ],
            island=of.names_in(one.figure for one in found),
        ),
        of.Table(
            caption="Differences that are not found",
            columns=[
                *_columns(f"{compared.levels} interval", compared, untold, forms[of_untold], _rows(drawn, of_untold)),
                of.Column(title="usually noticed from", fields="noticeable", kind=of.NUMBER, cells=noticed),
                *_sides(untold, labels),
            ],
            island=of.names_in(one.figure for one in untold),
        ),
    )


def _columns(
    title: str,
    compared: Comparisons,
    listed: Sequence[Difference],
    forms: Sequence[NumberFormat],
    drawn: of.Column,
) -> list[of.Column]:
    """Names, pictures, differences and their intervals."""
    figures = [one.figure for one in listed]
    columns = [of.names("value", figures), drawn, *of.difference_columns(title, figures, forms)]
    return columns + smooth_columns(compared, listed, forms)


def _rows(column: of.Column, rows: slice) -> of.Column:
    return dataclasses.replace(column, cells=column.cells[rows])


def _sides(listed: Sequence[Difference], labels: GroupLabels) -> list[of.Column]:
    sides = {"a": [one.a for one in listed], "b": [one.b for one in listed]}
    return [of.sides(labels.head_of(name), name, groups, labels.labels) for name, groups in sides.items()]
