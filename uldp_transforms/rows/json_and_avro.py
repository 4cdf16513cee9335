"""Rows as JSON lines and as Avro records.

A row that has crossed between workers may be of a class that Beam made from its schema. So the functions here take any
row with the fields of the schema, whatever its class is.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_SCALARS = frozenset({str, int, float, bool, type(None)})


def as_dict(row: NamedTuple) -> dict[str, Any]:
    """The fields of a row by name; inner rows likewise."""
    return {name: value if type(value) in _SCALARS else _plain(value) for name, value in zip(row._fields, row)}


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return as_dict(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return dict(value) if isinstance(value, Mapping) else value


def to_json(row: NamedTuple) -> str:
    """One line of JSON.

    Raises:
        ValueError: for a number that JSON does not have.
    """
    return json.dumps(as_dict(row), ensure_ascii=False, allow_nan=False)


def to_avro(row: NamedTuple, schema: Mapping[str, Any]) -> dict[str, Any]:
    """A record for an Avro writer with this schema; times as datetime, UTC."""
    record = as_dict(row)
    for name in time_fields(schema):
        if record[name] is not None:
            record[name] = datetime.datetime.fromisoformat(record[name].removesuffix("Z") + "+00:00")
    return record


def time_fields(schema: Mapping[str, Any]) -> Iterator[str]:
    """Names of the fields of an Avro schema that are times."""
    for field in schema["fields"]:
        branches = field["type"] if isinstance(field["type"], list) else [field["type"]]
        if any(isinstance(branch, dict) and branch.get("logicalType") == "timestamp-millis" for branch in branches):
            yield field["name"]
