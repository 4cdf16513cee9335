"""Parquet tables, read row group by row group."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from uldp_transforms.ldp.errors import SpecError


class ParquetTable:
    """A Parquet table; columns have their own types.

    Args:
        path: of the file.
    """

    def __init__(self, path: str):
        self._path = path

    def columns(self) -> list[str]:
        """The names of all columns, and those of the fields of structures, as ``outer.inner``.

        Raises:
            SpecError: if the file is no complete Parquet file.
        """
        with self._file() as file:
            return [*file.schema_arrow.names, *_inner(file.schema_arrow)]

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """These columns, batch by batch; raises SpecError if the file is damaged."""
        with self._file() as file:
            inner = _inner(file.schema_arrow)
            places = [inner.get(name, (name, "")) for name in columns]
            for batch in file.iter_batches(columns=[outer for outer, _ in places]):
                cells = [_cells(batch.column(outer), field) for outer, field in places]
                yield pa.RecordBatch.from_arrays(cells, list(columns))

    def faults(self, columns: Sequence[str]) -> Mapping[str, Sequence[int]]:
        """None: ``read`` refuses a damaged file."""
        return {}

    def place(self, row: int) -> str:
        return f"row {row + 1}"

    def about_rows(self) -> int:
        """The number of rows."""
        with self._file() as file:
            return int(file.metadata.num_rows)

    @contextlib.contextmanager
    def _file(self) -> Iterator[pa.parquet.ParquetFile]:
        try:
            with pa.parquet.ParquetFile(self._path) as file:
                yield file
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise SpecError(f"{self._path} must be a complete Parquet file (the content is not shown)") from None


def _inner(schema: pa.Schema) -> dict[str, tuple[str, str]]:
    """``outer.inner`` -> names of a structure and of its field, unless a column has this name."""
    fields = [(outer, field.name) for outer in schema if pa.types.is_struct(outer.type) for field in outer.type]
    return {
        f"{outer.name}.{name}": (outer.name, name)
        for outer, name in fields
        if f"{outer.name}.{name}" not in schema.names
    }


def _cells(column: pa.Array, field: str) -> pa.Array:
    return pc.struct_field(column, field) if field else column
