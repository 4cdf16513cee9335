"""The rows of samples, with their metrics."""

from __future__ import annotations

import time
from collections.abc import Container, Sequence

from uldp_transforms.beam.runtime import metrics
from uldp_transforms.beam.transforms.smooth_estimates import Rows
from uldp_transforms.rows.samples.asked import Asked
from uldp_transforms.rows.samples.rows_of_samples import rows_of
from uldp_transforms.rows.samples.sample import Sample


def measured_rows(samples: Sequence[Sample], asked: Asked, shown: Container[Sample] | None = None) -> list[Rows]:
    """The rows of each sample; each is said to have taken as long as the others.

    Args:
        samples: in the order of the rows; all of a window if groups borrow.
        asked: what is estimated.
        shown: those that have rows; None: all.
    """
    begin = time.monotonic_ns()
    of_samples = (rows for rows in rows_of(samples, asked) if shown is None or rows.sample in shown)
    found = [(rows.estimate, rows.health) for rows in of_samples]
    each = (time.monotonic_ns() - begin) // 1_000_000 // max(len(found), 1)
    for _, health in found:
        metrics.observe(each, metrics.ESTIMATE_MS)
        for finding in health.findings:
            metrics.count(finding.fired, metrics.ALARMS, finding.name)
    return found
