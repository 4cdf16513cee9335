"""Charts of numbers: the histogram with its band, and figures over the windows."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

from uldp_transforms.ldp.estimators.display import as_title
from uldp_transforms.rows.figures.figure import MEDIAN, Trend
from uldp_transforms.rows.figures.figure_words import percent, words_of
from uldp_transforms_report.charts import LABELS, Layer, beside, data_of, quantity, svg_text
from uldp_transforms_report.colours import INK, SMOOTHED
from uldp_transforms_report.facts import CollectionPart
from uldp_transforms_report.numbers.number_facts import Bar, NumberPart
from uldp_transforms_report.texts_for_readers import shown
from uldp_transforms_report.trends.trend_charts import common_scale, trend_chart

_MANY_TIMES = 8.0  # ratio of the widths of bins above which the axis is logarithmic


def curve_svg(part: NumberPart) -> str:
    """The share in each bin, with its band, and a mark at the median."""
    return svg_text(curve_chart(part), width=520, height=220)


def panel(part: CollectionPart, zone: str) -> dict[str, Any]:
    """The picture of a collection of numbers: the curve of the latest window, and figures over the windows."""
    assert part.numbers is not None and part.latest is not None
    window, numbers = part.latest.window, part.numbers
    reports = [part.noun.counted(window.num_reports)] if window.num_reports else []
    colours = "Blue: smooth. Grey: intervals without smoothness"
    if numbers.trends and numbers.trends[0].is_smoothed:
        colours = "Blue: smoothed over windows. Grey: each window alone"
    title = {"text": f"{shown(part.id)}, {part.which}: {window.name}", "subtitle": [*reports, colours]}
    names = [f"{trend.figure.name}, {numbers.unit}" if numbers.unit else trend.figure.name for trend in numbers.trends]
    trends = [dataclasses.replace(one, figure=dataclasses.replace(one.figure, unit="")) for one in numbers.trends]
    curve = curve_chart(numbers, LABELS) | {"width": 260, "height": 220, "title": title}
    scale = common_scale(trends)
    return beside(curve, [(name, trend_chart(trend, part.windows, zone, scale)) for name, trend in zip(names, trends)])


def curves_of(part: CollectionPart) -> list[tuple[str, str, Any]]:
    """Title, caption and chart of the curve of the latest window, if there is one."""
    numbers, latest = part.numbers, part.latest
    if numbers is None or not numbers.bars or latest is None:
        return []
    caption = f"Share of {part.noun.many} in each bin with {numbers.levels} intervals, {latest.window.name}."
    return [("Distribution", caption, curve_chart(numbers))]


def series_of(part: CollectionPart) -> list[tuple[Trend, Sequence[Trend]]]:
    """Each trend of figures or else of values, and of sums, with those on its scale."""
    shares = [] if part.numbers else [(trend, part.trends) for trend in part.trends]
    return shares + [(trend, of.beside(trend)) for of in (part.numbers, part.sums) if of for trend in of.trends]


def curve_chart(part: NumberPart, least: float = 0) -> dict[str, Any]:
    """The histogram; the labels of its shares take at least ``least`` pixels."""
    rows = [
        {
            "begin": bar.begin,
            "end": bar.end,
            "share": bar.figure.value,
            "low": bar.figure.low,
            "high": bar.figure.high,
            "said": f"{bar.figure.name}{f' {part.unit}' if part.unit else ''}: {words_of(bar.figure)}",
        }
        for bar in part.bars
    ]
    axis = {
        "title": as_title(part.unit) or None,
        "grid": False,
        "format": ",.6~g",
        "tickCount": 8,
        "labelOverlap": True,
    }
    scale = {"type": "log" if _is_logarithmic(part.bars) else "linear", "zero": False, "nice": False}
    x, x2 = quantity("begin", axis=axis, scale=scale), {"field": "end"}
    y = functools.partial(quantity, axis={"title": None, "format": ".2~p", "tickCount": 4, "minExtent": least})
    across = {"x": x, "x2": x2, "description": {"field": "said", "type": "nominal"}}
    layers: list[Layer] = [
        {
            "mark": {"type": "rect", "color": SMOOTHED, "opacity": 0.16, "aria": True},
            "encoding": across | {"y": y("zero"), "y2": {"field": "share"}},
            "transform": [{"calculate": "0", "as": "zero"}],
        },
        {
            "mark": {"type": "rect", "color": SMOOTHED, "opacity": 0.28},
            "encoding": across | {"y": y("low"), "y2": {"field": "high"}},
        },
        {"mark": {"type": "rule", "color": SMOOTHED, "strokeWidth": 2}, "encoding": across | {"y": y("share")}},
    ]
    median = next((figure.value for figure in part.figures if figure.name == MEDIAN), None)
    if median is not None:
        data, at = data_of([{"at": median, "name": MEDIAN}]), {"x": quantity("at")}
        text = {"type": "text", "color": INK, "align": "left", "dx": 4, "fontSize": 11}
        name = {"y": {"value": 6}, "text": {"field": "name", "type": "nominal"}}
        layers.append({"data": data, "mark": {"type": "rule", "color": INK, "strokeDash": [2, 3]}, "encoding": at})
        layers.append({"data": data, "mark": text, "encoding": at | name})
    return {"data": data_of(rows), "layer": layers}


def _is_logarithmic(bars: Sequence[Bar]) -> bool:
    """Whether the bins are above 0 and of so different widths that a linear axis would hide most of them."""
    widths = [bar.end - bar.begin for bar in bars]
    return bars[0].begin > 0 and max(widths) > _MANY_TIMES * min(widths)


def sentence_of_curve(part: NumberPart, counted: str) -> str:
    """Text alternative of the histogram: its highest bar; ``counted`` is the plural of what is counted."""
    bins = [bar.figure for bar in part.bars]
    top = max(bins, key=lambda one: -math.inf if one.value is None or math.isnan(one.value) else one.value)
    after = f" {part.unit}" if part.unit else ""
    return f"Share of {counted} in {len(bins)} bins, most in {top.name}{after}: {percent(top.value)}"
