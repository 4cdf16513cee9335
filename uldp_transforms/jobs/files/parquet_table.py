"""Parquet tables, read row group by row group."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import pyarrow as pa
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
        """The names of all columns; raises SpecError if the file is no complete Parquet file."""
        with self._file() as file:
            return list(file.schema_arrow.names)

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """These columns, batch by batch; raises SpecError if the file is damaged."""
        with self._file() as file:
            for batch in file.iter_batches(columns=list(columns)):
                yield batch.select(list(columns))

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
