"""Cells of a table, and the reasons for omitting rows. No cell is ever shown."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from uldp_transforms.jobs.files.values_file import Table
from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError

MISSING = ("", "na", "nan", "null")
"""Cells without content, in small letters and without spaces around."""

_SEPARATORS = {";": "semicolons", "\t": "tabs"}
_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")
_FEW = 3  # rows that a sentence names


@dataclasses.dataclass(frozen=True)
class LeftOut:
    """Rows that are left out for one reason.

    Attributes:
        reason: a sentence without a subject.
        num_rows: how many.
        places: of the first ones in the file.
    """

    reason: str
    num_rows: int
    places: tuple[str, ...]

    def __str__(self) -> str:
        more = f" and {self.num_rows - len(self.places):,} more" if self.num_rows > len(self.places) else ""
        rows = f"{self.num_rows:,} {'row' if self.num_rows == 1 else 'rows'}"
        return f"{rows}: {self.reason} ({', '.join(self.places)}{more})"


def used(number: int, num_rows: int, left_out: Sequence[LeftOut]) -> list[str]:
    """Lines that say how many rows are used, and why the others are not."""
    return [f"{number:,} of {num_rows:,} rows are used.", *(f"left out: {what}" for what in left_out)]


def require_column(path: str, names: Sequence[str], option: str, column: str) -> None:
    """Refuse a column that a table does not have once, and tables that are not separated by commas.

    A header may be a person's answers, if the table has none; so only names that the option nearly has are shown.

    Raises:
        SpecError: names the option.
    """
    number = names.count(column)
    if number == 1:
        return
    for character, kind in _SEPARATORS.items():
        if len(names) == 1 and character in names[0]:
            raise SpecError(f"{path} must have commas between its cells, got {kind}; save it as CSV with commas")
    if path.lower().endswith(_SPREADSHEETS):
        raise SpecError(f"{path} must be a CSV or Parquet file, got a spreadsheet; save it as CSV")
    alike = next((name for name in names if name != column and _plain(name) == _plain(column)), None)
    more = "" if number or alike is None else f"; one is named {describe(alike)}"
    raise SpecError(f"{option} must name one column of {path}, got {describe(column)}, found {number} times{more}")


def _plain(name: str) -> str:
    return "".join(name.split()).casefold()


class Cells:
    """Some columns of a table of N rows; for each row the first reason to leave it out is kept.

    Args:
        path: of the table, for errors.
        table: the table.
        columns: names of the columns that are read.

    Raises:
        SpecError: if the table has no rows.
    """

    def __init__(self, path: str, table: Table, columns: Sequence[str]):
        self._table = table
        batches = list(table.read(list(dict.fromkeys(columns))))
        if not sum(map(len, batches)):
            raise SpecError(f"{path} must have at least one row, got none")
        self._cells = pa.Table.from_batches(batches)
        self._reasons = [""]
        self._reason = np.zeros(len(self._cells), dtype=np.int64)

    @property
    def keep(self) -> np.ndarray:
        """(N,) bool: rows without a reason."""
        kept: np.ndarray = self._reason == 0
        return kept

    def coded(self, column: str) -> tuple[tuple[str, ...], np.ndarray]:
        """The different cells of a column without spaces around, and their numbers, (N,)."""
        cells = self._cells[column].combine_chunks()
        if pa.types.is_dictionary(cells.type):
            cells = cells.dictionary_decode()
        coded = cells.cast(pa.string()).fill_null("").dictionary_encode()
        coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
        stripped = [text.strip() for text in coded.dictionary.to_pylist()]
        texts = sorted(set(stripped))  # an array of texts would be as wide as the longest, and drop NULs at their ends
        place = {text: at for at, text in enumerate(texts)}
        number = np.array([place[text] for text in stripped], dtype=np.int64)
        return tuple(texts), number[coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)]

    def numbers(self, column: str) -> np.ndarray:
        """(N,) float64; rows whose cell is no finite number are left out."""
        texts, codes = self.coded(column)
        self.leave_out(are_missing(texts)[codes], f"no number in {column}")
        numbers = np.array([_number(text) for text in texts])[codes]
        self.leave_out(~np.isfinite(numbers), f"something else than a number in {column}")
        return np.where(np.isfinite(numbers), numbers, 0.0)

    def leave_out(self, rows: np.ndarray, reason: str) -> None:
        """Omit these rows (N,) for this reason, unless they already have one."""
        if (rows & (self._reason == 0)).any():
            self._reason[rows & (self._reason == 0)] = len(self._reasons)
            self._reasons.append(reason)

    def left_out(self) -> Iterator[LeftOut]:
        """The reasons, in the order in which they were found."""
        for number, reason in enumerate(self._reasons[1:], start=1):
            rows = np.flatnonzero(self._reason == number)
            yield LeftOut(reason, len(rows), tuple(map(self._table.place, rows[:_FEW].tolist())))


def are_missing(texts: Sequence[str]) -> np.ndarray:
    """Whether cells have no content."""
    return np.array([text.lower() in MISSING for text in texts], dtype=bool)


def _number(text: str) -> float:
    try:
        return float(text) if text.isascii() and "_" not in text else float("nan")
    except ValueError:
        return float("nan")
