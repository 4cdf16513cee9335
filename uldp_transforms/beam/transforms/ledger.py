"""The ledger: numbers of received, accepted, duplicate and rejected reports.

    received = accepted + duplicates + sum of rejected by reason

The four numbers come from different steps. Reports are counted as received when they are taken out of messages, before
any check; as accepted or duplicate where they are counted
(for files with non-overlapping windows: in the finished windows); and as rejected where they are refused. The equation
can therefore fail. When it holds, no report was lost or repeated between the messages and the counts.

Nobody knows how many reports a message or file has that cannot be read. Such messages and files are no reports: rows
count them apart, by reason.

The four numbers do not include losses before the first step or after the counts. A row therefore has a fifth number,
the reports in transit between two steps that both count them, which is 0 if nothing was lost (see ``transit``).

Rows are sums per collection and base period, and can be added. A stream emits them by arrival time, so one period can
have several rows, none of which is ever corrected. A row is emitted when the watermark is a margin past its arrivals,
so that a job that restarts from a checkpoint produces the same row again. If messages arrive even later, one row can
hold one side of the equation and the next row the other: in a stream the equation holds for the sum of the rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import apache_beam as beam
from apache_beam import coders
from apache_beam.pvalue import PCollection
from apache_beam.transforms import trigger
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import MAX_TIMESTAMP, Duration

from uldp_transforms.beam.runtime.beam_windows import as_duration, beam_periods, window_into
from uldp_transforms.beam.runtime.inputs import require_elements, require_same_spec, require_spec, spec_for
from uldp_transforms.collector.ledger_entries import LedgerEntry, entry_of, ledger_row
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.rows.row_types import LedgerRow
from uldp_transforms.spec.job_spec import JobSpec


class SummarizeLedger(beam.PTransform[Any, PCollection[LedgerRow]]):
    """Count the received, accepted, duplicate and rejected reports.

    Input: a tuple of PCollections of ``LedgerEntry`` and ``Rejection``, from all steps that produce them.

    Output: ``LedgerRow``; in a stream per base period of arrival time.

    Examples:
        >>> import apache_beam as beam
        >>> from uldp_transforms import CountReports, DecodeReports
        >>> from uldp_transforms import JobSpec, SummarizeLedger
        >>> from uldp_transforms.ldp import Collection
        >>> from uldp_transforms.messages import wire
        >>> spec = JobSpec.of(collections=["C.json"])
        >>> batch = Collection.from_json("C.json").perturb(["flu"] * 3)
        >>> messages = [wire.encode_batch(batch), b"no report"]
        >>> with beam.Pipeline() as pipeline:
        ...     decoded = pipeline | beam.Create(messages) | DecodeReports(spec)
        ...     counted = decoded.reports | CountReports(spec)
        ...     steps = (decoded.ledger, decoded.rejected, counted.ledger)
        ...     totals = (
        ...         steps
        ...         | SummarizeLedger(spec)
        ...         | beam.Map(lambda row: (row.received, row.accepted))
        ...         | beam.combiners.ToList()
        ...     )
        ...     _ = totals | beam.Map(lambda pairs: print(sorted(pairs)))
        [(0, 0), (3, 3)]

    Args:
        spec: specification of the job.
    """

    def __init__(self, spec: JobSpec):
        super().__init__()
        self._spec = require_spec("SummarizeLedger", spec)

    def expand(self, inputs: tuple[PCollection[LedgerEntry | Rejection], ...]) -> PCollection[LedgerRow]:
        needed = "SummarizeLedger needs a tuple of PCollections of LedgerEntry and Rejection"
        if not isinstance(inputs, (tuple, list)):
            raise SpecError(f"{needed}, got {type(inputs).__name__}")
        if not inputs:
            raise SpecError(f"{needed}, got none")
        for part in inputs:
            require_elements(needed, part, _FOUND)
        entries = (
            tuple(
                part | f"Entries{number}" >> beam.Map(entry_of).with_output_types(_ENTRY)
                for number, part in enumerate(inputs)
            )
            | "Entries" >> beam.Flatten()
        )
        spec = spec_for("SummarizeLedger", self._spec, entries, _ENTRY)
        for part in inputs:
            require_same_spec("SummarizeLedger", spec, part)
        if not spec.bounded and spec.periods is not None:
            when = trigger.AfterWatermark(late=trigger.AfterCount(1))
            arrivals = beam_periods(spec.periods, shift=spec.margin)
            into = window_into(arrivals, when, accumulating=False, allowed_lateness=spec.slack)
            settled = beam.Map(_settled, as_duration(spec.margin)).with_output_types(_ENTRY)
            entries = entries | "Settle" >> settled | "Arrival" >> into
        return (
            entries
            | "Sum" >> beam.CombinePerKey(SumByReasonFn())
            | "NotEmpty" >> beam.Filter(_has_numbers)
            | "Rows" >> beam.Map(ledger_row, spec.catalog, spec.periods, spec.run).with_output_types(LedgerRow)
        )


_in_order = json.JSONEncoder(sort_keys=True).encode


class SumByReasonFn(beam.CombineFn):
    """Sum of report counts by bin; partial sums may be negative."""

    def create_accumulator(self) -> dict[str, int]:
        return {}

    def add_input(self, accumulator: dict[str, int], element: dict[str, int]) -> dict[str, int]:
        for name, number in element.items():
            accumulator[name] = accumulator.get(name, 0) + number
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[dict[str, int]]) -> dict[str, int]:
        total: dict[str, int] = {}
        for accumulator in accumulators:
            self.add_input(total, accumulator)
        return total

    def extract_output(self, accumulator: dict[str, int]) -> dict[str, int]:
        return accumulator

    def get_accumulator_coder(self) -> coders.Coder:
        return ReasonCountsCoder()


class ReasonCountsCoder(coders.Coder):
    """Numbers of reports by reason, as JSON with sorted keys."""

    def encode(self, value: dict[str, int]) -> bytes:
        return _in_order(value).encode("ascii")

    def decode(self, encoded: bytes) -> dict[str, int]:
        return json.loads(encoded)

    def is_deterministic(self) -> bool:
        return True


_FOUND = beam.typehints.Union[LedgerEntry, Rejection]
_ENTRY = beam.typehints.Tuple[str, beam.typehints.Dict[str, int]]


def _settled(
    entry: tuple[str, dict[str, int]], margin: Duration, timestamp: Any = beam.DoFn.TimestampParam
) -> TimestampedValue[tuple[str, dict[str, int]]]:
    """Delay an entry by the margin, so that its row includes work in flight."""
    return TimestampedValue[tuple[str, dict[str, int]]](entry, min(timestamp + margin, MAX_TIMESTAMP))


def _has_numbers(sums: tuple[str, dict[str, int]]) -> bool:
    return any(sums[1].values())
