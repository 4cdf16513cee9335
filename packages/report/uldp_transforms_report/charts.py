"""Charts as Vega-Lite specifications (Altair), drawn by vl-convert: SVG for pages, PNG for everything else.

Drawing needs no browser and no network, and the result contains no scripts. Every number comes from ``facts``.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import vl_convert
from altair.utils.schemapi import debug_mode

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators.display import as_title, rows_with_labels
from uldp_transforms.rows.figures.figure import Figure, Trend, table_of, trend_of
from uldp_transforms.rows.figures.figure_words import NumberFormat, format_of, words_of
from uldp_transforms.windows import moment_of
from uldp_transforms_report.colours import INK, LINE, PAPER, PLAIN, SMOOTHED, TRUTH
from uldp_transforms_report.facts import CollectionPart, Latest, Report, WindowLine
from uldp_transforms_report.texts_for_readers import in_words, named, shown
from uldp_transforms_report.window_names import clock, local

FEW = 60  # maximum number of windows with visible points
_COUNTABLE = 5  # maximum number of windows with a label each
_IN_PICTURE = 6  # maximum number of trends in the picture
_PARTS_IN_PICTURE = 4  # maximum number of collections in the picture
_DAY, _FEW_DAYS = 86_400_000, 62  # up to so many days, the first day of a month has its date on an axis
LABELS = 120  # pixels of the names beside the chart of a window
_LONGEST = 18  # maximum number of letters of an axis label

_MOMENTS = {
    "year": "%Y",
    "quarter": "%b",
    "month": "%b",
    "week": "%b %d",
    "date": "%a %d",
    "hours": "%H:%M",
    "minutes": "%H:%M",
    "seconds": "%H:%M:%S",
    "milliseconds": ".%L",
}
"""Formats of time-axis labels by granularity. Vega's own formats use 12-hour times without am or pm."""

_CONFIG: dict[str, Any] = {
    "aria": False,  # the page has a text alternative for each chart
    "background": "transparent",
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK,
        "titleColor": INK,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "gridColor": LINE,
        "domain": False,
        "tickColor": LINE,
    },
    "title": {"color": INK, "anchor": "start", "fontSize": 13, "subtitleColor": INK, "subtitleFontSize": 11},
}

_NAMED = re.compile(r'<(path|line) aria-label="([^"]*)" role="graphics-[a-z]*" aria-roledescription="[^"]*"([^>]*)/>')
"""A mark that is drawn with its description."""

_DRAWN = re.compile(r'class="mark-[a-z]+ role-mark[ "]')
"""The group of a mark in an SVG, with any number of shapes."""

_Rows = list[dict[str, Any]]
Axis = Callable[[str], Any]
"""Function that returns the y axis for a column."""


def trend_svg(trend: Trend, windows: Sequence[WindowLine], zone: str) -> str:
    """Chart of one figure over the windows, smoothed if available."""
    return svg_text(trend_chart(trend, windows, zone), width=330, height=150)


def unexplained_svg(windows: Sequence[WindowLine], zone: str) -> str:
    """Chart of the share of people with an unlisted value."""
    return svg_text(_unexplained(windows, zone), width=330, height=150)


def latest_svg(entries: Sequence[Figure]) -> str:
    """Values of one window with their intervals, in the given order."""
    return svg_text(_latest(entries), width=330)


