"""The picture of a directory for slides and notes: the latest window of each collection with some trends beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import altair as alt

from uldp_transforms.ldp.estimators.display import as_title, rows_with_labels
from uldp_transforms.rows.figures.figure import Figure
from uldp_transforms.rows.figures.figure_words import words_of
from uldp_transforms_report.charts import LABELS, SCHEMA, beside, config, configured, data_of, put
from uldp_transforms_report.colours import INK, PAPER, PLAIN, SMOOTHED, TRUTH
from uldp_transforms_report.facts import CollectionPart, Latest, Report
from uldp_transforms_report.texts_for_readers import named, shown
from uldp_transforms_report.trends.trend_charts import common_scale, trend_chart

_IN_PICTURE = 6  # maximum number of trends
_PARTS_IN_PICTURE = 4  # maximum number of collections
_LONGEST = 18  # maximum number of letters of an axis label


def picture(report: Report, of_numbers: Callable[[CollectionPart, str], Any]) -> dict[str, Any]:
    """Vega-Lite specification of the latest window and the first trends of each collection, with a legend.

    Args:
        report: the facts.
        of_numbers: draws collections with a curve of numbers, from the part and the name of the time zone.
    """
    shown_parts = [part for part in report.parts[:_PARTS_IN_PICTURE] if part.trends]
    lines = [
        f"Estimated shares of {report.counted} with {report.levels} intervals, adjusted for showing the largest values"
    ]
    if left_out := len(report.parts) - len(shown_parts):
        lines.append(f"{left_out} further collection(s) have no numbers or do not fit here")
    title = alt.TitleParams(as_title(shown(report.title)), subtitle=lines, fontSize=20, subtitleFontSize=12, offset=12)
    if not shown_parts:
        empty = alt.Chart(data_of([{}])).mark_text(text="Not enough data for numbers", size=16, color=INK)
        return configured(alt.vconcat(empty.properties(width=700, height=120), title=title))
    charts = [(of_numbers if part.numbers and part.numbers.bars else _part)(part, report.zone) for part in shown_parts]
    below = put("vconcat", [_legend(shown_parts), *charts], title=title.to_dict(), spacing=24)
    return {"$schema": SCHEMA, "config": config(background=PAPER, padding=20)} | below


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
        "each window alone": (_whisker(PLAIN), _sample("point", PLAIN, size=22)),
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


def _sample(mark: str, colour: str, opacity: float = 1, **style: Any) -> Any:
    """A mark of a legend, 24 pixels wide."""
    base = alt.Chart(data_of([{"from": 0, "to": 24, "at": 12}]))
    if mark == "rule":
        return base.mark_rule(color=colour, opacity=opacity, **style).encode(x=_pixels("from"), x2="to:Q")
    drawn = base.mark_point(filled=True, opacity=opacity, color=colour, **style)
    if mark == "tick":
        drawn = base.mark_tick(color=colour, opacity=opacity, **style)
    return drawn.encode(x=_pixels("at"))


def _whisker(colour: str) -> Any:
    return _sample("tick", colour, orient="vertical", size=16, thickness=2, opacity=0.35)


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
    title = _titled(f"{shown(part.id)}, {part.which}: {window.name}", part, part.latest)
    latest = _latest(entries, LABELS).properties(width=260, title=title)
    timed = [line for line in part.windows if line.start is not None]
    trends = part.trends[:_IN_PICTURE] if len(timed) > 1 else []
    scale = common_scale(trends)
    return beside(latest, [(trend.figure.name, trend_chart(trend, part.windows, zone, scale)) for trend in trends])


def _titled(text: str, part: CollectionPart, latest: Latest) -> alt.TitleParams:
    number = latest.window.num_reports
    told = f"{part.noun.counted(number)}, " if number else ""
    return alt.TitleParams(text, subtitle=f"{told}the largest shares first")
