"""Reader of Parquet files of reports, as data lakes keep them. No Beam.

A file has the fields of ``schemas/report.avsc`` as columns (``form`` may be missing), or whole messages in the column
``data``. Rows of one collection become packed messages, so that a file of single reports is as fast as packed ones.
Names of columns may be in upper case.

A row stands for several equal reports only where somebody says so: in the column that the caller names, or in
``num_reports`` beside ``period_ms``, which the queries of ``uldp sql`` write. Such rows are never copied: a row of 5
reports is in a message whose reports count once, and in one whose reports count four times.

Columns of bytes are read as dictionaries, because a file of some kilobytes may repeat a long cell a million times; only
columns of short and mostly different cells, such as ids, are not, because Arrow looks up each cell of a dictionary.
What Arrow returns is validated, because it does not check the indices of dictionaries while it reads.

What all rows of a batch have in common, such as their collection, is one number (an array without dimensions).
"""

from __future__ import annotations

import contextlib
import decimal
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from uldp_transforms.ldp.collection import PREFIX_BYTES
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.ldp.reports import ID_BYTES
from uldp_transforms.messages import wire
from uldp_transforms.messages.containers import RANDOMNESS
from uldp_transforms.messages.files.file_account import Account
from uldp_transforms.messages.joined_messages import RepeatedMessages
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.windows import are_seconds

MAGIC = b"PAR1"

MESSAGES = "data"
"""Column of whole messages, as a BigQuery subscription of Pub/Sub names it."""

_COLUMNS = ("collection", "event_time", "cohort", "payload")
_ID = "report_id"
NUMBER = "num_reports"
"""Column of the number of equal reports that a row stands for, in the result of a query that counts them."""
PERIOD = "period_ms"
"""Column of the milliseconds within which such a query counted reports together."""

_ROWS_AT_ONCE = 1 << 16
_BYTES_AT_ONCE = 64 << 20
_INT64 = np.iinfo(np.int64)
_MOST_COHORTS = 1 << 16
MOST_REPORTS = 1 << 30
"""Maximum number of reports that a row stands for."""

_MOST_ENTRIES = 1 << 12
"""Cells of a dictionary up to which a column is rather read as one."""

_ALL = slice(None)
_Rows = np.ndarray | slice
"""Positions of rows in a batch, or all of them."""

_FRAME_BYTES = 1 << 10
"""Upper limit of the bytes of a packed message beside its columns."""


def is_table(file: IO[bytes]) -> bool:
    """Whether a file that is at its beginning, and stays there, is a Parquet file."""
    start = file.read(len(MAGIC))
    file.seek(0)
    return start == MAGIC


def read_table(
    file: IO[bytes], source: str, account: Account | None = None, numbers: str | None = None
) -> Iterator[list[bytes] | RepeatedMessages | Rejection]:
    """Yield the reports of a Parquet file as plain messages, and a rejection for each part that is none.

    Rows with missing cells, with ids or collections of a wrong length, or with an impossible number of reports are
    ``malformed``; integers as times are milliseconds, and ``time_range`` if they are rather seconds (``are_seconds``);
    row groups that cannot be read are ``corrupt_block``. How many reports such a row group has is unknown, whatever it
    declares.

    Args:
        file: file opened for reading bytes, which can seek.
        source: name of the file, for the rejections.
        account: updated while reading.
        numbers: column of the number of reports that each row stands for; a file without it is ``unknown_schema``.
            None: ``num_reports`` if the file also has ``period_ms``, else 1.

    Raises:
        OSError: if the bytes cannot be read.
    """
    account, watched = account or Account(), _Watched(file)
    size = file.seek(0, 2)
    with watched.for_content() as opening:
        table = _opened(watched)
        metadata = table.schema_arrow.metadata or {}
        columns = _columns_of(table.schema_arrow, numbers)
        if columns is not None:
            table = _opened(watched, metadata=table.metadata, read_dictionary=list(columns.values()))
        groups = [table.metadata.row_group(number).num_rows for number in range(table.metadata.num_row_groups)]
    if opening.failed:
        yield account.refuse(Reason.BAD_MAGIC, size, source)
        return
    if columns is None:
        yield account.refuse(Reason.UNKNOWN_SCHEMA, size, source)
        return
    randomness = metadata.get(RANDOMNESS.encode("ascii"))
    account.randomness = None if randomness is None else randomness.decode("utf-8", "replace")
    for group in range(len(groups)):
        yield from _read_group(table, watched, group, columns, source, account)
    if table.metadata.num_rows != sum(groups):
        yield account.unread(Reason.CORRUPT_BLOCK, 0, source)
    account.num_bytes = size


