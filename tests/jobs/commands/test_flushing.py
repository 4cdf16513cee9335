"""The state of collected rows, call by call: what is written when, under which name, and which timers are set."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import types
from pathlib import Path
from typing import Any, NamedTuple

import apache_beam as beam
import fastavro
import pyarrow.parquet
import pytest
from apache_beam.utils.timestamp import Timestamp

from tests.support import kept_rows
from uldp_transforms.beam.runtime import engines
from uldp_transforms.jobs.files import flushed_rows
from uldp_transforms.jobs.files.flushed_rows import FlushRows, _FlushFn, _NameFn, _SlotFn
from uldp_transforms.jobs.records import row_file_options
from uldp_transforms.jobs.sinks import row_files

LAST = 9_223_371_950_454_774  # milliseconds at which the global window ends
NAME = b"n" * 16


class Rows(list[bytes]):
    """State of a bag."""

    def read(self) -> list[bytes]:
        return list(self)

    add = list.append


class Value:
    """State of a number."""

    def __init__(self) -> None:
        self.now: int | None = None

    def read(self) -> int | None:
        return self.now

    def write(self, number: int) -> None:
        self.now = number

    def clear(self) -> None:
        self.now = None


class Timer(list[int]):
    """The moments, in milliseconds, for which a timer was set."""

    def set(self, moment: Timestamp) -> None:
        self.append(moment.micros // 1000)


Written = list[tuple[list[bytes], str]]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    monkeypatch.setattr(flushed_rows, "MOST_BYTES", 60)
    monkeypatch.setattr(engines, "processing_time", lambda: 1000.0)
    return []


def test_defaults_and_limits() -> None:
    """Those of docs/operations.md: a minute, ten minutes, 32 MiB."""
    assert (row_file_options.FLUSH_EVERY, row_file_options.MOST_FLUSH_EVERY) == (60_000, 600_000)
    assert flushed_rows.MOST_BYTES == 32 * 1024 * 1024


class Row(NamedTuple):
    """A row with one field."""

    n: int

    def __str__(self) -> str:
        return f"{self.n}!"


def named(number: int, keyed: bool, slot: int | None, window: str = "w", index: int = 0, micros: int = 0) -> Any:
    pane = types.SimpleNamespace(index=index)
    fn = _NameFn(lambda row: str(row).encode(), keyed, slot)
    return list(fn.process(Row(number), window, pane, Timestamp(micros=micros)))


def test_a_row_has_the_name_of_its_window_pane_and_content() -> None:
    """The same row has the same name wherever work is repeated; another pane, window or row has another one."""
    [(slot, row)] = named(5, True, None)
    assert slot == (0, LAST)
    assert row == hashlib.sha256(b"w 0 5!").digest()[:16] + b"5!"
    assert named(5, True, None) == [(slot, row)]
    others = [named(5, True, None, index=1), named(5, True, None, window="v"), named(6, True, None)]
    assert len({row[:16], *(other[0][1][:16] for other in others)}) == 4
    random = {named(5, False, None)[0][1] for _ in range(20)}
    assert len(random) == 20
    assert {(len(each), each[16:]) for each in random} == {(18, b"5!")}


@pytest.mark.parametrize(
    ("micros", "slot"),
    [
        (0, (0, 1000)),
        (999_999, (0, 1000)),
        (1_000_000, (1000, 2000)),
        (-1, (-1000, 0)),
        (1000 * LAST, (LAST // 1000 * 1000, LAST)),
    ],
)
def test_slots_of_event_time(micros: int, slot: tuple[int, int]) -> None:
    """They begin at multiples of their length, and end with the stream at the latest."""
    [(found, _)] = named(5, True, 1000, micros=micros)
    assert found == slot


@pytest.mark.parametrize("flush_every", [1500, None])
def test_rows_wait_for_the_first_of_time_and_size(flush_every: int | None, written: Written) -> None:
    """Timers are set by the first row alone; 60 bytes may wait, and 61 may not."""
    fn = _FlushFn(lambda rows, name: written.append((rows, name)), flush_every)
    rows, size, clock, watermark = Rows(), Value(), Timer(), Timer()

    def add(row: bytes, end: int = 7000) -> None:
        fn.process(((0, end), row), rows, size, clock, watermark)

    add(NAME + b"b")
    add(NAME + b"a", 8000)
    assert (clock, watermark, size.now) == ([] if flush_every is None else [1_001_500], [7000], 34)
    add(NAME + b"x" * 10)
    assert (written, size.now) == ([], 60)
    fn.by_clock(rows, size)
    names = hashlib.sha256(NAME * 3).hexdigest()[:32]
    assert written == [([b"a", b"b", b"x" * 10], names)]
    assert (rows, size.now) == ([], None)
    fn.by_watermark(rows, size)
    assert len(written) == 1, "nothing waits"
    add(NAME + b"x" * 20, 9000)
    assert (clock, watermark) == ([] if flush_every is None else [1_001_500, 1_001_500], [7000, 9000])
    add(NAME + b"x" * 9)
    assert [len(each) for each, _ in written[1:]] == [2]
    assert (rows, size.now) == ([], None)
    add(b"m" * 16 + b"y")
    fn.by_watermark(rows, size)
    assert written[2] == ([b"y"], hashlib.sha256(b"m" * 16).hexdigest()[:32])


def test_names_of_equal_rows_are_in_their_order(written: Written) -> None:
    fn = _FlushFn(lambda rows, name: written.append((rows, name)), None)
    for order in ((b"a", b"b"), (b"b", b"a")):
        rows, size = Rows(letter * 16 + b"same" for letter in order), Value()
        fn.by_watermark(rows, size)
    assert written[0] == written[1] == ([b"same"] * 2, hashlib.sha256(b"a" * 16 + b"b" * 16).hexdigest()[:32])


def test_a_slot_is_written_again_with_all_its_rows(written: Written) -> None:
    """Its parts are numbered, and only the last is written again; it is forgotten when nothing can come any more."""
    fn = _SlotFn(lambda rows, name: written.append((rows, name)), 500)
    rows, size, part, write, forget = Rows(), Value(), Value(), Timer(), Timer()
    slot = (4000, 7000)

    def add(row: bytes) -> None:
        fn.process((slot, NAME + row), rows, size, part, write, forget)

    add(b"b")
    add(b"a")
    assert (write, forget, size.now) == ([7000] * 2, [7500] * 2, 34)
    for _ in range(2):
        fn.by_watermark(slot, rows, part)
    assert written == [([b"a", b"b"], "4000-3000-0")] * 2
    add(b"x" * 10)
    assert (len(written), size.now) == (2, 60)
    add(b"c")
    assert written[2] == ([b"a", b"b", b"c", b"x" * 10], "4000-3000-0")
    assert (rows, size.now, part.now) == ([], None, 1)
    add(b"d")
    fn.by_watermark(slot, rows, part)
    assert written[3] == ([b"d"], "4000-3000-1")
    add(b"y" * 50)
    assert (written[4][1], part.now) == ("4000-3000-1", 2)
    add(b"e")
    fn.forget(slot, rows, size, part)
    assert written[5:] == [([b"e"], "4000-3000-2")]
    assert (rows, size.now, part.now) == ([], None, None)
    fn.by_watermark(slot, rows, part)
    assert len(written) == 6, "without rows nothing is written"


def test_the_last_slot_ends_with_the_stream(written: Written) -> None:
    fn = _SlotFn(lambda rows, name: written.append((rows, name)), 500)
    write, forget = Timer(), Timer()
    fn.process(((0, LAST - 100), NAME), Rows(), Value(), Value(), write, forget)
    assert forget == [LAST]


@pytest.mark.parametrize(
    ("final", "late", "kind", "times"),
    [
        (False, None, _FlushFn, {"_flush_every": 70}),
        (False, 5, _FlushFn, {"_flush_every": 70}),
        (True, None, _FlushFn, {"_flush_every": None}),
        (True, 5, _SlotFn, {"_late": 5}),
        (True, 0, _SlotFn, {"_late": 0}),
    ],
)
def test_how_rows_are_collected(
    final: bool, late: int | None, kind: type, times: dict[str, int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By time of processing, or, of final rows, by slots, which are kept if rows may be late."""
    made: list[Any] = []
    of_beam = beam.ParDo
    monkeypatch.setattr(beam, "ParDo", lambda fn: made.append(fn) or of_beam(fn))
    rows = beam.Pipeline() | beam.Create([1])
    _ = rows | FlushRows(str, lambda _, __: None, flush_every=70, final=final, late=late)
    name, flush = [fn for fn in made if isinstance(fn, (_NameFn, _FlushFn, _SlotFn))]
    assert (name._slot, name._keyed) == (70 if final else None, True)
    assert type(flush) is kind
    assert {field: getattr(flush, field) for field in times} == times


