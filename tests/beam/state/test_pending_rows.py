"""Rows that wait in state are read by later programs, of which the schemas have grown."""

from __future__ import annotations

import base64
import copy
import functools
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import kept_rows
from tests.support.kept_rows import KINDS
from uldp_transforms.collector import pending_rows
from uldp_transforms.collector.pending_rows import MARK, cut_to, head_of, records_of, shape_of
from uldp_transforms.rows.json_and_avro import from_avro, to_avro

KEPT = json.loads((Path(__file__).parents[2] / "data" / "kept_rows.json").read_text(encoding="utf-8"))
SCHEMAS = {kind: schema for kind, (_, schema) in KINDS.items()}
PLAIN = {kind: cut_to(schema, pending_rows._PLAIN[schema["name"]]) for kind, schema in SCHEMAS.items()}
"""Kind -> schema of the last program that kept plain bytes."""

TIME = 1_764_000_000_000


def encoded(record: Any, schema: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), record)
    return out.getvalue()


def decoded(row: bytes, schema: Any) -> Any:
    stream = io.BytesIO(row)
    record = fastavro.schemaless_reader(stream, fastavro.parse_schema(schema), None)
    assert stream.tell() == len(row)
    return record


def with_defaults(record: Any, part: Any) -> Any:
    """A record as rows have it, with the defaults of the fields that it lacks, also in the records in it."""
    if isinstance(part, list):
        return None if record is None else with_defaults(record, part[1])
    kind = part["type"] if isinstance(part, dict) else part
    if kind == "record":
        return {
            field["name"]: with_defaults(record.get(field["name"], field.get("default")), field["type"])
            for field in part["fields"]
        }
    return [with_defaults(entry, part["items"]) for entry in record] if kind == "array" else record


def refused(schema: Any) -> str:
    return f"^the bytes of a pending {schema['name']} are those of no earlier version$"


# ------------------------------------------------------------- rows of an earlier program


@pytest.mark.parametrize("kind", KINDS)
def test_rows_that_an_earlier_program_kept_are_read(kind: str) -> None:
    schema = SCHEMAS[kind]
    found = records_of([base64.b64decode(each["bytes"]) for each in KEPT[kind]], schema)
    for row, each in zip(found, KEPT[kind], strict=True):
        assert from_avro(decoded(row, schema)) == with_defaults(each["row"], schema)


def test_the_rows_are_of_schemas_that_have_grown_since() -> None:
    grown = {kind for kind, [full, _] in KEPT.items() if len(full["row"]) < len(SCHEMAS[kind]["fields"])}
    assert grown == set(KINDS) - {"counts"}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_have_their_plain_bytes_after_the_shape(kind: str) -> None:
    schema, plain = SCHEMAS[kind], PLAIN[kind]
    records = [to_avro(row, schema) for row in kept_rows.rows(kind)]
    rows = [encoded(record, schema) for record in records]
    head = head_of(schema)
    assert head == MARK + bytes([len(shape_of(schema))]) + shape_of(schema)
    assert records_of([head + row for row in rows], schema) == rows
    former = [encoded(record, plain) for record in records]
    assert records_of(former, plain) == former
    assert records_of(former, schema) == records_of([head_of(plain) + row for row in former], schema)


# --------------------------------------------------------------------- rows of any content


def made(part: Any) -> st.SearchStrategy[Any]:
    """Values of an Avro type, often those with few bytes or with bytes of zero."""
    return _made(json.dumps(part))


@functools.cache  # a strategy is checked once
def _made(text: str) -> st.SearchStrategy[Any]:
    part = json.loads(text)
    if isinstance(part, list):
        return st.none() | made(part[1])
    return SCALARS[part] if isinstance(part, str) else COMPLEX[part["type"]](part)


