"""Cells of a table, and the reasons for omitting rows. No cell is ever shown."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import canonical
from uldp_transforms_tables.cell_texts import MISSING_TEXTS, texts_of, values_of
from uldp_transforms_tables.cell_texts import are_missing as missing_cells
from uldp_transforms_tables.event_times import MISSING, Clock
from uldp_transforms_tables.table import Table

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
    """Refuse a column that a table does not have once.

    A header may be a person's answers, if the table has none; so only names that the option nearly has are shown.

    Raises:
        SpecError: names the option.
    """
    if not names:
        raise SpecError(f"{path} must have a header, or JSON objects, got none")
    number = names.count(column)
    if number == 1:
        return
    alike = next((name for name in names if name != column and _plain(name) == _plain(column)), None)
    more = "" if number else "; CSV must begin with its header"
    if not number and alike is not None:
        more = f"; one is named {describe(alike)}"
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
        self._path, self._table = path, table
        batches = list(table.read(list(dict.fromkeys(columns))))
        if not sum(map(len, batches)):
            raise SpecError(f"{path} must have at least one row, got none")
        self._cells = pa.Table.from_batches(batches)
        self._reasons = [""]
        self._cures: list[str | None] = [None]
        self._reason = np.zeros(len(self._cells), dtype=np.int64)
        for reason, rows in table.faults(columns).items():
            self.leave_out(np.isin(np.arange(len(self._cells)), rows), reason, cure="repair or remove these rows")

    @property
    def keep(self) -> np.ndarray:
        """(N,) bool: rows without a reason."""
        kept: np.ndarray = self._reason == 0
        return kept

    def coded(self, column: str) -> tuple[tuple[str, ...], np.ndarray]:
        """The different cells of a column, in Unicode NFC without spaces around, and their numbers, (N,)."""
        coded = texts_of(self._cells[column], column).fill_null("").dictionary_encode()
        stripped = [canonical(text.strip()) for text in coded.dictionary.to_pylist()]
        texts = sorted(set(stripped))  # an array of texts would be as wide as the longest, and drop NULs at their ends
        place = {text: at for at, text in enumerate(texts)}
        number = np.array([place[text] for text in stripped], dtype=np.int64)
        return tuple(texts), number[np.asarray(coded.indices).astype(np.int64)]

    def moments(self, column: str, clock: Clock) -> np.ndarray:
        """(N,) int64 milliseconds since 1970; rows whose cell is no time are left out."""
        found = clock.read(values_of(self._cells[column]))
        for fault in np.unique(found.faults[found.faults != 0]).tolist():
            cure = None if fault == MISSING else "see --time_format and --timezone"
            self.leave_out(found.faults == fault, f"no valid time: {clock.sentence(fault)}", cure=cure)
        return found.milliseconds

    def numbers(self, column: str, otherwise: str = "") -> np.ndarray:
        """(N,) float64; rows whose cell is no finite number are left out.

        Args:
            column: its name.
            otherwise: what the reason says beyond that.
        """
        texts, codes = self.coded(column)
        self.leave_out(are_missing(texts)[codes], f"no number in {column}")
        numbers = np.array([_number(text) for text in texts])[codes]
        reason = f"something else than a number in {column}{otherwise}"
        self.leave_out(~np.isfinite(numbers), reason, cure="write numbers with a decimal point, such as 0.5")
        return np.where(np.isfinite(numbers), numbers, 0.0)

    def leave_out(self, rows: np.ndarray, reason: str, *, cure: str | None = None) -> None:
        """Omit these rows (N,) for this reason, unless they already have one.

        Args:
            rows: (N,) bool.
            reason: a sentence without a subject.
            cure: what to do if the program does not understand the content of a cell; None if it does.
        """
        rows = rows & (self._reason == 0)
        if rows.any():
            self._reason[rows] = len(self._reasons)
            self._reasons.append(reason)
            self._cures.append(cure)

    def check_unreadable(self, most: float, option: str, people: np.ndarray) -> None:
        """Refuse a table of which too many rows were left out because their content is not understood.

        Args:
            most: largest share of people in such rows.
            option: that sets it.
            people: (N,) numbers of people; 0 where it is unknown, which counts as the mean of the others.

        Raises:
            SpecError: names the reason of most of these rows, their places, and the cure.
        """
        unreadable = np.array([cure is not None for cure in self._cures])
        known = people > 0
        weights = np.where(known, people, people[known].mean() if known.any() else 1.0)
        share = weights[unreadable[self._reason]].sum() / weights.sum()
        if share > most:
            first = int(np.bincount(self._reason[unreadable[self._reason]]).argmax())
            raise SpecError(
                f"{self._path} must have at most {most:g} of its people in rows that cannot be read ({option}), got "
                f"{share:.4g}; {next(self.left_out([first]))}; {self._cures[first]}"
            )

    def left_out(self, reasons: Sequence[int] | None = None) -> Iterator[LeftOut]:
        """The reasons, in the order in which they were found; only those with these numbers, if given."""
        for number in range(1, len(self._reasons)) if reasons is None else reasons:
            rows = np.flatnonzero(self._reason == number)
            yield LeftOut(self._reasons[number], len(rows), tuple(map(self._table.place, rows[:_FEW].tolist())))


def are_missing(texts: Sequence[str]) -> np.ndarray:
    """Whether cells have no content."""
    return missing_cells(pa.array(texts, pa.string()), MISSING_TEXTS)


def are_numbers(texts: Sequence[str]) -> np.ndarray:
    """Whether cells are finite numbers."""
    return np.isfinite([_number(text) for text in texts])


def _number(text: str) -> float:
    try:
        return float(text) if text.isascii() and "_" not in text else float("nan")
    except ValueError:
        return float("nan")
