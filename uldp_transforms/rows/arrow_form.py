"""Rows as Arrow tables, for Parquet; their columns are the fields of the Avro schemas."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet

COMPRESSION = "zstd"

_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
}


def arrow_schema(schema: Mapping[str, Any]) -> Any:
    """The ``pyarrow.Schema`` of rows with this Avro schema.

    ``["null", T]`` may be null, everything else may not. A time is a ``timestamp[us, UTC]``, an array a list, a map a
    map, an inner record a struct, an enum its name as text.
    """
    return pa.schema([_field(**field) for field in schema["fields"]])


def _field(name: str, type: Any, **_: Any) -> Any:
    nullable = isinstance(type, list)
    return pa.field(name, _type(next(each for each in type if each != "null") if nullable else type), nullable)


def _type(avro: Any) -> Any:
    if isinstance(avro, str):
        return _TYPES[avro]
    if avro.get("logicalType") == "timestamp-millis":
        return pa.timestamp("us", tz="UTC")
    form = avro["type"]
    if form == "array":
        return pa.list_(_field("element", avro["items"]))
    if form == "map":
        return pa.map_(pa.string(), _field("value", avro["values"]))
    if form == "record":
        return pa.struct([_field(**field) for field in avro["fields"]])
    return pa.string() if form == "enum" else _type(form)


def arrow_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """An Avro record as pyarrow takes it: a map is a list of its entries."""
    return {name: list(value.items()) if isinstance(value, dict) else value for name, value in record.items()}


def parquet_bytes(records: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]) -> bytes:
    """A Parquet file of Avro records with this Avro schema; equal records make equal bytes."""
    table, out = pa.Table.from_pylist(list(map(arrow_record, records)), arrow_schema(schema)), io.BytesIO()
    pa.parquet.write_table(table, out, compression=COMPRESSION)
    return out.getvalue()
