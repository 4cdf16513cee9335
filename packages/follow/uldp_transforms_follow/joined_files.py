"""Several files of rows as one."""

from __future__ import annotations

import io
import itertools
from collections.abc import Sequence

import fastavro

from uldp_transforms.collector.row_bytes import avro_file


def joined_files(files: Sequence[bytes], form: str) -> bytes:
    """One file with the rows of several, in their order; equal files give equal bytes.

    Args:
        files: at least one file of ``file_of``, all of one kind of rows, the latest last. Its schema is that of the
            result: rows of earlier versions get the defaults of fields that were added since. Columns and members of
            structures that only some Parquet files have are null in the rows of the others.
        form: jsonl, avro or parquet.
    """
    if len(files) == 1 or form == "jsonl":
        return b"".join(files)
    return _joined_avro(files) if form == "avro" else _joined_parquet(files)


def _joined_avro(files: Sequence[bytes]) -> bytes:
    schema = fastavro.reader(io.BytesIO(files[-1])).writer_schema
    readers = [fastavro.reader(io.BytesIO(file), reader_schema=schema) for file in files]
    parsed = fastavro.parse_schema(schema)
    records = []
    for record in itertools.chain.from_iterable(readers):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, record)
        records.append(out.getvalue())
    return avro_file(records, schema)


def _joined_parquet(files: Sequence[bytes]) -> bytes:
    import pyarrow as pa  # noqa: PLC0415  # only --write_parquet needs Arrow
    import pyarrow.parquet  # noqa: PLC0415  # as above

    from uldp_transforms.rows.arrow_form import COMPRESSION  # noqa: PLC0415  # imports Arrow

    tables = [pa.parquet.read_table(pa.BufferReader(file)) for file in files]
    out = io.BytesIO()
    pa.parquet.write_table(pa.concat_tables(tables, promote_options="permissive"), out, compression=COMPRESSION)
    return out.getvalue()
