"""Pictures that the experiments of Murakami and Kawamoto 2019 share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from labs.experiments.uldp.people_and_mechanisms import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_losses(axes: Axes, rows: list[dict[str, Any]], against: str = "epsilon") -> None:
    """Mean losses of each mechanism as dots; lines are expected losses, where the rows have them, else dotted. If the
    rows have their number of values, w, a vertical line is at epsilon = ln w.

    Args:
        axes: empty; both scales become logarithmic.
        rows: with columns ``mechanism``, ``loss``, perhaps ``expected``, and the one on the horizontal axis. A row
            without that one is a horizontal line at its expected loss, or else at its mean loss.
        against: name of the column on the horizontal axis.
    """
    for mechanism, colour in COLOURS.items():
        own = [row for row in rows if row["mechanism"] == mechanism]
        points = [row for row in own if against in row]
        if points:
            at, losses = [row[against] for row in points], [row["loss"] for row in points]
            axes.plot(at, losses, "o", color=colour, ms=4, label=mechanism)
            known = all("expected" in row for row in points)
            axes.plot(at, [row["expected"] for row in points] if known else losses, "-" if known else ":", color=colour)
        elif own:
            axes.axhline(own[0].get("expected", own[0].get("loss")), color=colour, ls="--", label=mechanism)
    if against == "epsilon" and "values" in rows[0]:
        axes.axvline(math.log(rows[0]["values"]), color="#777777", ls=":", lw=1, label="ln w")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(against)
    axes.grid(color="#e6e6e6")
