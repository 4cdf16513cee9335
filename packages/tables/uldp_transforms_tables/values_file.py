"""Reads people's values from a table of any kind. Errors name the line, never its content, which may be sensitive."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_tables.cell_texts import MISSING_TEXTS, are_missing, texts_of
from uldp_transforms_tables.event_times import Clock
from uldp_transforms_tables.tables import table_of

EVENT_TIME = "event_time"
REFUSE, SKIP, KEEP = MISSING = ("refuse", "skip", "keep")
"""What to do with missing cells: null, empty, white space alone, or a text such as NA."""
ROWS_AT_ONCE = 65_536
"""Default number of rows that are read at a time."""


class Rows(NamedTuple):
    """Some rows of a table, without those that are left out.

    Attributes:
        numbers: (n,) int64 numbers of the rows in the file; row 0 is the first after the header.
        columns: the n texts of each column that was asked for, by its name.
        times: (n,) int64 milliseconds since 1970; None without a column of times.
    """

    numbers: np.ndarray
    columns: dict[str, list[str]]
    times: np.ndarray | None


class ValuesFile:
    """A table of people: a column of values, optionally a column of times, and further columns.

    Args:
        path: of the file; ``table_of`` says which kinds there are.
        column: name of the column of values.
        time_column: name of the column of times; None: event_time, if that column exists.
        timezone: time zone for times without an offset from UTC; None: such times are refused.
        time_format: format of times that are texts, or unit of times that are numbers; see ``Clock``.
        missing: what to do with missing cells of any column: "skip" leaves their rows out, "keep" reads the empty text
            (a time must be there), "refuse" raises.
        others: names of further columns -> the options that name them, for messages.
        listed: texts of a column that are values even if other programs write them for missing cells, by column.
        marks: texts in small letters that mean a missing cell; None: ``MISSING_TEXTS``.

    Attributes:
        columns: names of all columns.
        time_column: name of the column of times; None if there is none.
        num_rows: rows read so far.
        num_missing: column -> missing cells of these rows.

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
        missing: str = REFUSE,
        others: Mapping[str, str] | None = None,
        listed: Mapping[str, Collection[str]] | None = None,
        marks: Collection[str] | None = None,
    ):
        self.path = path
        self.column = column
        self._missing = missing
        self._listed = listed or {}
        self._marks = set(MISSING_TEXTS if marks is None else marks)
        self._table = table_of(path)
        self.columns = self._table.columns()
        if not self.columns:
            raise SpecError(f"{path} must have a header, or JSON objects, got none")
        self._named = {column: "--value_column"} | dict(others or {})
        for name, option in self._named.items():
            self._check_named(name, option)
        self._check_named(time_column or EVENT_TIME, "--time_column" if time_column else None)
        self.time_column = time_column or (EVENT_TIME if EVENT_TIME in self.columns else None)
        self._clock = Clock(time_column or EVENT_TIME, timezone, time_format)
        self.num_rows, self.num_missing = 0, dict[str, int]()

    def read(self, rows_at_once: int = ROWS_AT_ONCE) -> Iterator[tuple[list[str], np.ndarray | None]]:
        """Yield values and event times (milliseconds, None without the column), from ``rows_at_once`` rows at a time.

        Raises:
            SpecError: for an invalid row; names the line.
        """
        for rows in self.rows(rows_at_once):
            if len(rows.numbers):
                yield rows.columns[self.column], rows.times

    def rows(self, rows_at_once: int = ROWS_AT_ONCE) -> Iterator[Rows]:
        """Yield all columns, from ``rows_at_once`` rows of the file at a time; raises as ``read`` does."""
        wanted = list(dict.fromkeys(filter(None, [*self._named, self.time_column])))
        self._check_rows(wanted)
        self.num_rows, self.num_missing = 0, {}
        for table in _in_parts(self._table.read(wanted), rows_at_once):
            first, kept = self.num_rows, np.ones(len(table), dtype=bool)
            texts = {name: self._texts(table[name], name, first, kept) for name in self._named}
            times = None if self.time_column is None else self._times(table[self.time_column], first, kept)
            self.num_rows += len(table)
            held = pa.array(np.flatnonzero(kept))
            yield Rows(
                numbers=first + np.flatnonzero(kept),
                columns={name: column.take(held).to_pylist() for name, column in texts.items()},
                times=None if times is None else times[kept],
            )

    def about_rows(self) -> int:
        """About the number of rows, for progress messages."""
        return self._table.about_rows()

    def missing_sentences(self, but: Collection[str] = ()) -> list[str]:
        """What became of missing cells, once all rows are read: a sentence for each column of them, except ``but``."""
        what = "their rows are left out" if self._missing == SKIP else "they are read as the empty text"
        return [
            f"{self.path}: {number:,} of {self.num_rows:,} cells of {name} are missing; {what}"
            for name, number in self.num_missing.items()
            if name not in but
        ]

    def place(self, row: int) -> str:
        """File name and line of a row (row 0 is the first after the header)."""
        return f"{self.path} {self._table.place(row)}"

    def _texts(self, column: pa.ChunkedArray, name: str, first: int, kept: np.ndarray) -> pa.Array:
        """The cells of a column; rows to leave out are no longer ``kept``."""
        texts, absent = self._cells(column, name)
        if absent.any():
            if self._missing == REFUSE:
                row = int(absent.argmax())
                raise self._no_value(name, first + row, texts[row].as_py())
            self._count_missing(name, absent)
            texts = pc.if_else(pa.array(absent), "", texts)
            if self._missing == SKIP:
                kept &= ~absent
        return texts

    def _times(self, column: pa.ChunkedArray, first: int, kept: np.ndarray) -> np.ndarray:
        """(n,) milliseconds; rows without a time are left out if missing cells are."""
        assert self.time_column is not None
        cells = column.combine_chunks()
        absent = self._cells(column, self.time_column)[1] if self._missing == SKIP else np.zeros(len(cells), bool)
        if not absent.any():
            return self._clock.milliseconds(cells, lambda row: self.place(first + row))
        self._count_missing(self.time_column, absent)
        kept &= ~absent
        there = np.flatnonzero(~absent)
        times = np.zeros(len(cells), dtype=np.int64)
        times[there] = self._clock.milliseconds(
            cells.take(pa.array(there)), lambda row: self.place(first + int(there[row]))
        )
        return times

    def _cells(self, column: pa.ChunkedArray, name: str) -> tuple[pa.Array, np.ndarray]:
        """Texts, and which of them are missing."""
        texts = texts_of(column.combine_chunks(), name)
        absent = are_missing(texts, self._marks)
        listed = pa.array(sorted(self._listed.get(name, ())), pa.string())
        if absent.any() and len(listed):
            absent &= ~np.asarray(pc.is_in(texts, value_set=listed))
        return texts, absent

    def _count_missing(self, name: str, absent: np.ndarray) -> None:
        self.num_missing[name] = self.num_missing.get(name, 0) + int(absent.sum())

    def _no_value(self, name: str, row: int, text: str | None) -> SpecError:
        """The error that names the first row without a value, and says how many there are."""
        parts = [self._cells(pa.chunked_array([part.column(0)]), name)[1] for part in self._table.read([name])]
        number, total = sum(int(part.sum()) for part in parts), sum(map(len, parts))
        ways = "; --missing skip leaves such rows out, --missing keep reads the empty text"
        if text and not text.isspace():
            ways += ", --missing_texts names the texts that mean a missing cell"
        sentence = f"{name} must be a text or a number, got none in {number:,} of {total:,} rows{ways}"
        return SpecError(f"{self.place(row)}: {sentence}")

    def _check_rows(self, columns: Sequence[str]) -> None:
        """Refuse rows that cannot be read: their cells are not missing."""
        first = [(rows[0], reason) for reason, rows in self._table.faults(columns).items()]
        if first:
            row, reason = min(first)
            raise SpecError(f"{self.place(row)} cannot be read: {reason}")

    def _check_named(self, column: str, option: str | None) -> None:
        """Refuse a misspelt event_time column: it would be ignored, and all events would get the same time."""
        alike = [name for name in self.columns if _letters(name) == _letters(column)]
        if alike not in ([], [column]):
            raise SpecError(
                f"{self.path} must have exactly one column named {column}, spelled like this, got {describe(alike)}"
            )
        if option and not alike:
            got = f"{len(self.columns)} other column(s); {option} names another, and CSV must begin with its header"
            raise SpecError(f"{self.path} must have a column named {column}, got {got}")


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


def _letters(name: str) -> str:
    """A column name in a normal form, without case, spaces, underscores and hyphens."""
    return re.sub(r"[\s_-]", "", name).lower()
