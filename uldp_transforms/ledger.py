"""The ledger: what became of every report, as data.

    received = accepted + duplicates + sum of rejected by reason

Rows are sums of what was counted and what was refused, per collection and base period; they add up. A stream emits
them by arrival, so one period can have several rows, none of which is ever corrected.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import apache_beam as beam
from apache_beam import coders
from apache_beam.transforms import trigger
from apache_beam.transforms.window import FixedWindows
from apache_beam.utils.timestamp import Duration

from uldp_transforms.count import Accepted
from uldp_transforms.decoding import Rejection
from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.registry import CollectionRegistry
from uldp_transforms.rows import LedgerRow, RejectedReport, name_of
from uldp_transforms.windows import Windows


class SummarizeLedger(beam.PTransform):
    """Adds up what was counted and what was refused.

    Input: the pair ``(accepted, rejected)`` of ``CountReports`` and ``DecodeReports``.

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

    def expand(self, inputs: tuple[beam.PCollection[Accepted], beam.PCollection[Rejection]]):
        accepted, rejected = inputs
        entries = (
            accepted | "Accepted" >> beam.Map(_accepted_entry).with_output_types(_ENTRY),
            rejected | "Rejected" >> beam.Map(_rejected_entry).with_output_types(_ENTRY),
        ) | "Entries" >> beam.Flatten()
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
    """Adds numbers of reports by reason."""

    def create_accumulator(self) -> dict[str, int]:
        return {}

    def add_input(self, accumulator: dict[str, int], element: dict[str, int]) -> dict[str, int]:
        return dict(Counter(accumulator) + Counter(element))

    def merge_accumulators(self, accumulators: Iterable[dict[str, int]]) -> dict[str, int]:
        return dict(sum(map(Counter, accumulators), Counter()))

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


def _accepted_entry(accepted: Accepted) -> tuple[str, dict[str, int]]:
    return _key(accepted.fingerprint.hex(), accepted.period_start), {Reason.ACCEPTED.code: accepted.num_reports}


def _rejected_entry(rejection: Rejection) -> tuple[str, dict[str, int]]:
    fingerprint = rejection.collection.fingerprint.hex() if rejection.collection else ""
    return _key(fingerprint, rejection.period_start), {rejection.reason.code: rejection.num_reports}


def _ledger_row(sums: tuple[str, dict[str, int]], registry: CollectionRegistry, base: int | None) -> LedgerRow:
    key, by_reason = sums
    fingerprint, _, start = key.partition("/")
    rejected = {reason: n for reason, n in sorted(by_reason.items()) if reason != Reason.ACCEPTED.code}
    accepted = by_reason.get(Reason.ACCEPTED.code, 0)
    return LedgerRow(
        **name_of(registry[bytes.fromhex(fingerprint)] if fingerprint else None),
        window_start=int(start) if start else None,
        window_end=int(start) + (base or 0) if start else None,
        received=accepted + sum(rejected.values()),
        accepted=accepted,
        duplicates=0,
        rejected=rejected,
    )


def rejected_row(rejection: Rejection, base: int | None) -> RejectedReport:
    """The row of a rejection; ``base`` is the length of a base period in ms."""
    start = rejection.period_start
    fields: dict[str, Any] = name_of(rejection.collection)
    return RejectedReport(
        reason=rejection.reason.code,
        num_reports=rejection.num_reports,
        window_start=start,
        window_end=None if start is None or base is None else start + base,
        received_at=rejection.received,
        message_bytes=rejection.message_bytes,
        source=rejection.source,
        **fields,
    )
