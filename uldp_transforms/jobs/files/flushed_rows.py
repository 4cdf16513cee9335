"""Collects rows of a stream in state, and writes them together after a time or a number of bytes.

Beam's file sinks cannot do this: ``WriteToText`` and ``WriteToAvro`` group rows by event time and drop those of late
panes, and ``WriteToFiles`` writes one pane per window. Here pending rows are bytes in state of the global window, so
that they survive a restart from a checkpoint, and a drain, which ends that window, writes them.

Repeated work may form other groups of rows. So a file name depends on the key of its rows, not on their content: when
work is repeated from a checkpoint, the new files replace those of the first attempt.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam import coders
from apache_beam.pvalue import PCollection
from apache_beam.transforms import userstate
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.window import GlobalWindow, GlobalWindows
from apache_beam.utils.timestamp import Timestamp

from uldp_transforms.beam.runtime import engines

MOST_BYTES = 1 << 25
"""Maximum size of collected rows; larger collections are written at once."""

_NAME = 16  # bytes before each pending row, which identify it

Write = Callable[[list[bytes], str], None]
"""Function that writes encoded rows under a name that identifies them."""


class FlushRows(beam.PTransform[PCollection[Any], PCollection[None]]):
    """Collects rows over a time and writes them together.

    By default rows are written ``flush_every`` of processing time after the first pending one. Rows that are emitted
    when the watermark makes them final are written per slot, ``flush_every`` of event time. A slot contains the same
    rows if a worker fails and repeats its work, so its name is the same. If rows arrive after the watermark has passed,
    the file of the slot is written again with all its rows.

    Args:
        encode: row -> bytes.
        write: called with at least one row, in an order that does not depend on the engine.
        flush_every: milliseconds, at least 1.
        keyed: whether each row represents a key, window and pane; the name then depends only on these.
        final: whether rows are emitted by the watermark.
        late: milliseconds after their slot during which such rows may still arrive; None: none arrive.
    """

    def __init__(
        self,
        encode: Callable[[Any], bytes],
        write: Write,
        *,
        flush_every: int,
        keyed: bool = True,
        final: bool = False,
        late: int | None = None,
    ):
        super().__init__()
        self._encode = encode
        self._write = write
        self._flush_every = flush_every
        self._keyed = keyed
        self._final = final
        self._late = late

    def expand(self, rows: PCollection[Any]) -> PCollection[None]:
        slot = self._flush_every if self._final else None
        named = rows | "Name" >> beam.ParDo(_NameFn(self._encode, self._keyed, slot)).with_output_types(_NAMED)
        waiting = named | "RowsNameTheirWindow" >> beam.WindowInto(GlobalWindows())
        if self._final and self._late is not None:
            return waiting | "Flush" >> beam.ParDo(_SlotFn(self._write, self._late))
        return waiting | "Flush" >> beam.ParDo(_FlushFn(self._write, None if self._final else self._flush_every))


_END = GlobalWindow().max_timestamp()
_ALWAYS = (0, _END.micros // 1000)
"""Time slot of rows that are written by processing time."""

_NAMED = beam.typehints.Tuple[beam.typehints.Tuple[int, int], bytes]
"""A row with its name, keyed by the start and the end of its slot in milliseconds."""


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
    ) -> Iterator[tuple[tuple[int, int], bytes]]:
        encoded, name = self._encode(row), os.urandom(_NAME)
        if self._keyed:
            name = hashlib.sha256(f"{window} {pane.index} ".encode() + encoded).digest()[:_NAME]
        yield self._slot_of(timestamp), name + encoded

    def _slot_of(self, timestamp: Timestamp) -> tuple[int, int]:
        if self._slot is None:
            return _ALWAYS
        begin = timestamp.micros // 1000 // self._slot * self._slot
        return begin, min(begin + self._slot, _ALWAYS[1])


class _FlushFn(beam.DoFn):
    """Writes each row once, after a processing time or at the end of its slot.

    Args:
        write: function that writes rows under a name.
        flush_every: milliseconds of processing time until rows are written; None: at the end of their slot.
    """

    ROWS = userstate.BagStateSpec("rows", coders.BytesCoder())
    SIZE = userstate.ReadModifyWriteStateSpec("size", coders.VarIntCoder())
    CLOCK = userstate.TimerSpec("clock", TimeDomain.REAL_TIME)
    WATERMARK = userstate.TimerSpec("watermark", TimeDomain.WATERMARK)

    def __init__(self, write: Write, flush_every: int | None):
        self._write = write
        self._flush_every = flush_every

    def process(
        self,
        element: tuple[tuple[int, int], bytes],
        rows: Any = beam.DoFn.StateParam(ROWS),
        size: Any = beam.DoFn.StateParam(SIZE),
        clock: Any = beam.DoFn.TimerParam(CLOCK),
        watermark: Any = beam.DoFn.TimerParam(WATERMARK),
    ) -> None:
        (_, end), row = element
        before = size.read() or 0
        rows.add(row)
        size.write(before + len(row))
        if before + len(row) > MOST_BYTES:
            self._flush(rows, size)
        elif not before:
            watermark.set(Timestamp(micros=1000 * end))
            if self._flush_every is not None:
                clock.set(Timestamp(engines.processing_time() + self._flush_every / 1000))

    @userstate.on_timer(CLOCK)
    def by_clock(self, rows: Any = beam.DoFn.StateParam(ROWS), size: Any = beam.DoFn.StateParam(SIZE)) -> None:
        self._flush(rows, size)

    @userstate.on_timer(WATERMARK)
    def by_watermark(self, rows: Any = beam.DoFn.StateParam(ROWS), size: Any = beam.DoFn.StateParam(SIZE)) -> None:
        self._flush(rows, size)

    def _flush(self, rows: Any, size: Any) -> None:
        """Write the pending rows, in the order of their bytes."""
        waiting = sorted((named[_NAME:], named[:_NAME]) for named in rows.read())
        if waiting:
            name = hashlib.sha256(b"".join(name for _, name in waiting)).hexdigest()[:32]
            self._write([row for row, _ in waiting], name)
        rows.clear()
        size.clear()


class _SlotFn(beam.DoFn):
    """Keeps the rows of a slot while more may arrive, and rewrites all of them each time.

    A slot with too many rows has several files; only the last one is rewritten.

    Args:
        write: function that writes rows under the name of their slot.
        late: milliseconds after the end of a slot during which its rows are kept.
    """

    ROWS = userstate.BagStateSpec("rows", coders.BytesCoder())
    SIZE = userstate.ReadModifyWriteStateSpec("size", coders.VarIntCoder())
    PART = userstate.ReadModifyWriteStateSpec("part", coders.VarIntCoder())
    WRITE = userstate.TimerSpec("write", TimeDomain.WATERMARK)
    FORGET = userstate.TimerSpec("forget", TimeDomain.WATERMARK)

    def __init__(self, write: Write, late: int):
        self._write = write
        self._late = late

    def process(
        self,
        element: tuple[tuple[int, int], bytes],
        rows: Any = beam.DoFn.StateParam(ROWS),
        size: Any = beam.DoFn.StateParam(SIZE),
        part: Any = beam.DoFn.StateParam(PART),
        write: Any = beam.DoFn.TimerParam(WRITE),
        forget: Any = beam.DoFn.TimerParam(FORGET),
    ) -> None:
        slot, row = element
        now = (size.read() or 0) + len(row)
        rows.add(row)
        size.write(now)
        write.set(Timestamp(micros=1000 * slot[1]))
        forget.set(Timestamp(micros=1000 * min(slot[1] + self._late, _ALWAYS[1])))
        if now > MOST_BYTES:
            self._write_all(slot, rows, part)
            rows.clear()
            size.clear()
            part.write((part.read() or 0) + 1)

    @userstate.on_timer(WRITE)
    def by_watermark(
        self,
        slot: Any = beam.DoFn.KeyParam,
        rows: Any = beam.DoFn.StateParam(ROWS),
        part: Any = beam.DoFn.StateParam(PART),
    ) -> None:
        self._write_all(slot, rows, part)

    @userstate.on_timer(FORGET)
    def forget(
        self,
        slot: Any = beam.DoFn.KeyParam,
        rows: Any = beam.DoFn.StateParam(ROWS),
        size: Any = beam.DoFn.StateParam(SIZE),
        part: Any = beam.DoFn.StateParam(PART),
    ) -> None:
        self._write_all(slot, rows, part)  # a drain may fire the two timers in any order
        for state in (rows, size, part):
            state.clear()

    def _write_all(self, slot: tuple[int, int], rows: Any, part: Any) -> None:
        """Write all kept rows, in the order of their bytes, to the file of the slot."""
        kept = sorted(named[_NAME:] for named in rows.read())
        if kept:
            self._write(kept, f"{slot[0]}-{slot[1] - slot[0]}-{part.read() or 0}")
