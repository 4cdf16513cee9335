"""DiscoverValues: counts in, values that nobody listed out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp_transforms.beam.runtime.coders import KEYED_COUNTS
from uldp_transforms.beam.runtime.panes import place_of
from uldp_transforms.beam.spec.inputs import require_spec, spec_for
from uldp_transforms.beam.spec.job_spec import JobSpec
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.rows.discovered_value import DiscoveredValue, discover_window


class DiscoverValues(beam.PTransform[PCollection[tuple[bytes, CohortCounts]], PCollection[DiscoveredValue]]):
    """Searches the counts of alphabets of prefixes for frequent values, window by window.

    Input: as for ``EstimateDistribution``. Output: a row for each value that was found; none for windows that are
    suppressed or partial, and none for collections with other alphabets.

    Args:
        spec: of the job.
    """

    def __init__(self, spec: JobSpec):
        super().__init__()
        self._spec = require_spec("DiscoverValues", spec)

    def expand(self, counts: PCollection[tuple[bytes, CohortCounts]]) -> PCollection[DiscoveredValue]:
        spec = spec_for("DiscoverValues", self._spec, counts, KEYED_COUNTS, windowed=True)
        rows: PCollection[DiscoveredValue] = counts | "Search" >> beam.ParDo(_DiscoverFn(spec)).with_output_types(
            DiscoveredValue
        )
        return rows


class _DiscoverFn(beam.DoFn):
    def __init__(self, spec: JobSpec):
        self._catalog = spec.catalog
        self._withholding = spec.withholding
        self._run = spec.run

    def process(
        self,
        element: tuple[bytes, CohortCounts],
        window: Any = beam.DoFn.WindowParam,
        pane: Any = beam.DoFn.PaneInfoParam,
    ) -> Iterator[DiscoveredValue]:
        fingerprint, counts = element
        withheld = self._withholding.reason(counts, window, pane)
        yield from discover_window(self._catalog[fingerprint], counts, place_of(window, pane, self._run), withheld)
