"""EstimateDistribution: turn counts into windowed estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.pvalue import PCollection, TaggedOutput
from apache_beam.utils.windowed_value import WindowedValue

from uldp_transforms.beam.runtime import metrics
from uldp_transforms.beam.runtime.coders import KEYED_COUNTS
from uldp_transforms.beam.runtime.inputs import NamedOutputs, mark, require_spec, spec_for
from uldp_transforms.beam.runtime.panes import is_partial, place_of
from uldp_transforms.beam.transforms.estimate_together import EstimateTogether
from uldp_transforms.beam.transforms.pool_versions import PoolVersions
from uldp_transforms.beam.transforms.smooth_estimates import KEYED_ROWS, Rows, SmoothEstimates
from uldp_transforms.beam.transforms.window_samples import WindowSamples, measured_rows
from uldp_transforms.collector.owners import Owners
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.messages.group_keys import fingerprint_of, is_total
from uldp_transforms.rows.entry_columns import with_list
from uldp_transforms.rows.row_types import WindowCounts, WindowedEstimate, WindowHealth
from uldp_transforms.rows.samples.rows_of_samples import TOGETHER
from uldp_transforms.rows.samples.sample import Sample, counts_of_window
from uldp_transforms.spec.job_spec import JobSpec

_MOST_CELLS = 1 << 20
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

    Output: one row of each kind per input, except that groups have no ``health`` unless they are smoothed.
    ``estimates``: a window with too few reports, or with counts that allow no estimate, has a row without numbers whose
    ``status`` gives the cause; no window is silently absent. A row that a drained stream emits before all reports of
    its window could arrive is ``partial``. So is the row of a window that shares its reports with an earlier run
    (``JobSpec.partial_before``). If a window can have several rows, their intervals hold simultaneously
    (``JobSpec.anytime_scale``).

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
        columns: whether the entries of a row are a sequence backed by arrays (``EntryColumns``), which is faster to
            write than a list of objects; not of rows that are smoothed.

    Raises:
        SpecError: if an open alphabet has no candidates, or a window does not consist of whole client windows.
    """

    def __init__(self, spec: JobSpec, *, columns: bool = False):
        super().__init__()
        self._form = _same if columns else with_list
        self._spec = require_spec("EstimateDistribution", spec)
        spec.check_candidates()
        spec.check_asked()

    def expand(self, counts: PCollection[tuple[bytes, CohortCounts]]) -> EstimatedWindows:
        spec = spec_for("EstimateDistribution", self._spec, counts, KEYED_COUNTS, windowed=True)
        if spec.smooth:
            smoothed = self._pairs(spec, counts) | "SmoothEstimates" >> SmoothEstimates(spec)
            return EstimatedWindows(*smoothed)
        if spec.borrow:
            together = counts | "EstimateTogether" >> EstimateTogether(spec)
            return EstimatedWindows(*_split_rows(together, "RowsTogether", self._form))
        rows = counts | "Estimate" >> beam.ParDo(_EstimateFn(spec)).with_outputs("health", main="estimates")
        rows.estimates.element_type = WindowedEstimate
        rows.health.element_type = WindowHealth
        estimates = _one_by_one(rows.estimates, "Rows", self._form)
        health = _one_by_one(rows.health, "HealthRows", _same)
        if not spec.questions:
            return EstimatedWindows(estimates, health)
        of_questions = _split_rows(counts | "PoolVersions" >> PoolVersions(spec), "RowsOfQuestions", self._form)
        return EstimatedWindows(
            (estimates, of_questions.estimates) | "Estimates" >> beam.Flatten(),
            (health, of_questions.health) | "Health" >> beam.Flatten(),
        )

    @staticmethod
    def _pairs(spec: JobSpec, counts: PCollection[tuple[bytes, CohortCounts]]) -> PCollection[tuple[bytes, Rows]]:
        """Both rows of each window as a pair, under the key of their counts."""
        if spec.borrow:
            return counts | "EstimateTogether" >> EstimateTogether(spec)
        pairs = counts | "EstimatePairs" >> beam.ParDo(_EstimatePairsFn(spec)).with_output_types(KEYED_ROWS)
        if spec.questions:
            pairs = (pairs, counts | "PoolVersions" >> PoolVersions(spec)) | "WithQuestions" >> beam.Flatten()
        mark(spec, pairs)
        return pairs

    def display_data(self) -> dict[str, Any]:
        return {"estimator": self._spec.estimator, "min_reports": self._spec.min_reports}