def picture(report: Report, of_numbers: Callable[[CollectionPart, str], Any]) -> dict[str, Any]:
    """Vega-Lite specification of the latest window and the first trends of each collection, with a legend.

    Args:
        report: the facts.
        of_numbers: draws collections with a curve of numbers, from the part and the name of the time zone.
    """
    shown_parts = [part for part in report.parts[:_PARTS_IN_PICTURE] if part.trends]
    lines = [f"Estimated shares of people with {report.levels} intervals, adjusted for showing the largest values"]
    if left_out := len(report.parts) - len(shown_parts):
        lines.append(f"{left_out} further collection(s) have no numbers or do not fit here")
    title = alt.TitleParams(as_title(shown(report.title)), subtitle=lines, fontSize=20, subtitleFontSize=12, offset=12)
    if not shown_parts:
        empty = alt.Chart(data_of([{}])).mark_text(text="Not enough data for numbers", size=16, color=INK)
        return configured(alt.vconcat(empty.properties(width=700, height=120), title=title))
    charts = [(of_numbers if part.numbers and part.numbers.bars else _part)(part, report.zone) for part in shown_parts]
    below = put("vconcat", [_legend(shown_parts), *charts], title=title.to_dict(), spacing=24)
    return {"$schema": alt.SCHEMA_URL, "config": _config(background=PAPER, padding=20)} | below


def configured(chart: Any) -> dict[str, Any]:
    """The Vega-Lite specification of a standalone picture."""
    spec: dict[str, Any] = chart.to_dict()
    return spec | {"config": _config(background=PAPER, padding=20)}


@functools.cache
def _config(**more: Any) -> dict[str, Any]:
    """Altair's configuration with ours and with more, for a whole picture."""
    config: dict[str, Any] = alt.Chart().mark_point().configure(**_CONFIG | more).to_dict()["config"]
    return config


def put(how: str, charts: Sequence[Any], **properties: Any) -> dict[str, Any]:
    """Specification of charts beside each other (``hconcat``) or below (``vconcat``).

    Altair would copy each chart, with all that it consists of, at each level of a picture.
    """
    return {how: [chart if isinstance(chart, dict) else _part_of_picture(chart) for chart in charts]} | properties


def _part_of_picture(chart: Any) -> dict[str, Any]:
    with alt.data_transformers.enable(consolidate_datasets=False):
        spec: dict[str, Any] = chart.to_dict(validate=False)
    return {name: value for name, value in spec.items() if name not in ("$schema", "config")}


def png_of(spec: dict[str, Any]) -> bytes:
    """Draw a PNG without a network; raises SpecError if the drawing is incomplete."""
    return bytes(vl_convert.svg_to_png(_svg(spec), scale=1.5))


def svg_of(spec: dict[str, Any]) -> bytes:
    """Draw an SVG without a network; raises SpecError if the drawing is incomplete."""
    return f"{_svg(spec)}\n".encode()


def _svg(spec: dict[str, Any]) -> str:
    """Draw a chart, and check that each of its marks is there: vl-convert only logs most errors of Vega.

    Raises:
        SpecError: if a mark is missing. The sentence does not show Vega's, which may contain values.
    """
    try:
        svg = str(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]))
    except ValueError:
        svg = ""
    drawn, wanted = len(_DRAWN.findall(svg)), json.dumps(spec).count('"mark": ')
    if drawn < wanted:
        raise SpecError(f"charts must be drawn by vl-convert with all of their {wanted} marks, got {drawn}")
    return svg


# ------------------------------------------------------------------------------------------------------ single charts


def trend_chart(trend: Trend, windows: Sequence[WindowLine], zone: str, is_joined: bool = False) -> Any:
    """A figure over the windows: each alone in grey, smoothed ones in blue where no window contradicts them.

    Of numbers that are not smoothed, the interval without smoothness is grey.

    Args:
        trend: the figure.
        windows: the windows.
        zone: time zone of the axis.
        is_joined: whether a line joins windows, however few they are.
    """
    figure = trend.figure
    form = NumberFormat() if figure.is_share else format_of(figure)
    base = through_time(windows, _drawn_columns(trend), zone, form.words)
    y = functools.partial(axis_of, is_share=figure.is_share, unit=figure.unit)
    is_few = len(windows) <= FEW
    if trend.is_smoothed:
        layers = [
            band(base, "low", "high", PLAIN, 0.22, y),
            band(base, "smoothed_low", "smoothed_high", SMOOTHED, 0.28, y),
        ]
        layers.append(line_of(base, "smoothed", SMOOTHED, y))
    elif figure.is_share:
        layers = [band(base, "low", "high", PLAIN, 0.22, y)]
        if is_joined or not is_few:
            layers.append(line_of(base, "value", PLAIN, y))
    else:
        layers = [band(base, "sure_low", "sure_high", PLAIN, 0.22, y), band(base, "low", "high", SMOOTHED, 0.28, y)]
        layers.append(line_of(base, "value", SMOOTHED, y))
    if is_few:
        layers.append(points(base, "value", y))
    if np.isfinite(trend.truth).any():
        layers.append(line_of(base, "truth", TRUTH, y, strokeDash=[5, 2]))
    if trend.moved.any():
        layers.append(base.mark_rule(color=INK, strokeDash=[2, 3]).transform_filter("datum.moved"))
    return alt.layer(*layers)


