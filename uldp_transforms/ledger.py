"""The ledger: what became of every report, as data.

    received = accepted + duplicates + sum of rejected by reason

The four are counted in different places: what is received where reports are taken out of messages, before they are
judged (a message of which nothing becomes counts as one report); what is accepted, or there already, where reports are
counted (of files in windows that do not overlap: in the finished windows); what is rejected where it is refused. So
the equation can fail, and means something when it holds: nothing was lost or repeated on the way from the messages to
the counts.

Rows are sums per collection and base period; they add up. A stream emits them by arrival, so one period can have
several rows, none of which is ever corrected. Where messages come behind the watermark a row can hold one side of the
equation only, and the next row the other: in a stream the equation holds for the sum of the rows of a period.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import apache_beam as beam
from apache_beam import coders
from apache_beam.transforms import trigger
from apache_beam.transforms.window import FixedWindows
from apache_beam.utils.timestamp import Duration

from uldp_transforms.decoding import Rejection
from uldp_transforms.ldp.collection import Collection
from uldp_transforms.registry import CollectionRegistry
from uldp_transforms.rows import LedgerRow, RejectedReport, name_of
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME, Windows

RECEIVED, ACCEPTED, DUPLICATES = "received", "accepted", "duplicates"


class LedgerEntry(NamedTuple):
    """A number of reports of one collection and base period that went into one bin."""

    bin: str
    fingerprint: bytes
    period_start: int | None
    num_reports: int


class SummarizeLedger(beam.PTransform):
    """Adds up what came in and what became of it.

    Input: a tuple of PCollections, of ``LedgerEntry`` and of ``Rejection``, from all stages that have some.

    Output: ``LedgerRow``.

    Args:
        collections: those that the job counts.
        windows: of the job; None without windows.
        unbounded: True in a stream: rows are emitted per base period of arrival time.
    """

    def __init__(self, collections: Iterable[Collection], windows: Windows | None, unbounded: bool = False):
        super().__init__()
        self._registry = CollectionRegistry(collections)
        self._windows = windows
        self._unbounded = unbounded

    def expand(self, inputs: tuple[beam.PCollection[LedgerEntry | Rejection], ...]):
        entries = (
            tuple(
                part | f"Entries{number}" >> beam.Map(_entry).with_output_types(_ENTRY)
                for number, part in enumerate(inputs)
            )
            | "Entries" >> beam.Flatten()
        )
        if self._unbounded and self._windows is not None:
            entries = entries | "Arrival" >> beam.WindowInto(
                FixedWindows(Duration(micros=self._windows.base * 1000)),
                trigger=trigger.AfterWatermark(late=trigger.AfterCount(1)),
                accumulation_mode=trigger.AccumulationMode.DISCARDING,
                allowed_lateness=Duration(micros=self._windows.lateness_slack * 1000),
            )
        base = None if self._windows is None else self._windows.base
        return (
            entries
            | "Sum" >> beam.CombinePerKey(SumByReasonFn())
            | "Rows" >> beam.Map(_ledger_row, registry=self._registry, base=base).with_output_types(LedgerRow)
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


_ENTRY = beam.typehints.Tuple[str, beam.typehints.Dict[str, int]]


def _key(fingerprint: str, period_start: int | None) -> str:
    return f"{fingerprint}/{'' if period_start is None else period_start}"


def _entry(found: LedgerEntry | Rejection) -> tuple[str, dict[str, int]]:
    if isinstance(found, Rejection):
        fingerprint = found.collection.fingerprint if found.collection else b""
        return _key(fingerprint.hex(), found.period_start), {found.reason.code: found.num_reports}
    return _key(found.fingerprint.hex(), found.period_start), {found.bin: found.num_reports}


def _ledger_row(sums: tuple[str, dict[str, int]], registry: CollectionRegistry, base: int | None) -> LedgerRow:
    key, by_bin = sums
    fingerprint, _, start = key.partition("/")
    rejected = {name: n for name, n in sorted(by_bin.items()) if name not in (RECEIVED, ACCEPTED, DUPLICATES)}
    return LedgerRow(
        **name_of(registry[bytes.fromhex(fingerprint)] if fingerprint else None),
        window_start=int(start) if start else None,
        window_end=int(start) + (base or 0) if start else None,
        received=by_bin.get(RECEIVED, 0),
        accepted=by_bin.get(ACCEPTED, 0),
        duplicates=by_bin.get(DUPLICATES, 0),
        rejected=rejected,
    )


def _with_a_name(moment: int | None) -> int | None:
    """A time of arrival, or None if rows cannot name it: a source may let its senders choose it."""
    return moment if moment is not None and MIN_EVENT_TIME <= moment < MAX_EVENT_TIME else None


def rejected_row(rejection: Rejection, base: int | None) -> RejectedReport:
    """The row of a rejection; ``base`` is the length of a base period in ms."""
    start = rejection.period_start
    fields: dict[str, Any] = name_of(rejection.collection)
    return RejectedReport(
        reason=rejection.reason.code,
        num_reports=rejection.num_reports,
        window_start=start,
        window_end=None if start is None or base is None else start + base,
        received_at=_with_a_name(rejection.received),
        message_bytes=rejection.message_bytes,
        source=rejection.source,
        **fields,
    )
