"""The entries of a row as JSON and as Avro, encoded from their columns with the same result as from objects."""

from __future__ import annotations

import functools
import json

import numpy as np
import orjson

from uldp_transforms.rows.entry_columns import EntryColumns
from uldp_transforms.rows.row_types import ValueEstimate

_NUMBERS = ValueEstimate._fields[1:]
_NULLABLE = frozenset(ValueEstimate._field_defaults)
_CACHED = 16  # lists of values; all windows of a collection have the same one


def entries_to_json(entries: EntryColumns) -> str | None:
    """The entries as a JSON array, as ``json.dumps`` writes it; None if this needs objects.

    Each entry is its value, then numbers and what is between two of them.
    """
    stored = [name for name in _NUMBERS if name in entries.names]
    size, width = len(entries), 2 * len(stored) + 1
    numbers = np.stack([entries.column(name) for name in stored]) if stored else np.empty((0, size))
    if not size or not stored or np.isinf(numbers).any():
        return None if size else "[]"
    between = _texts_between(tuple(stored))
    parts = [""] * (width * size)
    parts[::width] = _json_heads(entries.values, between[0])
    tokens = _tokens(numbers)
    for place, text in enumerate(between[1:]):
        parts[2 * place + 1 :: width] = tokens[place * size : (place + 1) * size]
        parts[2 * place + 2 :: width] = [text] * size
    parts[-1] = parts[-1].removesuffix(", ")
    return f"[{''.join(parts)}]"


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


def _tokens(numbers: np.ndarray) -> list[str]:
    """Each number as ``repr`` writes it, row by row; nan as null.

    Both libraries write the shortest digits that give the number back. They differ only in where exponents begin.
    """
    flat = np.ascontiguousarray(numbers).ravel()
    tokens = orjson.dumps(flat, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].decode().split(",")
    size = np.abs(flat)
    for place in np.flatnonzero(((size < 1e-4) & (size > 0)) | (size >= 1e16)).tolist():
        tokens[place] = repr(float(flat[place]))
    return tokens


def entries_to_avro(entries: EntryColumns) -> bytes | None:
    """The entries as an Avro array of ``schemas/value_estimate.avsc``; None if this needs objects.

    Each entry is its value and a number of bytes that is the same for all: numbers that are in all entries or in none.
    """
    size, parts, width = len(entries), [], 0
    for name in _NUMBERS:
        column = entries.column(name).astype("<f8")
        missing = int(np.isnan(column).sum())
        if missing not in (0, size) or (missing and name not in _NULLABLE):
            return None
        if name in _NULLABLE:
            parts.append(np.full((size, 1), 0 if missing else 2, dtype=np.uint8))
        if not missing:
            parts.append(column.view(np.uint8).reshape(size, 8))
    if not size:
        return b"\0"
    body = np.concatenate(parts, axis=1)
    width, content = body.shape[1], body.tobytes()
    pieces = [b""] * (2 * size)
    pieces[::2] = _avro_heads(entries.values)
    pieces[1::2] = [content[at : at + width] for at in range(0, len(content), width)]
    return avro_long(size) + b"".join(pieces) + b"\0"


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
