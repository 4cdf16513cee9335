"""Cells of any type as texts: the same cell has the same text in every kind of file."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uldp_transforms.ldp.errors import SpecError

MISSING_TEXTS = ("na", "n/a", "nan", "null", "<na>", "#n/a", r"\n")
"""Texts that other programs write for a missing cell, in small letters; databases export ``\\N``."""

_EXACT = 1 << 53
"""Whole numbers below it are exact in float64."""

_UUID_BYTES = 16
_WHOLE = re.compile(r"(-?[0-9]+)\.0+")
_POWER = re.compile(r"-?[0-9]{1,17}(\.[0-9]{1,17})?[eE][+-]?[0-9]{1,2}")
_PLAIN_WHOLE = re.compile(r"-?[0-9]{1,300}")


def values_of(column: pa.Array) -> pa.Array:
    """A column without its encodings: dictionaries, runs, and types of other packages."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays([chunk.dictionary_decode() for chunk in column.chunks])
    if isinstance(column.type, pa.BaseExtensionType):
        return values_of(column.storage)
    if pa.types.is_dictionary(column.type):
        return values_of(column.dictionary).take(column.indices)
    if pa.types.is_run_end_encoded(column.type):
        return values_of(pc.run_end_decode(column))
    return column


def texts_of(column: pa.Array, name: str) -> pa.Array:
    """The cells of a column as texts (n,); null where there is no cell, and for NaN.

    Whole numbers have no decimal point and no zeros at their ends, whatever their type is: 1.0 is "1". Dates are
    "2020-01-31", truth values "true" and "false".

    Raises:
        SpecError: if the column has another type, such as lists, or bytes that are no UTF-8; begins with its name.
    """
    if isinstance(getattr(column, "type", None), pa.BaseExtensionType) and column.type.extension_name == "arrow.uuid":
        cells = column.storage.to_pylist() if isinstance(column, pa.ExtensionArray) else column.to_pylist()
        return pa.array([None if cell is None else _uuid(cell) for cell in cells], pa.string())
    values = values_of(column)
    read = next((read for of_kind, read in _READERS if of_kind(values.type)), None)
    if read is None:
        kind = column.type
        raise SpecError(f"column {name} must hold texts, numbers, truth values, dates or times, got {kind}")
    try:
        texts = read(values)
    except pa.ArrowInvalid:
        raise SpecError(f"column {name} must hold texts in UTF-8, got other bytes") from None
    return texts if texts.type == pa.string() else texts.cast(pa.string())


def are_missing(texts: pa.Array, marks: Collection[str] = ()) -> np.ndarray:
    """(n,) bool: cells that are null, empty, white space alone, or one of these texts in small letters."""
    plain = pc.utf8_trim_whitespace(pc.fill_null(texts, ""))
    missing = pc.equal(plain, "")
    if marks:
        known = pa.array(sorted(marks), pa.string())
        missing = pc.or_(missing, pc.is_in(pc.utf8_lower(plain), value_set=known))
    return np.asarray(missing)


def whole_number(text: str) -> str:
    """``1`` for ``1.0``, as programs write whole numbers after a missing cell, and ``100000`` for ``1e+05``, as R does;
    any other text as it is."""
    found = _WHOLE.fullmatch(text)
    if found is not None:
        return found[1]
    number = float(text) if _POWER.fullmatch(text) else 0.5
    return str(int(number)) if number.is_integer() and abs(number) < _EXACT else text


def spellings(text: str) -> tuple[str, ...]:
    """A text, and the other ways in which programs write the same whole number."""
    if _PLAIN_WHOLE.fullmatch(text):
        return text, f"{text}.0"
    return tuple(dict.fromkeys((text, whole_number(text))))


def as_listed(texts: list[str], strangers: Callable[[list[str]], np.ndarray]) -> list[str]:
    """The texts, of which those that a list does not have are the same whole number as the list writes it, if it does.

    Args:
        texts: any number.
        strangers: which ones of some texts the list does not have.
    """
    strange = [text for text, is_strange in zip(texts, strangers(texts)) if is_strange]
    others = {text: other for text in dict.fromkeys(strange) for other in spellings(text)[1:]}
    known = [not is_strange for is_strange in strangers(list(others.values()))] if others else []
    same = {text: other for (text, other), is_known in zip(others.items(), known) if is_known}
    return [same.get(text, text) for text in texts] if same else texts


def _as_they_are(values: pa.Array) -> pa.Array:
    return values.cast(pa.string())


def _of_floats(values: pa.Array) -> pa.Array:
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
    whole = pc.and_(pc.equal(pc.floor(values), values), pc.less(pc.abs(values), float(_EXACT)))
    numbers = pc.if_else(pc.fill_null(whole, False), values, pa.scalar(0.0, values.type))
    return pc.if_else(whole, numbers.cast(pa.int64()).cast(pa.string()), values.cast(pa.string()))


def _of_decimals(values: pa.Array) -> pa.Array:
    texts = values.cast(pa.string())
    short = pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")
    plain = pc.if_else(pc.match_substring(texts, "."), short, texts)
    return pc.if_else(pc.equal(values.cast(pa.float64()), 0.0), "0", plain)


def _of_timestamps(values: pa.Array) -> pa.Array:
    """RFC 3339, with Z if the moment is known; without a time-zone database."""
    if values.type.tz is None:
        return values.cast(pa.string())
    moments = values.cast(pa.timestamp(values.type.unit, "UTC")).cast(pa.int64()).cast(pa.timestamp(values.type.unit))
    return pc.binary_join_element_wise(moments.cast(pa.string()), "Z", "")


def _uuid(cell: object) -> str:
    return str(uuid.UUID(bytes=cell) if isinstance(cell, bytes) and len(cell) == _UUID_BYTES else cell)


def _is_text(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _is_bytes(kind: pa.DataType) -> bool:
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
    return any(is_kind(kind) for is_kind in kinds)


def _is_plain(kind: pa.DataType) -> bool:
    kinds = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_date, pa.types.is_time, pa.types.is_null)
    return _is_text(kind) or _is_bytes(kind) or any(is_kind(kind) for is_kind in kinds)


_READERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array], pa.Array]], ...] = (
    (_is_plain, _as_they_are),
    (pa.types.is_floating, _of_floats),
    (pa.types.is_decimal, _of_decimals),
    (pa.types.is_timestamp, _of_timestamps),
)
