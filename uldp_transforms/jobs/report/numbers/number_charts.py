"""Charts of numbers: the histogram with its band, and figures over the windows."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import altair as alt
import numpy as np

from uldp_transforms.jobs.report.charts import (
    FEW,
    INK,
    LABELS,
    PLAIN,
    SMOOTHED,
    Axis,
    band,
    beside,
    data_of,
    line_of,
    points,
    svg_text,
    through_time,
)
from uldp_transforms.jobs.report.facts import CollectionPart, WindowLine
from uldp_transforms.jobs.report.numbers.number_facts import (
    MEDIAN,
    Bar,
    FigureTrend,
    NumberPart,
    digits_of_figure,
    number_span,
    number_text,
)
from uldp_transforms.jobs.report.texts_for_readers import percent, share_words, shown
from uldp_transforms.ldp.estimators.display import as_title

_MANY_TIMES = 8.0  # ratio of the widths of bins above which the axis is logarithmic


def curve_svg(part: NumberPart) -> str:
    """The share of people in each bin, with its band, and a mark at the median."""
    return svg_text(_curve(part), width=520, height=220)


def figure_svg(trend: FigureTrend, windows: Sequence[WindowLine], unit: str, zone: str) -> str:
    """A mean or quantile over the windows, with both intervals."""
    return svg_text(_through(trend, windows, unit, zone), width=330, height=150)


def panel(part: CollectionPart, zone: str) -> dict[str, Any]:
    """The picture of a collection of numbers: the curve of the latest window, and figures over the windows."""
    assert part.numbers is not None and part.latest is not None
    window, numbers = part.latest.window, part.numbers
    reports = [f"{window.num_reports:,} reports"] if window.num_reports else []
    colours = "Blue: smooth. Grey: intervals without smoothness"
    if numbers.trends and numbers.trends[0].is_smoothed:
        colours = "Blue: smoothed over windows. Grey: each window alone"
    title = alt.TitleParams(f"{shown(part.id)}, {part.which}: {window.name}", subtitle=[*reports, colours])
    trends = [
        (f"{trend.figure.name}, {numbers.unit}" if numbers.unit else trend.figure.name, trend)
        for trend in numbers.trends
    ]
    curve = _curve(numbers, LABELS).properties(width=260, height=220, title=title)
    return beside(curve, [(name, _through(trend, part.windows, "", zone)) for name, trend in trends])


def _curve(part: NumberPart, least: float = 0) -> Any:
    """The histogram; the labels of its shares take at least ``least`` pixels."""
    rows = [
        {
            "begin": bar.low,
            "end": bar.high,
            "share": bar.share,
            "low": bar.band_low,
            "high": bar.band_high,
            "said": f"{bar.name}{f' {part.unit}' if part.unit else ''}: "
            f"{share_words(bar.share, bar.band_low, bar.band_high)}",
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
    widths = [bar.high - bar.low for bar in bars]
    return bars[0].low > 0 and max(widths) > _MANY_TIMES * min(widths)


def _through(trend: FigureTrend, windows: Sequence[WindowLine], unit: str, zone: str) -> Any:
    names = ("value", "low", "high", "sure_low", "sure_high")
    digits = digits_of_figure(trend.figure)

    def words(value: float, low: float, high: float) -> str:
        return f"{number_text(value, digits)}{f' {unit}' if unit else ''} ({number_span(low, high, digits)})"

    columns = {name: getattr(trend, name) for name in names}
    has_open_end = np.isnan(trend.sure_low) | np.isnan(trend.sure_high)
    columns |= {name: np.where(has_open_end, np.nan, columns[name]) for name in names[3:]}
    if trend.is_smoothed:
        return _smoothed_through(trend, windows, columns, zone, functools.partial(_number, unit=unit), words)
    base = through_time(windows, columns, zone, words)
    y = functools.partial(_number, unit=unit)
    layers = [
        band(base, "sure_low", "sure_high", PLAIN, 0.22, y),
        band(base, "low", "high", SMOOTHED, 0.28, y),
        line_of(base, "value", SMOOTHED, y),
    ]
    if len(windows) <= FEW:
        layers.append(points(base, "value", y))
    return alt.layer(*layers)


def _smoothed_through(
    trend: FigureTrend,
    windows: Sequence[WindowLine],
    columns: dict[str, np.ndarray],
    zone: str,
    y: Axis,
    words: Callable[[float, float, float], str],
) -> Any:
    """Each window alone in grey, and the figure smoothed over neighbouring windows, where no window contradicts it."""
    has_open_end = np.isnan(trend.smoothed_low) | np.isnan(trend.smoothed_high)
    columns |= {
        "smoothed": np.where(trend.contradicted, np.nan, trend.smoothed),
        "smoothed_low": np.where(trend.contradicted | has_open_end, np.nan, trend.smoothed_low),
        "smoothed_high": np.where(trend.contradicted | has_open_end, np.nan, trend.smoothed_high),
    }
    base = through_time(windows, columns, zone, words)
    layers = [
        band(base, "low", "high", PLAIN, 0.22, y),
        band(base, "smoothed_low", "smoothed_high", SMOOTHED, 0.28, y),
        line_of(base, "smoothed", SMOOTHED, y),
    ]
    if len(windows) <= FEW:
        layers.append(points(base, "value", y))
    return alt.layer(*layers)


def _number(name: str, unit: str) -> alt.Y:
    axis = alt.Axis(title=as_title(unit) or None, format=",.6~g", tickCount=4)
    return alt.Y(f"{name}:Q", axis=axis, scale=alt.Scale(zero=False))


def sentence_of_figure(trend: FigureTrend, windows: Sequence[WindowLine], unit: str) -> str:
    """Text alternative of a chart of ``figure_svg``."""
    known = np.flatnonzero(np.isfinite(trend.value)).tolist()
    digits = digits_of_figure(trend.figure)
    after = f" {unit}" if unit else ""
    ends = (f"{number_text(trend.value[at], digits)}{after} in {windows[at].name}" for at in (known[0], known[-1]))
    return f"{trend.figure.name}: {', '.join(ends)}."


def sentence_of_curve(part: NumberPart) -> str:
    """Text alternative of the histogram: its highest bar."""
    top = max(part.bars, key=lambda bar: -math.inf if math.isnan(bar.share) else bar.share)
    after = f" {part.unit}" if part.unit else ""
    return f"Share of people in {len(part.bars)} bins, most in {top.name}{after}: {percent(top.share)}"
