"""Rows as JSON lines and as Avro records.

A row that was sent between workers may belong to a class that Beam generated from its schema. So these functions accept
any row with the fields of the schema, whatever its class is.

Entries in columns (``EntryColumns``) are encoded by columns, with the same result as from objects.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import orjson

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rows.avro_fields import time_fields
from uldp_transforms.rows.entry_columns import EntryColumns
from uldp_transforms.rows.row_types import ValueEstimate
from uldp_transforms.windows import rfc3339

_NUMBERS = ValueEstimate._fields[1:]
_NULLABLE = frozenset(ValueEstimate._field_defaults)
_CACHED = 16  # lists of values; all windows of a collection have the same one

_SCALARS = frozenset({str, int, float, bool, type(None)})


def as_dict(row: NamedTuple) -> dict[str, Any]:
    """Convert a row to a dictionary that ``json.dumps`` writes as the documented JSON.

    Inner rows become dictionaries too, and sequences lists; ``row._asdict()`` would leave them as tuples, which JSON
    has as lists without names.

    Examples:
        >>> from uldp_transforms import as_dict
        >>> from uldp_transforms.rows.row_types import DimensionValue
        >>> as_dict(DimensionValue("arm", "new"))
        {'name': 'arm', 'value': 'new'}

    Args:
        row: a row of any output of ``EstimateReports``.

    Raises:
        SpecError: if it is no row.
    """
    try:
        fields = row._fields
    except AttributeError:
        raise SpecError(f"as_dict, to_json and to_avro need a row, got {type(row).__name__}") from None
    return {name: value if type(value) in _SCALARS else _plain(value) for name, value in zip(fields, row)}


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return as_dict(value)
    if isinstance(value, (list, tuple)):
        return [item if type(item) in _SCALARS else _plain(item) for item in value]
    if isinstance(value, EntryColumns):
        return [dict(zip(ValueEstimate._fields, entry)) for entry in value]
    return dict(value) if isinstance(value, Mapping) else value


def to_json(row: NamedTuple) -> str:
    """Encode a row as one line of JSON, as the files and topics of ``uldp estimate`` have it.

    Examples:
        >>> from uldp_transforms import to_json
        >>> from uldp_transforms.rows.row_types import DimensionValue
        >>> to_json(DimensionValue("arm", "new"))
        '{"name": "arm", "value": "new"}'

    Args:
        row: a row of any output of ``EstimateReports``.

    Raises:
        ValueError: if a number is not finite.
    """
    entries = getattr(row, "estimates", None)
    encoded = entries_to_json(entries) if isinstance(entries, EntryColumns) else None
    if encoded is None:
        return _to_json(as_dict(row))
    fields = as_dict(row._replace(estimates=()))
    at = row._fields.index("estimates")
    before, after = (dict(itertools.islice(fields.items(), *part)) for part in ((at,), (at + 1, None)))
    return f'{_to_json(before)[:-1]}, "estimates": {encoded}, {_to_json(after)[1:]}'


_to_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def to_avro(row: NamedTuple, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a row to a record for an Avro writer; times become datetime, UTC.

    Examples:
        >>> import apache_beam as beam
        >>> from uldp_transforms import EstimateReports, ReadReportFiles, to_avro
        >>> from uldp_transforms.schemas import load
        >>> schema = load("windowed_estimate.avsc")
        >>> with beam.Pipeline() as pipeline:
        ...     files = pipeline | ReadReportFiles("reports*.avro")
        ...     estimated = files | EstimateReports(collections=["C.json"], window="1d")
        ...     records = estimated.estimates | beam.Map(to_avro, schema)
        ...     _ = records | beam.Map(lambda record: print(record["window_start"].date()))
        2001-09-09

    Args:
        row: a row of any output of ``EstimateReports``.
        schema: the Avro schema of these rows, of ``uldp_transforms.schemas.load``.
    """
    record = as_dict(row)
    for name in time_fields(schema):
        if record[name] is not None:
            record[name] = datetime.datetime.fromisoformat(record[name].removesuffix("Z") + "+00:00")
    return record


