"""The ledger: what became of every report, as data.

    received = accepted + duplicates + sum of rejected by reason

The four are counted in different places: what is received where reports are taken out of messages, before they are
judged (a message of which nothing becomes counts as one report); what is accepted, or there already, where reports are
counted (of files in windows that do not overlap: in the finished windows); what is rejected where it is refused. So
the equation can fail, and means something when it holds: nothing was lost or repeated on the way from the messages to
the counts.

What is lost before it is received, or behind the counts, is in none of the four. So a row has a fifth number: what is
still in transit between two steps that counted it on both sides, 0 where nothing was lost (see ``transit``).

Rows are sums per collection and base period; they add up. A stream emits them by arrival, so one period can have
several rows, none of which is ever corrected. A row waits until the watermark is a margin past its arrivals: a job
that goes on from a checkpoint after a fault then makes the same row again. Where messages come behind even that, a row
can hold one side of the equation only, and the next row the other: in a stream it holds for the sum of the rows.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam import coders
from apache_beam.pvalue import PCollection
from apache_beam.transforms import trigger
from apache_beam.transforms.window import TimestampedValue
from apache_beam.utils.timestamp import MAX_TIMESTAMP, Duration

from uldp_transforms.beam.runtime.beam_windows import as_duration, beam_periods, window_into
from uldp_transforms.beam.spec.inputs import require_elements, require_same_spec, require_spec, spec_for
from uldp_transforms.beam.spec.job_spec import JobSpec
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.rows.ledger_row import LedgerRow
from uldp_transforms.rows.row_identity import name_of, span_of_period
from uldp_transforms.windows import BasePeriods

RECEIVED, ACCEPTED, DUPLICATES = "received", "accepted", "duplicates"

IN_TRANSIT = "in_transit"
"""Files, messages or windows that one step handed on, minus those that the next one took over."""

_NOT_REASONS = (RECEIVED, ACCEPTED, DUPLICATES, IN_TRANSIT)


class LedgerEntry(NamedTuple):
    """A number of reports, or of what is in transit, of one collection and base period that went into one bin."""

    bin: str
    fingerprint: bytes
    period_start: int | None
    num_reports: int


class SummarizeLedger(beam.PTransform[Any, PCollection[LedgerRow]]):
    """Adds up what came in and what became of it.

    Input: a tuple of PCollections, of ``LedgerEntry`` and of ``Rejection``, from all stages that have some.

    Output: ``LedgerRow``; in a stream per base period of arrival time.

    Args:
        spec: of the job.
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
                part | f"Entries{number}" >> beam.Map(_entry).with_output_types(_ENTRY)
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
            | "Rows" >> beam.Map(_ledger_row, spec.catalog, spec.periods, spec.run).with_output_types(LedgerRow)
        )


class SumByReasonFn(beam.CombineFn):
    """Adds numbers of reports by bin, which may be taken back (negative) on the way."""

    def create_accumulator(self) -> dict[str, int]:
        return {}

    def add_input(self, accumulator: dict[str, int], element: dict[str, int]) -> dict[str, int]:
        return self.merge_accumulators((accumulator, element))

    def merge_accumulators(self, accumulators: Iterable[dict[str, int]]) -> dict[str, int]:
        total: Counter[str] = Counter()
        for accumulator in accumulators:
            total.update(accumulator)
        return dict(total)

    def extract_output(self, accumulator: dict[str, int]) -> dict[str, int]:
        return accumulator

    def get_accumulator_coder(self) -> coders.Coder:
        return ReasonCountsCoder()


class ReasonCountsCoder(coders.Coder):
    """Numbers of reports by reason, as JSON with sorted keys."""

    def encode(self, value: dict[str, int]) -> bytes:
        return json.dumps(value, sort_keys=True).encode("ascii")

    def decode(self, encoded: bytes) -> dict[str, int]:
        return json.loads(encoded)

    def is_deterministic(self) -> bool:
        return True


_FOUND = beam.typehints.Union[LedgerEntry, Rejection]
_ENTRY = beam.typehints.Tuple[str, beam.typehints.Dict[str, int]]


def _key(fingerprint: str, period_start: int | None) -> str:
    return f"{fingerprint}/{'' if period_start is None else period_start}"


def _entry(found: LedgerEntry | Rejection) -> tuple[str, dict[str, int]]:
    if isinstance(found, Rejection):
        fingerprint = found.collection.fingerprint if found.collection else b""
        return _key(fingerprint.hex(), found.period_start), {found.reason.code: found.num_reports}
    return _key(found.fingerprint.hex(), found.period_start), {found.bin: found.num_reports}


def _settled(
    entry: tuple[str, dict[str, int]], margin: Duration, timestamp: Any = beam.DoFn.TimestampParam
) -> TimestampedValue[tuple[str, dict[str, int]]]:
    """The entry as if it had come a margin later, so that its row waits for what is still on the way."""
    return TimestampedValue(entry, min(timestamp + margin, MAX_TIMESTAMP))


def _has_numbers(sums: tuple[str, dict[str, int]]) -> bool:
    return any(sums[1].values())


def _ledger_row(
    sums: tuple[str, dict[str, int]], catalog: CollectionCatalog, periods: BasePeriods | None, run: str | None
) -> LedgerRow:
    key, by_bin = sums
    fingerprint, _, start = key.partition("/")
    rejected = {name: n for name, n in sorted(by_bin.items()) if name not in _NOT_REASONS}
    return LedgerRow(
        **name_of(catalog[bytes.fromhex(fingerprint)] if fingerprint else None),
        **span_of_period(int(start) if start else None, periods),
        received=by_bin.get(RECEIVED, 0),
        accepted=by_bin.get(ACCEPTED, 0),
        duplicates=by_bin.get(DUPLICATES, 0),
        rejected=rejected,
        run=run,
        in_transit=by_bin.get(IN_TRANSIT, 0),
    )
