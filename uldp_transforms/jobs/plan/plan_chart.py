"""The picture of ``uldp plan``: the expected errors of each setup, and without privacy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from uldp_transforms.jobs.report.charts import INK, configured, png_of

_ERRORS = {
    "l1": "Sum of absolute errors over all values",
    "half_width": "Half width of a sensitive value's 95 % interval",
}


def picture_of_plan(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """PNG of the rows of a plan.

    Args:
        rows: for each setup its ``name``, the expected ``l1`` and ``half_width``, and whether it is ``private``.
    """
    base = alt.Chart(alt.InlineData(values=[dict(row) for row in rows])).encode(
        y=alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelLimit=320)),
        color=alt.condition("datum.private", alt.value("#0b5cad"), alt.value(INK)),
    )
    panels: list[Any] = []
    for name, title in _ERRORS.items():
        length = base.encode(x=alt.X(f"{name}:Q", title=None))
        number = length.mark_text(align="left", dx=4).encode(text=alt.Text(f"{name}:Q", format=".3g"))
        panels.append((length.mark_bar(height=12) + number).properties(width=320, height={"step": 24}, title=title))
    return png_of(configured(alt.vconcat(*panels, spacing=24)))
