"""Charts of a figure in one group over the windows, beside that of everybody."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
from altair.utils.schemapi import debug_mode

from uldp_transforms.rows.figures.figure import Trend
from uldp_transforms.rows.figures.figure_words import NumberFormat, format_of
from uldp_transforms_report.charts import FEW, band, line_of, points, svg_text
from uldp_transforms_report.colours import PLAIN
from uldp_transforms_report.facts import WindowLine
from uldp_transforms_report.trends.common_scales import Scale
from uldp_transforms_report.trends.merged_windows import merged, step_of
from uldp_transforms_report.trends.trend_charts import HEIGHT, WIDTH, axis_on, drawn_columns, through_time, whisker


def group_svg(
    trend: Trend, everybody: Trend | None, windows: Sequence[WindowLine], zone: str, scale: Scale, colour: str
) -> str:
    """Chart of a figure in one group as SVG; arguments as for ``group_chart``."""
    with debug_mode(False):  # many charts of one kind, which tests check
        chart = group_chart(trend, everybody, windows, zone, scale, colour)
    return svg_text(chart, width=WIDTH, height=HEIGHT)


def group_chart(
    trend: Trend, everybody: Trend | None, windows: Sequence[WindowLine], zone: str, scale: Scale, colour: str
) -> Any:
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
    base = through_time(windows[::step], merged(columns, step), zone, words if is_few else None)
    y = functools.partial(axis_on, scale, is_share=figure.is_share, unit=figure.unit)
    span = whisker if is_few else functools.partial(band, opacity=0.22)
    layers = [span(base, "low", "high", colour, y=y)]
    if everybody is not None:
        layers.append(line_of(base, "everybody", PLAIN, y))
    layers.append(line_of(base, line, colour, y))
    if is_few:
        layers.append(points(base, "value", y, colour))
    return alt.layer(*layers)


def _line(trend: Trend) -> str:
    """The column that a line joins."""
    return "smoothed" if np.isfinite(trend.smoothed).any() else "value"
