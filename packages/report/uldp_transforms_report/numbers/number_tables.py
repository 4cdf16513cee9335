"""Tables of figures of numbers and sums, and of the bins of a curve."""

from __future__ import annotations

from uldp_transforms_report.numbers.number_facts import NumberPart
from uldp_transforms_report.tables import columns as of
from uldp_transforms_report.tables.drawings import drawn_numbers, drawn_shares, drawn_together
from uldp_transforms_report.tables.smoothed_columns import sure_column


def figures_table(caption: str, numbers: NumberPart) -> of.Table:
    """The figures of one window or of the whole period: numbers of one unit, or shares, are drawn."""
    figures = numbers.figures
    forms = of.forms_of(figures, alike=False)
    are_shares = all(one.is_share for one in figures)
    drawn = drawn_shares(figures) if are_shares else drawn_numbers(figures, drawn_together(figures))
    columns = [
        of.names("figure", figures, "figure"),
        drawn,
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
