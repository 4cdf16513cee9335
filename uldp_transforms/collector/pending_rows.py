"""Rows that a stream keeps in state until it writes them: each with the shape of the schema that encoded it.

A schema of rows grows at the end of its records. Avro bytes alone do not show how many fields an earlier program wrote,
so a pending row begins with the shape of its schema: the number of fields of each record, in the schema's order. A
later program cuts its own schema to that shape, which gives the one that encoded the row, and fills in the defaults
of the other fields.

Earlier programs kept the plain Avro bytes. These differ only at the end of the row, and the bytes of n fields are those
of no other number of fields: each field has at least one byte, so fewer fields leave some, and more have too few.

    row = MARK, length of shape, shape, Avro bytes

The first field of each row is a string or a nullable one, so plain bytes begin with a length or the number of a branch.
Neither is negative, so their first byte is even, and MARK is odd.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import fastavro

MARK = b"\x01"
"""First byte of a pending row with a shape: as the first byte of plain Avro bytes it would be a negative number."""

_PLAIN = {
    "WindowedEstimate": bytes((30, 12, 7, 13, 10, 10, 5, 4, 4, 2)),
    "EstimatedValue": bytes((32, 2)),
    "RejectedReport": bytes((13,)),
    "LedgerRow": bytes((13,)),
    "WindowHealth": bytes((14, 5, 2)),
    "WindowCounts": bytes((14, 2)),
    "DiscoveredValue": bytes((19,)),
}
"""Name of a schema -> its shape in the last program that kept plain bytes. Never changes."""


def shape_of(schema: Any) -> bytes:
    """The number of fields of a record of an Avro schema, and of each record in it, in order."""
    return bytes(_counts(schema))


def _counts(part: Any) -> Iterator[int]:
    if isinstance(part, list):
        for branch in part:
            yield from _counts(branch)
    elif isinstance(part, dict) and part["type"] == "record":
        yield len(part["fields"])
        for field in part["fields"]:
            yield from _counts(field["type"])
    elif isinstance(part, dict):
        yield from _counts(part.get("items", part.get("values")))


def cut_to(schema: Any, shape: Iterable[int]) -> Any:
    """The Avro schema of an earlier program: this one with the first fields of each record.

    Args:
        schema: a schema that ``fastavro`` has not parsed.
        shape: of the earlier schema; further counts are left out of account.

    Raises:
        ValueError: if a record has fewer fields, so that the shape is that of a later schema.
    """
    return _cut(schema, iter(shape))


def _cut(part: Any, counts: Iterator[int]) -> Any:
    if isinstance(part, list):
        return [_cut(branch, counts) for branch in part]
    if not isinstance(part, dict):
        return part
    if part["type"] != "record":
        return {name: _cut(value, counts) if name in ("items", "values") else value for name, value in part.items()}
    number, fields = next(counts), part["fields"]
    if number > len(fields):
        raise ValueError(f"a pending {part['name']} has {number} fields, but this version knows only {len(fields)}")
    return {**part, "fields": [{**field, "type": _cut(field["type"], counts)} for field in fields[:number]]}


def head_of(schema: Any) -> bytes:
    """What precedes the Avro bytes of a pending row."""
    shape = shape_of(schema)
    return MARK + bytes((len(shape),)) + shape


def records_of(rows: Sequence[bytes], schema: Any) -> list[bytes]:
    """The Avro bytes of pending rows, in today's schema.

    Args:
        rows: rows that this program kept, or an earlier one.
        schema: today's schema, which ``fastavro`` has not parsed.

    Raises:
        ValueError: if a row was kept by a later program, or is damaged.
    """
    head, earlier = head_of(schema), _Earlier(schema)
    return [row[len(head) :] if row.startswith(head) else earlier.upgraded(row) for row in rows]


class _Earlier:
    """Reads rows of earlier schemas."""

    def __init__(self, schema: Any):
        self._schema = schema
        self._today = fastavro.parse_schema(schema)
        self._cut: dict[bytes, Any] = {}

    def upgraded(self, row: bytes) -> bytes:
        """The Avro bytes of a row in today's schema."""
        begin, shapes = 0, self._plain_shapes()
        if row.startswith(MARK):
            begin = len(MARK) + 1 + row[1]
            shapes = iter([row[len(MARK) + 1 : begin]])
        for shape in shapes:
            record = self._read(row[begin:], shape)
            if record is not None:
                out = io.BytesIO()
                fastavro.schemaless_writer(out, self._today, record)
                return out.getvalue()
        raise ValueError(f"the bytes of a pending {self._schema['name']} are those of no earlier version")

    def _plain_shapes(self) -> Iterator[bytes]:
        """The shapes of plain bytes, of which at most one has as many bytes as a row; none of a kind that had none."""
        most, *parts = _PLAIN.get(self._schema["name"], bytes(1))
        fields = enumerate(self._schema["fields"], 1)
        least = max(number for number, field in fields if "default" not in field)
        return (bytes((number, *parts)) for number in range(most, least - 1, -1))

    def _read(self, encoded: bytes, shape: bytes) -> Any:
        """The record, with the defaults of all other fields; None if the shape needs more or fewer bytes."""
        if shape not in self._cut:
            self._cut[shape] = fastavro.parse_schema(cut_to(self._schema, shape))
        stream = io.BytesIO(encoded)
        try:
            record = fastavro.schemaless_reader(stream, self._cut[shape], self._today)
        except (EOFError, IndexError):  # the bytes end before a field, or within one
            return None
        return record if stream.tell() == len(encoded) else None
