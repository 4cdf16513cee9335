"""Reads people's values from a CSV or Parquet table. Errors name the line, never its content, which may be
sensitive."""

from __future__ import annotations

import contextlib
import csv
import functools
import gzip
import itertools
import json
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from uldp_transforms.jobs.files.event_times import Clock
from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError

EVENT_TIME = "event_time"
REFUSE, SKIP, KEEP = MISSING = ("refuse", "skip", "keep")
"""What to do with missing cells: null, empty, or white space alone."""
ROWS_AT_ONCE = 65_536
"""Default number of rows that are read at a time."""

_SURROGATES = re.compile("[\ud800-\udfff]")
_BLOCK_BYTES = 16_777_216
"""Maximum length of a row of a CSV file."""


class ValuesFile:
    """A table of people: a column of values, and optionally a column of times.

    Args:
        path: a Parquet file if it ends in .parquet; else CSV with a header, compressed if it ends in .gz.
        column: name of the column of values.
        time_column: name of the column of times; None: event_time, if that column exists.
        timezone: time zone for times without an offset from UTC; None: such times are refused.
        time_format: format of times that are texts, as of ``strptime``; None: RFC 3339 or seconds since 1970.
        missing: what to do with missing cells of the column of values: "skip" leaves their rows out, "keep" reads the
            empty text, "refuse" and None raise (None for columns without the option ``--missing``).

    Attributes:
        columns: names of all columns.
        time_column: name of the column of times; None if there is none.
        num_rows, num_missing: rows read so far, and those of them without a value.

    Raises:
        OSError: if the file cannot be opened.
        SpecError: if a column is missing, duplicated or nearly so; or if the time zone or the format is unknown.
    """

    def __init__(
        self,
        path: str,
        column: str = "value",
        time_column: str | None = None,
        timezone: str | None = None,
        *,
        time_format: str | None = None,
        missing: str | None = None,
    ):
        self.path = path
        self.column = column
        self._missing = missing
        self._table = table_of(path)
        self.columns = self._table.columns()
        self._check_named(column, "--value_column")
        self._check_named(time_column or EVENT_TIME, "--time_column" if time_column else None)
        self.time_column = time_column or (EVENT_TIME if EVENT_TIME in self.columns else None)
        self._clock = Clock(time_column or EVENT_TIME, timezone, time_format)
        self.num_rows = self.num_missing = 0

    def read(self, rows_at_once: int = ROWS_AT_ONCE) -> Iterator[tuple[list[str], np.ndarray | None]]:
        """Yield values and event times (milliseconds, None without the column), from ``rows_at_once`` rows at a time.

        Raises:
            SpecError: for an invalid row; names the line.
        """
        for cells, times in self.cells(rows_at_once):
            held = [row for row, cell in enumerate(cells) if cell is not None]
            values = [cell for cell in cells if cell is not None]
            if values:
                yield values, None if times is None else times[held]

    def cells(self, rows_at_once: int = ROWS_AT_ONCE) -> Iterator[tuple[list[str | None], np.ndarray | None]]:
        """Yield values and times of all rows, as ``read`` does, with None for a cell that is to be left out."""
        wanted = list(dict.fromkeys(filter(None, [self.column, self.time_column])))
        self.num_rows = self.num_missing = 0
        for table in _in_parts(self._table.read(wanted), rows_at_once):
            first = self.num_rows
            values = self._texts(table[self.column], first)
            times = None
            if self.time_column is not None:
                column = table[self.time_column].combine_chunks()
                times = self._clock.milliseconds(column, functools.partial(self._place_after, first))
            self.num_rows += len(values)
            yield values, times

    def about_rows(self) -> int:
        """About the number of rows, for progress messages."""
        return self._table.about_rows()

    def missing_sentence(self) -> str | None:
        """What became of missing cells, once all rows are read; None if there were none."""
        if not self.num_missing:
            return None
        what = "their rows are left out" if self._missing == SKIP else "they are read as the empty text"
        return f"{self.path}: {self.num_missing:,} of {self.num_rows:,} cells of {self.column} are missing; {what}"

    def place(self, row: int) -> str:
        """File name and line of a row (row 0 is the first after the header)."""
        return f"{self.path} {self._table.place(row)}"

    def _place_after(self, first: int, row: int) -> str:
        return self.place(first + row)

    def _texts(self, column: pa.ChunkedArray, first: int) -> list[str | None]:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)):
            raise SpecError(f"{self.path}: column {self.column} must hold texts or whole numbers, got {kind}")
        texts = column.cast(pa.string())
        absent = _are_missing(texts)
        if absent.any():
            if self._missing not in (SKIP, KEEP):
                raise self._no_value(first + int(absent.argmax()))
            self.num_missing += int(absent.sum())
            texts = pc.if_else(absent, None if self._missing == SKIP else "", texts)
        cells: list[str | None] = texts.to_pylist()
        return cells

    def _no_value(self, row: int) -> SpecError:
        """The error that names the first row without a value, and says how many there are."""
        parts = [_are_missing(part.column(0).cast(pa.string())) for part in self._table.read([self.column])]
        number, total = sum(int(part.sum()) for part in parts), sum(map(len, parts))
        ways = "; --missing skip leaves such rows out, --missing keep reads the empty text" if self._missing else ""
        sentence = f"{self.column} must be a text or a whole number, got none in {number:,} of {total:,} rows{ways}"
        return SpecError(f"{self.place(row)}: {sentence}")

    def _check_named(self, column: str, option: str | None) -> None:
        """Refuse a misspelt event_time column: it would be ignored, and all events would get the same time."""
        alike = [name for name in self.columns if _letters(name) == _letters(column)]
        if alike not in ([], [column]):
            raise SpecError(
                f"{self.path} must have exactly one column named {column}, spelled like this, got {describe(alike)}"
            )
        if option and not alike:
            others = f"{len(self.columns)} other column(s)"
            raise SpecError(f"{self.path} must have a column named {column}, got {others}; {option} names another")


