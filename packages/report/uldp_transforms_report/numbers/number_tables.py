"""Tables of figures of numbers and sums, and of the bins of a curve."""

from __future__ import annotations

from uldp_transforms_report.numbers.number_facts import NumberPart
from uldp_transforms_report.tables import columns as of
from uldp_transforms_report.tables.drawings import drawn_figures
from uldp_transforms_report.tables.smoothed_columns import sure_column


def figures_table(caption: str, numbers: NumberPart) -> of.Table:
    """The figures of one window or of the whole period, those of one scale on one axis."""
    figures = numbers.figures
    forms = of.forms_of(figures, alike=False)
    columns = [
        of.names("figure", figures, "figure"),
        drawn_figures(figures, numbers.scales),
        *of.figure_columns("estimate", numbers.levels, figures, forms),
    ]
    if numbers.is_smooth:
        columns.append(sure_column(figures, forms))
    return of.Table(caption=caption, columns=columns, sorts=False)


def curve_table(caption: str, numbers: NumberPart) -> of.Table:
    """The bins of a curve."""
    figures = [bar.figure for bar in numbers.bars]
    forms = of.forms_of(figures)
    columns = [of.names("bin", figures, "bin"), *of.figure_columns("share", numbers.levels, figures, forms)]
    return of.Table(caption=caption, columns=columns, sorts=False)