NUMBERS = st.integers(-3, 3) | st.integers(-(1 << 31), (1 << 31) - 1)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": st.sampled_from(["", "\x00", "\x00\x00\x02", "\x02a"]) | st.text(max_size=4),
    "int": NUMBERS,
    "long": NUMBERS,
    "double": st.sampled_from([0.0, 1.0]) | st.floats(allow_nan=False),
    "boolean": st.booleans(),
}
COMPLEX: dict[str, Callable[[Any], st.SearchStrategy[Any]]] = {
    "record": lambda of: st.fixed_dictionaries({field["name"]: made(field["type"]) for field in of["fields"]}),
    "array": lambda of: st.lists(made(of["items"]), max_size=2),
    "map": lambda of: st.dictionaries(st.text(max_size=2), made(of["values"]), max_size=2),
    "enum": lambda of: st.sampled_from(of["symbols"]),
    "long": lambda _: st.integers(0, TIME),
}


def shapes(schema: Any) -> list[bytes]:
    """All shapes of which a single record has fewer fields than today, and lacks only such as have a default."""
    found, whole = [], list(shape_of(schema))
    for place, fields in enumerate([record["fields"] for record in _records(schema)]):
        for number in range(len(fields), 0, -1):
            found.append(bytes([*whole[:place], number, *_those_in(fields[:number]), *_after(whole, place, fields)]))
            if "default" not in fields[number - 1]:
                break
    return found


def _records(part: Any) -> Iterator[Any]:
    """A record of a schema, and those in it, in the order of their shape."""
    if isinstance(part, list):
        for branch in part:
            yield from _records(branch)
    elif isinstance(part, dict) and part["type"] == "record":
        yield part
        for field in part["fields"]:
            yield from _records(field["type"])
    elif isinstance(part, dict):
        yield from _records(part.get("items", part.get("values")))


def _those_in(fields: Any) -> list[int]:
    return [len(record["fields"]) for field in fields for record in _records(field["type"])]


def _after(whole: list[int], place: int, fields: Any) -> list[int]:
    return whole[place + 1 + len(_those_in(fields)) :]


CASES = [(kind, shape) for kind, schema in SCHEMAS.items() for shape in shapes(schema)]


def test_each_record_in_a_row_is_cut_to_each_earlier_number_of_fields() -> None:
    assert all(shape_of(cut_to(SCHEMAS[kind], shape)) == shape for kind, shape in CASES)
    found = {
        (kind, record["name"], len(record["fields"]))
        for kind, shape in CASES
        for record in _records(cut_to(SCHEMAS[kind], shape))
    }
    assert {("health", "WindowHealth", 10), ("estimates", "SumFigure", 1), ("estimates", "NumberFigures", 1)} <= found
    assert {("health", "WindowHealth", 9), ("health", "Finding", 4)}.isdisjoint(found)


@pytest.mark.parametrize(("kind", "shape"), CASES, ids=lambda case: case if isinstance(case, str) else case.hex())
@settings(max_examples=5)
@given(data=st.data())
def test_a_row_of_any_earlier_shape_is_read_with_defaults(kind: str, shape: bytes, data: st.DataObject) -> None:
    """Also where a record in it has grown; the shapes of earlier records tell all that follows them."""
    today = SCHEMAS[kind]
    earlier = cut_to(today, shape)
    written = encoded(data.draw(made(earlier)), earlier)
    [found] = records_of([head_of(earlier) + written], today)
    assert decoded(found, today) == with_defaults(decoded(written, earlier), today)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=100)
@given(data=st.data())
def test_plain_bytes_are_those_of_one_number_of_fields(kind: str, data: st.DataObject) -> None:
    """Of all numbers, not only of those that lack fields with defaults: so no wrong one is ever taken."""
    today = SCHEMAS[kind]
    number = data.draw(st.integers(1, len(today["fields"])))
    earlier = {**today, "fields": today["fields"][:number]}
    written = encoded(data.draw(made(earlier)), earlier)
    assert written[0] % 2 == 0 and not written.startswith(MARK)
    fits = []
    for fields in range(1, len(today["fields"]) + 1):
        stream = io.BytesIO(written)
        try:
            fastavro.schemaless_reader(
                stream, fastavro.parse_schema(cut_to(today, bytes([fields, *shape_of(today)[1:]]))), None
            )
        except EOFError:
            assert fields > number
        else:
            fits += [fields] * (stream.tell() == len(written))
    assert fits == [number]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50)
