"""EstimateDistribution: turn counts into windowed estimates."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam import typehints
from apache_beam.pvalue import PCollection, TaggedOutput
from apache_beam.utils.windowed_value import WindowedValue

from uldp_transforms.beam.runtime import metrics
from uldp_transforms.beam.runtime.coders import KEYED_COUNTS, CohortCountsCoder
from uldp_transforms.beam.runtime.inputs import mark, require_spec, spec_for
from uldp_transforms.beam.runtime.outputs import NamedOutputs
from uldp_transforms.beam.runtime.panes import Withholding, is_partial, place_of
from uldp_transforms.beam.transforms.pool_versions import PoolVersions
from uldp_transforms.beam.transforms.smooth_estimates import KEYED_ROWS, Rows, SmoothEstimates
from uldp_transforms.ldp.borrowing import BorrowedShares, borrowed_shares
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.estimators import ESTIMATORS, Estimate
from uldp_transforms.messages.group_keys import fingerprint_of, is_total, pairs_of
from uldp_transforms.rows.entry_columns import EntryColumns
from uldp_transforms.rows.row_identity import fields_of_group
from uldp_transforms.rows.row_types import ValueEstimate, WindowCounts, WindowedEstimate, WindowHealth
from uldp_transforms.rows.window_counts import counts_of_window
from uldp_transforms.rows.window_health import health_of_window
from uldp_transforms.rows.windowed_estimate import Solved, estimate_window, solve_windows
from uldp_transforms.spec.job_spec import JobSpec

_NAMED = typehints.Tuple[bytes, typehints.Tuple[bytes, bytes]]
_COUNTS = CohortCountsCoder()

_TOGETHER, _MOST_CELLS = 256, 1 << 20
"""Numbers of windows, and of cells of their counts, from which a bundle's estimates are made before its end."""


class _EstimatedWindows(NamedTuple):
    estimates: PCollection[WindowedEstimate]
    health: PCollection[WindowHealth]


class EstimatedWindows(NamedOutputs, _EstimatedWindows):
    """Outputs of ``EstimateDistribution``."""

    __slots__ = ()

    owner, example = "EstimateDistribution", "windows.estimates"


