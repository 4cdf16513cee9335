"""Rows as Arrow tables, for Parquet; their columns are the fields of the Avro schemas."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from uldp_transforms.rows.avro_fields import Field, fields_of, map_fields

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

    Only ``["null", T]`` is nullable. A time becomes a ``timestamp[us, UTC]``, an array a list, a map a map, an inner
    record a struct, and an enum its name as text.
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


def arrow_record(record: Mapping[str, Any], maps: Collection[str]) -> dict[str, Any]:
    """Convert an Avro record for pyarrow, which takes a map as a list of its entries; ``maps`` are such fields."""
    lists = {name: list(record[name].items()) for name in maps if record.get(name) is not None}
    return dict(record) | lists


def table_of(records: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]) -> Any:
    """The ``pyarrow.Table`` of Avro records with this schema."""
    maps = map_fields(schema)
    return pa.Table.from_pylist([arrow_record(record, maps) for record in records], arrow_schema(schema))


def parquet_bytes(records: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]) -> bytes:
    """Encode Avro records with this schema as a Parquet file; equal records give equal bytes."""
    out = io.BytesIO()
    pa.parquet.write_table(table_of(records, schema), out, compression=COMPRESSION)
    return out.getvalue()


def joined_parquet(files: Sequence[bytes]) -> bytes:
    """Join Parquet files of ``parquet_bytes``, at least one; equal files give equal bytes.

    Columns and members of structures that only some files have are null in the rows of the others.
    """
    tables = [pa.parquet.read_table(pa.BufferReader(file)) for file in files]
    out = io.BytesIO()
    pa.parquet.write_table(pa.concat_tables(tables, promote_options="permissive"), out, compression=COMPRESSION)
    return out.getvalue()
