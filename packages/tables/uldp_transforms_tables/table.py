"""What all kinds of tables have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import pyarrow as pa


class Table(Protocol):
    """A file of rows and named columns."""

    def columns(self) -> list[str]:
        """The names of all columns."""

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """These columns, batch by batch."""

    def faults(self, columns: Sequence[str]) -> Mapping[str, Sequence[int]]:
        """Reasons why rows cannot be read, or not in these columns -> the numbers of such rows, ascending."""

    def place(self, row: int) -> str:
        """The place of a row in the file (the first row after the header is 0)."""

    def about_rows(self) -> int:
        """The number of rows, or of lines if these are counted faster."""
