"""DecodeReports: turn messages into batches of reports, and into rejections."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.pvalue import PCollection, TaggedOutput
from apache_beam.transforms.window import GlobalWindows
from apache_beam.utils.shared import Shared

import uldp_transforms.beam.runtime.coders  # noqa: F401  # registers how reports cross between workers
from uldp_transforms.beam.runtime import metrics
from uldp_transforms.beam.runtime.inputs import NamedOutputs, mark, require_spec, spec_for
from uldp_transforms.beam.transforms.gather_messages import GATHERED, Gathered, GatherMessages, kind_of_messages
from uldp_transforms.beam.transforms.read_report_files import ReadFiles
from uldp_transforms.collector.ledger_entries import LedgerEntry, handed_on, received_entries
from uldp_transforms.collector.rejected_share import Watch
from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.reports import ReportBatch
from uldp_transforms.messages.decoder import MessageDecoder
from uldp_transforms.messages.mixed_reports import MixedReports
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms.windows import BasePeriods


class _DecodedReports(NamedTuple):
    reports: PCollection[ReportBatch] | PCollection[MixedReports]
    rejected: PCollection[Rejection]
    ledger: PCollection[LedgerEntry]


class DecodedReports(NamedOutputs, _DecodedReports):
    """Outputs of ``DecodeReports``."""

    __slots__ = ()

    owner, example = "DecodeReports", "decoded.reports"


class DecodeReports(beam.PTransform[Any, DecodedReports]):
    """Decodes messages strictly into batches of reports.

    Input: ``bytes``, each one Avro message (a report or a packed batch of reports; see ``messages.wire``), in the
    global window. In a stream the timestamp of an element must be its arrival time, as it is for ``ReadFromPubSub``
    without ``timestamp_attribute``, because the transform compares event times with it. Files have no arrival times.
    A source that reads many messages at once may emit them in groups (type ``Gathered``), which costs less. Or the
    output of ``ReadReportFiles``.

    Output: ``reports`` has one batch per collection for the messages that are decoded together, with the event times
    as a column; ``rejected`` has a ``Rejection`` for everything else; ``ledger`` counts the reports that were received.
    Reports of counted rows stand for several equal ones each: ``ReportBatch.times``.

    If nearly all reports of a stream are rejected for the same reason, the bundle fails with ``RejectedShareError``, so
    that the source keeps the messages; see ``JobSpec.max_rejected_share``.

    Examples:
        >>> import apache_beam as beam
        >>> from uldp_transforms import DecodeReports, JobSpec
        >>> from uldp_transforms.ldp import Collection
        >>> from uldp_transforms.messages import wire
        >>> spec = JobSpec.of(collections=["C.json"])
        >>> batch = Collection.from_json("C.json").perturb(["flu"] * 3)
        >>> with beam.Pipeline() as pipeline:
        ...     messages = pipeline | beam.Create([wire.encode_batch(batch)])
        ...     decoded = messages | DecodeReports(spec)
        ...     _ = decoded.reports | beam.Map(lambda reports: print(len(reports)))
        3

    Args:
        spec: specification of the job.
        mixed: emit the reports of all collections together, as ``MixedReports``, which costs less per collection
            (default: one ``ReportBatch`` per collection).

    Raises:
        SpecError: if an argument has the wrong type.
    """

    def __init__(self, spec: JobSpec, *, mixed: bool = False):
        super().__init__()
        self._spec = require_spec("DecodeReports", spec)
        if not isinstance(mixed, bool):
            raise SpecError(f"DecodeReports.mixed must be true or false, got {describe(mixed)}")
        self._mixed = mixed

    def expand(self, source: PCollection[Any] | ReadFiles) -> DecodedReports:
        messages = source.messages if isinstance(source, ReadFiles) else source
        spec = spec_for("DecodeReports", self._spec, messages, kind_of_messages(messages))
        if spec.bounded and not messages.windowing.is_default():  # with files, every window has one row, at the end
            messages = messages | "WithoutTrigger" >> beam.WindowInto(GlobalWindows())
        decoder = MessageDecoder(spec.catalog, spec.gate, spec.deduplicate)
        gathered, ledger = messages | "Gather" >> GatherMessages(spec)
        ledgers = [ledger]
        if isinstance(source, ReadFiles) and kind_of_messages(messages) is not GATHERED:
            repeated, ledger = source.counted | "GatherCounted" >> GatherMessages(spec)
            gathered = (gathered, repeated) | "WithCounted" >> beam.Flatten()
            gathered.element_type = GATHERED
            ledgers.append(ledger)
        watched = spec if spec.gate and spec.rejected_share < 1 else None
        decode_fn = _DecodeFn(decoder, spec.periods, watched, self._mixed)
        outputs = gathered | "Decode" >> beam.ParDo(decode_fn).with_outputs("rejected", "ledger", main="reports")
        outputs.reports.element_type = MixedReports if self._mixed else ReportBatch
        outputs.rejected.element_type = Rejection
        outputs.ledger.element_type = LedgerEntry
        entries = (outputs.ledger, *ledgers) | "Ledger" >> beam.Flatten()
        mark(spec, outputs.reports, outputs.rejected, entries)
        return DecodedReports(outputs.reports, outputs.rejected, entries)

    def display_data(self) -> dict[str, Any]:
        return {"collections": ", ".join(f"{c.id} v{c.version}" for c in self._spec.collections)}


class _DecodeFn(beam.DoFn):
    """Decodes many messages at a time, and emits the results.

    Args:
        decoder: decoder for the messages.
        periods: base periods of the job.
        watched: the specification, if too many rejected reports stop the job.
        mixed: see ``DecodeReports``.
    """

    def __init__(
        self,
        decoder: MessageDecoder,
        periods: BasePeriods | None,
        watched: JobSpec | None = None,
        mixed: bool = False,
    ):
        self._decoder = decoder
        self._mixed = mixed
        self._periods = periods
        self._watched = watched
        self._watch = Shared()  # per process, because an engine may create a new DoFn for every bundle

    def start_bundle(self) -> None:
        metrics.start_bundle()

    def process(self, gathered: Gathered) -> list[Any]:
        messages, arrived = gathered
        arrival_times = np.array(arrived, dtype=np.int64) if len(arrived) else None
        decoded = self._decoder.decode(messages, arrival_times)
        if self._watched is not None:
            self._watch.acquire(functools.partial(Watch, self._watched)).look(decoded)
        entries = list(received_entries(decoded, self._periods))
        metrics.count(sum(entry.num_reports for entry in entries), metrics.RECEIVED)
        for rejection in decoded.rejections:
            metrics.count_rejected(rejection)
        for reason, worst in decoded.off_by.items():
            metrics.observe(worst, metrics.OFF_BY, reason.code)
        return [
            *(decoded.parts if self._mixed else decoded.batches),
            *(TaggedOutput("rejected", rejection) for rejection in decoded.rejections),
            *(TaggedOutput("ledger", entry) for entry in (*entries, handed_on(-decoded.num_messages))),
        ]
