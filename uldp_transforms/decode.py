"""DecodeReports: messages in, batches of reports out, and a row for everything that is refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from apache_beam.transforms.window import GlobalWindow, GlobalWindows
from apache_beam.utils.timestamp import MIN_TIMESTAMP
from apache_beam.utils.windowed_value import WindowedValue

import uldp_transforms.coders  # noqa: F401  # registers how reports cross between workers
from uldp_transforms.decoding import MessageDecoder, Rejection
from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.reports import ReportBatch
from uldp_transforms.registry import CollectionRegistry
from uldp_transforms.windows import TimeGate

_FLUSH_BYTES = 1 << 21
"""Messages are decoded together when they reach this size, or at the end of the bundle."""

_FLUSH_MESSAGES = 1 << 14


class DecodedReports(NamedTuple):
    """Outputs of ``DecodeReports``."""

    reports: beam.PCollection[ReportBatch]
    rejected: beam.PCollection[Rejection]


class DecodeReports(beam.PTransform):
    """Decodes messages strictly into batches of reports.

    Input: ``bytes``, each one Avro message (a report or a packed batch of reports; see ``wire``), in the global
    window. With a gate the timestamp of an element must be its arrival time, as it is for ``ReadFromPubSub`` without
    ``timestamp_attribute``.

    Output: ``reports``, one batch per collection for as many messages as came together, with the event times as a
    column; ``rejected``, a ``Rejection`` for everything else. Nothing else happens to a report.

    Args:
        collections: those that the job counts.
        gate: judges event times by arrival times; None for files, which have no arrival times.
    """

    def __init__(self, collections: Iterable[Collection], gate: TimeGate | None = None):
        super().__init__()
        self._registry = CollectionRegistry(collections)
        self._gate = gate

    def expand(self, messages: beam.PCollection[bytes]) -> DecodedReports:
        windowing = messages.windowing.windowfn
        if windowing != GlobalWindows():
            raise SpecError(
                f"DecodeReports needs messages in the global window (reports carry their own time), got {windowing}"
            )
        outputs = messages | "Decode" >> beam.ParDo(_DecodeFn(self._registry, self._gate)).with_outputs(
            "rejected", main="reports"
        )
        outputs.reports.element_type = ReportBatch
        return DecodedReports(outputs.reports, outputs.rejected)

    def display_data(self) -> dict[str, Any]:
        return {"collections": ", ".join(f"{c.id} v{c.version}" for c in self._registry)}


class _DecodeFn(beam.DoFn):
    """Gathers the messages of a bundle and decodes many at a time."""

    def __init__(self, registry: CollectionRegistry, gate: TimeGate | None):
        self._decoder = MessageDecoder(registry, gate)
        self._timed = gate is not None

    def start_bundle(self) -> None:
        self._messages: list[bytes] = []
        self._received: list[int] = []
        self._size = 0

    def process(self, message: bytes, timestamp=beam.DoFn.TimestampParam) -> Iterator[Any]:
        self._messages.append(message)
        self._size += len(message)
        if self._timed:
            self._received.append(timestamp.micros // 1000)
        if self._size >= _FLUSH_BYTES or len(self._messages) >= _FLUSH_MESSAGES:
            for tag, value in self._flush():
                yield value if tag is None else beam.pvalue.TaggedOutput(tag, value)

    def finish_bundle(self) -> Iterator[Any]:
        received = self._received[-1:] if self._timed else []
        for tag, value in self._flush():
            timestamp = beam.utils.timestamp.Timestamp(micros=received[0] * 1000) if received else MIN_TIMESTAMP
            windowed = WindowedValue(value, timestamp, (GlobalWindow(),))
            yield windowed if tag is None else beam.pvalue.TaggedOutput(tag, windowed)

    def _flush(self) -> Iterator[tuple[str | None, Any]]:
        messages, self._messages = self._messages, []
        received = np.array(self._received, dtype=np.int64) if self._timed else None
        self._received, self._size = [], 0
        if messages:
            batches, rejections = self._decoder.decode(messages, received)
            yield from ((None, batch) for batch in batches)
            yield from (("rejected", rejection) for rejection in rejections)