def periods_in(file: IO[bytes], numbers: str | None = None) -> set[int]:
    """The periods in milliseconds within which the rows of a Parquet file were counted together; empty if not known.

    A file that cannot be read, whose rows are not counted, or whose periods are no integers, has none: its reader says
    so. Raises OSError if the bytes cannot be read.
    """
    watched, found = _Watched(file), set[int]()
    with watched.for_content():
        table = _opened(watched)
        schema = table.schema_arrow
        columns, periods = _columns_of(schema, numbers), _named(schema).get(PERIOD, [])
        if columns is None or NUMBER not in columns or len(periods) != 1:
            return found
        if pa.types.is_integer(_plain(schema.field(periods[0]).type)):
            for batch in table.iter_batches(_ROWS_AT_ONCE, columns=periods):
                _validate(batch.column(0))
                found |= {int(period) for period in batch.column(0).unique().to_pylist() if period is not None}
    return found


class _Attempt:
    """Whether the content of a file could not be understood."""

    failed = False


class _Watched:
    """A file for Arrow that remembers a failure of the disk or the network, which says nothing about the content.

    Arrow raises the same errors for damaged bytes, and nearly any other: for a text that is none, a name that is not
    there, an index beyond the end.
    """

    def __init__(self, file: IO[bytes]):
        self._file = file
        self._error: OSError | None = None
        self.closed = False

    def _watch(self, method: Any, *arguments: int) -> Any:
        try:
            return method(*arguments)
        except OSError as error:
            self._error = error
            raise

    def read(self, size: int = -1) -> bytes:
        return bytes(self._watch(self._file.read, size))

    def seek(self, *place: int) -> int:
        return int(self._watch(self._file.seek, *place))

    def tell(self) -> int:
        return int(self._watch(self._file.tell))

    def close(self) -> None:
        """Arrow closes what it opened; the file stays open."""

    @contextlib.contextmanager
    def for_content(self) -> Iterator[_Attempt]:
        """A context that an error of the content ends, and that an error of reading the bytes leaves."""
        attempt = _Attempt()
        try:
            yield attempt
        except Exception:
            if self._error is not None:
                raise self._error from None
            attempt.failed = True


def _opened(file: _Watched, **options: Any) -> Any:
    """A Parquet file; old timestamps of 12 bytes are cut to milliseconds, so that none overflows."""
    file.seek(0)
    return pa.parquet.ParquetFile(
        file,
        coerce_int96_timestamp_unit="ms",
        page_checksum_verification=True,
        arrow_extensions_enabled=False,
        **options,
    )


def _named(schema: pa.Schema) -> dict[str, list[str]]:
    """The columns of each name in lower case."""
    names: dict[str, list[str]] = {}
    for name in schema.names:
        names.setdefault(name.lower(), []).append(name)
    return names


def _columns_of(schema: pa.Schema, numbers: str | None) -> dict[str, str] | None:
    """The columns to read, by our names; None if the file has neither messages nor reports of known types, or has a
    column twice.

    Args:
        schema: of the file.
        numbers: as for ``read_table``.
    """
    named = _named(schema)
    reports = {name: name for name in (*_COLUMNS, _ID)}
    if numbers is not None or PERIOD in named:
        reports[NUMBER] = (numbers or NUMBER).lower()
    for needed, meant in ((_COLUMNS, reports), ((MESSAGES,), {MESSAGES: MESSAGES})):
        found = {name: named[column] for name, column in meant.items() if column in named}
        is_whole = {*needed, *([] if numbers is None else [NUMBER])} <= set(found)
        if is_whole and all(_is_readable(schema, name, columns) for name, columns in found.items()):
            return {name: columns[0] for name, columns in found.items()}
    return None