class Table(Protocol):
    """A file of rows and named columns."""

    def columns(self) -> list[str]:
        """The names of all columns."""

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """These columns, batch by batch."""

    def place(self, row: int) -> str:
        """The place of a row in the file (the first row after the header is 0)."""

    def about_rows(self) -> int:
        """The number of rows, or of lines if these are counted faster."""


def table_of(path: str) -> Table:
    """A Parquet file if its name ends in .parquet, JSON lines if it ends in .jsonl; else CSV with a header, compressed
    if it ends in .gz."""
    kinds: dict[str, type[_Parquet | _JsonLines]] = {".parquet": _Parquet, ".jsonl": _JsonLines}
    return kinds.get(os.path.splitext(path)[1], _Csv)(path)


class _Csv:
    """Comma-separated values with a header; all columns are texts."""

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
        """The line of a row in the file: texts may contain line ends, and empty lines are not rows."""
        with self._lines(errors="replace") as lines, contextlib.suppress(csv.Error):  # csv limits the length of texts
            for _ in itertools.islice(filter(None, lines), row + 2):
                pass
            return f"line {lines.line_num}"
        return f"row {row + 1}"

    def about_rows(self) -> int:
        opener: Any = gzip.open if self._path.endswith(".gz") else open
        with opener(self._path, "rb") as file:
            return _line_ends(file) - 1

    @contextlib.contextmanager
    def _lines(self, errors: str = "strict") -> Iterator[Any]:
        opener: Any = gzip.open if self._path.endswith(".gz") else open
        with opener(self._path, "rt", encoding="utf-8-sig", errors=errors, newline="") as file:
            yield csv.reader(file)

    @contextlib.contextmanager
    def _reader(self, columns: Sequence[str] = ()) -> Iterator[pa.csv.CSVStreamingReader]:
        """Arrow's reader, without a function in Python: Arrow's threads would need the interpreter to release it, which
        aborts a process that is ending."""
        try:
            with pa.input_stream(self._path, compression="gzip" if self._path.endswith(".gz") else None) as file:
                yield pa.csv.open_csv(
                    file,
                    pa.csv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
                    pa.csv.ParseOptions(newlines_in_values=True),
                    pa.csv.ConvertOptions(include_columns=columns, column_types=dict.fromkeys(columns, pa.string())),
                )
        except pa.ArrowInvalid:
            raise self._uneven_row() or self._no_csv() from None
        except OSError as error:
            raise (self._no_gzip() if error.errno is None else error) from None

    def _uneven_row(self) -> SpecError | None:
        """The error that names the first row with more or fewer columns than the header, if there is one."""
        with self._lines(errors="replace") as lines, contextlib.suppress(csv.Error):
            rows = filter(None, lines)
            expected = len(next(rows, []))
            for got in map(len, rows):
                if got != expected:
                    sentence = f"must have the {expected} columns of the header, got {got}"
                    return SpecError(f"{self._path} line {lines.line_num} {sentence}")
        return None

    def _no_csv(self) -> SpecError:
        return SpecError(f"{self._path} must be CSV with a header, in UTF-8 (the content is not shown)")

    def _no_gzip(self) -> SpecError:
        return SpecError(f"{self._path} must be a complete gzip file, got another format or a damaged file")


