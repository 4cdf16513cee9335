"""DiscoverValues: find frequent values in counts without a list of candidates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import PCollection

from uldp_transforms.beam.runtime.coders import KEYED_COUNTS
from uldp_transforms.beam.runtime.inputs import require_spec, spec_for
from uldp_transforms.beam.runtime.panes import Withholding, place_of
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.rows.discovered_value import discover_window
from uldp_transforms.rows.row_types import DiscoveredValue
from uldp_transforms.spec.job_spec import JobSpec


class DiscoverValues(beam.PTransform[PCollection[tuple[bytes, CohortCounts]], PCollection[DiscoveredValue]]):
    """Searches the counts of each window for frequent values, for collections with a ``prefixes`` alphabet.

    Input: as for ``EstimateDistribution``. Output: one row per discovered value. Suppressed and partial windows have no
    rows, nor do collections with other alphabets.

    Examples:
        >>> import apache_beam as beam
        >>> import numpy as np
        >>> from uldp_transforms import DiscoverValues, JobSpec
        >>> from uldp_transforms.ldp import Collection
        >>> fields = {
        ...     "id": "words",
        ...     "version": 1,
        ...     "num_cohorts": 64,
        ...     "alphabet": {
        ...         "id": "prefixes",
        ...         "num_buckets": 64,
        ...         "seed": 1,
        ...         "tokens": ["a", "b", "c", "d"],
        ...         "lengths": [2, 4, None],
        ...     },
        ...     "mechanism": {"id": "krr", "epsilon": 8.0},
        ... }
        >>> words = Collection.from_json(fields)
        >>> counts = words.count(words.perturb(["abba"] * 5000, np.random.default_rng(1)))  # simulated
        >>> spec = JobSpec.of(collections=[words], discover=True)
        >>> with beam.Pipeline() as pipeline:
        ...     pairs = pipeline | beam.Create([(words.fingerprint, counts)])
        ...     found = pairs | DiscoverValues(spec)
        ...     _ = found | beam.Map(lambda row: print(row.value))
        abba

    Args:
        spec: specification of the job.
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
        self._withholding = Withholding.of(spec)
        self._run, self._confidence = spec.run, spec.confidence

    def process(
        self,
        element: tuple[bytes, CohortCounts],
        window: Any = beam.DoFn.WindowParam,
        pane: Any = beam.DoFn.PaneInfoParam,
    ) -> Iterator[DiscoveredValue]:
        fingerprint, counts = element
        withheld = self._withholding.reason(counts.total, window, pane)
        place = place_of(window, pane, self._run)
        yield from discover_window(self._catalog[fingerprint], counts, place, withheld, self._confidence)