class EstimateDistribution(beam.PTransform[PCollection[tuple[bytes, CohortCounts]], EstimatedWindows]):
    """Estimates the distribution of values for each collection, window and pane, and checks the counts.

    Input: pairs of a collection's fingerprint, or the key of a group, and the counts of its reports, as
    ``CountReports`` produces them.

    Output: one row of each kind per input, except that groups have no ``health``. ``estimates``: a window with too few
    reports, or with counts that allow no estimate, has a row without numbers whose ``status`` gives the cause; no
    window is silently absent. A row that a drained stream emits before all reports of its window could arrive is
    ``partial``. So is the row of a window that shares its reports with an earlier run (``JobSpec.partial_before``). If
    a window can have several rows, their intervals hold simultaneously (``JobSpec.anytime_scale``).

    A question that collections name has one more row of each kind per window, pooled from its versions; see
    ``PoolVersions``.

    ``health``: the findings of ``uldp_transforms.ldp.sentinels`` and of the goodness-of-fit test. With
    ``JobSpec.smooth`` both kinds of rows also use neighbouring windows; see ``SmoothEstimates``.

    Examples:
        >>> import apache_beam as beam
        >>> from uldp_transforms import EstimateDistribution, JobSpec
        >>> from uldp_transforms.ldp import Collection
        >>> spec = JobSpec.of(collections=["C.json"])
        >>> collection = Collection.from_json("C.json")
        >>> counts = collection.count(collection.perturb(["flu", "cold"] * 500))
        >>> with beam.Pipeline() as pipeline:
        ...     pairs = pipeline | beam.Create([(collection.fingerprint, counts)])
        ...     windows = pairs | EstimateDistribution(spec)
        ...     rows = windows.estimates
        ...     _ = rows | beam.Map(lambda row: print(row.status, row.num_values))
        ok 4

    Args:
        spec: specification of the job.

    Raises:
        SpecError: if an open alphabet has no candidates, or a window does not consist of whole client windows.
    """

    def __init__(self, spec: JobSpec):
        super().__init__()
        self._spec = require_spec("EstimateDistribution", spec)
        spec.check_candidates()
        spec.check_asked()

    def expand(self, counts: PCollection[tuple[bytes, CohortCounts]]) -> EstimatedWindows:
        spec = spec_for("EstimateDistribution", self._spec, counts, KEYED_COUNTS, windowed=True)
        pooled = counts | "PoolVersions" >> PoolVersions(spec) if spec.questions else None
        if spec.smooth:
            estimated = counts | "EstimatePairs" >> beam.ParDo(_EstimatePairsFn(spec)).with_output_types(KEYED_ROWS)
            if pooled is not None:
                estimated = (estimated, pooled) | "WithQuestions" >> beam.Flatten()
            mark(spec, estimated)
            return EstimatedWindows(*(estimated | "SmoothEstimates" >> SmoothEstimates(spec)))
        estimate_fn = _EstimateGroupsFn(spec) if spec.borrow else _EstimateFn(spec)
        own = _together(counts) if spec.borrow else counts
        rows = own | "Estimate" >> beam.ParDo(estimate_fn).with_outputs("health", main="estimates")
        rows.estimates.element_type = WindowedEstimate
        rows.health.element_type = WindowHealth
        estimates, health = _one_by_one(rows.estimates, "Rows"), _one_by_one(rows.health, "HealthRows")
        if pooled is None:
            return EstimatedWindows(estimates, health)
        of_questions = pooled | "RowsOfQuestions" >> beam.FlatMap(_split).with_outputs("health", main="estimates")
        of_questions.estimates.element_type = WindowedEstimate
        of_questions.health.element_type = WindowHealth
        return EstimatedWindows(
            (estimates, of_questions.estimates) | "Estimates" >> beam.Flatten(),
            (health, of_questions.health) | "Health" >> beam.Flatten(),
        )

    def display_data(self) -> dict[str, Any]:
        return {"estimator": self._spec.estimator, "min_reports": self._spec.min_reports}


