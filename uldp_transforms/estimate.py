"""EstimateDistribution: counts in, windowed estimates out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import PaneInfoTiming

from uldp_transforms.ldp.collection import Collection, canonical_candidates
from uldp_transforms.ldp.counts import CohortCounts
from uldp_transforms.ldp.errors import EstimationError, SpecError
from uldp_transforms.ldp.estimators import ESTIMATORS, Estimate
from uldp_transforms.ldp.estimators.linear import MAX_CANDIDATES
from uldp_transforms.ldp.specs import require_int
from uldp_transforms.registry import CollectionRegistry
from uldp_transforms.rows import WindowedEstimate, name_of

MIN_REPORTS = 100
"""Default minimum of reports behind a published estimate."""


class EstimateDistribution(beam.PTransform):
    """Estimates the distribution of values for each collection, window and pane.

    Input: pairs of a collection's fingerprint and the counts of its reports, as ``CountReports`` makes them.

    Output: one ``WindowedEstimate`` per input. Too few reports, or counts that cannot give an estimate, make a row
    without numbers whose ``status`` says why; no window is silently absent.

    Args:
        collections: those that the job counts.
        estimator: id, see ``uldp_transforms.ldp.estimators``.
        candidates: values to estimate in open alphabets; closed ones list all their values.
        min_reports: windows with fewer reports are ``suppressed``.
    """

    def __init__(
        self,
        collections: Iterable[Collection],
        estimator: str = "projected",
        candidates: Sequence[str] | None = None,
        min_reports: int = MIN_REPORTS,
    ):
        super().__init__()
        require_int("EstimateDistribution.min_reports", min_reports, 1, 1 << 62)
        self._registry = CollectionRegistry(collections)
        self._estimator = ESTIMATORS[estimator]()
        self._candidates = None if candidates is None else canonical_candidates(candidates)
        self._min_reports = min_reports
        for collection in self._registry:
            self._check(collection)

    def _check(self, collection: Collection) -> None:
        if not self._estimator.supports(collection):
            raise SpecError(f"estimator {self._estimator.id!r} does not support collection {collection.id!r}")
        if collection.alphabet.known_values is None:
            number = 0 if self._candidates is None else len(self._candidates)
            if not 1 <= number <= MAX_CANDIDATES:
                raise SpecError(
                    f"collection {collection.id!r} has an open alphabet and needs 1 to {MAX_CANDIDATES} candidate "
                    f"values (--candidates), got {number}"
                )

    def expand(self, counts: beam.PCollection[tuple[bytes, CohortCounts]]) -> beam.PCollection[WindowedEstimate]:
        return counts | "Estimate" >> beam.ParDo(
            _EstimateFn(self._registry, self._estimator, self._candidates, self._min_reports)
        ).with_output_types(WindowedEstimate)

    def display_data(self) -> dict[str, Any]:
        return {"estimator": self._estimator.id, "min_reports": self._min_reports}


class _EstimateFn(beam.DoFn):
    def __init__(self, registry, estimator, candidates, min_reports):
        self._registry = registry
        self._estimator = estimator
        self._candidates = candidates
        self._min_reports = min_reports

    def process(
        self,
        element: tuple[bytes, CohortCounts],
        window=beam.DoFn.WindowParam,
        pane=beam.DoFn.PaneInfoParam,
    ) -> Iterator[WindowedEstimate]:
        fingerprint, counts = element
        collection = self._registry[fingerprint]
        status, estimate = self._estimate(collection, counts)
        windowed = window != GlobalWindow()
        timing = PaneInfoTiming.ON_TIME if pane.timing == PaneInfoTiming.UNKNOWN else pane.timing
        yield WindowedEstimate(
            **name_of(collection),
            window_start=window.start.micros // 1000 if windowed else None,
            window_end=window.end.micros // 1000 if windowed else None,
            pane_index=max(pane.index, 0),
            pane_timing=PaneInfoTiming.to_string(timing),
            num_reports=None if status == "suppressed" else counts.total,
            estimator=self._estimator.id,
            unexplained_mass=estimate.unexplained_mass if estimate else None,
            unexplained_standard_error=estimate.unexplained_standard_error if estimate else None,
            status=status,
            estimates=WindowedEstimate.values_of(estimate) if estimate else [],
        )

    def _estimate(self, collection: Collection, counts: CohortCounts) -> tuple[str, Estimate | None]:
        if counts.total < self._min_reports:
            return "suppressed", None
        candidates = self._candidates if collection.alphabet.known_values is None else None
        try:
            return "ok", self._estimator.estimate(collection, counts, candidates)
        except EstimationError as error:
            return error.status, None
