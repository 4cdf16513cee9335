"""Charts of figures over the windows."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from uldp_transforms.ldp.estimators.display import as_title
from uldp_transforms.rows.figures.figure import Trend, table_of, trend_of
from uldp_transforms.rows.figures.figure_words import NumberFormat, format_of
from uldp_transforms_report.charts import FEW, Axis, Layer, band, data_of, line_of, points, quantity, svg_text
from uldp_transforms_report.colours import INK, PLAIN, SMOOTHED, TRUTH
from uldp_transforms_report.facts import WindowLine
from uldp_transforms_report.texts_for_readers import in_words, named
from uldp_transforms_report.trends.common_scales import Scale, scale_of
from uldp_transforms_report.trends.merged_windows import merged, step_of
from uldp_transforms_report.trends.smooth_bands import smooth_columns
from uldp_transforms_report.trends.window_chart import times_of, window_chart

WIDTH, HEIGHT = 330, 150
"""Pixels of a chart among others."""

_CHANGES_BELOW = 3  # labels of changes below each other, before they begin at the top again


def trend_svg(
    trend: Trend,
    windows: Sequence[WindowLine],
    zone: str,
    scale: Scale | None = None,
    changes: Mapping[int, str] | None = None,
) -> str:
    """Chart of one figure over the windows, smoothed if available; arguments as for ``trend_chart``."""
    return svg_text(trend_chart(trend, windows, zone, scale, changes), width=WIDTH, height=HEIGHT)


def unexplained_svg(windows: Sequence[WindowLine], zone: str) -> str:
    """Chart of the share of people with an unlisted value."""
    return svg_text(_unexplained(windows, zone), width=WIDTH, height=HEIGHT)


def _unexplained(windows: Sequence[WindowLine], zone: str) -> dict[str, Any]:
    shares = [line.unexplained for line in windows]
    return trend_chart(trend_of(shares[-1], table_of(shares)), windows, zone, is_joined=True)


def common_scale(trends: Sequence[Trend]) -> Scale:
    """The scale of charts that are compared: that of all that is drawn in one of them."""
    columns = [column for trend in trends for column in drawn_columns(trend).values()]
    return scale_of(columns, all(trend.figure.is_share for trend in trends))


def trend_chart(
    trend: Trend,
    windows: Sequence[WindowLine],
    zone: str,
    scale: Scale | None = None,
    changes: Mapping[int, str] | None = None,
    is_joined: bool = False,
) -> dict[str, Any]:
    """A figure over the windows: each alone in grey, smoothed ones in blue where no window contradicts them.

    Few windows have a line each, many have a band. Of numbers that are not smoothed, the interval without smoothness
    is grey.

    Args:
        trend: the figure.
        windows: the windows.
        zone: time zone of the axis.
        scale: the vertical axis (default: that of this chart alone).
        changes: position of a window -> what changed there.
        is_joined: whether a line joins windows, however few they are.
    """
    figure = trend.figure
    is_few = len(windows) <= FEW
    words = None
    if is_few:
        words = (NumberFormat() if figure.is_share else format_of(figure)).words
    step = step_of(len(windows))
    columns = merged(drawn_columns(trend), step)
    y = functools.partial(axis_on, scale or common_scale([trend]), is_share=figure.is_share, unit=figure.unit)
    span = whisker if is_few else functools.partial(band, opacity=0.22)
    if trend.is_smoothed:
        layers = [
            span("low", "high", PLAIN, y=y),
            band("smoothed_low", "smoothed_high", SMOOTHED, 0.28, y),
            line_of("smoothed", SMOOTHED, y),
        ]
    elif figure.is_share:
        layers = [span("low", "high", PLAIN, y=y)]
        if is_joined or not is_few:
            layers.append(line_of("value", PLAIN, y))
    else:
        layers = [span("sure_low", "sure_high", PLAIN, y=y), band("low", "high", SMOOTHED, 0.28, y)]
        layers.append(line_of("value", SMOOTHED, y))
    if is_few:
        layers.append(points("value", y))
    if step == 1 and np.isfinite(columns.get("alone_low", np.nan)).any():
        layers += _standing_out(y)
    if np.isfinite(trend.truth).any():
        layers.append(line_of("truth", TRUTH, y, strokeDash=[5, 2]))
    layers += _changes(windows, changes or {}, zone)
    return window_chart(windows[::step], columns, zone, words, layers)


def whisker(low: str, high: str, colour: str, y: Axis) -> Layer:
    """A line between two columns for each window."""
    mark = {"type": "rule", "color": colour, "strokeWidth": 2, "opacity": 0.35}
    known = [{"filter": f"isValid(datum.{low}) && isValid(datum.{high})"}]
    return {"mark": mark, "encoding": {"y": y(low), "y2": {"field": high}}, "transform": known}


def _standing_out(y: Axis) -> list[Layer]:
    """A thin line with a dot for each window that its neighbours contradict."""
    known = {"transform": [{"filter": "isValid(datum.alone_low)"}]}
    line = {"type": "rule", "color": SMOOTHED, "strokeWidth": 1}
    dot = {"type": "point", "filled": True, "size": 22, "opacity": 1, "color": SMOOTHED}
    return [
        {"mark": line, "encoding": {"y": y("alone_low"), "y2": {"field": "alone_high"}}} | known,
        {"mark": dot, "encoding": {"y": y("alone")}} | known,
    ]


def _changes(windows: Sequence[WindowLine], changes: Mapping[int, str], zone: str) -> list[Layer]:
    """A dotted line where an alarm rang, with what changed."""
    if not changes:
        return []
    times = times_of(windows, zone)
    timed = [time for time in times if time is not None]
    rows = []
    for number, (place, change) in enumerate(sorted(changes.items())):
        time = times[place]
        if time is not None:
            is_late = 2 * (time - timed[0]) > timed[-1] - timed[0]
            below = 11 * (number % _CHANGES_BELOW)
            rows.append({"time": time, "change": change, "is_late": is_late, "below": below})
    if not rows:
        return []
    text = {
        "type": "text",
        "color": INK,
        "fontSize": 10,
        "align": {"expr": "datum.is_late ? 'right' : 'left'"},
        "dx": {"expr": "datum.is_late ? -3 : 3"},
        "dy": {"expr": "datum.below"},
    }
    said = {"y": {"value": 6}, "text": {"field": "change", "type": "nominal"}}
    return [
        {"data": data_of(rows), "mark": {"type": "rule", "color": INK, "strokeDash": [2, 3]}, "encoding": {}},
        {"data": data_of(rows), "mark": text, "encoding": said},
    ]


def drawn_columns(trend: Trend) -> dict[str, np.ndarray]:
    """The (W,) columns of a trend that are drawn: no intervals with an open end, but those of a window alone."""
    columns = {name: getattr(trend, name) for name in ("value", "low", "high", "truth")}
    if not trend.is_smoothed:
        if trend.figure.is_share:
            return columns
        has_open_end = np.isnan(trend.sure_low) | np.isnan(trend.sure_high)
        sure = {name: np.where(has_open_end, np.nan, getattr(trend, name)) for name in ("sure_low", "sure_high")}
        return columns | sure
    return columns | smooth_columns(trend)


def axis_on(scale: Scale, name: str, is_share: bool, unit: str) -> dict[str, Any]:
    """The axis of a column."""
    axis = {"title": as_title(unit) or None, "format": ".2~p" if is_share else ",.6~g", "values": scale.ticks}
    return quantity(name, axis=axis, scale={"domain": [scale.low, scale.high], "nice": False, "zero": False})


def broken_of(trend: Trend, windows: Sequence[WindowLine]) -> str:
    """Why the smoothed line of a trend has gaps; empty if it has none."""
    names = [windows[at].name for at in np.flatnonzero(trend.contradicted).tolist()]
    if not names:
        return ""
    own = "that window's own interval excludes" if len(names) == 1 else "the intervals of these windows exclude"
    return f"The smoothed line breaks in {in_words(names)}: {own} it."


def sentence_of(trend: Trend, windows: Sequence[WindowLine]) -> str:
    """Text alternative of a trend chart."""
    known, figure = np.flatnonzero(np.isfinite(trend.value)).tolist(), trend.figure
    moved = [windows[at].name for at in np.flatnonzero(trend.moved).tolist()]
    form = NumberFormat() if figure.is_share else format_of(figure)
    after = f" {figure.unit}" if figure.unit else ""
    ends = (f"{form.text(trend.value[at])}{after} ({windows[at].name})" for at in (known[0], known[-1]))
    sentence = f"{named(figure.name)}: {', '.join(ends)}"
    if figure.is_share:
        low, high = form.text(np.nanmin(trend.value)), form.text(np.nanmax(trend.value))
        sentence += f", between {low} and {high} in {len(known)} windows"
    return f"{sentence}. It changed in {in_words(moved)}." if moved else f"{sentence}."
