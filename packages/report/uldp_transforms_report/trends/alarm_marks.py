"""What changed in a figure, and in which window, from the sentences of alarms."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from uldp_transforms.ldp.checks import describe
from uldp_transforms.rows.figures.figure import Figure, Trend
from uldp_transforms.rows.row_types import CHANGE
from uldp_transforms_report.facts import Alarm, WindowLine

_SIZE = r"([+-][\d.,e+-]*\d)"


def changes_of(trend: Trend, windows: Sequence[WindowLine], alarms: Sequence[Alarm]) -> dict[int, str]:
    """Position of a window -> what changed there, such as ``+2.98 points``.

    Args:
        trend: the figure.
        windows: W windows.
        alarms: findings about them, of everybody and of groups; those of groups are left out.
    """
    said = {alarm.window: alarm.sentence for alarm in alarms if alarm.name == CHANGE and not alarm.group}
    found = {at: _change(trend.figure, said[line.name]) for at, line in enumerate(windows) if line.name in said}
    moved = dict.fromkeys(np.flatnonzero(trend.moved).tolist(), "changed")
    return moved | {at: change for at, change in found.items() if change}


def _change(figure: Figure, sentence: str) -> str:
    """Empty if the sentence does not name the figure."""
    if size := re.search(rf"(?<=[ :]){re.escape(describe(figure.name))} {_SIZE} \(", sentence):
        return f"{size[1]} points" if figure.is_share else size[1]
    if figure.is_share:
        return ""
    if size := re.search(rf"^The {re.escape(figure.name)} moved by {_SIZE} \(", sentence):
        return f"{size[1]} {figure.unit}".rstrip()
    ends = re.search(rf"Quantiles moved: (?:.*, )?{re.escape(figure.name)} (from .+? to .+?)(?:, |\.(?: |$))", sentence)
    return f"{ends[1]} {figure.unit}".rstrip() if ends else ""
