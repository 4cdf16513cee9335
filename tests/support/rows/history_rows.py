"""Estimates of windows, one after another."""

from __future__ import annotations

from typing import Any

from uldp_transforms.rows.row_identity import span_of
from uldp_transforms.rows.row_types import ValueEstimate, WindowedEstimate

HOUR, DAY = 3_600_000, 86_400_000


def row_of(start: int, entries: Any, length: int = HOUR, num_reports: int | None = 100) -> WindowedEstimate:
    return WindowedEstimate(
        collection_id="c",
        collection_version=1,
        fingerprint="00",
        **span_of(start, length),
        pane_index=0,
        pane_timing="ON_TIME",
        num_reports=num_reports,
        simulated=None,
        estimator="eb",
        unexplained_mass=None,
        unexplained_standard_error=None,
        redistributed_mass=None,
        fit_p_value=None,
        status="ok",
        software="",
        estimates=entries,
    )


def entry(value: str, raw: float, error: float, common: float | None = None) -> ValueEstimate:
    return ValueEstimate(value, 0.9, error, 0.1, 0.8, raw, common_variance=common)