class _RowsFn(beam.DoFn):
    """Makes the rows of the counts of one key."""

    _entries: Callable[[Estimate, int | None], Sequence[ValueEstimate]] | None = None
    _solving = 0
    """Nanoseconds that the solution of each window took before."""

    def __init__(self, spec: JobSpec):
        self._catalog = spec.catalog
        self._estimator = ESTIMATORS[spec.estimator]()
        self._candidates = spec.candidates
        self._withholding = Withholding.of(spec)
        self._show = spec.show
        self._anytime_scale = spec.anytime_scale
        self._limits, self._quantiles = spec.limits, spec.quantiles
        self._liars = spec.liars
        self._run = spec.run
        self._by = spec.by

    def start_bundle(self) -> None:
        metrics.start_bundle()

    def _rows(
        self,
        element: tuple[bytes, CohortCounts],
        window: Any,
        pane: Any,
        borrowed: BorrowedShares | None = None,
        solved: Solved | None = None,
    ) -> tuple[WindowedEstimate, WindowHealth]:
        owner, counts = element
        collection, place = self._catalog[fingerprint_of(owner)], place_of(window, pane, self._run)
        withheld = self._withholding.reason(counts.total, window, pane)
        begin = time.monotonic_ns() - self._solving
        row = estimate_window(
            collection,
            counts,
            place,
            self._estimator,
            self._candidates,
            withheld,
            show=self._show,
            anytime_scale=self._anytime_scale,
            limits=self._limits,
            quantiles=self._quantiles,
            entries=self._entries,
            liars=self._liars,
            borrowed=borrowed,
            solved=solved,
            group=pairs_of(owner, collection, self._by),
        )
        metrics.observe((time.monotonic_ns() - begin) // 1_000_000, metrics.ESTIMATE_MS)
        metrics.count(1, metrics.WINDOWS, row.status)
        health = health_of_window(collection, counts, place, withheld, row.fit_p_value)
        for finding in health.findings:
            metrics.count(finding.fired, metrics.ALARMS, finding.name)
        return row, health


class _Waiting(NamedTuple):
    """An element of a bundle whose estimate is not made yet."""

    sums: tuple[bytes, CohortCounts]
    timestamp: Any
    window: Any
    pane: Any


class _EstimateFn(_RowsFn):
    """Makes the rows of the windows of a bundle, many at a time, because their estimates are solved together."""

    def start_bundle(self) -> None:
        super().start_bundle()
        self._waiting: list[_Waiting] = []
        self._cells = 0

    def process(
        self,
        element: tuple[bytes, CohortCounts],
        timestamp: Any = beam.DoFn.TimestampParam,
        window: Any = beam.DoFn.WindowParam,
        pane: Any = beam.DoFn.PaneInfoParam,
    ) -> Iterator[Any]:
        self._waiting.append(_Waiting(element, timestamp, window, pane))
        self._cells += element[1].cells.size
        if len(self._waiting) >= _TOGETHER or self._cells > _MOST_CELLS:
            yield from self._estimated()

    def finish_bundle(self) -> Iterator[Any]:
        yield from self._estimated()

    def _estimated(self) -> Iterator[Any]:
        """The rows of all that waits, each with the time, window and pane of its element."""
        waiting, self._waiting, self._cells = self._waiting, [], 0
        shown = [each for each in waiting if not self._is_withheld(each)]
        begin = time.monotonic_ns()
        together = [(self._catalog[fingerprint_of(each.sums[0])], each.sums[1]) for each in shown]
        solved = dict(zip(map(id, shown), solve_windows(together, self._estimator, self._candidates)))
        self._solving = (time.monotonic_ns() - begin) // max(len(shown), 1)
        for each in waiting:
            rows = self._rows(each.sums, each.window, each.pane, solved=solved.get(id(each)))
            for output in self._outputs(each.sums[0], rows):
                tag, value = (output.tag, output.value) if isinstance(output, TaggedOutput) else (None, output)
                placed = WindowedValue(value, each.timestamp, (each.window,), each.pane)
                yield placed if tag is None else TaggedOutput(tag, placed)

    def _is_withheld(self, each: _Waiting) -> bool:
        return self._withholding.reason(each.sums[1].total, each.window, each.pane) is not None

    def _outputs(self, owner: bytes, rows: Rows) -> Iterator[Any]:
        return _outputs(owner, rows)


class _EstimateGroupsFn(_RowsFn):
    """All groups of a window together, so that they can borrow from the total."""

    def __init__(self, spec: JobSpec):
        super().__init__(spec)
        self._min_reports = spec.min_reports

    def process(
        self,
        element: tuple[bytes, Iterable[tuple[bytes, bytes]]],
        window: Any = beam.DoFn.WindowParam,
        pane: Any = beam.DoFn.PaneInfoParam,
    ) -> Iterator[Any]:
        fingerprint, encoded = element
        sums = {owner: _COUNTS.decode(counts) for owner, counts in encoded}
        groups = {owner: counts for owner, counts in sums.items() if counts is not None and not is_total(owner)}
        collection = self._catalog[fingerprint]
        shown = borrowed_shares(collection, sums.get(fingerprint), groups, self._estimator, self._min_reports)
        for owner, counts in sums.items():
            if counts is not None:
                yield from _outputs(owner, self._rows((owner, counts), window, pane, shown.get(owner)))


def _outputs(owner: bytes, rows: Rows) -> Iterator[Any]:
    """The row of an estimate; and that of its health, unless it is of a group."""
    row, health = rows
    yield row
    if is_total(owner):
        yield TaggedOutput("health", health)


def _one_by_one(rows: PCollection[Any], name: str) -> PCollection[Any]:
    """The same rows, for steps that take batches: Beam loses what goes to them at the end of a bundle."""
    passed = rows | name >> beam.Map(_same)
    passed.element_type = rows.element_type
    return passed


def _same(row: Any) -> Any:
    return row


def _together(counts: PCollection[tuple[bytes, CohortCounts]]) -> PCollection[Any]:
    """The counts of the total and of all groups of each collection and window."""
    named = counts | "OfCollection" >> beam.Map(_of_collection).with_output_types(_NAMED)
    together: PCollection[Any] = named | "Groups" >> beam.GroupByKey()
    return together


def _of_collection(sums: tuple[bytes, CohortCounts]) -> tuple[bytes, tuple[bytes, bytes]]:
    return fingerprint_of(sums[0]), (sums[0], _COUNTS.encode(sums[1]))


def _split(pair: tuple[bytes, Rows]) -> Iterator[Any]:
    """The two rows of a pair, each to its output."""
    row, health = pair[1]
    yield row
    yield TaggedOutput("health", health)


class _EstimatePairsFn(_EstimateFn):
    """The two rows of a window as a pair, under the key of their collection; for files, with entries as columns."""

    def __init__(self, spec: JobSpec):
        super().__init__(spec)
        self._entries = EntryColumns.of_estimate if spec.bounded else None

    def _outputs(self, owner: bytes, rows: Rows) -> Iterator[Any]:
        yield owner, rows


class CountsRows(beam.PTransform[PCollection[tuple[bytes, CohortCounts]], PCollection[WindowCounts]]):
    """Turns counts into rows that can be stored and re-estimated later with ``uldp reestimate``.

    Input: as for ``EstimateDistribution``. Output: ``WindowCounts``.

    Examples:
        >>> import apache_beam as beam
        >>> from uldp_transforms import CountsRows, JobSpec
        >>> from uldp_transforms.ldp import Collection
        >>> spec = JobSpec.of(collections=["C.json"])
        >>> collection = Collection.from_json("C.json")
        >>> counts = collection.count(collection.perturb(["flu", "cold"] * 500))
        >>> with beam.Pipeline() as pipeline:
        ...     pairs = pipeline | beam.Create([(collection.fingerprint, counts)])
        ...     rows = pairs | CountsRows(spec)
        ...     _ = rows | beam.Map(lambda row: print(row.collection_id))
        diagnoses

    Args:
        spec: specification of the job.
    """

    def __init__(self, spec: JobSpec):
        super().__init__()
        self._spec = require_spec("CountsRows", spec)

    def expand(self, counts: PCollection[tuple[bytes, CohortCounts]]) -> PCollection[WindowCounts]:
        spec = spec_for("CountsRows", self._spec, counts, KEYED_COUNTS, windowed=True)
        return counts | "Rows" >> beam.ParDo(_CountsRowsFn(spec)).with_output_types(WindowCounts)


class _CountsRowsFn(beam.DoFn):
    def __init__(self, spec: JobSpec):
        self._catalog = spec.catalog
        self._complete_after = spec.complete_after
        self._run = spec.run
        self._by = spec.by

    def process(
        self,
        element: tuple[bytes, CohortCounts],
        window: Any = beam.DoFn.WindowParam,
        pane: Any = beam.DoFn.PaneInfoParam,
    ) -> Iterator[WindowCounts]:
        owner, counts = element
        collection = self._catalog[fingerprint_of(owner)]
        complete = not is_partial(window, pane, self._complete_after)
        place = place_of(window, pane, self._run)
        row = counts_of_window(collection, counts, place, complete=complete)
        yield row._replace(**fields_of_group(collection, pairs_of(owner, collection, self._by)))
