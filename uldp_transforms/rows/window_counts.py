"""Rows with the counts of one collection in one window and pane, for storage and re-estimation."""

from __future__ import annotations

from typing import Any

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.rows.row_identity import name_of
from uldp_transforms.rows.row_types import WindowCounts
from uldp_transforms.rows.samples.sample import Owner


def counts_of_window(owner: Owner, counts: CohortCounts, place: dict[str, Any], *, complete: bool) -> WindowCounts:
    """The row of a collection, or of one of its groups, in one window and pane, which the fields ``place`` identify."""
    return WindowCounts(
        **name_of(owner.named),
        **place,
        complete=complete,
        num_reports=counts.num_reports.tolist(),
        cells=counts.cells.ravel().tolist(),
        **owner.fields,
    )
