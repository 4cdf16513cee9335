"""Pictures of errors: those that ``uldp plan`` expects, and those that ``uldp evaluate`` found."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from uldp_transforms.ldp.confidence import CONFIDENCE, percent
from uldp_transforms_report.charts import configured, png_of
from uldp_transforms_report.colours import INK

_BELOW = 0.1  # of the axis of coverage, below the nominal one
_POINT: dict[str, Any] = {"filled": True, "size": 60, "opacity": 1}
_PERCENT = alt.Axis(format=".0%")


def picture_of_plan(rows: Sequence[Mapping[str, Any]], confidence: float = CONFIDENCE) -> bytes:
    """PNG of the rows of a plan.

    Args:
        rows: for each setup its ``name``, the expected ``l1`` and ``half_width``, and whether it is ``private``.
        confidence: of the intervals.
    """
    errors = {
        "l1": "Sum of absolute errors over all values",
        "half_width": f"Half width of a sensitive value's {percent(confidence)} interval",
    }
    base = alt.Chart(alt.InlineData(values=[dict(row) for row in rows])).encode(
        y=alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelLimit=320)),
        color=alt.condition("datum.private", alt.value("#0b5cad"), alt.value(INK)),
    )
    panels: list[Any] = []
    for name, title in errors.items():
        length = base.encode(x=alt.X(f"{name}:Q", title=None))
        number = length.mark_text(align="left", dx=4).encode(text=alt.Text(f"{name}:Q", format=".3g"))
        panels.append((length.mark_bar(height=12) + number).properties(width=320, height={"step": 24}, title=title))
    return png_of(configured(alt.vconcat(*panels, spacing=24)))


def picture_of_trials(outcomes: Sequence[Any], confidence: float = CONFIDENCE) -> bytes:
    """PNG of the outcomes of ``pipelines.evaluate``, whose intervals have this confidence."""
    several = len({of.estimator for of in outcomes}) > 1
    named = [f"{of.mechanism}, {of.estimator}" if several else of.mechanism for of in outcomes]
    names = list(dict.fromkeys(named))
    rows = [dataclasses.asdict(of) | {"mechanism": name} for of, name in zip(outcomes, named)]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("epsilon:Q", scale=alt.Scale(type="log", nice=False), axis=_ticks(outcomes)),
        color=alt.Color("mechanism:N", scale=alt.Scale(domain=names)),
        shape=alt.Shape("mechanism:N", scale=alt.Scale(domain=names)),
    )
    panels: list[Any] = [
        base.mark_line(strokeWidth=1.6, point=_POINT)
        .encode(y=alt.Y(f"{name}:Q", title="root mean square error", scale=alt.Scale(type="log", nice=False)))
        .properties(width=300, height=260, title=f"Error of {title}")
        for name, title in (("raw_error", "raw estimates"), ("error", "the estimator's"))
    ]
    bounds = alt.Scale(domain=[min(round(confidence - _BELOW, 6), *(of.covered for of in outcomes)), 1.0])
    points = base.mark_point(**_POINT).encode(y=alt.Y("covered:Q", title=None, scale=bounds, axis=_PERCENT))
    rule = alt.Chart(alt.InlineData(values=[{"y": confidence}])).mark_rule(color=INK, strokeDash=[4, 3])
    both: Any = rule.encode(y=alt.Y("y:Q", scale=bounds)) + points
    title = f"Intervals that contain the truth; nominal: {percent(confidence)}"
    panels.append(both.properties(width=300, height=260, title=title))
    return png_of(configured(alt.hconcat(*panels, spacing=30)))


def _ticks(outcomes: Sequence[Any]) -> alt.Axis:
    return alt.Axis(values=sorted({of.epsilon for of in outcomes}), format="~g", title="epsilon", grid=False)
