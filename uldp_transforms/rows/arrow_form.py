"""Rows as Arrow tables, for Parquet; their columns are the fields of the Avro schemas."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from uldp_transforms.rows.avro_fields import Field, fields_of

COMPRESSION = "zstd"

_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "time": pa.timestamp("us", tz="UTC"),
}


def arrow_schema(schema: Mapping[str, Any]) -> Any:
    """The ``pyarrow.Schema`` of rows with this Avro schema.

    ``["null", T]`` may be null, everything else may not. A time is a ``timestamp[us, UTC]``, an array a list, a map a
    map, an inner record a struct, an enum its name as text.
    """
    return pa.schema(list(map(_column, fields_of(schema))))


def _column(field: Field) -> Any:
    return pa.field(field.name, _type(field.kind, list(map(_column, field.parts))), field.nullable)


def _type(kind: str, parts: list[Any]) -> Any:
    if kind == "array":
        return pa.list_(*parts)
    if kind == "map":
        return pa.map_(pa.string(), *parts)
    return pa.struct(parts) if kind == "record" else _TYPES[kind]


def arrow_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """An Avro record as pyarrow takes it: a map is a list of its entries."""
    return {name: list(value.items()) if isinstance(value, dict) else value for name, value in record.items()}


def parquet_bytes(records: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]) -> bytes:
    """A Parquet file of Avro records with this Avro schema; equal records make equal bytes."""
    table, out = pa.Table.from_pylist(list(map(arrow_record, records)), arrow_schema(schema)), io.BytesIO()
    pa.parquet.write_table(table, out, compression=COMPRESSION)
    return out.getvalue()
