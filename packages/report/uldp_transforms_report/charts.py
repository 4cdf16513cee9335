"""Charts as Vega-Lite specifications (Altair), drawn by vl-convert: SVG for pages, PNG for everything else.

Drawing needs no browser and no network, and the result contains no scripts. Every number comes from ``facts``.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import altair as alt
import numpy as np
import vl_convert
from altair.utils.schemapi import debug_mode

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators.display import as_title
from uldp_transforms_report.colours import INK, LINE, PAPER, PLAIN

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


def configured(chart: Any) -> dict[str, Any]:
    """The Vega-Lite specification of a standalone picture."""
    spec: dict[str, Any] = chart.to_dict()
    return spec | {"config": config(background=PAPER, padding=20)}


@functools.cache
def config(**more: Any) -> dict[str, Any]:
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


# ---------------------------------------------------------------------------------------------------- shared parts


def number_or_none(value: Any) -> Any:
    """A number of six digits as it stands in the data of a chart."""
    return None if np.isnan(value) else float(f"{value:.6g}")


def axis_of(name: str, is_share: bool = True, unit: str = "") -> alt.Y:
    """The axis of a column; that of shares begins at 0."""
    axis = alt.Axis(title=as_title(unit) or None, format=".2~p" if is_share else ",.6~g", tickCount=4)
    return alt.Y(f"{name}:Q", axis=axis, scale=alt.Scale(zero=is_share))


def band(base: Any, low: str, high: str, colour: str, opacity: float, y: Axis = axis_of) -> Any:
    """The area between two columns."""
    return base.mark_area(color=colour, opacity=opacity).encode(y=y(low), y2=alt.Y2(f"{high}:Q"))


def points(base: Any, name: str, y: Axis = axis_of, colour: str = PLAIN) -> Any:
    """A point for each window, with its numbers in a tooltip."""
    points = base.mark_point(filled=True, size=22, opacity=1, color=colour, aria=True)
    return points.encode(y=y(name), description=alt.Description("said:N"))


def line_of(base: Any, name: str, colour: str, y: Axis = axis_of, **more: Any) -> Any:
    """A line through a column."""
    return base.mark_line(color=colour, strokeWidth=1.6, **more).encode(y=y(name))


class _Data(alt.InlineData):
    """Rows that Altair does not copy for each mark of a chart."""

    def __deepcopy__(self, memo: Any) -> _Data:
        return self


def data_of(rows: _Rows) -> alt.InlineData:
    """Rows as the data of a chart, which Altair does not check one by one."""
    with debug_mode(False):
        return _Data(values=rows)


def svg_text(chart: Any, **size: int) -> str:
    """Draw a chart of this size as SVG; cached, because a stream changes few of its charts at a time."""
    fit = {"autosize": {"type": "fit-x", "contains": "padding"}, "config": config()}
    return _drawn(json.dumps(chart.to_dict(validate=False) | size | fit, sort_keys=True))


@functools.lru_cache(maxsize=1024)
def _drawn(spec: str) -> str:
    svg = _svg(json.loads(spec))
    svg = _NAMED.sub(r"<\1\3><title>\2</title></\1>", svg)  # a pointer that rests there shows it
    svg = re.sub(r'(<[^>]*?) role="graphics-[a-z]*" aria-roledescription="[^"]*"', r"\1", svg)  # without names
    return re.sub(r' (?:d|transform)="[^"]*"', lambda match: re.sub(r"(\.\d\d)\d+", r"\1", match[0]), svg)
