"""The column of intervals of smooth estimates in a table of comparisons."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from uldp_transforms.rows.figures.figure_words import NumberFormat, format_of
from uldp_transforms_report.compared.compared_rows import Comparisons, Difference
from uldp_transforms_report.tables.columns import Column, signed_spans


def smooth_columns(compared: Comparisons, listed: Sequence[Difference], forms: Sequence[NumberFormat]) -> list[Column]:
    """The column of these differences; none if no difference has such an interval."""
    if not compared.is_smooth:
        return []
    figures = [one.smooth for one in listed]
    own = [form if form.is_share else format_of(one) for one, form in zip(figures, forms)]
    return [_marked(listed, signed_spans("smooth interval", "smooth_low smooth_high", figures, own))]


def _marked(listed: Sequence[Difference], column: Column) -> Column:
    """Without dashes, and with a mark where the smooth interval alone is without 0."""
    texts = (
        (str(cell.text) if (one.smooth.low, one.smooth.high) != (None, None) else "") + " ~" * one.shows_only_smooth
        for one, cell in zip(listed, column.cells)
    )
    cells = [dataclasses.replace(cell, text=text) for cell, text in zip(column.cells, texts)]
    return dataclasses.replace(column, cells=cells)
