"""EstimateDistribution: counts in, windowed estimates out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindow
from apache_beam.utils.windowed_value import PaneInfoTiming

from uldp_transforms import __version__
from uldp_transforms.drain import is_partial
from uldp_transforms.health import health_of_window
from uldp_transforms.ldp.checks import require_int
from uldp_transforms.ldp.collection import Collection, canonical_candidates
from uldp_transforms.ldp.counts import CohortCounts
from uldp_transforms.ldp.errors import EstimationError, SpecError
from uldp_transforms.ldp.estimators import ESTIMATORS, Estimate, Estimator
from uldp_transforms.ldp.estimators.question import MAX_CANDIDATES
from uldp_transforms.registry import CollectionRegistry
from uldp_transforms.rows import WindowCounts, WindowedEstimate, WindowHealth, name_of

SOFTWARE = f"uldp_transforms {__version__}"

MIN_REPORTS = 100
"""Default minimum of reports behind a published estimate."""


class EstimatedWindows(NamedTuple):
    """Outputs of ``EstimateDistribution``."""

    estimates: beam.PCollection[WindowedEstimate]
    health: beam.PCollection[WindowHealth]


class EstimateDistribution(beam.PTransform):
    """Estimates the distribution of values for each collection, window and pane, and examines the counts behind it.

    Input: pairs of a collection's fingerprint and the counts of its reports, as ``CountReports`` makes them.

    Output: one row of each kind per input. ``estimates``: too few reports, or counts that cannot give an estimate, make
    a row without numbers whose ``status`` says why; no window is silently absent. ``health``: what
    ``uldp_transforms.ldp.sentinels`` and the fit of the estimate say.

    Args:
        collections: those that the job counts.
        estimator: id, see ``uldp_transforms.ldp.estimators``.
        candidates: values to estimate in open alphabets; closed ones list all their values.
        min_reports: windows with fewer reports are ``suppressed``.
        complete_after: milliseconds from the end of a window to the first row with all its reports; rows of a stream
            that come earlier by the clock are ``partial``, because the job was drained. None: the input is bounded.
    """

    def __init__(
        self,
        collections: Iterable[Collection],
        estimator: str = "projected",
        candidates: Sequence[str] | None = None,
        min_reports: int = MIN_REPORTS,
        complete_after: int | None = None,
    ):
        super().__init__()
        require_int("EstimateDistribution.min_reports", min_reports, 1, 1 << 62)
        self._registry = CollectionRegistry(collections)
        self._estimator = ESTIMATORS[estimator]()
        self._candidates = None if candidates is None else canonical_candidates(candidates)
        self._min_reports = min_reports
        self._complete_after = complete_after
        for collection in self._registry:
            self._check(collection)

    def _check(self, collection: Collection) -> None:
        collection.check_estimator(self._estimator)
        if collection.alphabet.known_values is None:
            number = len({*(self._candidates or ()), *collection.alphabet.clear_values})
            if not 1 <= number <= MAX_CANDIDATES:
                raise SpecError(
                    f"collection {collection.id!r} has an open alphabet and needs 1 to {MAX_CANDIDATES} candidate "
                    f"values (--candidates) or public ones, got {number}"
                )

    def expand(self, counts: beam.PCollection[tuple[bytes, CohortCounts]]) -> EstimatedWindows:
        rows = counts | "Estimate" >> beam.ParDo(
            _EstimateFn(self._registry, self._estimator, self._candidates, self._min_reports, self._complete_after)
        ).with_outputs("health", main="estimates")
        rows.estimates.element_type = WindowedEstimate
        rows.health.element_type = WindowHealth
        return EstimatedWindows(rows.estimates, rows.health)

    def display_data(self) -> dict[str, Any]:
        return {"estimator": self._estimator.id, "min_reports": self._min_reports}


class _EstimateFn(beam.DoFn):
    def __init__(self, registry, estimator, candidates, min_reports, complete_after):
        self._registry = registry
        self._estimator = estimator
        self._candidates = candidates
        self._min_reports = min_reports
        self._complete_after = complete_after

    def process(
        self,
        element: tuple[bytes, CohortCounts],
        window=beam.DoFn.WindowParam,
        pane=beam.DoFn.PaneInfoParam,
    ) -> Iterator[Any]:
        fingerprint, counts = element
        collection, place = self._registry[fingerprint], place_of(window, pane)
        withheld = reason_to_withhold(counts, self._min_reports, is_partial(window, pane, self._complete_after))
        row = estimate_window(collection, counts, place, self._estimator, self._candidates, withheld)
        yield row
        yield beam.pvalue.TaggedOutput("health", health_of_window(collection, counts, place, withheld, row.fit_p_value))


def estimate_window(
    collection: Collection,
    counts: CohortCounts,
    place: dict[str, Any],
    estimator: Estimator,
    candidates: tuple[str, ...] | None,
    withheld: str | None,
) -> WindowedEstimate:
    """The row of one window and pane; without numbers if reports are too few or missing, or no estimate can be made.

    Args:
        collection: what the reports were made for.
        counts: of all reports of the window so far.
        place: the fields that say which window and pane it is, see ``place_of``.
        estimator: that makes the estimate.
        candidates: canonical values to estimate in an open alphabet.
        withheld: the status of a window that must not have numbers; None if it may.
    """
    estimate: Estimate | None = None
    status = withheld or "ok"
    if withheld is None:
        try:
            asked = candidates if collection.alphabet.known_values is None else None
            estimate = estimator.estimate(collection, counts, asked)
            if not estimate.converged:
                status, estimate = "not_converged", None
        except EstimationError as error:
            status = error.status
    return WindowedEstimate(
        **name_of(collection),
        **place,
        num_reports=None if withheld else counts.total,
        estimator=estimator.id,
        unexplained_mass=estimate.unexplained_mass if estimate else None,
        unexplained_standard_error=estimate.unexplained_standard_error if estimate else None,
        redistributed_mass=estimate.redistributed_mass if estimate else None,
        fit_p_value=estimate.fit_p_value if estimate else None,
        status=status,
        software=SOFTWARE,
        estimates=WindowedEstimate.values_of(estimate) if estimate else [],
    )


def reason_to_withhold(counts: CohortCounts, min_reports: int, partial: bool) -> str | None:
    """The status of a window that must not have numbers: cut short, or of too few reports; None if it may."""
    if partial:
        return "partial"
    return "suppressed" if counts.total < min_reports else None


def place_of(window: Any, pane: Any) -> dict[str, Any]:
    """The fields of a row that say which window and pane it is."""
    windowed = window != GlobalWindow()
    timing = PaneInfoTiming.ON_TIME if pane.timing == PaneInfoTiming.UNKNOWN else pane.timing
    return {
        "window_start": window.start.micros // 1000 if windowed else None,
        "window_end": window.end.micros // 1000 if windowed else None,
        "pane_index": max(pane.index, 0),
        "pane_timing": PaneInfoTiming.to_string(timing),
    }


class CountsRows(beam.PTransform):
    """Counts as rows, to be kept and estimated again later; see ``pipelines.reestimate``.

    Input: as for ``EstimateDistribution``. Output: ``WindowCounts``.

    Args:
        collections: those that the job counts.
        complete_after: as for ``EstimateDistribution``.
    """

    def __init__(self, collections: Iterable[Collection], complete_after: int | None = None):
        super().__init__()
        self._registry = CollectionRegistry(collections)
        self._complete_after = complete_after

    def expand(self, counts: beam.PCollection[tuple[bytes, CohortCounts]]) -> beam.PCollection[WindowCounts]:
        return counts | "Rows" >> beam.ParDo(_CountsRowsFn(self._registry, self._complete_after)).with_output_types(
            WindowCounts
        )


class _CountsRowsFn(beam.DoFn):
    def __init__(self, registry: CollectionRegistry, complete_after: int | None):
        self._registry = registry
        self._complete_after = complete_after

    def process(
        self,
        element: tuple[bytes, CohortCounts],
        window=beam.DoFn.WindowParam,
        pane=beam.DoFn.PaneInfoParam,
    ) -> Iterator[WindowCounts]:
        fingerprint, counts = element
        yield WindowCounts(
            **name_of(self._registry[fingerprint]),
            **place_of(window, pane),
            complete=not is_partial(window, pane, self._complete_after),
            num_reports=counts.num_reports.tolist(),
            cells=counts.cells.ravel().tolist(),
        )
