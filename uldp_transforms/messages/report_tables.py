"""Reader of Parquet files of reports, as data lakes keep them. No Beam.

A file has the fields of ``schemas/report.avsc`` as columns (``form`` may be missing), or whole messages in the column
``data``. Rows of one collection become packed messages, so that a file of single reports is as fast as packed ones. A
column ``num_reports`` says how many equal reports a row stands for, as the queries of ``uldp sql`` return them.
"""

from __future__ import annotations

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
_ROWS_AT_ONCE = 1 << 16
_MOST_COHORTS = 1 << 16
_UNREADABLE = (pa.ArrowException, OSError, ValueError)
_MOST_REPORTS = 1 << 30
"""Maximum of reports that a row stands for."""

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
    file.seek(0)
    try:
        table = pa.parquet.ParquetFile(file)
        schema, metadata = table.schema_arrow, table.metadata
    except _UNREADABLE:
        yield Rejection(Reason.BAD_MAGIC, 1, size, source=source)
        account.refused = True
        return
    columns = _columns_of(schema)
    if columns is None:
        yield Rejection(Reason.UNKNOWN_SCHEMA, max(1, metadata.num_rows), size, source=source)
        account.refused = True
        return
    randomness = (schema.metadata or {}).get(RANDOMNESS.encode("ascii"))
    account.randomness = None if randomness is None else randomness.decode("utf-8", "replace")
    for group in range(metadata.num_row_groups):
        yield from _read_group(table, group, columns, source)
    account.num_bytes = size


def _columns_of(schema: pa.Schema) -> list[str] | None:
    """The columns to read; None if the file has neither messages nor reports of known types."""
    types = {field.name: _plain(field.type) for field in schema}
    if MESSAGES in types and _is_bytes(types[MESSAGES]):
        return [MESSAGES]
    if not set(_COLUMNS) <= set(types):
        return None
    times = types["event_time"]
    known = (
        (_is_bytes(types["collection"]) or _is_text(types["collection"]))
        and (pa.types.is_timestamp(times) or pa.types.is_integer(times))
        and pa.types.is_integer(types["cohort"])
        and _is_bytes(types["payload"])
        and (_ID not in types or _is_bytes(types[_ID]))
        and (_NUMBER not in types or pa.types.is_integer(types[_NUMBER]))
    )
    return [*_COLUMNS, *(name for name in (_ID, _NUMBER) if name in types)] if known else None


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_bytes(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary))


def _is_text(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string))


def _read_group(table: Any, group: int, columns: list[str], source: str) -> Iterator[bytes | Rejection]:
    facts, read = table.metadata.row_group(group), 0
    try:
        for batch in table.iter_batches(_ROWS_AT_ONCE, row_groups=[group], columns=columns):
            yield from _messages(batch, source) if columns == [MESSAGES] else _packed(batch, source)
            read += batch.num_rows
    except _UNREADABLE:
        missing = max(1, facts.num_rows - read)
        yield Rejection(Reason.CORRUPT_BLOCK, missing, facts.total_byte_size, source=source)


def _messages(batch: pa.RecordBatch, source: str) -> Iterator[bytes | Rejection]:
    column = batch.column(0).cast(_plain(batch.schema.field(0).type))
    if column.null_count:
        yield Rejection(Reason.MALFORMED, column.null_count, 0, source=source)
    yield from column.drop_null().to_pylist()


def _packed(batch: pa.RecordBatch, source: str) -> Iterator[bytes | Rejection]:
    """Packed messages of the reports of a batch, one for each collection and length of payloads."""
    named = {field.name: column.cast(_plain(field.type)) for field, column in zip(batch.schema, batch.columns)}
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
    distinct = column.dictionary_encode()
    names = [_prefix(cell) for cell in distinct.dictionary.to_pylist()]
    of_each = np.array([int.from_bytes(name or b"", "little") for name in names] + [0], dtype=np.uint64)
    is_name = np.array([name is not None for name in names] + [False])
    index = distinct.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
    return of_each[index], is_name[index]


def _prefix(cell: bytes | str) -> bytes | None:
    if isinstance(cell, str):
        try:
            cell = bytes.fromhex(cell)
        except ValueError:
            return None
    return cell[:PREFIX_BYTES] if len(cell) in (PREFIX_BYTES, 32) else None


def _integers(column: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """(n,) int64, times in milliseconds, and (n,) bool, whether a cell is missing or no int64."""
    is_time = pa.types.is_timestamp(column.type)
    missing = np.asarray(column.is_null())
    ticks = column.view(pa.int64()) if is_time else pc.cast(column, pa.int64(), safe=False)
    numbers = ticks.fill_null(0).to_numpy(zero_copy_only=False)
    if pa.types.is_uint64(column.type):
        missing |= numbers < 0
    if is_time:  # without a time zone: UTC; Parquet stores no seconds
        numbers = numbers // {"ms": 1, "us": 1_000, "ns": 1_000_000}[column.type.unit]
    return numbers, missing


class _Cells:
    """Cells of bytes: where each begins, and how long it is.

    Attributes:
        missing: (n,) bool.
        lengths: (n,) int64, 0 where a cell is missing.
    """

    def __init__(self, column: pa.Array):
        column = column.cast(pa.large_binary())
        self.missing = np.asarray(column.is_null())
        _, offsets, data = column.buffers()
        ends = np.frombuffer(offsets, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
        self._starts = ends[:-1]
        self.lengths = np.where(self.missing, 0, np.diff(ends))
        self._data = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, np.uint8)

    def at(self, rows: np.ndarray, length: int) -> bytes:
        """The joined cells of some rows, which all have this length."""
        first, last = self._starts[rows[0]], self._starts[rows[-1]] + length
        is_one_piece = last - first == len(rows) * length and (np.diff(self._starts[rows]) == length).all()
        cells = self._data[first:last] if is_one_piece else self._data[self._starts[rows][:, None] + np.arange(length)]
        return bytes(cells.tobytes())
