"""Charts of a figure in one group over the windows, beside that of everybody."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from uldp_transforms.rows.figures.figure import Trend
from uldp_transforms.rows.figures.figure_words import NumberFormat, format_of
from uldp_transforms_report.charts import FEW, band, line_of, points, svg_text
from uldp_transforms_report.colours import PLAIN
from uldp_transforms_report.facts import WindowLine
from uldp_transforms_report.trends.common_scales import Scale
from uldp_transforms_report.trends.merged_windows import merged, step_of
from uldp_transforms_report.trends.trend_charts import HEIGHT, WIDTH, axis_on, drawn_columns, whisker
from uldp_transforms_report.trends.window_chart import window_chart


def group_svg(
    trend: Trend, everybody: Trend | None, windows: Sequence[WindowLine], zone: str, scale: Scale, colour: str
) -> str:
    """Chart of a figure in one group as SVG; arguments as for ``group_chart``."""
    return svg_text(group_chart(trend, everybody, windows, zone, scale, colour), width=WIDTH, height=HEIGHT)


def group_chart(
    trend: Trend, everybody: Trend | None, windows: Sequence[WindowLine], zone: str, scale: Scale, colour: str
) -> dict[str, Any]:
    """A figure in one group, and a thin line of everybody.

    Args:
        trend: the figure in the group.
        everybody: the figure of all people, if it is known.
        windows: the windows.
        zone: time zone of the axis.
        scale: the vertical axis.
        colour: that of the group.
    """
    figure, step = trend.figure, step_of(len(windows))
    columns = drawn_columns(trend)
    line = _line(trend)
    if everybody is not None:
        columns["everybody"] = getattr(everybody, _line(everybody))
    is_few = len(windows) <= FEW
    words = (NumberFormat() if figure.is_share else format_of(figure)).words
    y = functools.partial(axis_on, scale, is_share=figure.is_share, unit=figure.unit)
    span = whisker if is_few else functools.partial(band, opacity=0.22)
    layers = [span("low", "high", colour, y=y)]
    if everybody is not None:
        layers.append(line_of("everybody", PLAIN, y))
    layers.append(line_of(line, colour, y))
    if is_few:
        layers.append(points("value", y, colour))
    return window_chart(windows[::step], merged(columns, step), zone, words if is_few else None, layers)


def _line(trend: Trend) -> str:
    """The column that a line joins."""
    return "smoothed" if np.isfinite(trend.smoothed).any() else "value"
