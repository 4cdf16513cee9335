"""The picture of ``uldp evaluate``: error by epsilon for each mechanism, and coverage of the intervals."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import altair as alt

from uldp_transforms.jobs.report.charts import INK, configured, png_of

_PROMISED = 0.95
_POINT: dict[str, Any] = {"filled": True, "size": 60, "opacity": 1}
_PERCENT = alt.Axis(format=".0%")


def picture_of_trials(outcomes: Sequence[Any]) -> bytes:
    """PNG of the outcomes of ``pipelines.evaluate``."""
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
    bounds = alt.Scale(domain=[min(0.85, *(of.covered for of in outcomes)), 1.0])
    points = base.mark_point(**_POINT).encode(y=alt.Y("covered:Q", title=None, scale=bounds, axis=_PERCENT))
    rule = alt.Chart(alt.InlineData(values=[{"y": _PROMISED}])).mark_rule(color=INK, strokeDash=[4, 3])
    both: Any = rule.encode(y=alt.Y("y:Q", scale=bounds)) + points
    title = "Intervals that contain the truth; nominal: 95 %"
    panels.append(both.properties(width=300, height=260, title=title))
    return png_of(configured(alt.hconcat(*panels, spacing=30)))


def _ticks(outcomes: Sequence[Any]) -> alt.Axis:
    return alt.Axis(values=sorted({of.epsilon for of in outcomes}), format="~g", title="epsilon", grid=False)
