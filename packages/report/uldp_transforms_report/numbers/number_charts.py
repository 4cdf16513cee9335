"""Charts of numbers: the histogram with its band, and figures over the windows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import altair as alt

from uldp_transforms.ldp.estimators.display import as_title
from uldp_transforms.rows.figures.figure import MEDIAN, Trend
from uldp_transforms.rows.figures.figure_words import percent, words_of
from uldp_transforms_report.charts import LABELS, data_of, svg_text
from uldp_transforms_report.colours import INK, SMOOTHED
from uldp_transforms_report.facts import CollectionPart
from uldp_transforms_report.numbers.number_facts import Bar, NumberPart
from uldp_transforms_report.texts_for_readers import shown
from uldp_transforms_report.trends.picture import beside
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
    title = alt.TitleParams(f"{shown(part.id)}, {part.which}: {window.name}", subtitle=[*reports, colours])
    names = [f"{trend.figure.name}, {numbers.unit}" if numbers.unit else trend.figure.name for trend in numbers.trends]
    trends = [dataclasses.replace(one, figure=dataclasses.replace(one.figure, unit="")) for one in numbers.trends]
    curve = curve_chart(numbers, LABELS).properties(width=260, height=220, title=title)
    scale = common_scale(trends)
    return beside(curve, [(name, trend_chart(trend, part.windows, zone, scale)) for name, trend in zip(names, trends)])


def curves_of(part: CollectionPart) -> list[tuple[str, str, Any]]:
    """Title, caption and chart of the curve of the latest window, if there is one."""
    numbers, latest = part.numbers, part.latest
    if numbers is None or not numbers.bars or latest is None:
        return []
    caption = f"Share of {part.noun.many} in each bin with {numbers.levels} intervals, {latest.window.name}."
    return [("Distribution", caption, curve_chart(numbers))]


def series_of(part: CollectionPart) -> list[Sequence[Trend]]:
    """The trends that a page shows together: of figures or else of values, and of sums."""
    return [part.numbers.trends if part.numbers else part.trends, part.sums.trends if part.sums else ()]


def curve_chart(part: NumberPart, least: float = 0) -> Any:
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
    x = alt.X(
        "begin:Q",
        scale=alt.Scale(type="log" if _is_logarithmic(part.bars) else "linear", zero=False, nice=False),
        axis=alt.Axis(title=as_title(part.unit) or None, grid=False, format=",.6~g", tickCount=8, labelOverlap=True),
    )
    share = alt.Axis(title=None, format=".2~p", tickCount=4, minExtent=least)
    base = alt.Chart(data_of(rows)).encode(x=x, x2="end:Q", description="said:N")
    bars = base.mark_rect(color=SMOOTHED, opacity=0.16, aria=True).encode(y=alt.Y("zero:Q", axis=share), y2="share:Q")
    bars = bars.transform_calculate(zero="0")
    bands = base.mark_rect(color=SMOOTHED, opacity=0.28).encode(y=alt.Y("low:Q", axis=share), y2="high:Q")
    tops = base.mark_rule(color=SMOOTHED, strokeWidth=2).encode(y=alt.Y("share:Q", axis=share))
    layers = [bars, bands, tops]
    median = next((figure.value for figure in part.figures if figure.name == MEDIAN), None)
    if median is not None:
        mark = alt.Chart(data_of([{"at": median, "name": MEDIAN}])).encode(x=alt.X("at:Q"))
        layers.append(mark.mark_rule(color=INK, strokeDash=[2, 3]))
        layers.append(mark.mark_text(color=INK, align="left", dx=4, fontSize=11).encode(y=alt.value(6), text="name:N"))
    return alt.layer(*layers)


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
