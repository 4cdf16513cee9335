"""Charts as Vega-Lite specifications, drawn by vl-convert: SVG for pages, PNG for everything else.

Drawing needs no browser and no network, and the result contains no scripts. Every number comes from ``facts``. Charts
of pages are plain dictionaries: a page has many, and Altair, which makes the others, is slow to import.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import vl_convert

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators.display import as_title
from uldp_transforms_report.colours import INK, LINE, PAPER, PLAIN
from uldp_transforms_report.texts_for_readers import named

FEW = 60
"""Maximum number of windows with visible points."""

FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
"""Faces of pages and charts: vl-convert contains the first one, and letters of the others are as wide."""

LABELS = 120
"""Pixels of the names beside the chart of a window."""

_CONFIG: dict[str, Any] = {
    "aria": False,  # the page has a text alternative for each chart
    "background": "transparent",
    "font": FONT,
    "view": {"continuousWidth": 300, "continuousHeight": 300, "stroke": None},
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

_PLACES = re.compile(r' (?:d|transform)="[^"]*"')
_DECIMALS = re.compile(r"(?<=\.\d\d)\d+")
"""Where an SVG has places of shapes, and the decimals of a number after the second one."""

_DRAWN = re.compile(r'class="mark-[a-z]+ role-mark[ "]')
"""The group of a mark in an SVG, with any number of shapes."""

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
"""The language of the specifications."""

Layer = dict[str, Any]
"""One mark of a chart, with its encoding."""

Axis = Callable[[str], dict[str, Any]]
"""Function that returns the y axis for a column."""


def configured(chart: Any) -> dict[str, Any]:
    """The Vega-Lite specification of a standalone picture."""
    spec: dict[str, Any] = chart.to_dict()
    return spec | {"config": config(background=PAPER, padding=20)}


def config(**more: Any) -> dict[str, Any]:
    """The configuration of all charts, with more for a whole picture."""
    return _CONFIG | more


def put(how: str, charts: Sequence[Any], **properties: Any) -> dict[str, Any]:
    """Specification of charts beside each other (``hconcat``) or below (``vconcat``).

    Altair would copy each chart, with all that it consists of, at each level of a picture.
    """
    return {how: [chart if isinstance(chart, dict) else _part_of_picture(chart) for chart in charts]} | properties


def beside(latest: Any, trends: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """The latest window with named trends beside it, two in a row."""
    charts = [
        {**chart, "width": 260, "height": 120, "title": {"text": as_title(named(name, 30)), "fontSize": 12}}
        for name, chart in trends
    ]
    rows = [put("hconcat", charts[at : at + 2]) for at in range(0, len(charts), 2)]
    return put("hconcat", [latest, *([put("vconcat", rows)] if rows else [])], spacing=40)


def _part_of_picture(chart: Any) -> dict[str, Any]:
    import altair as alt  # noqa: PLC0415  # slow to import

    with alt.data_transformers.enable(consolidate_datasets=False):
        spec: dict[str, Any] = chart.to_dict(validate=False)
    return {name: value for name, value in spec.items() if name not in ("$schema", "config")}


def png_of(spec: Mapping[str, Any]) -> bytes:
    """Draw a PNG without a network; raises SpecError if the drawing is incomplete."""
    return bytes(vl_convert.svg_to_png(_svg(json.dumps(spec)), scale=1.5))


def svg_of(spec: Mapping[str, Any]) -> bytes:
    """Draw an SVG without a network; raises SpecError if the drawing is incomplete."""
    return f"{_svg(json.dumps(spec))}\n".encode()


def _svg(spec: str) -> str:
    """Draw a chart, and check that each of its marks is there: vl-convert only logs most errors of Vega.

    Raises:
        SpecError: if a mark is missing. The sentence does not show Vega's, which may contain values.
    """
    try:
        svg = str(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]))
    except ValueError:
        svg = ""
    drawn, wanted = len(_DRAWN.findall(svg)), spec.count('"mark": ')
    if drawn < wanted:
        raise SpecError(f"charts must be drawn by vl-convert with all of their {wanted} marks, got {drawn}")
    return svg


# ---------------------------------------------------------------------------------------------------- shared parts


def numbers_or_none(column: np.ndarray) -> list[float | None]:
    """(W,) numbers of six digits as they stand in the data of a chart; None for NaN."""
    return [None if math.isnan(number) else float(f"{number:.6g}") for number in column.tolist()]


def quantity(name: str, **more: Any) -> dict[str, Any]:
    """The encoding of a column of numbers."""
    return {"field": name, "type": "quantitative"} | more


def axis_of(name: str) -> dict[str, Any]:
    """The axis of a column of shares, which begins at 0."""
    return quantity(name, axis={"title": None, "format": ".2~p", "tickCount": 4}, scale={"zero": True})


def band(low: str, high: str, colour: str, opacity: float, y: Axis = axis_of) -> Layer:
    """The area between two columns."""
    mark = {"type": "area", "color": colour, "opacity": opacity}
    return {"mark": mark, "encoding": {"y": y(low), "y2": {"field": high}}}


def points(name: str, y: Axis = axis_of, colour: str = PLAIN) -> Layer:
    """A point for each window, with its numbers in a tooltip."""
    mark = {"type": "point", "filled": True, "size": 22, "opacity": 1, "color": colour, "aria": True}
    return {"mark": mark, "encoding": {"y": y(name), "description": {"field": "said", "type": "nominal"}}}


def line_of(name: str, colour: str, y: Axis = axis_of, **more: Any) -> Layer:
    """A line through a column."""
    return {"mark": {"type": "line", "color": colour, "strokeWidth": 1.6} | more, "encoding": {"y": y(name)}}


def data_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Rows as the data of a chart."""
    return {"values": [*rows]}


def svg_text(chart: Mapping[str, Any], **size: int) -> str:
    """Draw a chart of this size as SVG; cached, because a stream changes few of its charts at a time."""
    fit = {"$schema": SCHEMA, "autosize": {"type": "fit-x", "contains": "padding"}, "config": config()}
    return _drawn(json.dumps({**chart, **size, **fit}, sort_keys=True))


@functools.lru_cache(maxsize=1024)
def _drawn(spec: str) -> str:
    svg = _svg(spec)
    svg = _NAMED.sub(r"<\1\3><title>\2</title></\1>", svg)  # a pointer that rests there shows it
    svg = re.sub(r'(<[^>]*?) role="graphics-[a-z]*" aria-roledescription="[^"]*"', r"\1", svg)  # without names
    return _PLACES.sub(lambda places: _DECIMALS.sub("", places[0]), svg)
