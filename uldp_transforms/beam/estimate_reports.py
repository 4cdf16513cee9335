"""EstimateReports: the whole collector as one transform, from messages to windowed estimates."""

from __future__ import annotations

from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam.pvalue import AsSingleton, PCollection
from typing_extensions import Unpack

from uldp_transforms.beam.runtime.inputs import NamedOutputs, require_spec, spec_for
from uldp_transforms.beam.transforms.count_reports import CountReports
from uldp_transforms.beam.transforms.decode_reports import DecodeReports
from uldp_transforms.beam.transforms.discover_values import DiscoverValues
from uldp_transforms.beam.transforms.estimate_distribution import CountsRows, EstimateDistribution
from uldp_transforms.beam.transforms.gather_messages import Gathered, kind_of_messages
from uldp_transforms.beam.transforms.ledger import SummarizeLedger
from uldp_transforms.beam.transforms.read_report_files import ReadFiles
from uldp_transforms.beam.transforms.release_once import ReleaseOnce
from uldp_transforms.beam.transforms.transit import WindowsInTransit
from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rows.rejected_report import rejected_row
from uldp_transforms.rows.row_types import (
    DiscoveredValue,
    EstimatedValue,
    LedgerRow,
    RejectedReport,
    WindowCounts,
    WindowedEstimate,
    WindowHealth,
)
from uldp_transforms.rows.windowed_estimate import flat
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms.spec.plain_values import SpecValues
from uldp_transforms.spec.spec_fields import FINAL


class _Outputs(NamedTuple):
    estimates: PCollection[WindowedEstimate]
    values: PCollection[EstimatedValue] | None
    health: PCollection[WindowHealth]
    ledger: PCollection[LedgerRow]
    rejected: PCollection[RejectedReport]
    counts: PCollection[WindowCounts] | None = None
    discovered: PCollection[DiscoveredValue] | None = None


class EstimatedReports(NamedOutputs, _Outputs):
    """Outputs of ``EstimateReports``, as attributes.

    Raises:
        SpecError: for ``values``, ``counts`` and ``discovered`` if the job does not have them, which are None in
            ``_asdict()``.
    """

    __slots__ = ()

    owner, example = "EstimateReports", "estimated.values"

    @property
    def values(self) -> PCollection[EstimatedValue]:
        return self._asked("values", "with_values=True")

    @property
    def counts(self) -> PCollection[WindowCounts]:
        return self._asked("counts", "with_counts=True")

    @property
    def discovered(self) -> PCollection[DiscoveredValue]:
        return self._asked("discovered", "discover=True")

    def _asked(self, name: str, argument: str) -> Any:
        output = self._asdict()[name]
        if output is None:
            raise SpecError(f"EstimateReports has no output {name} unless it is asked for; use: {argument}")
        return output


