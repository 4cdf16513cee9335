"""Files of single charts, for slides and for papers, each with its caption and its source.

Text is set in Liberation Sans, which vl-convert brings along, so that files are equal on all machines.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import vl_convert

from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.ldp.estimators.display import as_title
from uldp_transforms.rows.figures.figure import Trend
from uldp_transforms_report.charts import config, svg_of
from uldp_transforms_report.colours import GROUPS, INK, LINE, PAPER, PLAIN, SMOOTHED, TRUTH
from uldp_transforms_report.facts import CollectionPart, Report, WindowLine
from uldp_transforms_report.numbers.number_charts import curves_of, series_of
from uldp_transforms_report.texts_for_readers import named
from uldp_transforms_report.trends.alarm_marks import changes_of
from uldp_transforms_report.trends.group_charts import group_chart
from uldp_transforms_report.trends.trend_charts import common_scale, sentence_of, trend_chart

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9]+")
_LONGEST_NAME, _LINE = 40, 100  # letters
_GREY = {PLAIN: "#8a8a8a", SMOOTHED: "#202020", TRUTH: "#202020", INK: "#202020", LINE: "#d8d8d8"}
_GREYS = _GREY | dict.fromkeys(GROUPS, "#202020")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Style:
    """Size and look of the files.

    Attributes:
        width, height: of the whole drawing, in points.
        zoom: points for each pixel of a chart on the page, whose labels have 11.
        dots: pixels of a PNG for each point.
        has_text: whether title, caption and source are drawn; otherwise they are a text file beside the drawing.
        colours: replaced colours.
        kinds: kinds of files, and how each is made from an SVG.
    """

    width: float
    height: float
    zoom: float
    dots: float
    has_text: bool
    colours: Mapping[str, str]
    kinds: Mapping[str, Callable[[str, float], bytes]]


_ROOT = re.compile(r'(<svg [^>]*?)width="([^"]*)" height="([^"]*)"')


def _svg(svg: str, dots: float) -> bytes:
    return svg.encode()


def _png(svg: str, dots: float) -> bytes:
    return bytes(vl_convert.svg_to_png(svg, scale=dots))


def _pdf(svg: str, dots: float) -> bytes:
    return bytes(vl_convert.svg_to_pdf(svg))


STYLES = {
    "slide": Style(
        width=960, height=540, zoom=1.6, dots=2, has_text=True, colours={}, kinds={"svg": _svg, "png": _png}
    ),
    "paper": Style(
        width=3.3 * 72,
        height=1.9 * 72,
        zoom=0.68,
        dots=300 / 72,
        has_text=False,
        colours=_GREYS,
        kinds={"svg": _svg, "png": _png, "pdf": _pdf},
    ),
}
"""Name -> style: slides of 16 to 9, or one column of a paper, which is read without colours."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChartFile:
    """One chart: its file's name without an ending, its title, caption and source, and the chart itself."""

    name: str
    title: str
    caption: str
    source: str
    chart: dict[str, Any]


def charts_in(report: Report) -> Iterator[ChartFile]:
    """The charts over the windows and of curves, in the order of the page."""
    for number, part in enumerate(report.parts, 1):
        source = f"Source: {part.source}; {report.source}."
        for place, (title, caption, chart) in enumerate(_charts(part, report), 1):
            name = _NOT_IN_NAMES.sub("-", f"{part.id} {title}").strip("-")[:_LONGEST_NAME].strip("-")
            yield ChartFile(
                name=f"{number}-{place:02}-{name}", title=title, caption=caption, source=source, chart=chart
            )


def _charts(part: CollectionPart, report: Report) -> Iterator[tuple[str, str, Any]]:
    windows, zone = part.windows, report.zone
    yield from curves_of(part)
    if len([line for line in windows if line.start is not None]) < 2:
        return
    for trend, alike in series_of(part):
        chart = trend_chart(trend, windows, zone, common_scale(alike), changes_of(trend, windows, part.alarms))
        yield named(trend.figure.name, 60), f"{_told(trend, windows)} {_key(part, trend.is_smoothed)}", chart
    for of in part.group_trends:
        everybody = part.everybody(of.name)
        scale = common_scale([*of.trends.values(), *([everybody] if everybody else [])])
        for group, trend in of.trends.items():
            chart = group_chart(trend, everybody, windows, zone, scale, report.colours[group])
            text = f"{_told(trend, windows)} Line without dots: everybody. {part.levels} intervals."
            yield f"{named(of.name, 60)}, {named(group, 80)}", text, chart


def _told(trend: Trend, windows: Sequence[WindowLine]) -> str:
    """The sentence about a trend without its name, which is the title."""
    return sentence_of(trend, windows).removeprefix(f"{named(trend.figure.name)}: ")


def _key(part: CollectionPart, is_smoothed: bool) -> str:
    alone = f"Vertical lines: {part.levels} intervals of single windows."
    return f"{alone} Band: smoothed over neighbouring windows." if is_smoothed else alone


def write_charts(report: Report, folder: str, style: Style) -> int:
    """Write all charts; returns their number.

    Args:
        report: the facts.
        folder: a directory, which is made if it is not there.
        style: of all of them.

    Raises:
        SpecError: if a drawing is incomplete.
        OSError: if a file cannot be written.
    """
    os.makedirs(folder, exist_ok=True)
    number = 0
    for number, one in enumerate(charts_in(report), 1):  # noqa: B007  # the number is returned
        svg = _drawn(one, style)
        files = {kind: make(svg, style.dots) for kind, make in style.kinds.items()}
        if not style.has_text:
            files["txt"] = f"{one.title}. {one.caption} {one.source}\n".encode()
        for kind, content in files.items():
            with whole_file(os.path.join(folder, f"{one.name}.{kind}")) as file:
                file.write(content)
    return number


def _drawn(one: ChartFile, style: Style) -> str:
    """The SVG, drawn in pixels of the page and enlarged to the points of the style."""
    spec = one.chart | {"width": style.width / style.zoom, "height": style.height / style.zoom}
    spec["autosize"] = {"type": "fit", "contains": "padding"}
    spec["config"] = config(background=PAPER, padding=4)
    if style.has_text:
        lines = textwrap.wrap(f"{one.caption} {one.source}", _LINE)
        spec["title"] = {"text": as_title(one.title), "subtitle": lines, "offset": 12}
    text = json.dumps(spec)
    for colour, grey in style.colours.items():
        text = text.replace(f'"{colour}"', f'"{grey}"')
    svg = svg_of(json.loads(text)).decode()
    return _ROOT.sub(rf'\g<1>width="{style.width:g}" height="{style.height:g}"', svg, count=1)
