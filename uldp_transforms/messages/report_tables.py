"""Reader of Parquet files of reports, as data lakes keep them. No Beam.

A file has the fields of ``schemas/report.avsc`` as columns (``form`` may be missing), or whole messages in the column
``data``. Rows of one collection become packed messages, so that a file of single reports is as fast as packed ones. A
column ``num_reports`` says how many equal reports a row stands for, as the queries of ``uldp sql`` return them. Names
of columns may be in upper case.

Columns of bytes are read as dictionaries, because a file of some kilobytes may repeat a long cell a million times.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from uldp_transforms.ldp.collection import PREFIX_BYTES
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.ldp.reports import ID_BYTES
from uldp_transforms.messages import wire
from uldp_transforms.messages.containers import RANDOMNESS, Account
from uldp_transforms.messages.rejection import Rejection

MAGIC = b"PAR1"

MESSAGES = "data"
"""Column of whole messages, as a BigQuery subscription of Pub/Sub names it."""

_COLUMNS = ("collection", "event_time", "cohort", "payload")
_ID = "report_id"
_NUMBER = "num_reports"
PERIOD = "period_ms"
"""Column of the milliseconds within which a query counted reports together."""

_ROWS_AT_ONCE = 1 << 16
_BYTES_AT_ONCE = 64 << 20
_INT64 = np.iinfo(np.int64)
_MOST_COHORTS = 1 << 16
_UNREADABLE = (pa.ArrowException, OSError, ValueError)
_MOST_REPORTS = 1 << 30
"""Maximum of reports that a row stands for, and of rows that a file is believed to have lost."""

_FRAME_BYTES = 1 << 10
"""Upper limit of the bytes of a packed message beside its columns."""


def is_table(file: IO[bytes]) -> bool:
    """Whether a file that is at its beginning, and stays there, is a Parquet file."""
    start = file.read(len(MAGIC))
    file.seek(0)
    return start == MAGIC


def read_table(file: IO[bytes], source: str, account: Account | None = None) -> Iterator[bytes | Rejection]:
    """Yield the reports of a Parquet file as plain messages, and a rejection for each part that is none.

    Rows with missing cells, with ids or collections of a wrong length, or with an impossible number of reports are
    ``malformed``; row groups that cannot be read are ``corrupt_block``, with the number of rows that the file declares.

    Args:
        file: file opened for reading bytes, which can seek.
        source: name of the file, for the rejections.
        account: updated while reading.
    """
    account = account or Account()
    size = file.seek(0, 2)
    try:
        table = _opened(file)
        schema, metadata = table.schema_arrow, table.metadata
        columns = _columns_of(schema)
        if columns is not None:
            table = _opened(file, metadata=metadata, read_dictionary=list(columns.values()))
    except _UNREADABLE:
        yield Rejection(Reason.BAD_MAGIC, 1, size, source=source)
        account.refused = True
        return
    if columns is None:
        yield Rejection(Reason.UNKNOWN_SCHEMA, _believed(metadata.num_rows), size, source=source)
        account.refused = True
        return
    randomness = (schema.metadata or {}).get(RANDOMNESS.encode("ascii"))
    account.randomness = None if randomness is None else randomness.decode("utf-8", "replace")
    known = 0
    for group in range(metadata.num_row_groups):
        known += max(0, metadata.row_group(group).num_rows)
        yield from _read_group(table, group, columns, source)
    if metadata.num_rows > known:
        yield Rejection(Reason.CORRUPT_BLOCK, _believed(metadata.num_rows - known), 0, source=source)
    account.num_bytes = size


def periods_in(file: IO[bytes]) -> set[int]:
    """The periods in milliseconds within which the rows of a Parquet file were counted together; empty if not known.

    A file that cannot be read, or whose periods are no integers, has none: its reader says so.
    """
    try:
        table = _opened(file)
        [name] = _named(table.schema_arrow).get(PERIOD, [None])
        if name is None or not pa.types.is_integer(_plain(table.schema_arrow.field(name).type)):
            return set()
        return {int(period) for period in table.read([name])[name].unique().to_pylist() if period is not None}
    except _UNREADABLE:
        return set()


def _opened(file: IO[bytes], **options: Any) -> Any:
    """A Parquet file; old timestamps of 12 bytes are cut to milliseconds, so that none overflows."""
    file.seek(0)
    return pa.parquet.ParquetFile(file, coerce_int96_timestamp_unit="ms", arrow_extensions_enabled=False, **options)


def _believed(num_rows: int) -> int:
    """A declared number of lost rows, at least 1, and not more than a ledger can add."""
    return min(max(1, num_rows), _MOST_REPORTS)


def _named(schema: pa.Schema) -> dict[str, list[str]]:
    """The columns of each name in lower case."""
    names: dict[str, list[str]] = {}
    for name in schema.names:
        names.setdefault(name.lower(), []).append(name)
    return names


def _columns_of(schema: pa.Schema) -> dict[str, str] | None:
    """The columns to read, by our names; None if the file has neither messages nor reports of known types, or has a
    column twice."""
    named = _named(schema)
    wanted = [name for name in (MESSAGES, *_COLUMNS, _ID, _NUMBER) if name in named]
    if any(len(named[name]) > 1 for name in wanted):
        return None
    own = {name: named[name][0] for name in wanted}
    types = {name: _plain(schema.field(column).type) for name, column in own.items()}
    if MESSAGES in types and _is_bytes(types[MESSAGES]):
        return {MESSAGES: own[MESSAGES]}
    if not set(_COLUMNS) <= set(types):
        return None
    times = types["event_time"]
    known = (
        (_is_bytes(types["collection"]) or _is_text(types["collection"]))
        and (pa.types.is_timestamp(times) or _is_whole(times))
        and _is_whole(types["cohort"])
        and _is_bytes(types["payload"])
        and (_ID not in types or _is_bytes(types[_ID]))
        and (_NUMBER not in types or _is_whole(types[_NUMBER]))
    )
    return {name: own[name] for name in (*_COLUMNS, _ID, _NUMBER) if name in own} if known else None


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_bytes(kind: pa.DataType) -> bool:
    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
    return any(test(kind) for test in tests)


def _is_text(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0))


def _read_group(table: Any, group: int, columns: dict[str, str], source: str) -> Iterator[bytes | Rejection]:
    facts, read = table.metadata.row_group(group), 0
    rows = _rows_at_once(table.schema_arrow, columns, facts)
    try:
        for batch in table.iter_batches(rows, row_groups=[group], columns=list(columns.values())):
            yield from _messages(batch, source) if MESSAGES in columns else _packed(batch, columns, source)
            read += batch.num_rows
    except _UNREADABLE:
        yield Rejection(Reason.CORRUPT_BLOCK, _believed(facts.num_rows - read), facts.total_byte_size, source=source)
    else:
        if facts.num_rows > read:
            yield Rejection(Reason.CORRUPT_BLOCK, _believed(facts.num_rows - read), 0, source=source)


def _rows_at_once(schema: pa.Schema, columns: dict[str, str], facts: Any) -> int:
    """Number of rows of a row group to hold in memory; cells of a fixed length are never read as dictionaries."""
    kinds = [_plain(schema.field(name).type) for name in columns.values()]
    fixed = sum(kind.byte_width for kind in kinds if pa.types.is_fixed_size_binary(kind))
    mean = facts.total_byte_size // max(1, facts.num_rows)
    return int(max(1, min(_ROWS_AT_ONCE, _BYTES_AT_ONCE // max(1, fixed, mean))))


def _messages(batch: pa.RecordBatch, source: str) -> Iterator[bytes | Rejection]:
    cells = _Cells(batch.column(0))
    missing = int(np.count_nonzero(cells.missing))
    if missing:
        yield Rejection(Reason.MALFORMED, missing, 0, source=source)
    for row in np.flatnonzero(~cells.missing)[:, None]:
        yield cells.at(row, int(cells.lengths[row[0]]))


def _packed(batch: pa.RecordBatch, columns: dict[str, str], source: str) -> Iterator[bytes | Rejection]:
    """Packed messages of the reports of a batch, one for each collection and length of payloads."""
    named = {name: batch.column(column) for name, column in columns.items()}
    prefixes, known = _prefixes(named["collection"])
    times, cohorts = _integers(named["event_time"]), _integers(named["cohort"])
    payloads, ids = _Cells(named["payload"]), _Cells(named[_ID]) if _ID in named else None
    bad = ~known | times[1] | cohorts[1] | payloads.missing
    numbers, bad_numbers = _numbers(named.get(_NUMBER), batch.num_rows)
    bad |= bad_numbers
    has_id = np.zeros(batch.num_rows, dtype=bool) if ids is None else ~ids.missing
    if ids is not None:
        bad |= has_id & (ids.lengths != ID_BYTES)
    outside = ~bad & ((cohorts[0] < 0) | (cohorts[0] >= _MOST_COHORTS))
    for reason, mask in ((Reason.MALFORMED, bad), (Reason.COHORT_RANGE, outside)):
        if mask.any():
            yield Rejection(reason, int(numbers[mask].sum()), 0, source=source)
    for rows in _groups((prefixes, payloads.lengths, has_id), ~(bad | outside)):
        first = rows[0]
        length, with_ids = int(payloads.lengths[first]), bool(has_id[first])
        most = max(1, (wire.MAX_MESSAGE_BYTES - _FRAME_BYTES) // (2 + 8 + ID_BYTES + length))
        for part in _repeated(rows, numbers[rows], most):
            yield wire.encode_columns(
                prefixes[first].tobytes(),
                cohorts[0][part],
                times[0][part],
                ids.at(part, ID_BYTES) if ids is not None and with_ids else b"",
                payloads.at(part, length),
            )


def _groups(keys: Sequence[np.ndarray], kept: np.ndarray) -> Iterator[np.ndarray]:
    """Positions of the kept rows with equal keys, in order."""
    rows = np.flatnonzero(kept)
    if not len(rows):
        return
    mixed = [key for key in (column[rows] for column in keys) if (key != key[0]).any()]
    if not mixed:
        yield rows
        return
    order = np.lexsort(mixed)
    changes = np.logical_or.reduce([np.diff(key[order]) != 0 for key in mixed])
    yield from np.split(rows[order], np.flatnonzero(changes) + 1)


def _numbers(column: pa.Array | None, num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """(n,) int64, how many reports each row stands for, and (n,) bool, whether that is impossible: then it is 1."""
    if column is None:
        return np.ones(num_rows, dtype=np.int64), np.zeros(num_rows, dtype=bool)
    numbers, bad = _integers(column)
    bad = bad | (numbers < 1) | (numbers > _MOST_REPORTS)
    return np.where(bad, 1, numbers), bad


def _repeated(rows: np.ndarray, numbers: np.ndarray, most: int) -> Iterator[np.ndarray]:
    """Each row as often as its number says, in parts of at most ``most``."""
    ends = np.cumsum(numbers)
    for start in range(0, int(ends[-1]), most):
        places = np.arange(start, min(start + most, int(ends[-1])))
        yield rows[places] if ends[-1] == len(rows) else rows[np.searchsorted(ends, places, side="right")]


def _prefixes(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """(n,) uint64, the 8 bytes that name each row's collection, and (n,) bool, whether the cell has such a name.

    Texts are hexadecimal digits; a whole fingerprint is cut to its prefix.
    """
    is_text = _is_text(_plain(column.type))
    distinct = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    names = [_prefix(cell, is_text) for cell in distinct.dictionary.cast(pa.large_binary()).to_pylist()]
    of_each = np.array([int.from_bytes(name or b"", "little") for name in names] + [0], dtype=np.uint64)
    is_name = np.array([name is not None for name in names] + [False])
    index = distinct.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
    return of_each[index], is_name[index]


def _prefix(cell: bytes | None, is_text: bool) -> bytes | None:
    if is_text and cell is not None:
        try:
            cell = bytes.fromhex(cell.decode("ascii"))
        except ValueError:
            return None
    return cell[:PREFIX_BYTES] if cell is not None and len(cell) in (PREFIX_BYTES, 32) else None


def _integers(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """(n,) int64, times in milliseconds, and (n,) bool, whether a cell is missing or no int64."""
    column = column.cast(_plain(column.type))
    is_time = pa.types.is_timestamp(column.type)
    missing = np.asarray(column.is_null())
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.decimal256(76, 0))
        ends = [pa.scalar(decimal.Decimal(int(end)), column.type) for end in (_INT64.min, _INT64.max)]
        outside = pc.or_(pc.less(column, ends[0]), pc.greater(column, ends[1])).fill_null(False)
        missing |= np.asarray(outside)
        column = pc.if_else(outside, pa.scalar(decimal.Decimal(0), column.type), column)
    ticks = column.view(pa.int64()) if is_time else pc.cast(column, pa.int64(), safe=False)
    numbers = ticks.fill_null(0).to_numpy(zero_copy_only=False)
    if pa.types.is_uint64(column.type):
        missing |= numbers < 0
    if is_time:  # without a time zone: UTC; Parquet stores no seconds
        numbers = numbers // {"ms": 1, "us": 1_000, "ns": 1_000_000}[column.type.unit]
    return numbers, missing


class _Cells:
    """Cells of bytes: where each begins, and how long it is. Equal cells of a dictionary share their bytes.

    Attributes:
        missing: (n,) bool.
        lengths: (n,) int64, 0 where a cell is missing.
    """

    def __init__(self, column: pa.Array):
        held = column.dictionary if pa.types.is_dictionary(column.type) else column
        held = held.cast(pa.large_binary())
        _, offsets, data = held.buffers()
        ends = np.frombuffer(offsets, dtype=np.int64)[held.offset : held.offset + len(held) + 1]
        starts, lengths = ends[:-1], np.diff(ends)
        self.missing = np.asarray(held.is_null())
        if pa.types.is_dictionary(column.type):
            places = column.indices.fill_null(len(held)).to_numpy(zero_copy_only=False)
            self.missing = np.append(self.missing, True)[places]
            starts, lengths = np.append(starts, 0)[places], np.append(lengths, 0)[places]
        self._starts, self.lengths = starts, np.where(self.missing, 0, lengths)
        self._data = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, np.uint8)

    def at(self, rows: np.ndarray, length: int) -> bytes:
        """The joined cells of some rows, which all have this length."""
        first, last = self._starts[rows[0]], self._starts[rows[-1]] + length
        is_one_piece = last - first == len(rows) * length and (np.diff(self._starts[rows]) == length).all()
        cells = self._data[first:last] if is_one_piece else self._data[self._starts[rows][:, None] + np.arange(length)]
        return bytes(cells.tobytes())
