"""A chart over the windows as Vega-Lite: its data, and its axis of the time in the job's zone.

These are plain dictionaries, since a page has many of them; tests check them against Altair's schema.
"""

from __future__ import annotations

import datetime
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from uldp_transforms.rows.figures.window_names import clock, local
from uldp_transforms_report.charts import Layer, numbers_or_none
from uldp_transforms_report.facts import WindowLine
from uldp_transforms_report.trends.time_axis import labels_of

Words = Callable[[float, float, float], str]

_EPOCH, _MILLISECOND = datetime.datetime(1970, 1, 1), datetime.timedelta(milliseconds=1)
_ENDS = ("y", "y2")


def window_chart(
    windows: Sequence[WindowLine],
    columns: Mapping[str, np.ndarray],
    zone: str,
    words: Words | None,
    layers: Sequence[Layer],
) -> dict[str, Any]:
    """A chart whose x axis is the start of a window, in the job's time zone.

    Args:
        windows: W windows.
        columns: (W,) arrays; the first three are an estimate and its interval.
        zone: the time zone.
        words: function that formats these three; None: they are not told.
        layers: what is drawn; data has only the columns that a layer names.
    """
    times = times_of(windows, zone)
    named = {layer["encoding"][end].get("field") for layer in layers for end in _ENDS if end in layer["encoding"]}
    drawn = {name: numbers_or_none(column) for name, column in columns.items() if name in named}
    said = [] if words is None else [*zip(*(column.tolist() for column in [*columns.values()][:3]))]
    rows = [
        {"time": time}
        | ({"said": f"{windows[place].name}: {words(*said[place])}"} if words else {})
        | {name: column[place] for name, column in drawn.items()}
        for place, time in enumerate(times)
        if time is not None
    ]
    return {"data": {"values": rows}, "encoding": {"x": _axis(times)}, "layer": [*layers]}


def times_of(windows: Sequence[WindowLine], zone: str) -> tuple[int | None, ...]:
    """(W,) milliseconds of an axis that shows a place's own time as if it were UTC; None for a global window."""
    return _times(tuple(line.start for line in windows), zone)


@functools.lru_cache(maxsize=16)  # the charts of a page have the same windows
def _times(starts: Sequence[str | None], zone: str) -> tuple[int | None, ...]:
    at = clock(zone)
    moments = (None if start is None else local(start, at).replace(tzinfo=None) for start in starts)
    return tuple(None if moment is None else (moment - _EPOCH) // _MILLISECOND for moment in moments)


@functools.lru_cache(maxsize=16)
def _axis(times: Sequence[int | None]) -> dict[str, Any]:
    moments = [_EPOCH + time * _MILLISECOND for time in times if time is not None]
    labels = {(moment - _EPOCH) // _MILLISECOND: text for moment, text in labels_of(moments).items()}
    axis = {
        "title": None,
        "grid": False,
        "values": [*labels],
        "labelExpr": f"({json.dumps(labels)})[toNumber(datum.value)]",
        "labelFlush": True,
        "labelOverlap": True,
    }
    return {"field": "time", "type": "temporal", "scale": {"type": "utc"}, "axis": axis}