def _is_readable(schema: pa.Schema, name: str, columns: list[str]) -> bool:
    """Whether one column has this name, with a type that it may have."""
    return len(columns) == 1 and bool(_KINDS[name](_plain(schema.field(columns[0]).type)))


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type of the cells, without dictionaries and types of other packages, such as ids of 16 bytes (UUID)."""
    if isinstance(kind, pa.BaseExtensionType):
        return _plain(kind.storage_type)
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _stored(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same cells without types of other packages: Arrow also restores those that the file's schema names."""
    columns = [column.storage if isinstance(column, pa.ExtensionArray) else column for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _is_bytes(kind: pa.DataType) -> bool:
    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
    return any(test(kind) for test in tests)


def _is_text(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0))


_KINDS: dict[str, Callable[[pa.DataType], bool]] = {
    MESSAGES: _is_bytes,
    "collection": lambda kind: _is_bytes(kind) or _is_text(kind),
    "event_time": lambda kind: pa.types.is_timestamp(kind) or _is_whole(kind),
    "cohort": _is_whole,
    "payload": _is_bytes,
    _ID: _is_bytes,
    NUMBER: lambda kind: _is_whole(kind) or pa.types.is_floating(kind),
}
"""The types that each column may have."""


def _read_group(
    table: Any, watched: _Watched, group: int, columns: dict[str, str], source: str, account: Account
) -> Iterator[list[bytes] | RepeatedMessages | Rejection]:
    """The reports of a row group; what follows a part that cannot be read is lost."""
    facts, read = table.metadata.row_group(group), 0
    with watched.for_content() as opening:
        rows = _rows_at_once(table.schema_arrow, columns, facts)
        repeating = _repeating(table, group, columns, rows)
        if len(repeating) < len(columns):
            table = _opened(watched, metadata=table.metadata, read_dictionary=repeating)
        batches = table.iter_batches(rows, row_groups=[group], columns=list(columns.values()))
    while not opening.failed:
        with watched.for_content() as reading:
            batch = next(batches, None)
            batch = None if batch is None else _stored(batch)
            for column in batch or ():
                _validate(column)
        if reading.failed or batch is None:
            break
        yield from _messages(batch, source) if MESSAGES in columns else _packed(batch, columns, source)
        read += batch.num_rows
    if read != facts.num_rows:
        yield account.unread(Reason.CORRUPT_BLOCK, max(0, facts.total_byte_size), source)


def _validate(column: pa.Array) -> None:
    """Raise an error for a column that Arrow read and that is none; a cell that is no text is a fault of its row."""
    if pa.types.is_dictionary(column.type):
        if _is_text(column.type.value_type):
            cells = column.dictionary.cast(pa.large_binary())
            column = pa.DictionaryArray.from_arrays(column.indices, cells, safe=False)
    elif _is_text(column.type):
        column = column.cast(pa.large_binary())
    column.validate(full=True)


