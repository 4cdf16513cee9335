"""Entries that are encoded by columns give the bytes and tables that objects give."""

from __future__ import annotations

import io
import json
import math
from typing import Any

import fastavro
import numpy as np
import pytest

from tests.support.rows.rows_of_all_kinds import estimate_row
from uldp_transforms.collector.row_bytes import avro_record
from uldp_transforms.rows.arrow_form import table_of, table_of_rows
from uldp_transforms.rows.entry_columns import EntryColumns
from uldp_transforms.rows.json_and_avro import (
    as_dict,
    avro_long,
    entries_to_avro,
    entries_to_json,
    to_avro,
    to_json,
)
from uldp_transforms.rows.row_types import ESTIMATE_SCHEMA, VALUE_SCHEMA, ValueEstimate, WindowedEstimate
from uldp_transforms.rows.windowed_estimate import flat

TEXTS = ("", "a", 'quoted "', "back\\slash", "line\nend", "später", "雨", "\u2028", "null", "x" * 70, "\x7f\x00")
NAMES = ValueEstimate._fields[1:]
REQUIRED = NAMES[:5]
AWKWARD = (0.0, -0.0, 1.0, 1e-4, 9.999999999999999e-05, -1e-5, 5e-324, 1e15, 1e16, -1e22, 1e23, 0.1 + 0.2)


def columns_of(names: tuple[str, ...], seed: int = 1) -> EntryColumns:
    """Random numbers of all sizes, and those where texts of numbers change their form."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(len(names), len(TEXTS))) * 10.0 ** rng.integers(-20, 20, (len(names), len(TEXTS)))
    numbers.flat[: len(AWKWARD)] = AWKWARD
    return EntryColumns(TEXTS, names, numbers)


def with_objects(row: WindowedEstimate) -> WindowedEstimate:
    return row._replace(estimates=list(row.estimates))


SHORT = EntryColumns((), NAMES, np.empty((len(NAMES), 0)))
CASES = {
    "all fields": columns_of(NAMES),
    "the required ones": columns_of(REQUIRED, 2),
    "in another order": columns_of((NAMES[6], *REQUIRED[::-1]), 3),
    "no entries": SHORT,
}


@pytest.mark.parametrize("entries", CASES.values(), ids=CASES)
def test_columns_give_the_same_files_as_objects(entries: EntryColumns) -> None:
    row, schema = estimate_row(7, estimates=entries), fastavro.parse_schema(ESTIMATE_SCHEMA)
    objects = with_objects(row)
    assert entries_to_json(entries) is not None and entries_to_avro(entries) is not None
    assert to_json(row) == to_json(objects) == json.dumps(as_dict(objects), ensure_ascii=False)
    assert avro_record(row, schema) == avro_record(objects, schema)
    assert to_avro(row, ESTIMATE_SCHEMA) == to_avro(objects, ESTIMATE_SCHEMA)
    other = estimate_row(None, estimates=columns_of(NAMES, 4), run="r")
    rows, expected = [row, other], [to_avro(one, ESTIMATE_SCHEMA) for one in (objects, with_objects(other))]
    assert table_of_rows(rows, ESTIMATE_SCHEMA).equals(table_of(expected, ESTIMATE_SCHEMA))
    values = [to_avro(value, VALUE_SCHEMA) for one in rows for value in flat(one)]
    assert table_of_rows(rows, VALUE_SCHEMA).equals(table_of(values, VALUE_SCHEMA))


def test_fields_that_only_some_entries_have_are_null_in_the_others() -> None:
    entries = columns_of(NAMES)
    entries.numbers[-1, ::2] = math.nan
    row = estimate_row(7, estimates=entries)
    objects = with_objects(row)
    assert objects.estimates[0].block_frequency is None and objects.estimates[1].block_frequency is not None
    assert entries_to_avro(entries) is None
    schema: Any = fastavro.parse_schema(ESTIMATE_SCHEMA)
    assert to_json(row) == to_json(objects) and avro_record(row, schema) == avro_record(objects, schema)
    assert table_of_rows([row], ESTIMATE_SCHEMA).equals(table_of([to_avro(objects, ESTIMATE_SCHEMA)], ESTIMATE_SCHEMA))


def test_numbers_that_json_cannot_write_are_refused() -> None:
    entries = columns_of(NAMES)
    entries.numbers[2, 3] = math.inf
    with pytest.raises(ValueError, match="Out of range float values are not JSON compliant"):
        to_json(estimate_row(7, estimates=entries))


def test_random_bits_are_written_as_python_writes_them() -> None:
    """The two libraries that write numbers agree on the digits of every number."""
    bits = np.random.default_rng(5).integers(0, 1 << 64, (5, 20_000), dtype=np.uint64).view(np.float64)
    numbers = np.where(np.isfinite(bits), bits, 0.5)
    numbers[:2] = np.random.default_rng(6).random((2, 20_000))
    entries = EntryColumns(tuple(map(str, range(20_000))), REQUIRED, numbers)
    assert entries_to_json(entries) == json.dumps([entry._asdict() for entry in entries])


@pytest.mark.parametrize("number", [0, 1, 63, 64, 8191, 8192, 1 << 40])
def test_lengths_are_avro_longs(number: int) -> None:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, "long", number)
    assert avro_long(number) == out.getvalue()
