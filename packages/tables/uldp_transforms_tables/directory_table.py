"""Tables in several files of a directory, as Spark and DuckDB write them."""

from __future__ import annotations

import bisect
import functools
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_tables.json_table import JsonTable
from uldp_transforms_tables.table import Table

_HIDDEN = ("_", ".")
"""First letters of the names of files that are no data, such as _SUCCESS."""


class DirectoryTable:
    """The rows of several tables with the same columns, one table after the other.

    Args:
        path: of the directory, for errors.
        parts: the tables by the names of their files.
    """

    def __init__(self, path: str, parts: Mapping[str, Table]):
        self._path, self._parts = path, dict(parts)

    def columns(self) -> list[str]:
        """The names of all columns; raises SpecError if a part lacks one, except members of JSON objects."""
        columns = {name: part.columns() for name, part in self._parts.items()}
        wanted = list(dict.fromkeys(itertools.chain.from_iterable(columns.values())))
        for name, part in self._parts.items():
            if not isinstance(part, JsonTable) and set(columns[name]) != set(wanted):
                raise SpecError(f"{self._path} must have the same columns in all files, but {name} lacks one")
        return wanted

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """These columns, batch by batch; raises SpecError if their types differ between parts."""
        schema: pa.Schema | None = None
        for name, part in self._parts.items():
            for batch in part.read(columns):
                schema = schema or batch.schema
                if batch.schema.types != schema.types:
                    raise SpecError(f"{self._path} must have columns of the same types, but {name} has others")
                yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)

    def faults(self, columns: Sequence[str]) -> Mapping[str, Sequence[int]]:
        """Those of all parts."""
        found: dict[str, list[int]] = {}
        for number, part in enumerate(self._parts.values()):
            for reason, rows in part.faults(columns).items():
                found.setdefault(reason, []).extend(self._begins[number] + row for row in rows)
        return found

    def place(self, row: int) -> str:
        """The file, and the place in it."""
        number = bisect.bisect_right(self._begins, row) - 1
        name, part = list(self._parts.items())[number]
        return f"{name} {part.place(row - self._begins[number])}"

    def about_rows(self) -> int:
        """About the sum of all parts."""
        return sum(part.about_rows() for part in self._parts.values())

    @functools.cached_property
    def _begins(self) -> list[int]:
        """The number of the first row of each part."""
        parts = list(self._parts.values())[:-1]
        numbers = (sum(map(len, part.read(part.columns()[:1]))) for part in parts)
        return list(itertools.accumulate(numbers, initial=0))


def files_in(path: str) -> list[str]:
    """Names of the files with rows in a directory, sorted; without hidden and empty ones.

    Raises:
        OSError: if it cannot be read.
        SpecError: if it has none, or directories, whose names may be values of a column.
    """
    names = sorted(name for name in os.listdir(path) if not name.startswith(_HIDDEN))
    folder = next((name for name in names if os.path.isdir(os.path.join(path, name))), None)
    if folder is not None:
        raise SpecError(f"{path} must have files only, got a directory in it; write it without partitions")
    filled = [name for name in names if os.path.getsize(os.path.join(path, name))]
    if not filled:
        raise SpecError(f"{path} must have at least one file with rows, got none")
    return filled
