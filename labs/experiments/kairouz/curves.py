"""Curves with 90 % ranges in the figures over open and closed alphabets: colours, labels, axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from labs.experiments.kairouz.losses import GUESS, ITSELF
from labs.experiments.kairouz.ours import OURS
from labs.experiments.kairouz.plans import O_RAPPOR, O_RR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

K_RR, K_RAPPOR = "k-RR", "k-RAPPOR"
STYLES = {
    O_RR: ("#d55e00", "-", "o"),
    O_RAPPOR: ("#0072b2", "-", "s"),
    K_RR: ("#e69f00", "--", "^"),
    K_RAPPOR: ("#56b4e9", "--", "v"),
    OURS: ("#000000", "-", "D"),
    ITSELF: ("#777777", ":", ""),
    GUESS: ("#777777", "-.", ""),
}
HASHES = {2: "#009e73", 4: "#5ab84b", 8: "#a6c84c", 16: "#d9d24a"}


def with_hashes(number: int) -> str:
    """Name of the series of O-RAPPOR with several hash functions."""
    return f"{O_RAPPOR}, h = {number}"


STYLES |= {with_hashes(number): (color, "-", "s") for number, color in HASHES.items()}


def draw_series(axes: Axes, rows: Sequence[dict[str, Any]], against: str, value: str = "l1") -> None:
    """One curve for each series; rows without the column on the horizontal axis are horizontal lines."""
    for series, (color, line, marker) in STYLES.items():
        own = [row for row in rows if row["series"] == series and row.get(value) is not None]
        if own and against not in own[0]:
            axes.axhline(own[0][value], color=color, ls=line, lw=1, label=series)
        elif own:
            own.sort(key=lambda row: row[against])
            at = [row[against] for row in own]
            axes.plot(at, [row[value] for row in own], line, marker=marker, color=color, ms=3.5, lw=1.2, label=series)
            if f"{value}_low" in own[0]:
                low, high = ([row[f"{value}_{end}"] for row in own] for end in ("low", "high"))
                axes.fill_between(at, low, high, color=color, alpha=0.2, lw=0)
    axes.grid(color="#e6e6e6")
    axes.set_axisbelow(True)
