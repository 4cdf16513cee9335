"""Rows with the frequent values that were discovered in a window without a list of candidates."""

from __future__ import annotations

from typing import Any

from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.discovery import can_discover, discover
from uldp_transforms.ldp.errors import EstimationError
from uldp_transforms.rows.row_identity import name_of
from uldp_transforms.rows.row_types import DiscoveredValue


def discover_window(
    collection: Collection,
    counts: CohortCounts,
    place: dict[str, Any],
    withheld: str | None,
    confidence: float = CONFIDENCE,
) -> list[DiscoveredValue]:
    """The rows of one window and pane in descending order of frequency; none if discovery is withheld or impossible.

    Args:
        collection: collection of the reports.
        counts: of all reports of the window so far.
        place: the fields that identify window and pane.
        withheld: status of a window whose numbers are withheld; None if they are not.
        confidence: of the intervals.
    """
    if withheld is not None or not can_discover(collection):
        return []
    try:
        found = discover(collection, counts, confidence)
    except EstimationError:  # the status of the estimate gives the reason
        return []
    columns = (found.frequencies, found.standard_errors, found.ci_low, found.ci_high, found.q_values, found.levels)
    return [
        DiscoveredValue(
            **name_of(collection),
            **place,
            num_reports=counts.total,
            simulated=None,
            value=value,
            frequency=frequency,
            standard_error=standard_error,
            ci_low=low,
            ci_high=high,
            q_value=q_value,
            level=level,
            num_scored=found.num_scored,
            confidence=confidence,
        )
        for value, frequency, standard_error, low, high, q_value, level in zip(
            found.values, *(column.tolist() for column in columns)
        )
    ]