def _drawn_columns(trend: Trend) -> dict[str, np.ndarray]:
    """The columns of a trend that are drawn: no intervals with an open end, but those of a window alone."""
    columns = {name: getattr(trend, name) for name in ("value", "low", "high", "truth", "moved")}
    has_open_end = np.isnan(trend.sure_low) | np.isnan(trend.sure_high)
    columns |= {name: np.where(has_open_end, np.nan, getattr(trend, name)) for name in ("sure_low", "sure_high")}
    columns["smoothed"] = np.where(trend.contradicted, np.nan, trend.smoothed)
    is_hidden = trend.contradicted | np.isnan(trend.smoothed_low) | np.isnan(trend.smoothed_high)
    return columns | {
        name: np.where(is_hidden, np.nan, getattr(trend, name)) for name in ("smoothed_low", "smoothed_high")
    }


def _unexplained(windows: Sequence[WindowLine], zone: str) -> Any:
    shares = [line.unexplained for line in windows]
    return trend_chart(trend_of(shares[-1], table_of(shares)), windows, zone, is_joined=True)


def _latest(entries: Sequence[Figure], least: float = 0) -> Any:
    """Values with intervals; their names take at least ``least`` pixels."""
    rows = [
        {
            "place": place,
            "value": named(entry.name, _LONGEST),
            "share": entry.value,
            "low": entry.low,
            "high": entry.high,
            "truth": entry.truth,
            "said": f"{named(entry.name)}: {words_of(entry)}",
        }
        for place, entry in enumerate(entries)
    ]
    data, label = rows_with_labels(rows)
    axis = alt.Axis(title=None, labelExpr=label, ticks=False, grid=False, labelLimit=LABELS, minExtent=least)
    scale = alt.Axis(title=None, format=".2~p", tickCount=4, orient="top")
    base = alt.Chart(data).encode(y=alt.Y("place:O", axis=axis))
    base = base.encode(description="said:N")
    bars = base.mark_rule(color=SMOOTHED, strokeWidth=4, opacity=0.35, aria=True).encode(
        x=alt.X("low:Q", axis=scale, scale=alt.Scale(zero=True)), x2="high:Q"
    )
    layers = [bars, base.mark_point(filled=True, size=38, opacity=1, color=SMOOTHED, aria=True).encode(x="share:Q")]
    if any(entry.truth is not None for entry in entries):
        layers.append(base.mark_tick(color=TRUTH, thickness=2).encode(x="truth:Q"))
    return alt.layer(*layers).properties(height=alt.Step(18))


