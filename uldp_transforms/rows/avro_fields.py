"""The fields of an Avro schema of rows, for table columns and class attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_TIME = {"type": "long", "logicalType": "timestamp-millis"}


class Field(NamedTuple):
    """A field of a row, or of one of its parts.

    Attributes:
        name: name of the field; ``element`` for the entries of an array, ``value`` for those of a map.
        kind: string, int, long, double, boolean, time, array, map or record; an enum is a string.
        nullable: whether the value can be null.
        doc: description of the field.
        has_default: whether rows of older versions can lack it.
        record: name of the record, for a record.
        parts: the fields of a record, or the one field that describes all entries of an array or map.
    """

    name: str
    kind: str
    nullable: bool = False
    doc: str = ""
    has_default: bool = False
    record: str = ""
    parts: tuple[Field, ...] = ()


def fields_of(schema: Mapping[str, Any]) -> tuple[Field, ...]:
    """The fields of an Avro record, in the schema's order."""
    return tuple(_field(**field) for field in schema["fields"])


def _field(name: str, type: Any, doc: str = "", **rest: Any) -> Field:
    nullable = isinstance(type, list)
    avro = next(branch for branch in type if branch != "null") if nullable else type
    kind, parts = _kind_and_parts(avro)
    return Field(name, kind, nullable, doc, "default" in rest, avro["name"] if kind == "record" else "", parts)


def _kind_and_parts(avro: Any) -> tuple[str, tuple[Field, ...]]:
    if isinstance(avro, str):
        return avro, ()
    kind = "time" if avro == _TIME else avro["type"]
    if kind == "record":
        return kind, fields_of(avro)
    if kind == "array":
        return kind, (_field("element", avro["items"]),)
    if kind == "map":
        return kind, (_field("value", avro["values"]),)
    return ("string" if kind == "enum" else kind), ()


def time_fields(schema: Mapping[str, Any]) -> Iterator[str]:
    """Names of the fields that are times."""
    return (field["name"] for field in schema["fields"] if field["type"] in (_TIME, ["null", _TIME]))


def map_fields(schema: Mapping[str, Any]) -> frozenset[str]:
    """Names of the fields that are maps."""
    return frozenset(field.name for field in fields_of(schema) if field.kind == "map")