def _rows_at_once(schema: pa.Schema, columns: dict[str, str], facts: Any) -> int:
    """Number of rows of a row group to hold in memory; cells of a fixed length are never read as dictionaries."""
    kinds = [_plain(schema.field(name).type) for name in columns.values()]
    fixed = sum(kind.byte_width for kind in kinds if pa.types.is_fixed_size_binary(kind))
    mean = facts.total_byte_size // max(1, facts.num_rows)
    return int(max(1, min(_ROWS_AT_ONCE, _BYTES_AT_ONCE // max(1, fixed, mean))))


def _repeating(table: Any, group: int, columns: dict[str, str], rows: int) -> list[str]:
    """The columns of a row group to read as dictionaries: all but those whose cells are short and rarely repeated.

    The first row comes with the whole dictionary that the file has for the row group. Cells beside it are as long in
    the file as in memory.
    """
    facts = table.metadata.row_group(group)
    in_file = {facts.column(place).path_in_schema: facts.column(place) for place in range(facts.num_columns)}
    asked = [column for name, column in columns.items() if name in (MESSAGES, "payload", _ID)]
    rare = set()
    for batch in itertools.islice(table.iter_batches(1, row_groups=[group], columns=asked), 1):
        for name, cells in zip(batch.schema.names, batch.columns):
            if pa.types.is_dictionary(cells.type):
                longest = pc.max(pc.binary_length(cells.dictionary)).as_py() or 0
                is_repeated = in_file[name].has_dictionary_page and len(cells.dictionary) <= _MOST_ENTRIES
                rare |= {name} if not is_repeated and longest * rows <= _BYTES_AT_ONCE else set()
    return [column for column in columns.values() if column not in rare]


def _messages(batch: pa.RecordBatch, source: str) -> Iterator[list[bytes] | Rejection]:
    cells = _Cells(batch.column(0))
    is_missing = np.broadcast_to(cells.missing, batch.num_rows)
    missing = int(np.count_nonzero(is_missing))
    if missing:
        yield Rejection(Reason.MALFORMED, 0, 0, source=source, num_messages=missing)
    for row in np.flatnonzero(~is_missing)[:, None]:
        yield [cells.at(row, int(_at(cells.lengths, row[0])))]


def _packed(
    batch: pa.RecordBatch, columns: dict[str, str], source: str
) -> Iterator[list[bytes] | RepeatedMessages | Rejection]:
    """Packed messages of the reports of a batch, one for each collection and length of payloads."""
    named, size = {name: batch.column(column) for name, column in columns.items()}, batch.num_rows
    prefixes, known = _prefixes(named["collection"])
    times, cohorts = _integers(named["event_time"]), _integers(named["cohort"])
    payloads, ids = _Cells(named["payload"]), _Cells(named[_ID]) if _ID in named else None
    numbers, bad_numbers = _numbers(named.get(NUMBER))
    bad = ~known | times[1] | cohorts[1] | payloads.missing | bad_numbers
    has_id = np.False_ if ids is None else ~ids.missing
    if ids is not None:
        bad = bad | (has_id & (ids.lengths != ID_BYTES))
    has_id = has_id & (numbers == 1)  # an id names one report
    outside = ~bad & _outside(cohorts[0], 0, _MOST_COHORTS)
    of_other_unit = ~(bad | outside) & (np.False_ if _has_unit(named["event_time"]) else are_seconds(times[0]))
    for reason, mask in ((Reason.MALFORMED, bad), (Reason.COHORT_RANGE, outside), (Reason.TIME_RANGE, of_other_unit)):
        if size and mask.any():
            yield Rejection(reason, int(np.broadcast_to(numbers * mask, size).sum()), 0, source=source)
    for rows in _groups((prefixes, payloads.lengths, has_id), ~(bad | outside | of_other_unit), size):
        first = 0 if isinstance(rows, slice) else int(rows[0])
        length, with_ids = int(_at(payloads.lengths, first)), bool(_at(has_id, first))
        most = max(1, (wire.MAX_MESSAGE_BYTES - _FRAME_BYTES) // (2 + 8 + ID_BYTES + length))
        for counted, count in _by_bits(rows, numbers):
            messages = [
                wire.encode_columns(
                    _at(prefixes, first).tobytes(),
                    cohorts[0][part],
                    times[0][part],
                    ids.at(part, ID_BYTES) if ids is not None and with_ids else b"",
                    payloads.at(part, length),
                )
                for part in _parts(counted, most, size)
            ]
            yield messages if count == 1 else RepeatedMessages(messages, count)


def _at(values: np.ndarray, row: int) -> Any:
    """The value of a row."""
    return values[row] if values.ndim else values[()]


def _outside(numbers: np.ndarray, low: int, high: int) -> np.ndarray:
    """(n,) bool, whether each number is not in [low, high); or False."""
    if not len(numbers) or (numbers.min() >= low and numbers.max() < high):
        return np.asarray(False)
    return (numbers < low) | (numbers >= high)


def _groups(keys: Sequence[np.ndarray], kept: np.ndarray, size: int) -> Iterator[_Rows]:
    """Positions of the kept rows with equal keys, in order."""
    rows = _ALL if size and kept.all() else np.flatnonzero(np.broadcast_to(kept, size))
    if not isinstance(rows, slice) and not len(rows):
        return
    columns = [key[rows] for key in keys if key.ndim]
    mixed = [key for key in columns if (key != key[0]).any()]
    if not mixed:
        yield rows
        return
    order = np.lexsort(mixed)
    changes = np.logical_or.reduce([np.diff(key[order]) != 0 for key in mixed])
    yield from np.split(np.arange(size)[rows][order], np.flatnonzero(changes) + 1)


def _parts(rows: _Rows, most: int, size: int) -> Iterator[_Rows]:
    """At most so many rows at once, of a batch of this size."""
    if isinstance(rows, slice) and size <= most:
        yield rows
        return
    rows = np.arange(size)[rows]
    yield from (rows[begin : begin + most] for begin in range(0, len(rows), most))


def _numbers(column: pa.Array | None) -> tuple[np.ndarray, np.ndarray]:
    """(n,) int64, how many reports each row stands for, and (n,) bool, whether that is impossible: then it is 1.

    A row without a number stands for one report. Without a column: 1 and False.
    """
    if column is None:
        return np.asarray(1), np.asarray(False)
    column = column.cast(_plain(column.type))
    if pa.types.is_floating(column.type):  # as pandas writes whole numbers if some are missing
        found = pc.cast(column, pa.float64()).fill_null(1).to_numpy(zero_copy_only=False)
        found = np.where(np.isnan(found), 1, found)
        bad = (found < 1) | (found > MOST_REPORTS) | (found != np.floor(found))
        return np.where(bad, 1, found).astype(np.int64), bad
    numbers, outside = _integers(column)
    absent = np.asarray(column.is_null())
    bad = ~absent & (outside | (numbers < 1) | (numbers > MOST_REPORTS))
    return np.where(absent | bad, 1, numbers), bad


def _by_bits(rows: _Rows, numbers: np.ndarray) -> Iterator[tuple[_Rows, int]]:
    """Rows that count once, twice, four times and so on, so that each counts as often as its number says."""
    if not numbers.ndim:
        yield rows, int(numbers)
        return
    places, numbers = np.arange(len(numbers))[rows], numbers[rows]
    for bit in range(int(numbers.max()).bit_length()):
        counted = places[(numbers >> bit) & 1 == 1]
        if len(counted):
            yield counted, 1 << bit


def _missing(column: pa.Array) -> np.ndarray:
    """(n,) bool, whether each cell is missing; or False."""
    return np.asarray(column.is_null()) if column.null_count else np.asarray(False)


def _shared(values: np.ndarray) -> np.ndarray | None:
    """The value that all entries of a dictionary have, without dimensions; None if they differ, or there are none."""
    return np.asarray(values[0]) if len(values) and (values == values[0]).all() else None


def _prefixes(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """(n,) uint64, the 8 bytes that name each row's collection, and (n,) bool, whether the cell has such a name.

    Texts are hexadecimal digits; a whole fingerprint is cut to its prefix.
    """
    is_text = _is_text(_plain(column.type))
    distinct = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    names = [_prefix(cell, is_text) for cell in distinct.dictionary.cast(pa.large_binary()).to_pylist()]
    of_each = np.array([int.from_bytes(name or b"", "little") for name in names], dtype=np.uint64)
    is_name = np.array([name is not None for name in names], dtype=bool)
    shared = (_shared(of_each), _shared(is_name))
    if not distinct.null_count and shared[0] is not None and shared[1] is not None:
        return shared[0], shared[1]
    index = distinct.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
    return np.append(of_each, np.uint64(0))[index], np.append(is_name, False)[index]


def _prefix(cell: bytes | None, is_text: bool) -> bytes | None:
    if is_text and cell is not None:
        try:
            cell = bytes.fromhex(cell.decode("ascii"))
        except ValueError:
            return None
    return cell[:PREFIX_BYTES] if cell is not None and len(cell) in (PREFIX_BYTES, 32) else None


def _has_unit(column: pa.Array) -> bool:
    """Whether the type of a column of times states their unit."""
    return bool(pa.types.is_timestamp(_plain(column.type)))


def _integers(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """(n,) int64, times in milliseconds, and whether a cell is missing or no int64: (n,) bool, or False."""
    column = column.cast(_plain(column.type))
    is_time = _has_unit(column)
    missing = _missing(column)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.decimal256(76, 0))
        ends = [pa.scalar(decimal.Decimal(int(end)), column.type) for end in (_INT64.min, _INT64.max)]
        outside = pc.or_(pc.less(column, ends[0]), pc.greater(column, ends[1])).fill_null(False)
        missing = missing | np.asarray(outside)
        column = pc.if_else(outside, pa.scalar(decimal.Decimal(0), column.type), column)
    ticks = column.view(pa.int64()) if is_time else pc.cast(column, pa.int64(), safe=False)
    numbers = ticks.fill_null(0).to_numpy(zero_copy_only=False)
    if pa.types.is_uint64(column.type):
        missing = missing | (numbers < 0)
    if is_time:  # without a time zone: UTC; Parquet stores no seconds
        numbers = numbers // {"ms": 1, "us": 1_000, "ns": 1_000_000}[column.type.unit]
    return numbers, missing


class _Cells:
    """Cells of bytes: where each begins, and how long it is. Equal cells of a dictionary share their bytes.

    Attributes:
        missing: (n,) bool, or False.
        lengths: (n,) int64, 0 where a cell is missing; or the length of all.
    """

    def __init__(self, column: pa.Array):
        is_dictionary = pa.types.is_dictionary(column.type)
        held = column.dictionary if is_dictionary else column
        if pa.types.is_fixed_size_binary(held.type):
            data, width = held.buffers()[1], held.type.byte_width
            ends = width * np.arange(held.offset, held.offset + len(held) + 1)
        else:
            held = held.cast(pa.large_binary())
            _, offsets, data = held.buffers()
            ends = np.frombuffer(offsets, dtype=np.int64)[held.offset : held.offset + len(held) + 1]
        starts, lengths, missing = ends[:-1], np.diff(ends), _missing(held)
        if missing.ndim:
            lengths = np.where(missing, 0, lengths)
        shared, places = _shared(lengths), None
        if is_dictionary and (column.indices.null_count or missing.ndim or shared is None):
            places = column.indices.fill_null(len(held)).to_numpy(zero_copy_only=False)
            missing = np.append(np.broadcast_to(missing, len(held)), True)[places]
            starts, lengths = np.append(starts, 0)[places], np.append(lengths, 0)[places]
            shared = None
        self.missing, self.lengths = missing, lengths if shared is None else shared
        self._starts = starts
        self._entries = None if shared is None or not is_dictionary else column.indices.to_numpy()
        self._data = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, np.uint8)

    def at(self, rows: _Rows, length: int) -> bytes:
        """The joined cells of some rows, which all have this length."""
        if length == 0:
            return b""
        if self._entries is not None:
            begin = self._starts[0]
            cells = self._data[begin : begin + len(self._starts) * length].view(_cell_type(length))
            return bytes(cells[self._entries[rows]].tobytes())
        starts = self._starts[rows]
        first, last = starts[0], starts[-1] + length
        is_one_piece = last - first == len(starts) * length and (np.diff(starts) == length).all()
        cells = self._data[first:last] if is_one_piece else self._data[starts[:, None] + np.arange(length)]
        return bytes(cells.tobytes())


def _cell_type(length: int) -> np.dtype[Any]:
    """The type of cells of a length; numpy copies integers faster than other items."""
    return np.dtype(f"u{length}" if length in (1, 2, 4, 8) else f"V{length}")