def _legend(parts: Sequence[CollectionPart]) -> dict[str, Any]:
    """Samples of what is drawn in a picture of these collections, each with its meaning."""
    entries = [entry for part in parts if part.latest for entry in part.latest.entries]
    trends = [trend for part in parts if len(part.windows) > 1 for trend in part.trends[:_IN_PICTURE]]
    samples = {
        "latest window": (_sample("rule", SMOOTHED, strokeWidth=4, opacity=0.35), _sample("point", SMOOTHED, size=38)),
        "each window alone": (_sample("rule", PLAIN, strokeWidth=12, opacity=0.22), _sample("point", PLAIN, size=22)),
        "smoothed over neighbouring windows": (
            _sample("rule", SMOOTHED, strokeWidth=12, opacity=0.28),
            _sample("rule", SMOOTHED, strokeWidth=1.6),
        ),
        "truth": (_sample("rule", TRUTH, strokeWidth=1.6, strokeDash=[5, 2]),),
        "the share changed": (_sample("tick", INK, orient="vertical", size=16, strokeDash=[2, 3]),),
    }
    there = (
        True,
        bool(trends),
        any(trend.is_smoothed for trend in trends),
        any(entry.truth is not None for entry in entries),
        any(trend.moved.any() for trend in trends),
    )
    said = [(text, drawn) for (text, drawn), is_there in zip(samples.items(), there) if is_there]
    return put("hconcat", [_explained(text, drawn) for text, drawn in said], spacing=12)


def _sample(mark: str, colour: str, **style: Any) -> Any:
    """A mark of a legend, 24 pixels wide."""
    base = alt.Chart(data_of([{"from": 0, "to": 24, "at": 12}]))
    if mark == "rule":
        return base.mark_rule(color=colour, **style).encode(x=_pixels("from"), x2="to:Q")
    drawn = base.mark_point(filled=True, opacity=1, color=colour, **style)
    if mark == "tick":
        drawn = base.mark_tick(color=colour, **style)
    return drawn.encode(x=_pixels("at"))


def _explained(text: str, drawn: Sequence[Any]) -> Any:
    """Samples with a text to the right."""
    width = 34 + 6 * len(text)
    words = alt.Chart(data_of([{"at": 32}])).mark_text(text=text, align="left", fontSize=12, color=INK)
    return alt.layer(*drawn, words.encode(x=_pixels("at"))).properties(width=width, height=16)


def _pixels(name: str) -> alt.X:
    return alt.X(f"{name}:Q", scale=None, axis=None)


def _part(part: CollectionPart, zone: str) -> dict[str, Any]:
    """The picture of one collection: the latest window, and some trends beside it."""
    assert part.latest is not None
    entries, window = part.latest.entries[:20], part.latest.window
    title = _titled(f"{shown(part.id)}, {part.which}: {window.name}", part.latest)
    latest = _latest(entries, LABELS).properties(width=260, title=title)
    timed = [line for line in part.windows if line.start is not None]
    trends = part.trends[:_IN_PICTURE] if len(timed) > 1 else []
    return beside(latest, [(trend.figure.name, trend_chart(trend, part.windows, zone)) for trend in trends])