class _JsonLines:
    """One JSON object per line; all columns are texts. Any other line has no cells."""

    def __init__(self, path: str):
        self._path = path

    def columns(self) -> list[str]:
        """The keys of the first object."""
        return next((list(row) for row in self._rows() if row), [])

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        rows = self._rows()
        while part := list(itertools.islice(rows, ROWS_AT_ONCE)):
            cells = {name: pa.array([row.get(name) for row in part], pa.string()) for name in columns}
            yield pa.RecordBatch.from_pydict(cells)

    def place(self, row: int) -> str:
        return f"line {row + 1}"

    def about_rows(self) -> int:
        with open(self._path, "rb") as file:
            return _line_ends(file)

    def _rows(self) -> Iterator[dict[str, str]]:
        with open(self._path, "rb") as file:
            for line in file:
                yield cells_of_line(line)


def cells_of_line(line: bytes) -> dict[str, str]:
    """The texts and numbers of a JSON object, as texts; empty for any other line."""
    try:
        found = json.loads(line, parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        found = None
    return {name: cell for name, cell in found.items() if _is_text(cell)} if isinstance(found, dict) else {}


def _is_text(cell: object) -> bool:
    """Whether a cell is a text without lone surrogates, or a number, which is read as its digits."""
    return isinstance(cell, str) and not _SURROGATES.search(cell)


class _Parquet:
    """A Parquet table, read row group by row group."""

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

    def about_rows(self) -> int:
        with self._file() as file:
            return int(file.metadata.num_rows)

    @contextlib.contextmanager
    def _file(self) -> Iterator[pa.parquet.ParquetFile]:
        try:
            with pa.parquet.ParquetFile(self._path) as file:
                yield file
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise SpecError(f"{self._path} must be a complete Parquet file (the content is not shown)") from None


def _line_ends(file: IO[bytes]) -> int:
    return sum(part.count(b"\n") for part in iter(lambda: file.read(_BLOCK_BYTES), b""))


def _in_parts(batches: Iterable[pa.RecordBatch], rows_at_once: int) -> Iterator[pa.Table]:
    """The same rows in tables of ``rows_at_once`` rows; the last one may be shorter."""
    waiting: pa.Table | None = None
    for batch in batches:
        part = pa.Table.from_batches([batch])
        waiting = part if waiting is None else pa.concat_tables([waiting, part])
        full = len(waiting) - len(waiting) % rows_at_once
        for start in range(0, full, rows_at_once):
            yield waiting.slice(start, rows_at_once)
        waiting = waiting.slice(full)
    if waiting:
        yield waiting


def _are_missing(texts: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Which cells are null, empty or white space alone."""
    return np.asarray(pc.equal(pc.utf8_trim_whitespace(pc.fill_null(texts, "")), ""))


def _letters(name: str) -> str:
    """A column name in a normal form, without case, spaces, underscores and hyphens."""
    return re.sub(r"[\s_-]", "", name).lower()