class _Waiting(NamedTuple):
    """An element of a bundle whose estimate is not made yet."""

    sums: tuple[bytes, CohortCounts]
    timestamp: Any
    window: Any
    pane: Any


class _EstimateFn(beam.DoFn):
    """Makes the rows of the windows of a bundle, many at a time, because their estimates are solved together."""

    def __init__(self, spec: JobSpec):
        self._asked = spec.asked()
        self._samples = WindowSamples(spec)

    def start_bundle(self) -> None:
        metrics.start_bundle()
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
        if len(self._waiting) >= TOGETHER or self._cells > _MOST_CELLS:
            yield from self._estimated()

    def finish_bundle(self) -> Iterator[Any]:
        yield from self._estimated()

    def _estimated(self) -> Iterator[Any]:
        """The rows of all that waits, each with the time, window and pane of its element."""
        waiting, self._waiting, self._cells = self._waiting, [], 0
        samples = [self._sample(each) for each in waiting]
        for each, rows in zip(waiting, measured_rows(samples, self._asked)):
            metrics.count(1, metrics.WINDOWS, rows[0].status)
            for output in self._outputs(each.sums[0], rows):
                tag, value = (output.tag, output.value) if isinstance(output, TaggedOutput) else (None, output)
                placed = WindowedValue(value, each.timestamp, (each.window,), each.pane)
                yield placed if tag is None else TaggedOutput(tag, placed)

    def _sample(self, waiting: _Waiting) -> Sample:
        """The counts of one key in a window and pane."""
        owner, counts = waiting.sums
        return self._samples.sample(owner, {fingerprint_of(owner): counts}, waiting.window, waiting.pane)

    def _outputs(self, owner: bytes, rows: Rows) -> Iterator[Any]:
        """What is emitted for both rows of a window."""
        return _outputs(owner, rows)


def _outputs(owner: bytes, rows: Rows) -> Iterator[Any]:
    """The row of an estimate; and that of its health, unless it is of a group."""
    row, health = rows
    yield row
    if is_total(owner):
        yield TaggedOutput("health", health)


def _one_by_one(rows: PCollection[Any], name: str, form: Callable[[Any], Any]) -> PCollection[Any]:
    """The rows in this form, for steps that take batches: Beam loses what goes to them at the end of a bundle."""
    passed = rows | name >> beam.Map(form)
    passed.element_type = rows.element_type
    return passed


def _same(row: Any) -> Any:
    return row


def _split_rows(pairs: PCollection[tuple[bytes, Rows]], name: str, form: Callable[[Any], Any]) -> Any:
    """The two rows of pairs, each in its output; estimates in this form."""
    rows = pairs | name >> beam.FlatMap(_split, form).with_outputs("health", main="estimates")
    rows.estimates.element_type = WindowedEstimate
    rows.health.element_type = WindowHealth
    return rows


def _split(pair: tuple[bytes, Rows], form: Callable[[Any], Any]) -> Iterator[Any]:
    """The two rows of a pair, each to its output; the estimate in this form."""
    owner, (row, health) = pair
    yield from _outputs(owner, (form(row), health))


class _EstimatePairsFn(_EstimateFn):
    """The two rows of a window as a pair, under the key of their counts."""

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
        self._owners = Owners(spec)
        self._complete_after = spec.complete_after
        self._run = spec.run

    def process(
        self,
        element: tuple[bytes, CohortCounts],
        window: Any = beam.DoFn.WindowParam,
        pane: Any = beam.DoFn.PaneInfoParam,
    ) -> Iterator[WindowCounts]:
        key, counts = element
        complete = not is_partial(window, pane, self._complete_after)
        yield counts_of_window(self._owners.of(key), counts, place_of(window, pane, self._run), complete=complete)