def beside(latest: Any, trends: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The latest window with named trends beside it, two in a row."""
    charts = [
        chart.properties(width=260, height=120, title=alt.TitleParams(as_title(named(name, 30)), fontSize=12))
        for name, chart in trends
    ]
    rows = [put("hconcat", charts[at : at + 2]) for at in range(0, len(charts), 2)]
    return put("hconcat", [latest, *([put("vconcat", rows)] if rows else [])], spacing=40)


def _titled(text: str, latest: Latest) -> alt.TitleParams:
    number = latest.window.num_reports
    told = f"{number:,} reports, " if number else ""
    return alt.TitleParams(text, subtitle=f"{told}the largest shares first")


# ---------------------------------------------------------------------------------------------------- shared parts


def through_time(
    windows: Sequence[WindowLine],
    columns: Mapping[str, np.ndarray],
    zone: str,
    words: Callable[[float, float, float], str],
) -> Any:
    """A chart whose x axis is the start of a window, in the job's time zone.

    Args:
        windows: W windows.
        columns: (W,) arrays; the first three are an estimate and its interval.
        zone: the time zone.
        words: function that formats these three.
    """
    at = clock(zone)
    share, low, high = list(columns.values())[:3]
    rows = [
        {"time": moment_of(f"{local(line.start, at):%Y-%m-%dT%H:%M:%SZ}")}
        | {"said": f"{line.name}: {words(share[place], low[place], high[place])}"}
        | {name: _or_none(column[place]) for name, column in columns.items()}
        for place, line in enumerate(windows)
        if line.start is not None
    ]
    axis: dict[str, Any] = {"title": None, "grid": False, "tickCount": 5, "labelFlush": True, "labelOverlap": True}
    days = (rows[-1]["time"] - rows[0]["time"]) / _DAY if rows else 0.0
    axis["format"] = _MOMENTS if days > _FEW_DAYS else _MOMENTS | dict.fromkeys(("quarter", "month"), _MOMENTS["week"])
    if len(rows) <= _COUNTABLE:
        axis["values"] = [row["time"] for row in rows]
    return alt.Chart(data_of(rows)).encode(x=alt.X("time:T", scale=alt.Scale(type="utc"), axis=alt.Axis(**axis)))


def _or_none(value: Any) -> Any:
    if isinstance(value, np.bool_):
        return bool(value)
    return None if np.isnan(value) else float(f"{value:.6g}")


def axis_of(name: str, is_share: bool = True, unit: str = "") -> alt.Y:
    """The axis of a column; that of shares begins at 0."""
    axis = alt.Axis(title=as_title(unit) or None, format=".2~p" if is_share else ",.6~g", tickCount=4)
    return alt.Y(f"{name}:Q", axis=axis, scale=alt.Scale(zero=is_share))


def band(base: Any, low: str, high: str, colour: str, opacity: float, y: Axis = axis_of) -> Any:
    """The area between two columns."""
    return base.mark_area(color=colour, opacity=opacity).encode(y=y(low), y2=f"{high}:Q")


def points(base: Any, name: str, y: Axis = axis_of) -> Any:
    """A point for each window, with its numbers in a tooltip."""
    points = base.mark_point(filled=True, size=22, opacity=1, color=PLAIN, aria=True)
    return points.encode(y=y(name), description="said:N")


def line_of(base: Any, name: str, colour: str, y: Axis = axis_of, **more: Any) -> Any:
    """A line through a column."""
    return base.mark_line(color=colour, strokeWidth=1.6, **more).encode(y=y(name))


def data_of(rows: _Rows) -> alt.InlineData:
    """Rows as the data of a chart, which Altair does not check one by one."""
    with debug_mode(False):
        return alt.InlineData(values=rows)


def svg_text(chart: Any, **size: int) -> str:
    """Draw a chart of this size as SVG; cached, because a stream changes few of its charts at a time."""
    fit = {"autosize": {"type": "fit-x", "contains": "padding"}, "config": _config()}
    return _drawn(json.dumps(chart.to_dict(validate=False) | size | fit, sort_keys=True))


@functools.lru_cache(maxsize=1024)
def _drawn(spec: str) -> str:
    svg = _svg(json.loads(spec))
    svg = _NAMED.sub(r"<\1\3><title>\2</title></\1>", svg)  # a pointer that rests there shows it
    svg = re.sub(r'(<[^>]*?) role="graphics-[a-z]*" aria-roledescription="[^"]*"', r"\1", svg)  # without names
    return re.sub(r' (?:d|transform)="[^"]*"', lambda match: re.sub(r"(\.\d\d)\d+", r"\1", match[0]), svg)


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
    ends = (f"{form.text(trend.value[at])}{after} in {windows[at].name}" for at in (known[0], known[-1]))
    sentence = f"{named(figure.name)}: {', '.join(ends)}"
    if figure.is_share:
        low, high = form.text(np.nanmin(trend.value)), form.text(np.nanmax(trend.value))
        sentence += f", between {low} and {high} in {len(known)} windows"
    return f"{sentence}. It changed in {in_words(moved)}." if moved else f"{sentence}."
