"""CheckHealth: what the sentinels say of each window."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam

from uldp_transforms.estimate import MIN_REPORTS, place_of
from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.counts import CohortCounts
from uldp_transforms.ldp.sentinels import examine
from uldp_transforms.ldp.specs import require_int
from uldp_transforms.registry import CollectionRegistry
from uldp_transforms.rows import WindowHealth, name_of


class CheckHealth(beam.PTransform):
    """Examines the counts of each collection, window and pane; see ``uldp_transforms.ldp.sentinels``.

    Input: pairs of a collection's fingerprint and the counts of its reports, as ``CountReports`` makes them.

    Output: one ``WindowHealth`` per input. Windows with too few reports have a row without findings.

    Args:
        collections: those that the job counts.
        min_reports: windows with fewer reports are ``suppressed``.
    """

    def __init__(self, collections: Iterable[Collection], min_reports: int = MIN_REPORTS):
        super().__init__()
        require_int("CheckHealth.min_reports", min_reports, 1, 1 << 62)
        self._registry = CollectionRegistry(collections)
        self._min_reports = min_reports

    def expand(self, counts: beam.PCollection[tuple[bytes, CohortCounts]]) -> beam.PCollection[WindowHealth]:
        return counts | "Examine" >> beam.ParDo(_ExamineFn(self._registry, self._min_reports)).with_output_types(
            WindowHealth
        )


class _ExamineFn(beam.DoFn):
    def __init__(self, registry: CollectionRegistry, min_reports: int):
        self._registry = registry
        self._min_reports = min_reports

    def process(
        self,
        element: tuple[bytes, CohortCounts],
        window=beam.DoFn.WindowParam,
        pane=beam.DoFn.PaneInfoParam,
    ) -> Iterator[WindowHealth]:
        fingerprint, counts = element
        collection = self._registry[fingerprint]
        enough = counts.total >= self._min_reports
        findings = examine(collection, counts) if enough else []
        details: list[dict[str, Any]] = [dataclasses.asdict(finding) for finding in findings]
        yield WindowHealth(
            **name_of(collection),
            **place_of(window, pane),
            num_reports=counts.total if enough else None,
            status="suppressed" if not enough else "alarm" if any(f.fired for f in findings) else "ok",
            findings=details,
        )
