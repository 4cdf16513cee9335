"""The counts of one collection in one window and pane, to be kept and estimated again.

Annotations are real objects here, and ``Optional`` is spelled out: Beam makes schemas of nothing else.
"""

# ruff: noqa: UP045
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.rows.row_identity import name_of
from uldp_transforms.schemas import load

COUNTS_SCHEMA = load("counts.avsc")


class WindowCounts(NamedTuple):
    """The counts of one collection in one window; the fields are those of the Avro schema."""

    collection_id: str
    collection_version: int
    fingerprint: str
    window_start: Optional[str]
    window_end: Optional[str]
    pane_index: int
    pane_timing: str
    complete: bool
    num_reports: Sequence[int]
    cells: Sequence[int]
    run: Optional[str] = None
    simulated: Optional[bool] = None


def counts_of_window(
    collection: Collection, counts: CohortCounts, place: dict[str, Any], *, complete: bool
) -> WindowCounts:
    """The row of one window and pane; ``place`` are the fields that say which."""
    return WindowCounts(
        **name_of(collection),
        **place,
        complete=complete,
        num_reports=counts.num_reports.tolist(),
        cells=counts.cells.ravel().tolist(),
    )
