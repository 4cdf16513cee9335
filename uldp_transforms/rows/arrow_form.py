"""Rows as Arrow tables, for Parquet; their columns are the fields of the Avro schemas."""

from __future__ import annotations

import io
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet

from uldp_transforms.rows.avro_fields import Field, fields_of, map_fields
from uldp_transforms.rows.entry_columns import EntryColumns
from uldp_transforms.rows.json_and_avro import to_avro
from uldp_transforms.rows.row_types import ESTIMATE_SCHEMA, ValueEstimate
from uldp_transforms.windows import rfc3339

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


def table_of_rows(rows: Sequence[Any], schema: Mapping[str, Any]) -> Any:
    """The ``pyarrow.Table`` of rows, at least one.

    Args:
        rows: of the kind that the schema describes; estimates for the schema of one row per value.
        schema: Avro schema.
    """
    if not hasattr(rows[0], "estimates"):
        return table_of([to_avro(row, schema) for row in rows], schema)
    entries = [EntryColumns.of(row.estimates) for row in rows]
    records = [to_avro(row._replace(estimates=()), ESTIMATE_SCHEMA) for row in rows]
    arrow = arrow_schema(schema)
    if "estimates" not in arrow.names:
        return _flat_table(records, entries, arrow)
    table, place = table_of(records, schema), arrow.get_field_index("estimates")
    listed = arrow.field(place).type
    columns = _entry_arrays(entries, listed.value_type)
    items = pa.StructArray.from_arrays(columns, fields=list(listed.value_type))
    ends = np.cumsum([0, *map(len, entries)]).astype(np.int32)
    return table.set_column(place, arrow.field(place), pa.ListArray.from_arrays(ends, items, listed))


def _flat_table(records: Sequence[Mapping[str, Any]], entries: Sequence[EntryColumns], arrow: Any) -> Any:
    """One row per value: fields of the estimate are repeated, once for each of its entries."""
    own = [field for field in arrow if field.name in ValueEstimate._fields]
    shared = pa.schema([field for field in arrow if field.name not in ValueEstimate._fields])
    each = pa.Table.from_pylist([{name: record[name] for name in shared.names} for record in records], shared)
    repeated = each.take(np.repeat(np.arange(len(records)), list(map(len, entries))))
    columns = dict(zip((field.name for field in own), _entry_arrays(entries, own)))
    return pa.table([columns[name] if name in columns else repeated[name] for name in arrow.names], schema=arrow)


def _entry_arrays(entries: Sequence[EntryColumns], fields: Iterable[Any]) -> list[Any]:
    """The columns of all entries together, one for each of these Arrow fields."""
    texts = pa.array(list(itertools.chain.from_iterable(each.values for each in entries)), pa.string())
    return [
        texts
        if field.name == "value"
        else pa.array(np.concatenate([each.column(field.name) for each in entries]), field.type, from_pandas=True)
        for field in fields
    ]


_ONLY_VALUES = pa.struct([pa.field("value", pa.string(), nullable=False)])
"""What an entry is of which only the value was read."""


def without_entries(paths: Sequence[str]) -> list[str]:
    """Of the paths of all columns in a Parquet file, those without entries of estimates, but for one that tells their
    number. Writers name the level between list and entry ``element`` or ``item``."""
    entries = [path for path in paths if path.startswith("estimates.")]
    return [path for path in paths if path not in entries or path.endswith(".value")]


def rows_of_table(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows of a table, as ``from_avro`` returns them; of estimates without entries, a range of as many numbers."""
    columns = {name: _column_of(table.column(name)) for name in table.column_names}
    return (dict(zip(columns, row)) for row in zip(*columns.values()))


def _column_of(column: Any) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind):
        times = column.cast(pa.timestamp("ms", "UTC")).cast(pa.int64()).to_pylist()
        return [None if time is None else rfc3339(time) for time in times]
    if pa.types.is_map(kind):
        return [dict(items) for items in column.to_pylist()]
    if pa.types.is_list(kind) and kind.value_type == _ONLY_VALUES:
        return [range(number) for number in pa.compute.list_value_length(column).to_pylist()]
    found: list[Any] = column.to_pylist()
    return found


def parquet_bytes(records: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]) -> bytes:
    """Encode Avro records with this schema as a Parquet file; equal records give equal bytes."""
    out = io.BytesIO()
    pa.parquet.write_table(table_of(records, schema), out, compression=COMPRESSION)
    return out.getvalue()
