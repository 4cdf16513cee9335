"""Files of rows that an earlier version wrote are joined with today's: no field of today's rows is lost."""

from __future__ import annotations

import hashlib
import io
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from uldp_transforms.collector.row_bytes import avro_file
from uldp_transforms.rows.arrow_form import parquet_bytes
from uldp_transforms_follow.joined_files import joined_files

ENTRY: dict[str, Any] = {
    "type": "record",
    "name": "Entry",
    "fields": [{"name": "value", "type": "string"}, {"name": "low", "type": ["null", "double"], "default": None}],
}
FIELDS: list[dict[str, Any]] = [
    {"name": "run", "type": "string"},
    {"name": "entries", "type": {"type": "array", "items": ENTRY}},
    {"name": "confidence", "type": ["null", "double"], "default": None},
]
TODAY = {"type": "record", "name": "Row", "fields": FIELDS}
SHORT = {**ENTRY, "fields": ENTRY["fields"][:1]}
EARLIER = {
    "type": "record",
    "name": "Row",
    "fields": [FIELDS[0], {**FIELDS[1], "type": {"type": "array", "items": SHORT}}],
}

OLD = {"run": "a", "entries": [{"value": "x"}]}
NEW = {"run": "b", "entries": [{"value": "y", "low": 0.25}], "confidence": 0.9}
JOINED = [{"run": "a", "entries": [{"value": "x", "low": None}], "confidence": None}, NEW]


def avro(record: dict[str, Any], schema: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), record)
    return avro_file([out.getvalue()], schema)


def read(file: bytes, form: str) -> list[Any]:
    if form == "avro":
        return list(fastavro.reader(io.BytesIO(file)))
    return pq.read_table(pa.BufferReader(file)).to_pylist()


@pytest.mark.parametrize("sizes", [[], [1], [20_000, 1, 1], [900] * 60])
def test_a_file_is_what_fastavro_writes(sizes: list[int]) -> None:
    """Byte by byte, though rows are not decoded: as many blocks, and in each as many rows."""
    rows = [{"run": "x" * size, "entries": [NEW["entries"][0]] * (size % 3), "confidence": None} for size in sizes]
    parsed, records = fastavro.parse_schema(TODAY), []
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, row)
        records.append(out.getvalue())
    expected = io.BytesIO()
    fastavro.writer(expected, TODAY, rows, sync_marker=hashlib.sha256(b"".join(records)).digest()[:16])
    assert avro_file(records, TODAY) == expected.getvalue()


@pytest.mark.parametrize("form", ["avro", "parquet"])
def test_rows_of_an_earlier_version_have_defaults_and_later_ones_lose_nothing(form: str) -> None:
    write = avro if form == "avro" else lambda record, schema: parquet_bytes([record], schema)
    old, new = write(OLD, EARLIER), write(NEW, TODAY)
    assert read(joined_files([old, new], form), form) == JOINED
    assert read(joined_files([old, old], form), form) == [OLD, OLD]
    assert read(joined_files([old, new, new], form), form) == [*JOINED, NEW]
