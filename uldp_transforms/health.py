"""CheckHealth: what the sentinels say of each window."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam

from uldp_transforms.drain import is_partial
from uldp_transforms.estimate import MIN_REPORTS, place_of, withheld
from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.counts import CohortCounts
from uldp_transforms.ldp.sentinels import examine
from uldp_transforms.ldp.specs import require_int
from uldp_transforms.registry import CollectionRegistry
from uldp_transforms.rows import WindowHealth, name_of


class CheckHealth(beam.PTransform):
    """Examines the counts of each collection, window and pane; see ``uldp_transforms.ldp.sentinels``.

    Input: pairs of a collection's fingerprint and the counts of its reports, as ``CountReports`` makes them.

    Output: one ``WindowHealth`` per input. Windows with too few reports, or cut short, have a row without findings.

    Args:
        collections: those that the job counts.
        min_reports: windows with fewer reports are ``suppressed``.
        complete_after: as for ``EstimateDistribution``.
    """

    def __init__(
        self, collections: Iterable[Collection], min_reports: int = MIN_REPORTS, complete_after: int | None = None
    ):
        super().__init__()
        require_int("CheckHealth.min_reports", min_reports, 1, 1 << 62)
        self._registry = CollectionRegistry(collections)
        self._min_reports = min_reports
        self._complete_after = complete_after

    def expand(self, counts: beam.PCollection[tuple[bytes, CohortCounts]]) -> beam.PCollection[WindowHealth]:
        examine_fn = _ExamineFn(self._registry, self._min_reports, self._complete_after)
        return counts | "Examine" >> beam.ParDo(examine_fn).with_output_types(WindowHealth)


class _ExamineFn(beam.DoFn):
    def __init__(self, registry: CollectionRegistry, min_reports: int, complete_after: int | None):
        self._registry = registry
        self._min_reports = min_reports
        self._complete_after = complete_after

    def process(
        self,
        element: tuple[bytes, CohortCounts],
        window=beam.DoFn.WindowParam,
        pane=beam.DoFn.PaneInfoParam,
    ) -> Iterator[WindowHealth]:
        fingerprint, counts = element
        collection = self._registry[fingerprint]
        status = withheld(counts, self._min_reports, is_partial(window, pane, self._complete_after))
        findings = [] if status else examine(collection, counts)
        details: list[dict[str, Any]] = [dataclasses.asdict(finding) for finding in findings]
        yield WindowHealth(
            **name_of(collection),
            **place_of(window, pane),
            num_reports=None if status else counts.total,
            status=status or ("alarm" if any(found.fired for found in findings) else "ok"),
            findings=details,
        )
