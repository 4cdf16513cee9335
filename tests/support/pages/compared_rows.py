"""Rows of comparisons, as the page reads them."""

from __future__ import annotations

from typing import Any

LONG = "a value with a rather long name, longer than most names of values"


def row(value: str, difference: float, half: float, q_value: float, **more: Any) -> dict[str, Any]:
    """As ``uldp compare`` writes it."""
    found = {"selected_low": difference - 2 * half, "selected_high": difference + 2 * half}
    return {
        "collection_id": "survey",
        "window_start": "2026-11-01T00:00:00Z",
        "window_end": "2026-11-03T00:00:00Z",
        "value": value,
        "group_a": "arm=new",
        "group_b": "arm=control",
        "difference": difference,
        "low": difference - half,
        "high": difference + half,
        "p_value": q_value,
        "q_value": q_value,
        "lift": None,
        "lift_low": None,
        "lift_high": None,
        **(found if q_value <= 0.05 else {"selected_low": None, "selected_high": None}),
        "noticeable": 1.43 * half,
        "interval": "fixed",
    } | more


COMPARED = [
    row("bee", -0.05, 0.013, 1e-12),
    row("ant", 0.06, 0.01, 1e-15),
    row(LONG, 0.01, 0.02, 0.4),
    row("cat", -0.001, 0.02, 0.9),
]