@given(data=st.data())
def test_plain_bytes_are_read_or_refused(kind: str, data: st.DataObject) -> None:
    today, plain = SCHEMAS[kind], PLAIN[kind]
    least = max(number for number, field in enumerate(plain["fields"], 1) if "default" not in field)
    number = data.draw(st.integers(1, len(plain["fields"])))
    earlier = {**plain, "fields": plain["fields"][:number]}
    written = encoded(data.draw(made(earlier)), earlier)
    if number < least:
        with pytest.raises(
            ValueError, match=f"^the bytes of a pending {today['name']} are those of no earlier version$"
        ):
            records_of([written], today)
    else:
        [found] = records_of([written], today)
        assert decoded(found, today) == with_defaults(decoded(written, earlier), today)


# --------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_rows_are_refused(kind: str) -> None:
    """A row that ends with the first byte of a field or before its last one, and one with a byte more."""
    schema, plain = SCHEMAS[kind], PLAIN[kind]
    shape = shape_of(plain)
    row = encoded(to_avro(kept_rows.rows(kind)[0], schema), plain)
    whole = {len(prefix) for prefix in _prefixes(kind)}
    for end in {place + step for place in whole | {0, len(row)} for step in (-1, 1)} & set(range(1, len(row))) - whole:
        with pytest.raises(ValueError, match=refused(schema)):
            records_of([row[:end]], schema)
    earlier = head_of(cut_to(plain, bytes([shape[0] - 1, *shape[1:]])))
    for damaged in (row + b"\0", earlier + row, earlier + row[:-1]):
        with pytest.raises(ValueError, match=refused(schema)):
            records_of([damaged], schema)


def _prefixes(kind: str) -> Iterator[bytes]:
    """The bytes of the first fields of the full row, for each number of fields that an earlier version can have had."""
    schema = PLAIN[kind]
    record = to_avro(kept_rows.rows(kind)[0], SCHEMAS[kind])
    for shape in shapes(schema):
        if shape[0] < len(schema["fields"]):
            yield encoded(record, cut_to(schema, shape))


@pytest.mark.parametrize(("place", "name"), [(0, "WindowHealth"), (1, "Finding")])
def test_rows_of_a_later_version_are_refused(place: int, name: str) -> None:
    schema = SCHEMAS["health"]
    shape = bytearray(shape_of(schema))
    shape[place] += 1
    row = MARK + bytes([len(shape)]) + shape + encoded(to_avro(kept_rows.rows("health")[0], schema), schema)
    expected = f"a pending {name} has {shape[place]} fields, but this version knows only {shape[place] - 1}"
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        records_of([row], schema)


# ---------------------------------------------------------------------------- the next field


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_field_needs_no_line_here(kind: str) -> None:
    """Of rows and of the records in them: with or without shapes, rows are read by the schema that grows."""
    today, later = SCHEMAS[kind], copy.deepcopy(SCHEMAS[kind])
    for record in list(_records(later)):
        record["fields"].append({"name": "next", "type": ["null", "double"], "default": None})
    for row in kept_rows.rows(kind):
        for schema, head in ((PLAIN[kind], b""), (today, head_of(today))):
            written = encoded(to_avro(row, today), schema)
            [found] = records_of([head + written], later)
            assert decoded(found, later) == with_defaults(decoded(written, schema), later)
    assert pending_rows._PLAIN.keys() == {schema["name"] for schema in SCHEMAS.values()}


def test_a_kind_that_never_had_plain_bytes_is_read_by_its_shape() -> None:
    fields = [{"name": "number", "type": "long"}, {"name": "text", "type": "string", "default": "none"}]
    schema = {"type": "record", "name": "Example", "fields": fields}
    earlier = {**schema, "fields": fields[:1]}
    [row] = records_of([head_of(earlier) + encoded({"number": 7}, earlier)], schema)
    assert row == encoded({"number": 7, "text": "none"}, schema)