@pytest.mark.parametrize("form", ["avro", "parquet"])
@pytest.mark.parametrize("kind", kept_rows.KINDS)
def test_rows_of_an_earlier_program_are_written_beside_those_of_today(
    kind: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The timer of a job that continues from a savepoint finds both in its state."""
    found: list[Any] = []

    class Found(FlushRows):
        def __init__(self, encode: Any, write: Any, **more: Any):
            found.extend([encode, write])
            super().__init__(encode, write, **more)

    monkeypatch.setattr(row_files, "FlushRows", Found)
    [row, _], schema = kept_rows.rows(kind), kept_rows.KINDS[kind][1]
    step = row_files.WriteRowFiles(str(tmp_path), kind, form, schema, unbounded=True, flush_every=7)
    _ = beam.Pipeline() | beam.Impulse() | step
    encode, write = found
    former, _ = json.loads((Path(__file__).parents[2] / "data" / "kept_rows.json").read_text(encoding="utf-8"))[kind]
    rows, size = Rows([NAME + base64.b64decode(former["bytes"]), NAME + encode(row)]), Value()
    _FlushFn(write, 7).by_clock(rows, size)
    assert not rows
    [path] = tmp_path.iterdir()
    read = sorted(_rows_of(path.read_bytes(), form), key=_num_values)
    assert [each["run"] for each in read] == [row.run, row.run]
    names = set(former["row"])
    assert len(names) <= len(row._fields) == len(read[0])
    older, today = read
    earlier = kept_rows.of_earlier_fields
    assert all(earlier(older[name]) == earlier(today[name]) for name in names)
    assert all(older[name] in (None, [], {}, 0) for name in today.keys() - names)


def _num_values(row: dict[str, Any]) -> int:
    """How many fields have a value."""
    return sum(value not in (None, [], {}) for value in row.values())


def _rows_of(content: bytes, form: str) -> list[Any]:
    if form == "avro":
        return list(fastavro.reader(io.BytesIO(content)))
    return list(pyarrow.parquet.read_table(io.BytesIO(content)).to_pylist())
