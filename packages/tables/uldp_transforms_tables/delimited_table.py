"""Tables of texts: cells that are separated by commas, semicolons, tabs or bars, below a header."""

from __future__ import annotations

import codecs
import contextlib
import csv
import functools
import io
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_tables.packed_files import PackedFile

_DELIMITERS = "\t;|,"
"""The comma comes last: where a table has as many cells either way, it is a decimal comma."""

_SPREADSHEET_LINE = re.compile(r'"?sep=(.)"?\r?\n')
_SAMPLE_BYTES, _SAMPLE_ROWS = 1 << 20, 100
_BLOCK_BYTES = 16_777_216
"""Maximum length of a row."""

_ESCAPED = b'\\"'
_ESCAPES = "Spark writes them so with escape='\"', R with qmethod='double'"
_TOO_LONG, _INSIDE = "field limit", "expected after"
"""Parts of what Python says about a text that is too long for it, and about a quotation mark inside a quoted text."""

_NO_ROWS = "Empty CSV file"
"""What Arrow says about a header alone."""


class Header(NamedTuple):
    """How a table begins.

    Attributes:
        names: of the columns; the last one is empty if all rows end with a delimiter, and the header does not.
        delimiter: between cells.
        size: number of bytes up to the first row, in UTF-8.
        lines: number of lines before the first row.
    """

    names: tuple[str, ...]
    delimiter: str
    size: int
    lines: int


