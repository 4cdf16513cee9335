"""Rows in files of every form, and which of them a directory is read from."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.support.rows.rows_of_all_kinds import ROWS
from uldp_transforms.collector.row_bytes import file_of
from uldp_transforms.jobs.records.row_directory import RowDirectory
from uldp_transforms.jobs.records.row_reading import ENTRIES, read_rows, row_files
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rows.arrow_form import table_of_rows
from uldp_transforms.rows.row_types import ESTIMATE_SCHEMA, WindowedEstimate

KINDS = {
    "WindowedEstimate": "estimates",
    "WindowHealth": "health",
    "LedgerRow": "ledger",
    "RejectedReport": "rejected",
}
"""Name of a schema -> kind of rows that programs read."""

ESTIMATE: Any = next(row for row, _ in ROWS if isinstance(row, WindowedEstimate))
FORMS = ("jsonl", "parquet", "avro")


def write(path: Path, rows: list[Any], schema: Any = ESTIMATE_SCHEMA) -> str:
    path.write_bytes(file_of(rows, path.suffix[1:], schema))
    return str(path)


def rows_in(path: str, **options: Any) -> list[dict[str, Any]]:
    return [dict(row) for _, _, row in read_rows(path, **options)]


@pytest.mark.parametrize(("row", "schema"), [each for each in ROWS if each[1]["name"] in KINDS])
def test_a_row_is_the_same_from_avro_and_from_parquet(row: Any, schema: Any, tmp_path: Path) -> None:
    """Times, maps, lists and fields without a value, of every kind of row that programs read."""
    kind = KINDS[schema["name"]]
    avro, parquet = (rows_in(write(tmp_path / f"{kind}.{form}", [row, row], schema)) for form in ("avro", "parquet"))
    assert len(avro) == 2 and avro == parquet and list(avro[0]) == list(parquet[0])


@pytest.mark.parametrize(("form", "named"), [("jsonl", ""), ("avro", ""), ("parquet", "element"), ("parquet", "item")])
def test_chosen_rows_are_read_with_their_entries_and_others_are_counted(form: str, named: str, tmp_path: Path) -> None:
    """Also where a file has several groups of rows, and a row no entries at all."""
    rows = [ESTIMATE._replace(pane_index=at, estimates=list(ESTIMATE.estimates) * (at % 3)) for at in range(40)]
    path = tmp_path / f"estimates.{form}"
    if form == "parquet":
        _in_groups(path, rows, named)
    else:
        write(path, rows)
    headers = list(read_rows(str(path), entries=False))
    assert [len(row[ENTRIES]) for _, _, row in headers] == [len(row.estimates) for row in rows]
    assert [row["pane_index"] for _, _, row in headers] == list(range(40))
    begins = {number: begin for number, begin, _ in headers}
    rng = random.Random(1)
    for chosen in ([], [0], [39], sorted(rng.sample(range(40), 7)), list(range(40))):
        found = list(read_rows(str(path), {number: begins[number] for number in chosen}))
        assert [(number, row["pane_index"], len(row[ENTRIES])) for number, _, row in found] == [
            (at, at, len(rows[at].estimates)) for at in chosen
        ]
        assert all(row[ENTRIES][0]["value"] == ESTIMATE.estimates[0].value for _, _, row in found if row[ENTRIES])


def _in_groups(path: Path, rows: list[Any], named: str) -> None:
    """Seven rows in each group of a Parquet file, whose lists have entries of this name."""
    table = table_of_rows(rows, ESTIMATE_SCHEMA)
    place = table.schema.get_field_index("estimates")
    field = table.schema.field(place)
    renamed = field.with_type(pa.list_(field.type.value_field.with_name(named)))
    lists = pa.array(table.column(place).to_pylist(), renamed.type)
    table = table.set_column(place, renamed, lists)
    parquet.write_table(table, path, row_group_size=7, use_compliant_nested_type=named == "element")


@pytest.mark.parametrize("form", FORMS)
def test_files_with_something_else_are_named(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"estimates.{form}"
    path.write_bytes(b"something else")
    with pytest.raises(SpecError) as caught:
        rows_in(str(path))
    assert str(caught.value) == f"{path} must contain rows of uldp estimate (the content is not shown)"


def test_each_run_is_read_in_one_form(tmp_path: Path) -> None:
    """One that wrote no JSON lines beside one that did, and one with Avro files only: none is lost, none read twice."""
    folder = {
        "estimates-a-1.jsonl": "a", "estimates-a-2.jsonl": "a", "estimates-a-9.avro": "a", "estimates-a-3.parquet": "a",
        "estimates-b-1.avro": "b", "estimates-b-2.parquet": "b", "estimates-c-1.avro": "c", "estimates-c-2.avro": "c",
    }  # fmt: skip
    for name, run in folder.items():
        write(tmp_path / name, [ESTIMATE._replace(run=run, window_start=None, window_end=None, group=None)])
    files = [Path(path).name for path in row_files(str(tmp_path), "estimates")]
    assert sorted(files) == [
        *("estimates-a-1.jsonl", "estimates-a-2.jsonl", "estimates-b-2.parquet"),
        *("estimates-c-1.avro", "estimates-c-2.avro"),
    ]
    assert [row["run"] for row in RowDirectory(str(tmp_path)).windows()] == ["c"]
    assert row_files(str(tmp_path), "health") == []