class EstimateReports(beam.PTransform[Any, EstimatedReports]):
    """Decode, count and estimate reports, and account for every report.

    Input: messages as ``bytes`` in the global window, for instance from ``ReadFromPubSub``, or groups of messages, or
    the output of ``ReadReportFiles``. The transform detects whether the input is bounded.

    Output, as PCollections of NamedTuples with Beam schemas: ``estimates`` has one row per collection, window and pane;
    ``values`` has the same estimates with one row per value; ``health`` has the findings of the sentinels; ``ledger``
    accounts for every report; ``rejected`` has one row per rejected report or message, with the reason; ``counts`` has
    the counts from which windows can be re-estimated (None unless ``with_counts``); ``discovered`` has frequent values
    that are on no list (None unless ``JobSpec.discover``).

    Examples:
        >>> import apache_beam as beam
        >>> from uldp_transforms import EstimateReports, ReadReportFiles
        >>> with beam.Pipeline() as pipeline:
        ...     files = pipeline | ReadReportFiles("reports*.avro")
        ...     estimated = files | EstimateReports(
        ...         collections=["C.json"], window="1d"
        ...     )
        ...     rows = estimated.estimates
        ...     _ = rows | beam.Map(lambda row: print(row.num_reports, row.status))
        10000 ok

    Args:
        spec: specification of the job.
        with_counts: whether to produce ``counts``. The size of these rows does not depend on the number of reports.
        with_values: whether to produce ``values``. An output that nobody reads takes time too.
        columns: whether entries of ``estimates`` are backed by arrays; see ``EstimateDistribution``.
        values: keyword arguments of ``JobSpec.of``, instead of ``spec``; see ``SpecValues``.

    Raises:
        SpecError: if a value is not allowed, or an open alphabet has no candidates.
        OSError: if a file cannot be read.
    """

    def __init__(
        self,
        spec: JobSpec | None = None,
        *,
        with_counts: bool = False,
        with_values: bool = True,
        columns: bool = False,
        **values: Unpack[SpecValues],
    ):
        super().__init__()
        for name, given in (("with_counts", with_counts), ("with_values", with_values), ("columns", columns)):
            if not isinstance(given, bool):
                raise SpecError(f"EstimateReports.{name} must be true or false, got {describe(given)}")
        self._with_counts = with_counts
        self._with_values = with_values
        self._columns = columns
        if isinstance(spec, (str, list, tuple, dict, Collection)):
            raise SpecError(
                f"EstimateReports needs a JobSpec, got {describe(spec)}; use: EstimateReports(collections=[...])"
            )
        if spec is not None and values:
            raise SpecError(f"EstimateReports needs a JobSpec or plain values, got both ({', '.join(values)})")
        self._spec = JobSpec.of(**values) if spec is None else require_spec("EstimateReports", spec)
        self._spec.check_candidates()

    def expand(self, source: PCollection[bytes] | PCollection[Gathered] | ReadFiles) -> EstimatedReports:
        messages = source.messages if isinstance(source, ReadFiles) else source
        spec = spec_for("EstimateReports", self._spec, messages, kind_of_messages(messages))
        decoded = source | "DecodeReports" >> DecodeReports(spec, mixed=True)
        counted = decoded.reports | "CountReports" >> CountReports(spec)
        counts = counted.counts
        if spec.release == FINAL:
            counts = counts | "ReleaseOnce" >> ReleaseOnce(spec)
        windows = counts | "EstimateDistribution" >> EstimateDistribution(spec, columns=self._columns)
        estimates = windows.estimates
        discovered = counts | "DiscoverValues" >> DiscoverValues(spec) if spec.discover else None
        counts_rows = counts | "CountsRows" >> CountsRows(spec) if self._with_counts else None
        if isinstance(source, ReadFiles):
            said = AsSingleton(source.simulated | "AnySimulated" >> beam.CombineGlobally(any))
            estimates = estimates | "Simulated" >> beam.Map(_said, said).with_output_types(WindowedEstimate)
            if counts_rows is not None:
                counts_rows = counts_rows | "SimulatedCounts" >> beam.Map(_said, said).with_output_types(WindowCounts)
            if discovered is not None:
                discovered = discovered | "SimulatedFinds" >> beam.Map(_said, said).with_output_types(DiscoveredValue)
        values = None
        if self._with_values:
            values = estimates | "Values" >> beam.FlatMap(flat).with_output_types(EstimatedValue)

        of_collections = estimates
        if spec.questions:  # their reports are accounted for by collection
            of_collections = estimates | "OfCollections" >> beam.Filter(_is_of_collection)
        in_transit = (counts, of_collections) | "WindowsInTransit" >> WindowsInTransit(spec)

        rejections, entries = [decoded.rejected], [decoded.ledger, counted.ledger]
        if isinstance(source, ReadFiles):
            rejections.append(source.rejected)
            entries.append(source.ledger)
        refused = rejections | "Refused" >> beam.Flatten()
        return EstimatedReports(
            estimates=estimates,
            values=values,
            health=windows.health,
            ledger=(*entries, refused, in_transit) | "SummarizeLedger" >> SummarizeLedger(spec),
            rejected=refused
            | "RejectedRows" >> beam.Map(rejected_row, spec.periods, spec.run).with_output_types(RejectedReport),
            counts=counts_rows,
            discovered=discovered,
        )


def _is_of_collection(row: WindowedEstimate) -> bool:
    return not row.pooled


def _said(row: Any, simulated: bool) -> Any:
    """Mark the row as simulated if the files say so."""
    return row._replace(simulated=simulated)
