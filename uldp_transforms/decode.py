"""DecodeReports: messages in, batches of reports out, and a row for everything that is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.transforms.window import GlobalWindow, GlobalWindows
from apache_beam.utils.timestamp import MIN_TIMESTAMP, Timestamp
from apache_beam.utils.windowed_value import WindowedValue

import uldp_transforms.coders  # noqa: F401  # registers how reports cross between workers
from uldp_transforms.decoding import Decoded, MessageDecoder, Rejection
from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.reports import ReportBatch
from uldp_transforms.ledger import RECEIVED, LedgerEntry
from uldp_transforms.registry import CollectionRegistry
from uldp_transforms.windows import TimeGate, Windows, number_periods

_FLUSH_BYTES = 1 << 21
"""Messages are decoded together when they reach this size, or at the end of the bundle."""

_FLUSH_MESSAGES = 1 << 14


class DecodedReports(NamedTuple):
    """Outputs of ``DecodeReports``."""

    reports: beam.PCollection[ReportBatch]
    rejected: beam.PCollection[Rejection]
    received: beam.PCollection[LedgerEntry]


class DecodeReports(beam.PTransform):
    """Decodes messages strictly into batches of reports.

    Input: ``bytes``, each one Avro message (a report or a packed batch of reports; see ``wire``), in the global
    window. With a gate the timestamp of an element must be its arrival time, as it is for ``ReadFromPubSub`` without
    ``timestamp_attribute``.

    Output: ``reports``, one batch per collection for as many messages as came together, with the event times as a
    column; ``rejected``, a ``Rejection`` for everything else. Nothing else happens to a report. ``received``, how many
    reports came in, for the ledger.

    Args:
        collections: those that the job counts.
        gate: judges event times by arrival times; None for files, which have no arrival times.
        windows: of the job, whose base periods the ledger is kept by; None without windows.
        require_ids: refuse batches without report ids, which cannot be de-duplicated.
    """

    def __init__(
        self,
        collections: Iterable[Collection],
        gate: TimeGate | None = None,
        windows: Windows | None = None,
        require_ids: bool = False,
    ):
        super().__init__()
        self._registry = CollectionRegistry(collections)
        self._gate = gate
        self._base = None if windows is None else windows.base
        self._require_ids = require_ids

    def expand(self, messages: beam.PCollection[bytes]) -> DecodedReports:
        windowing = messages.windowing.windowfn
        if windowing != GlobalWindows():
            raise SpecError(
                f"DecodeReports needs messages in the global window (reports carry their own time), "
                f"got {type(windowing).__name__}"
            )
        decoder = MessageDecoder(self._registry, self._gate, self._require_ids)
        decode_fn = (_DecodeFn if self._gate is None else _TimedDecodeFn)(decoder, self._base)
        outputs = messages | "Decode" >> beam.ParDo(decode_fn).with_outputs("rejected", "received", main="reports")
        outputs.reports.element_type = ReportBatch
        outputs.rejected.element_type = Rejection
        outputs.received.element_type = LedgerEntry
        return DecodedReports(outputs.reports, outputs.rejected, outputs.received)

    def display_data(self) -> dict[str, Any]:
        return {"collections": ", ".join(f"{c.id} v{c.version}" for c in self._registry)}


class _DecodeFn(beam.DoFn):
    """Gathers the messages of a bundle and decodes many at a time.

    ``process`` is no generator and takes the message alone: that is the cheapest call that Beam can make, and it is
    made for every message.
    """

    def __init__(self, decoder: MessageDecoder, base: int | None):
        self._decoder = decoder
        self._base = base

    def start_bundle(self) -> None:
        self._messages: list[bytes] = []
        self._size = 0

    def process(self, message: bytes) -> list[Any] | None:
        self._messages.append(message)
        self._size += len(message)
        return self._decoded() if self._is_full() else None

    def finish_bundle(self) -> list[Any]:
        return [self._in_global_window(output, MIN_TIMESTAMP) for output in self._decoded()]

    def _is_full(self) -> bool:
        return self._size >= _FLUSH_BYTES or len(self._messages) >= _FLUSH_MESSAGES

    def _decoded(self, received: np.ndarray | None = None) -> list[Any]:
        messages = self._messages
        self._messages, self._size = [], 0
        if not messages:
            return []
        decoded = self._decoder.decode(messages, received)
        return [
            *decoded.batches,
            *(beam.pvalue.TaggedOutput("rejected", rejection) for rejection in decoded.rejections),
            *(beam.pvalue.TaggedOutput("received", entry) for entry in received_entries(decoded, self._base)),
        ]

    @staticmethod
    def _in_global_window(output: Any, timestamp: Timestamp) -> Any:
        if isinstance(output, beam.pvalue.TaggedOutput):
            return beam.pvalue.TaggedOutput(output.tag, WindowedValue(output.value, timestamp, (GlobalWindow(),)))
        return WindowedValue(output, timestamp, (GlobalWindow(),))


def received_entries(decoded: Decoded, base: int | None) -> Iterator[LedgerEntry]:
    """What came in, per collection and base period, as far as these were established.

    Verdicts say where reports belong, but not how many there are: what came in without a verdict, or got two, is
    entered without a period, and the ledger does not balance.
    """
    unaccounted = Counter(decoded.received)
    for batch in decoded.batches:
        periods, index = number_periods(batch.event_times, base)
        unaccounted[batch.fingerprint] -= len(batch)
        for period, number in zip(periods, np.bincount(index).tolist()):
            yield LedgerEntry(RECEIVED, batch.fingerprint, None if base is None else period * base, number)
    for found in decoded.rejections:
        fingerprint = found.collection.fingerprint if found.collection else b""
        unaccounted[fingerprint] -= found.num_reports
        yield LedgerEntry(RECEIVED, fingerprint, found.period_start, found.num_reports)
    for fingerprint, number in unaccounted.items():
        if number:
            yield LedgerEntry(RECEIVED, fingerprint, None, number)


class _TimedDecodeFn(_DecodeFn):
    """The same for messages that have arrival times, which the gate compares with event times."""

    def start_bundle(self) -> None:
        super().start_bundle()
        self._received: list[int] = []

    def process(self, message: bytes, timestamp=beam.DoFn.TimestampParam) -> list[Any] | None:
        self._received.append(timestamp.micros // 1000)
        return super().process(message)

    def finish_bundle(self) -> list[Any]:
        latest = Timestamp(micros=1000 * max(self._received, default=0))
        return [self._in_global_window(output, latest) for output in self._decoded()]

    def _decoded(self, received: np.ndarray | None = None) -> list[Any]:
        received, self._received = np.array(self._received, dtype=np.int64), []
        return super()._decoded(received)