class DelimitedTable:
    """A table of texts with a header, in UTF-8 or, with a byte order mark, in UTF-16.

    Args:
        file: the file, compressed or not.
    """

    def __init__(self, file: PackedFile):
        self._file = file
        self._path = file.path

    def columns(self) -> list[str]:
        """The names of all columns; raises SpecError if the file is no such table."""
        return list(self._header.names)

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """These columns, batch by batch; raises SpecError for a row with another number of cells than the header."""
        header, last = self._header, None
        if self._file.contains(_ESCAPED):
            self._check_quotes()
        places = [str(header.names.index(column)) for column in columns]
        end = str(len(header.names) - 1)
        for batch in self._batches(list(dict.fromkeys([*places, end]))):
            last = batch.column(end)[-1] if len(batch) else last
            yield pa.RecordBatch.from_arrays([batch.column(place) for place in places], list(columns))
        if last is not None and "\n" in last.as_py():
            self._check_quotes()

    def faults(self, columns: Sequence[str]) -> Mapping[str, Sequence[int]]:
        """None: ``read`` refuses a table with such a row."""
        return {}

    def place(self, row: int) -> str:
        """The line of a row in the file: texts may contain line ends, and empty lines are not rows."""
        with self._rows(errors="replace") as rows, contextlib.suppress(csv.Error):  # csv limits the length of texts
            for _ in itertools.islice(filter(None, rows), row + 1):
                pass
            return f"line {self._header.lines + rows.line_num}"
        return f"row {row + 1}"

    def about_rows(self) -> int:
        return self._file.line_ends() - self._header.lines

    @functools.cached_property
    def _header(self) -> Header:
        with self._file.text() as stream:
            sample = bytes(stream.read(_SAMPLE_BYTES))
        try:  # a character may be cut where the sample ends
            text = codecs.getincrementaldecoder("utf-8")().decode(sample, final=len(sample) < _SAMPLE_BYTES)
            if "\0" in text:
                raise self._no_table()
            return header_of(text, is_whole=len(sample) < _SAMPLE_BYTES)
        except (UnicodeDecodeError, csv.Error):
            raise self._no_table() from None

    @contextlib.contextmanager
    def _rows(self, errors: str = "strict", **options: Any) -> Iterator[Any]:
        """Rows as Python reads them, without the header."""
        with self._file.text() as stream:
            stream.read(self._header.size)
            with io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8", errors=errors, newline="") as text:
                yield csv.reader(text, delimiter=self._header.delimiter, **options)

    def _batches(self, places: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The columns with these numbers, as texts."""
        header = self._header
        try:
            with self._file.text() as stream:
                stream.read(header.size)
                yield from pa.csv.open_csv(
                    stream,
                    pa.csv.ReadOptions(
                        use_threads=False,
                        block_size=_BLOCK_BYTES,
                        column_names=[str(at) for at in range(len(header.names))],
                    ),
                    pa.csv.ParseOptions(delimiter=header.delimiter, newlines_in_values=True),
                    pa.csv.ConvertOptions(include_columns=places, column_types=dict.fromkeys(places, pa.string())),
                )
        except pa.ArrowInvalid as error:
            if str(error) != _NO_ROWS:
                raise self._uneven_row() or self._no_table() from None

    def _uneven_row(self) -> SpecError | None:
        """The error that names the first row with more or fewer columns than the header, if there is one."""
        expected = len(self._header.names)
        with self._rows(errors="replace") as rows, contextlib.suppress(csv.Error):
            for got in map(len, filter(None, rows)):
                if got != expected:
                    place = f"line {self._header.lines + rows.line_num}"
                    return SpecError(f"{self._path} {place} must have the {expected} columns of the header, got {got}")
        return None

    def _check_quotes(self) -> None:
        """Refuse a quotation mark that is never closed, because all rows behind it would be one text, and one inside a
        quoted text, as other programs write it, because the text would be another one."""
        begin = self._header.lines + 1
        with self._rows(errors="replace", strict=True) as rows:
            try:
                for _ in rows:
                    begin = self._header.lines + rows.line_num + 1
            except csv.Error as error:
                if _TOO_LONG in str(error):
                    return
                sentence = "must end each quoted text with a quotation mark, got a text without an end"
                if _INSIDE in str(error):
                    sentence = f"must double quotation marks inside quoted texts, got a single one; {_ESCAPES}"
                raise SpecError(f"{self._path} line {begin} {sentence}") from None

    def _no_table(self) -> SpecError:
        sentence = f"{self._path} must be CSV with a header, in UTF-8 (the content is not shown)"
        return SpecError(f"{sentence}{self._other_encoding()}")

    def _other_encoding(self) -> str:
        """The first line in another encoding, and the cure; empty if there is none."""
        cure = "save the table as CSV in UTF-8"
        with self._file.lines() as lines:
            for number, line in enumerate(lines, 1):
                if b"\0" in line:
                    return f"; line {number} has zero bytes, as UTF-16 and files of other programs do: {cure}"
                try:
                    line.decode()
                except UnicodeDecodeError:
                    return f"; line {number} is in another encoding, such as Windows-1252: {cure}"
        return ""


def header_of(text: str, *, is_whole: bool = True) -> Header:
    """The header and the delimiter of a table that begins with this text.

    A delimiter must divide the header; among several ones that do, one counts that gives all rows as many cells, and
    among those the one with the most cells.

    Raises:
        csv.Error: if a cell is too long.
    """
    begin = len("\ufeff") if text.startswith("\ufeff") else 0
    named = _SPREADSHEET_LINE.match(text, begin)
    delimiters = named[1] if named else _DELIMITERS
    begin = named.end() if named else begin
    tried = [_divided(text, begin, delimiter, is_whole) for delimiter in delimiters]
    divides = [(header, evenly) for header, evenly in tried if len(header.names) > 1]
    even = [header for header, evenly in divides if evenly]
    return max(even or [header for header, _ in divides or tried[-1:]], key=lambda header: len(header.names))


def _divided(text: str, begin: int, delimiter: str, is_whole: bool) -> tuple[Header, bool]:
    """The header for a delimiter, and whether it gives all rows of the text as many cells."""
    before = text[:begin]
    used: list[str] = []

    def lines() -> Iterator[str]:
        for line in io.StringIO(text[begin:], newline=""):
            used.append(line)
            yield line

    rows = csv.reader(lines(), delimiter=delimiter)
    names = next(filter(None, rows), [])
    size = len((before + "".join(used)).encode())
    num_lines = before.count("\n") + rows.line_num
    sample: list[list[str]] = []
    with contextlib.suppress(csv.Error):  # a text that is too long for this reader
        sample.extend(itertools.islice(filter(None, rows), _SAMPLE_ROWS))
    if not is_whole and len(sample) < _SAMPLE_ROWS:
        sample = sample[:-1]  # the last one may be cut
    widths = {len(row) for row in sample}
    if widths == {len(names) + 1} and names and all(row[-1] == "" for row in sample):
        names = [*names, ""]
    return Header(tuple(names), delimiter, size, num_lines), widths <= {len(names)}
