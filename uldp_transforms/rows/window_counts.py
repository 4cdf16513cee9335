"""Rows with the counts of one collection in one window and pane, for storage and re-estimation."""

from __future__ import annotations

from typing import Any

from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.rows.row_identity import name_of
from uldp_transforms.rows.row_types import WindowCounts


def counts_of_window(
    collection: Collection, counts: CohortCounts, place: dict[str, Any], *, complete: bool
) -> WindowCounts:
    """The row of one window and pane, which the fields ``place`` identify."""
    return WindowCounts(
        **name_of(collection),
        **place,
        complete=complete,
        num_reports=counts.num_reports.tolist(),
        cells=counts.cells.ravel().tolist(),
    )
