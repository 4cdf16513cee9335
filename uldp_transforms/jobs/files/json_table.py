"""JSON tables: an object per line, or an array of objects. A missing member is a missing cell, wherever it stands."""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from uldp_transforms.jobs.files.packed_files import PackedFile
from uldp_transforms.ldp.errors import SpecError

Cells = dict[str, str | None]

_SURROGATES = re.compile("[\ud800-\udfff]")
_ROWS_AT_ONCE = 65_536


class JsonTable:
    """A table of JSON objects; all columns are texts.

    Args:
        rows: reads the cells of all objects from the beginning.
        place: describes the place of a row.
        about_rows: about the number of rows.
    """

    def __init__(self, rows: Callable[[], Iterator[Cells]], place: Callable[[int], str], about_rows: Callable[[], int]):
        self._rows, self.place, self.about_rows = rows, place, about_rows

    @classmethod
    def of_lines(cls, file: PackedFile) -> JsonTable:
        """The objects of a file that has one per line. Any other line has no cells; empty lines are no rows."""

        def place(row: int) -> str:
            """The line of a row, as an editor counts them."""
            with file.lines() as lines:
                filled = (number for number, line in enumerate(lines, 1) if line.strip())
                return f"line {next(itertools.islice(filled, row, None), row + 1)}"

        def rows() -> Iterator[Cells]:
            with file.lines() as lines:
                yield from map(cells_of_line, filter(bytes.strip, lines))

        return cls(rows, place, file.line_ends)

    @classmethod
    def of_array(cls, file: PackedFile) -> JsonTable:
        """The objects of a file that has an array of them; raises SpecError if it is something else."""
        found = _parsed(file.read())
        if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
            raise SpecError(f"{file.path} must be JSON with an array of objects (the content is not shown)")
        rows = [_cells(row) for row in found]
        return cls(lambda: iter(rows), lambda row: f"row {row + 1}", lambda: len(rows))

    def columns(self) -> list[str]:
        """The keys of all objects."""
        return list(self._columns)

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """These columns, batch by batch."""
        rows = self._rows()
        while part := list(itertools.islice(rows, _ROWS_AT_ONCE)):
            cells = {name: pa.array([row.get(name) for row in part], pa.string()) for name in columns}
            yield pa.RecordBatch.from_pydict(cells)

    @functools.cached_property
    def _columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(itertools.chain.from_iterable(self._rows())))


def cells_of_line(line: bytes) -> Cells:
    """The texts, numbers and truth values of a JSON object, as texts; empty for any other line.

    Other members are None, as are texts with lone surrogates.
    """
    found = _parsed(line)
    return _cells(found) if isinstance(found, dict) else {}


def _parsed(text: bytes) -> object:
    try:
        return json.loads(text, parse_float=_number, parse_int=str, parse_constant=_constant)
    except (ValueError, RecursionError):
        return None


def _cells(row: dict[str, object]) -> Cells:
    return {name: _cell(cell) for name, cell in row.items()}


def _cell(cell: object) -> str | None:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return cell if isinstance(cell, str) and not _SURROGATES.search(cell) else None


def _number(text: str) -> str:
    """A number as ``texts_of`` writes those of typed columns: 1.0 is "1"."""
    return text if "e" in text.lower() else text.rstrip("0").rstrip(".")


def _constant(text: str) -> str | None:
    """NaN, which some programs write for a missing cell, and infinities."""
    return None if text == "NaN" else text
