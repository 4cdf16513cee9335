"""Rows of a stream wait in state and are written together, after a time or when they are many.

Beam's file sinks cannot do that: ``WriteToText`` and ``WriteToAvro`` group by time of the rows and drop those of late
panes, ``WriteToFiles`` writes one pane of a window. Here rows wait as bytes in state of the global window, so that a
restart from a checkpoint has them, and a drain, which ends that window, writes them.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam import coders
from apache_beam.pvalue import PCollection
from apache_beam.transforms import userstate
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.window import GlobalWindow, GlobalWindows
from apache_beam.utils.timestamp import Timestamp

from uldp_transforms.rows.forms import to_json

FLUSH_EVERY = 60_000
"""Default milliseconds for which rows wait."""

MOST_FLUSH_EVERY = 600_000
"""The most; ``uldp check`` gives the ledger of a running stream so much time to balance."""

MOST_BYTES = 1 << 25
"""Of rows that wait; more are written at once."""

_NAME = 16  # bytes before each waiting row, which say which one it is

Write = Callable[[list[bytes], str], None]
"""Writes encoded rows, and gets a name that depends on what they are."""


class FlushRows(beam.PTransform[PCollection[Any], PCollection[None]]):
    """Writes rows together that came within a time.

    By the clock, ``flush_every`` after the first that waits; or, where rows come only when the watermark says that they
    are final, all that belong to one ``flush_every`` of event time. Those are the same rows whenever a worker fails and
    repeats its work, so the same names come again.

    Args:
        encode: row -> bytes.
        write: is called with at least one row, in an order that does not depend on the engine.
        flush_every: milliseconds, at least 1.
        keyed: whether each row stands for a key, window and pane; a name then depends on nothing else.
        final: whether rows come by the watermark.
    """

    def __init__(
        self, encode: Callable[[Any], bytes], write: Write, *, flush_every: int, keyed: bool = True, final: bool = False
    ):
        super().__init__()
        self._encode = encode
        self._write = write
        self._flush_every = flush_every
        self._keyed = keyed
        self._final = final

    def expand(self, rows: PCollection[Any]) -> PCollection[None]:
        slot = self._flush_every if self._final else None
        named = rows | "Name" >> beam.ParDo(_NameFn(self._encode, self._keyed, slot)).with_output_types(
            tuple[int, bytes]
        )
        waiting = named | "RowsNameTheirWindow" >> beam.WindowInto(GlobalWindows())
        return waiting | "Flush" >> beam.ParDo(_FlushFn(self._write, self._flush_every, self._final))


class _NameFn(beam.DoFn):
    def __init__(self, encode: Callable[[Any], bytes], keyed: bool, slot: int | None):
        self._encode = encode
        self._keyed = keyed
        self._slot = slot

    def process(
        self,
        row: Any,
        window: Any = beam.DoFn.WindowParam,
        pane: Any = beam.DoFn.PaneInfoParam,
        timestamp: Any = beam.DoFn.TimestampParam,
    ) -> Iterator[tuple[int, bytes]]:
        name = os.urandom(_NAME)
        if self._keyed:
            name = hashlib.sha256(f"{window} {pane.index} {to_json(row)}".encode()).digest()[:_NAME]
        slot = 0 if self._slot is None else timestamp.micros // 1000 // self._slot
        yield slot, name + self._encode(row)


class _FlushFn(beam.DoFn):
    ROWS = userstate.BagStateSpec("rows", coders.BytesCoder())
    SIZE = userstate.ReadModifyWriteStateSpec("size", coders.VarIntCoder())
    CLOCK = userstate.TimerSpec("clock", TimeDomain.REAL_TIME)
    WATERMARK = userstate.TimerSpec("watermark", TimeDomain.WATERMARK)

    def __init__(self, write: Write, flush_every: int, final: bool):
        self._write = write
        self._flush_every = flush_every
        self._final = final

    def process(
        self,
        element: tuple[int, bytes],
        rows: Any = beam.DoFn.StateParam(ROWS),
        size: Any = beam.DoFn.StateParam(SIZE),
        clock: Any = beam.DoFn.TimerParam(CLOCK),
        watermark: Any = beam.DoFn.TimerParam(WATERMARK),
    ) -> None:
        slot, row = element
        before = size.read() or 0
        rows.add(row)
        size.write(before + len(row))
        if before + len(row) > MOST_BYTES:
            self._flush(rows, size)
        elif not before:
            end = GlobalWindow().max_timestamp()
            watermark.set(min(end, Timestamp(micros=1000 * self._flush_every * (slot + 1))) if self._final else end)
            if not self._final:
                clock.set(Timestamp(time.time() + self._flush_every / 1000))

    @userstate.on_timer(CLOCK)
    def by_clock(self, rows: Any = beam.DoFn.StateParam(ROWS), size: Any = beam.DoFn.StateParam(SIZE)) -> None:
        self._flush(rows, size)

    @userstate.on_timer(WATERMARK)
    def by_watermark(self, rows: Any = beam.DoFn.StateParam(ROWS), size: Any = beam.DoFn.StateParam(SIZE)) -> None:
        self._flush(rows, size)

    def _flush(self, rows: Any, size: Any) -> None:
        """Write what waits, in the order of the encoded rows."""
        waiting = sorted((named[_NAME:], named[:_NAME]) for named in rows.read())
        if waiting:
            name = hashlib.sha256(b"".join(name for _, name in waiting)).hexdigest()[:32]
            self._write([row for row, _ in waiting], name)
        rows.clear()
        size.clear()
