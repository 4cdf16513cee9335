"""What changes in the counts when reports are counted once per id. No Beam."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from uldp_transforms.collector.known_reports import HEAD, Changes
from uldp_transforms.collector.period_counts import count_batches
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.reports import ID_BYTES, ReportBatch
from uldp_transforms.messages.catalog import CollectionCatalog


def counts_of_changes(
    catalog: CollectionCatalog,
    fingerprint: bytes,
    changes: Changes,
    bit_patterns: bool = False,
    by: Sequence[str] | None = None,
) -> dict[bytes, CohortCounts]:
    """Counts of the added reports minus those of the removed ones, of the collection and of each group.

    Args:
        catalog: catalog of the job.
        fingerprint: of the collection.
        changes: rows of one base period.
        bit_patterns, by: as for ``count_batches``.
    """
    sums: dict[bytes, CohortCounts] = {}
    for rows, is_added in ((changes.added, True), (changes.removed, False)):
        batches = [_as_batch(fingerprint, rows)] if len(rows) else []
        for (owner, _), counts in count_batches(catalog, batches, None, bit_patterns, by):
            change = counts if is_added else -counts
            sums[owner] = sums[owner] + change if owner in sums else change
    return sums


def _as_batch(fingerprint: bytes, rows: np.ndarray) -> ReportBatch:
    """Rows of ``to_rows`` as reports without ids; all are in one base period, so times do not matter."""
    return ReportBatch(
        fingerprint=fingerprint,
        cohorts=np.ascontiguousarray(rows[:, HEAD - 2 : HEAD]).view("<u2")[:, 0],
        payloads=np.ascontiguousarray(rows[:, HEAD:]),
        event_times=np.zeros(len(rows), dtype=np.int64),
        report_ids=np.zeros((0, ID_BYTES), dtype=np.uint8),
    )