def from_avro(record: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a record of an Avro reader to the fields of a row by name; times become texts."""
    return {name: _text(value) if type(value) is datetime.datetime else value for name, value in record.items()}


def _text(time: datetime.datetime) -> str:
    return rfc3339(round(time.timestamp() * 1000))


def entries_to_json(entries: EntryColumns) -> str | None:
    """The entries as a JSON array, as ``json.dumps`` writes it; None if this needs objects.

    Each entry is its value, then numbers and what is between two of them.
    """
    stored, order = _order_of(entries.names)
    size, width = len(entries), 2 * len(stored) + 1
    if not size or not stored or np.isinf(entries.numbers).any():
        return None if size else "[]"
    told = entries.numbers if order is None else entries.numbers[order]
    between = _texts_between(stored)
    parts = [""] * (width * size)
    parts[::width] = _json_heads(entries.values, between[0])
    tokens = number_tokens(told)
    for place, text in enumerate(between[1:]):
        parts[2 * place + 1 :: width] = tokens[place * size : (place + 1) * size]
        parts[2 * place + 2 :: width] = [text] * size
    parts[-1] = parts[-1].removesuffix(", ")
    return f"[{''.join(parts)}]"


@functools.cache
def _order_of(names: tuple[str, ...]) -> tuple[tuple[str, ...], list[int] | None]:
    """Stored fields in the order of an entry, and their places; None if they are in this order."""
    stored = tuple(name for name in _NUMBERS if name in names)
    return stored, None if stored == names else [names.index(name) for name in stored]


@functools.cache
def _texts_between(stored: tuple[str, ...]) -> list[str]:
    """What is before the first number, between two, and after the last one; fields that are not stored are null."""
    texts, text = [], ""
    for name in _NUMBERS:
        text += f', "{name}": '
        if name in stored:
            texts.append(text)
            text = ""
        else:
            text += "null"
    return [*texts, f"{text}}}, "]


@functools.lru_cache(maxsize=_CACHED)
def _json_heads(values: tuple[str, ...], text: str) -> list[str]:
    return [f'{{"value": {json.dumps(value, ensure_ascii=False)}{text}' for value in values]


def number_tokens(numbers: np.ndarray) -> list[str]:
    """Each number as ``repr`` writes it, row by row; nan and infinite ones as null.

    Both libraries write the shortest digits that give the number back. They differ only in where exponents begin.
    """
    flat = np.ascontiguousarray(numbers).ravel()
    tokens = orjson.dumps(flat, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].decode().split(",")
    size = np.abs(flat)
    for place in np.flatnonzero(((size < 1e-4) & (size > 0)) | ((size >= 1e16) & (size < np.inf))).tolist():
        tokens[place] = repr(float(flat[place]))
    return tokens


def entries_to_avro(entries: EntryColumns) -> bytes | None:
    """The entries as an Avro array of ``schemas/value_estimate.avsc``; None if this needs objects.

    Each entry is its value and a number of bytes that is the same for all: numbers that are in all entries or in none.
    """
    size = len(entries)
    if not size:
        return b"\0"
    missing = np.isnan(entries.numbers).sum(axis=1)
    is_told = missing == 0
    if not (is_told | (missing == size)).all():
        return None
    plan = _bytes_of_numbers(tuple(itertools.compress(entries.names, is_told.tolist())))
    if plan is None:
        return None
    empty, places, order = plan
    columns = entries.numbers[is_told][order]
    body, width = np.tile(empty, (size, 1)), len(empty)
    body[:, places] = np.ascontiguousarray(columns.T, dtype="<f8").view(np.uint8)
    content = body.tobytes()
    pieces = [b""] * (2 * size)
    pieces[::2] = _avro_heads(entries.values)
    pieces[1::2] = [content[at : at + width] for at in range(0, len(content), width)]
    return avro_long(size) + b"".join(pieces) + b"\0"


@functools.cache
def _bytes_of_numbers(told: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray, list[int]] | None:
    """The bytes of an entry after its value, with zeros for these numbers; the places of their bytes; and the order in
    which they follow each other. None if a field that is not nullable is missing."""
    content, places = list[int](), list[int]()
    for name in _NUMBERS:
        if name in _NULLABLE:
            content.append(2 if name in told else 0)
        elif name not in told:
            return None
        if name in told:
            places += range(len(content), len(content) + 8)
            content += [0] * 8
    order = [told.index(name) for name in _NUMBERS if name in told]
    return np.array(content, dtype=np.uint8), np.array(places, dtype=np.int64), order


@functools.lru_cache(maxsize=_CACHED)
def _avro_heads(values: tuple[str, ...]) -> list[bytes]:
    encoded = [value.encode() for value in values]
    return [avro_long(len(each)) + each for each in encoded]


def avro_long(number: int) -> bytes:
    """Encode a number that is not negative as an Avro long."""
    out, rest = bytearray(), 2 * number
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)
