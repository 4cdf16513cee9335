"""Bytes of rows in each form of files: JSON lines, Avro, Parquet."""

from __future__ import annotations

import functools
import hashlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import fastavro

from uldp_transforms.rows.entry_columns import EntryColumns
from uldp_transforms.rows.json_and_avro import avro_long, entries_to_avro, to_avro, to_json
from uldp_transforms.rows.row_types import ESTIMATE_SCHEMA

_BLOCK_BYTES = 16_000
"""Minimum size of a block of a file that is not compressed, as fastavro has it."""


def json_line(row: Any, schema: Any) -> bytes:
    """A row as one line of JSON, with its line end."""
    return f"{to_json(row)}\n".encode()


def avro_record(row: Any, schema: Any) -> bytes:
    """A row as an Avro record, without the schema, which fastavro may have parsed."""
    entries = getattr(row, "estimates", None)
    encoded = entries_to_avro(entries) if isinstance(entries, EntryColumns) else None
    if encoded is None:
        return _encoded(to_avro(row, schema), schema)
    record, (before, after) = to_avro(row._replace(estimates=()), schema), _around_entries()
    return _encoded(record, before) + encoded + _encoded(record, after)


def _encoded(record: Mapping[str, Any], schema: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, record)
    return out.getvalue()


@functools.cache
def _around_entries() -> tuple[Any, Any]:
    """The schemas of what is before and after the entries of an estimate."""
    fields = ESTIMATE_SCHEMA["fields"]
    [at] = (place for place, field in enumerate(fields) if field["name"] == "estimates")
    before, after = ({**ESTIMATE_SCHEMA, "fields": part} for part in (fields[:at], fields[at + 1 :]))
    return fastavro.parse_schema(before), fastavro.parse_schema(after)


def json_file(lines: Sequence[bytes], schema: Any) -> bytes:
    """The content of a JSON lines file."""
    return b"".join(lines)


def avro_file(records: Sequence[bytes], schema: Any) -> bytes:
    """The content of an Avro object container file; equal records give equal bytes."""
    marker = hashlib.sha256(b"".join(records)).digest()[:16]
    return b"".join([avro_head(schema, marker, "null"), *_blocks(records, marker)])


def avro_head(schema: Any, marker: bytes, codec: str) -> bytes:
    """The beginning of an Avro object container file, up to its first block; it ends with the marker."""
    head = io.BytesIO()
    fastavro.writer(head, schema, (), codec=codec, sync_marker=marker)
    return head.getvalue()


def avro_block(number: int, content: bytes, marker: bytes) -> bytes:
    """A block of an Avro object container file, with this number of records."""
    return b"".join([avro_long(number), avro_long(len(content)), content, marker])


def _blocks(records: Sequence[bytes], marker: bytes) -> Iterator[bytes]:
    """Records in blocks, each of which ends as soon as it has ``_BLOCK_BYTES``."""
    pending: list[bytes] = []
    size = 0
    for record in records:
        pending.append(record)
        size += len(record)
        if size >= _BLOCK_BYTES:
            yield avro_block(len(pending), b"".join(pending), marker)
            pending, size = [], 0
    if pending:
        yield avro_block(len(pending), b"".join(pending), marker)


def parquet_file(records: Sequence[bytes], schema: Any) -> bytes:
    """The content of a Parquet file of Avro records; equal records give equal bytes."""
    from uldp_transforms.rows.arrow_form import parquet_bytes  # noqa: PLC0415  # most files need no Arrow

    return parquet_bytes(list(_decoded(records, schema)), schema)


def _decoded(records: Sequence[bytes], schema: Any) -> Iterator[Any]:
    parsed = fastavro.parse_schema(schema)
    return (fastavro.schemaless_reader(io.BytesIO(record), parsed, None) for record in records)


ENCODED: dict[str, Callable[..., bytes]] = {"jsonl": json_line, "avro": avro_record, "parquet": avro_record}
"""Form -> encoder of a single row."""

JOINED: dict[str, Callable[[Sequence[bytes], Any], bytes]] = {
    "jsonl": json_file,
    "avro": avro_file,
    "parquet": parquet_file,
}
"""Form -> function that joins encoded rows to a file."""


def file_of(rows: Sequence[Any], form: str, schema: Any) -> bytes:
    """Encode rows as a file; equal rows give equal bytes."""
    parsed = fastavro.parse_schema(schema)
    return JOINED[form]([ENCODED[form](row, parsed) for row in rows], schema)
