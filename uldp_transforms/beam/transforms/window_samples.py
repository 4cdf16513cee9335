"""The samples of counts that arrive under the keys of a job, each in a window and pane of Beam."""

from __future__ import annotations

import time
from collections.abc import Container, Mapping, Sequence
from typing import Any

from uldp_transforms.beam.runtime import metrics
from uldp_transforms.beam.runtime.panes import Withholding, place_of
from uldp_transforms.beam.transforms.smooth_estimates import Rows
from uldp_transforms.collector.owners import Owners
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.rows.samples.asked import Asked
from uldp_transforms.rows.samples.rows_of_samples import rows_of
from uldp_transforms.rows.samples.sample import Sample
from uldp_transforms.spec.job_spec import JobSpec


class WindowSamples:
    """Makes samples for a job.

    Attributes:
        owners: of the job.

    Args:
        spec: specification of the job.
    """

    def __init__(self, spec: JobSpec):
        self.owners, self._withholding, self._run = Owners(spec), Withholding.of(spec), spec.run

    def sample(self, owner: bytes, counts: Mapping[bytes, CohortCounts], window: Any, pane: Any) -> Sample:
        """The counts under a key.

        Args:
            owner: key of a collection or question, or of one of their groups.
            counts: by the fingerprint of a version. A stream that was updated may hold versions that are not pooled any
                more, because another one is the newest.
            window: Beam's.
            pane: Beam's.
        """
        return Sample(
            owner=self.owners.of(owner),
            place=place_of(window, pane, self._run),
            counts=counts,
            partial=self._withholding.is_partial(window, pane),
        )


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
