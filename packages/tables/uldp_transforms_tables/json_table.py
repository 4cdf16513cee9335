"""JSON tables: an object per line, or an array of objects. A missing member is a missing cell, wherever it stands."""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_tables.cell_texts import whole_number
from uldp_transforms_tables.packed_files import PackedFile

Row = dict[str, object]

_SURROGATES = re.compile("[\ud800-\udfff]")
_ROWS_AT_ONCE = 65_536
_ROWS = (
    "a JSON object in each line, or an array of objects, whose members have different names; pandas writes them with "
    "orient='records', jq with -c"
)


class _Looked(NamedTuple):
    """What one look at all N rows finds.

    Attributes:
        columns: the keys of all objects, and those of the objects in them, as ``outer.inner``.
        num_rows: N.
        others: numbers of the rows that are no objects.
        nested: key -> numbers of the rows whose member is an array or an object.
    """

    columns: tuple[str, ...]
    num_rows: int
    others: list[int]
    nested: dict[str, list[int]]


class JsonTable:
    """A table of JSON objects; all columns are texts.

    Args:
        name: of the table, for errors.
        rows: reads all rows from the beginning; None for one that is no object.
        place: describes the place of a row.
        about_rows: about the number of rows.
    """

    def __init__(
        self,
        name: str,
        rows: Callable[[], Iterator[Row | None]],
        place: Callable[[int], str],
        about_rows: Callable[[], int],
    ):
        self._name, self._rows, self.place, self.about_rows = name, rows, place, about_rows

    @classmethod
    def of_lines(cls, file: PackedFile) -> JsonTable:
        """The objects of a file that has one per line. Any other line has no cells; empty lines are no rows."""

        def place(row: int) -> str:
            """The line of a row, as an editor counts them."""
            with file.lines() as lines:
                filled = (number for number, line in enumerate(lines, 1) if line.strip())
                return f"line {next(itertools.islice(filled, row, None), row + 1)}"

        def rows() -> Iterator[Row | None]:
            with file.lines() as lines:
                yield from map(object_of_line, filter(bytes.strip, lines))

        return cls(file.path, rows, place, file.line_ends)

    @classmethod
    def of_array(cls, file: PackedFile) -> JsonTable:
        """The objects of a file that has an array of them; raises SpecError if it is something else."""
        rows = _parsed(file.read())
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise SpecError(f"{file.path} must be complete, with {_ROWS} (the content is not shown)")
        return cls(file.path, lambda: iter(rows), lambda row: f"row {row + 1}", lambda: len(rows))

    def columns(self) -> list[str]:
        """The keys of all objects, and those of the objects in them, as ``outer.inner``.

        Raises:
            SpecError: if no row is an object, or all rows together are one, as other programs write tables.
        """
        looked = self._looked
        outer = [name for name in looked.columns if name.partition(".")[0] not in looked.nested]
        if (looked.num_rows == 1 and not outer) or (looked.others and not looked.columns):
            raise SpecError(f"{self._name} must have {_ROWS} (the content is not shown)")
        return list(looked.columns)

    def faults(self, columns: Sequence[str]) -> Mapping[str, Sequence[int]]:
        """Reasons why rows cannot be read, or not in these columns -> the numbers of such rows, ascending. They are no
        rows with missing cells: a file may have been cut off."""
        nested = {f"an array or an object in {name}": self._looked.nested.get(name, []) for name in columns}
        found = {"no JSON object whose members have different names": self._looked.others} | nested
        return {reason: rows for reason, rows in found.items() if rows}

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """These columns, batch by batch."""
        rows = self._rows()
        while part := list(itertools.islice(rows, _ROWS_AT_ONCE)):
            cells = {name: pa.array([cell_of(row, name) for row in part], pa.string()) for name in columns}
            yield pa.RecordBatch.from_pydict(cells)

    @functools.cached_property
    def _looked(self) -> _Looked:
        columns: dict[str, None] = {}
        num_rows = 0
        others: list[int] = []
        nested: dict[str, list[int]] = {}
        for number, row in enumerate(self._rows()):
            num_rows += 1
            if row is None:
                others.append(number)
            for name, cell in itertools.chain((row or {}).items(), _inner(row or {})):
                columns[name] = None
                if isinstance(cell, (dict, list)):
                    nested.setdefault(name, []).append(number)
        return _Looked(tuple(columns), num_rows, others, nested)


def object_of_line(line: bytes) -> Row | None:
    """A JSON object whose members have different names; None for any other line."""
    found = _parsed(line)
    return found if isinstance(found, dict) else None


def cell_of(row: Row | None, name: str) -> str | None:
    """A text, number or truth value of an object, as a text; None for other members, texts with lone surrogates, and
    if there is none."""
    row = row or {}
    cell = row[name] if name in row else next((cell for inner, cell in _inner(row) if inner == name), None)
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return cell if isinstance(cell, str) and not _SURROGATES.search(cell) else None


def _inner(row: Row) -> Iterator[tuple[str, object]]:
    """The members of the objects in an object, with the names ``outer.inner``."""
    for outer, member in row.items():
        if isinstance(member, dict):
            yield from ((f"{outer}.{inner}", cell) for inner, cell in member.items())


def _parsed(text: bytes) -> object:
    try:
        return json.loads(text, parse_float=_number, parse_int=str, parse_constant=_constant, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return None


def _object(members: list[tuple[str, object]]) -> Row | None:
    """An object; None if two members have one name, of which one would be lost."""
    found = dict(members)
    return found if len(found) == len(members) else None


def _number(text: str) -> str:
    """A number as ``texts_of`` writes those of typed columns: 1.0 and 1e0 are "1"."""
    return whole_number(text) if "e" in text.lower() else text.rstrip("0").rstrip(".")


def _constant(text: str) -> str | None:
    """NaN, which some programs write for a missing cell, and infinities."""
    return None if text == "NaN" else text
