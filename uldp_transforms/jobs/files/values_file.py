"""People's values from a table, CSV or Parquet. Errors name the line, never its content: it may be a secret."""

from __future__ import annotations

import contextlib
import csv
import functools
import gzip
import itertools
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from uldp_transforms.jobs.files.event_times import Clock
from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError

EVENT_TIME = "event_time"
_BLOCK_BYTES = 1 << 24
"""The longest row of a CSV file."""


class ValuesFile:
    """A table of people: a column of values, and perhaps one of times.

    Args:
        path: a Parquet file if it ends in .parquet; else CSV with a header, compressed if it ends in .gz.
        column: the name of the column of values.
        time_column: the name of the column of times; None: event_time, if there is one.
        timezone: whose time it is where a time has no offset from UTC; None: such times are refused.

    Attributes:
        columns: the names of all columns.
        time_column: the name of the column of times; None: there is none.

    Raises:
        OSError: if it cannot be opened.
        SpecError: if it lacks a column, has one twice or nearly so named; or if there is no such time zone.
    """

    def __init__(self, path: str, column: str = "value", time_column: str | None = None, timezone: str | None = None):
        self.path = path
        self.column = column
        self._table: _Table = _Parquet(path) if path.endswith(".parquet") else _Csv(path)
        self.columns = self._table.columns()
        self._check_named(column, "--value_column")
        self._check_named(time_column or EVENT_TIME, "--time_column" if time_column else None)
        self.time_column = time_column or (EVENT_TIME if EVENT_TIME in self.columns else None)
        self._clock = Clock(time_column or EVENT_TIME, timezone)

    def read(self, rows_at_once: int) -> Iterator[tuple[list[str], np.ndarray | None]]:
        """Values and event times (milliseconds, None without the column), so many rows at a time.

        Raises:
            SpecError: naming the line.
        """
        wanted = list(dict.fromkeys(filter(None, [self.column, self.time_column])))
        first = 0
        for table in _in_parts(self._table.read(wanted), rows_at_once):
            values = self._texts(table[self.column], first)
            times = None
            if self.time_column is not None:
                column = table[self.time_column].combine_chunks()
                times = self._clock.milliseconds(column, functools.partial(self._place_after, first))
            yield values, times
            first += len(values)

    def place(self, row: int) -> str:
        """File and line of a row (the first row after the header is 0)."""
        return f"{self.path} {self._table.place(row)}"

    def _place_after(self, first: int, row: int) -> str:
        return self.place(first + row)

    def _texts(self, column: pa.ChunkedArray, first: int) -> list[str]:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)):
            raise SpecError(f"{self.path}: column {self.column} must hold texts or whole numbers, got {kind}")
        if column.null_count:
            row = first + column.is_null().to_pylist().index(True)
            raise SpecError(f"{self.place(row)}: {self.column} must be a text or a whole number, got none")
        texts: list[str] = column.cast(pa.string()).to_pylist()
        return texts

    def _check_named(self, column: str, option: str | None) -> None:
        """A misspelt event_time would otherwise be ignored, and a month become one moment."""
        alike = [name for name in self.columns if _letters(name) == _letters(column)]
        if alike not in ([], [column]):
            raise SpecError(f"{self.path} must name the column {column} once and like this, got {describe(alike)}")
        if option and not alike:
            others = f"{len(self.columns)} other column(s)"
            raise SpecError(f"{self.path} must have a column named {column}, got {others}; {option} names another")


class _Table(Protocol):
    def columns(self) -> list[str]: ...
    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]: ...
    def place(self, row: int) -> str: ...


class _Csv:
    """Comma-separated values with a header; all of them are texts."""

    def __init__(self, path: str):
        self._path = path

    def columns(self) -> list[str]:
        try:
            with self._lines() as lines:
                return next(lines, [])
        except (UnicodeDecodeError, csv.Error):
            raise self._no_csv() from None
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise self._no_gzip() from None

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with self._reader(columns) as reader:
            yield from reader

    def place(self, row: int) -> str:
        """Counts lines of the file: texts may have line ends, and empty lines are no rows."""
        with self._lines(errors="replace") as lines, contextlib.suppress(csv.Error):  # it knows no long texts
            for _ in itertools.islice(filter(None, lines), row + 2):
                pass
            return f"line {lines.line_num}"
        return f"row {row + 1}"

    @contextlib.contextmanager
    def _lines(self, errors: str = "strict") -> Iterator[Any]:
        opener: Any = gzip.open if self._path.endswith(".gz") else open
        with opener(self._path, "rt", encoding="utf-8-sig", errors=errors, newline="") as file:
            yield csv.reader(file)

    @contextlib.contextmanager
    def _reader(self, columns: Sequence[str] = ()) -> Iterator[pa.csv.CSVStreamingReader]:
        invalid: list[pa.csv.InvalidRow] = []

        def refuse(row: pa.csv.InvalidRow) -> str:
            invalid.append(row)
            return "error"

        try:
            with pa.input_stream(self._path, compression="gzip" if self._path.endswith(".gz") else None) as file:
                yield pa.csv.open_csv(
                    file,
                    pa.csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
                    pa.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=refuse),
                    pa.csv.ConvertOptions(include_columns=columns, column_types=dict.fromkeys(columns, pa.string())),
                )
        except pa.ArrowInvalid:
            for row in invalid:  # Arrow counts the header as 1
                sentence = f"must have the {row.expected_columns} columns of the header, got {row.actual_columns}"
                raise SpecError(f"{self._path} {self.place(row.number - 2)} {sentence}") from None
            raise self._no_csv() from None
        except OSError as error:
            raise (self._no_gzip() if error.errno is None else error) from None

    def _no_csv(self) -> SpecError:
        return SpecError(f"{self._path} must be CSV with a header, in UTF-8 (the content is not shown)")

    def _no_gzip(self) -> SpecError:
        return SpecError(f"{self._path} must be a whole gzip file, got another or a broken one")


class _Parquet:
    """A table of the Parquet format, row group by row group."""

    def __init__(self, path: str):
        self._path = path

    def columns(self) -> list[str]:
        with self._file() as file:
            return list(file.schema_arrow.names)

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        with self._file() as file:
            yield from file.iter_batches(columns=columns)

    def place(self, row: int) -> str:
        return f"row {row + 1}"

    @contextlib.contextmanager
    def _file(self) -> Iterator[pa.parquet.ParquetFile]:
        try:
            with pa.parquet.ParquetFile(self._path) as file:
                yield file
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise SpecError(f"{self._path} must be a whole Parquet file (the content is not shown)") from None


def _in_parts(batches: Iterable[pa.RecordBatch], rows_at_once: int) -> Iterator[pa.Table]:
    """The same rows, so many at a time; fewer in the end."""
    waiting: pa.Table | None = None
    for batch in batches:
        part = pa.Table.from_batches([batch])
        waiting = part if waiting is None else pa.concat_tables([waiting, part])
        while len(waiting) >= rows_at_once:
            yield waiting.slice(0, rows_at_once)
            waiting = waiting.slice(rows_at_once)
    if waiting:
        yield waiting


def _letters(name: str) -> str:
    """A column's name without what people vary: case, spaces, underscores and hyphens."""
    return re.sub(r"[\s_-]", "", name).lower()
