"""Files of rows that are written row by row, and files that are joined from several.

A job over files can have more rows than memory holds. So each worker writes parts of a file, of which only a few rows
are in memory at a time, and the parts are joined without decoding their rows (Parquet: one row group at a time).
"""

from __future__ import annotations

import abc
import hashlib
import shutil
import zlib
from collections.abc import Sequence
from typing import IO, Any

import fastavro

from uldp_transforms.collector.row_bytes import avro_block, avro_head, avro_record, json_line
from uldp_transforms.files import stores

BLOCK_BYTES = 1 << 16
"""Minimum size of an Avro block, before compression."""

_CODEC = "deflate"

TABLE_ENTRIES = 1 << 16
"""Minimum number of rows and entries in a row group of Parquet."""


class GrowingFile(abc.ABC):
    """Appends rows to an open file.

    Args:
        file: binary file, which is empty.
        schema: Avro schema of the rows.
        name: text that all parts of a file have in common.
    """

    def __init__(self, file: IO[bytes], schema: Any, name: str):
        self._file = file
        self._schema = schema

    @abc.abstractmethod
    def add(self, row: Any) -> None:
        """Append a row."""

    def end(self) -> None:  # noqa: B027  # lines are written at once
        """Write pending rows; the file remains open."""

    @classmethod
    @abc.abstractmethod
    def join(cls, paths: Sequence[str], file: IO[bytes], schema: Any, name: str) -> None:
        """Write the rows of several parts, in their order, to an empty file."""


class _JsonLines(GrowingFile):
    def add(self, row: Any) -> None:
        self._file.write(json_line(row, self._schema))

    @classmethod
    def join(cls, paths: Sequence[str], file: IO[bytes], schema: Any, name: str) -> None:
        for path in paths:
            with stores.opened(path) as part:
                shutil.copyfileobj(part, file)


class _AvroBlocks(GrowingFile):
    """Parts have the same head, with the same marker between blocks, so that their blocks can be copied."""

    def __init__(self, file: IO[bytes], schema: Any, name: str):
        super().__init__(file, schema, name)
        self._parsed = fastavro.parse_schema(schema)
        self._records: list[bytes] = []
        self._size = 0
        self._marker = _marker_of(name)
        file.write(avro_head(schema, self._marker, _CODEC))

    def add(self, row: Any) -> None:
        record = avro_record(row, self._parsed)
        self._records.append(record)
        self._size += len(record)
        if self._size >= BLOCK_BYTES:
            self.end()

    def end(self) -> None:
        if self._records:
            pack = zlib.compressobj(wbits=-zlib.MAX_WBITS)
            block = pack.compress(b"".join(self._records)) + pack.flush()
            self._file.write(avro_block(len(self._records), block, self._marker))
            self._records, self._size = [], 0

    @classmethod
    def join(cls, paths: Sequence[str], file: IO[bytes], schema: Any, name: str) -> None:
        head = avro_head(schema, _marker_of(name), _CODEC)
        file.write(head)
        for path in paths:
            with stores.opened(path) as part:
                if part.read(len(head)) != head:
                    raise ValueError(f"{path} is not a part of {name}")
                shutil.copyfileobj(part, file)


def _marker_of(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()[:16]


class _ParquetGroups(GrowingFile):
    def __init__(self, file: IO[bytes], schema: Any, name: str):
        super().__init__(file, schema, name)
        self._writer = _parquet_writer(file, schema)
        self._rows: list[Any] = []
        self._entries = 0

    def add(self, row: Any) -> None:
        self._rows.append(row)
        self._entries += 1 + len(getattr(row, "estimates", ()))
        if self._entries >= TABLE_ENTRIES:
            self._write()

    def _write(self) -> None:
        from uldp_transforms.rows.arrow_form import table_of_rows  # noqa: PLC0415  # most files need no Arrow

        self._writer.write_table(table_of_rows(self._rows, self._schema))
        self._rows, self._entries = [], 0

    def end(self) -> None:
        if self._rows:
            self._write()
        self._writer.close()

    @classmethod
    def join(cls, paths: Sequence[str], file: IO[bytes], schema: Any, name: str) -> None:
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415  # as above

        with _parquet_writer(file, schema) as whole:
            for path in paths:
                with stores.opened(path) as opened, ParquetFile(opened) as part:
                    for place in range(part.num_row_groups):
                        whole.write_table(part.read_row_group(place))


def _parquet_writer(file: IO[bytes], schema: Any) -> Any:
    from pyarrow.parquet import ParquetWriter  # noqa: PLC0415  # as above

    from uldp_transforms.rows.arrow_form import COMPRESSION, arrow_schema  # noqa: PLC0415  # as above

    return ParquetWriter(file, arrow_schema(schema), compression=COMPRESSION)


GROWING: dict[str, type[GrowingFile]] = {"jsonl": _JsonLines, "avro": _AvroBlocks, "parquet": _ParquetGroups}
"""Form -> its writer."""
