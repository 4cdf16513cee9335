"""Pictures of experiments for one column of a paper, as PDF, with their captions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from labs.experiments.frame import Experiment, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 3.3
"""Inches of a column."""

_PANEL = 1.9  # inches of height for each panel below another
_LEGEND = 6  # points of its letters
_LINES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
_GREYS = ("#000000", "#606060", "#000000", "#606060", "#000000", "#606060")


def draw_for_paper(experiment: Experiment, result: Result, path: Path) -> None:
    """Write the picture as PDF, with panels below each other and lines in greys, and its caption as text.

    Heat maps keep their colours.

    Args:
        experiment: what was repeated.
        result: its rows and verdicts.
        path: the PDF file; the caption has the same name and ends with ``.txt``.
    """
    from matplotlib import rc_context  # noqa: PLC0415  # slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415  # slow to import

    look = {
        "axes.titlesize": 7,
        "font.sans-serif": ["Liberation Sans", "Arial", "Helvetica", "DejaVu Sans"],  # as on pages
        "font.size": 7,
        "lines.linewidth": 1,
        "lines.markersize": 3,
        "pdf.fonttype": 42,  # text that can be searched and copied
    }
    with rc_context(look):
        figure = Figure(figsize=(WIDTH, _PANEL), layout="constrained")
        experiment.draw(result.rows, figure)
        _in_one_column(figure)
        _without_colours(figure)
        figure.savefig(path, metadata={"CreationDate": None})
    caption = [f"{experiment.title} ({experiment.source}). {experiment.abstract}"]
    caption += [f"{'Holds' if verdict.holds else 'Does not hold'}: {verdict.claim}" for verdict in result.verdicts]
    path.with_suffix(".txt").write_text("\n".join([*caption, ""]), encoding="utf-8")


def _in_one_column(figure: Figure) -> None:
    """Put the panels of a row below each other; those of several rows share the width."""
    from matplotlib.gridspec import GridSpec  # noqa: PLC0415  # slow to import

    panels = [axes for axes in figure.axes if axes.get_subplotspec() is not None]
    grids = [spec.get_gridspec() for axes in panels if (spec := axes.get_subplotspec())]
    rows, columns = (grids[0].nrows, grids[0].ncols) if grids else (1, 1)
    if rows == 1 and len(set(grids)) == 1:
        below = GridSpec(columns, 1, figure=figure)
        for at, axes in enumerate(panels):
            axes.set_subplotspec(below[at, 0])
            axes.tick_params(labelleft=True)
        rows = columns
    figure.set_size_inches(WIDTH, _PANEL * rows)


def _without_colours(figure: Figure) -> None:
    """Give lines of each colour and pattern a grey and a pattern of their own, in the order of the figure."""
    from matplotlib.colors import to_hex  # noqa: PLC0415  # slow to import

    legends = [legend for axes in figure.axes if (legend := axes.get_legend()) is not None] + figure.legends
    for text in (text for legend in legends for text in legend.get_texts()):
        text.set_fontsize(_LEGEND)
    looks: dict[tuple[str, str], int] = {}
    for line in [line for part in (*figure.axes, *legends) for line in part.get_lines()]:
        pattern = str(line.get_linestyle())
        at = looks.setdefault((to_hex(line.get_color()), pattern), len(looks)) % len(_LINES)
        line.set_color(_GREYS[at])
        if pattern != "None":
            line.set_linestyle(_LINES[at])
