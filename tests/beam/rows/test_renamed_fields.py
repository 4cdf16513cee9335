"""A field of a row gets a new name: rows, files, frames, views and the page know both for a release."""

from __future__ import annotations

import io
import json
import pickle
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import pytest

from tests.support import views
from uldp_transforms.jobs.records.row_frame import _table, read_rows
from uldp_transforms.rows.json_and_avro import to_avro, to_json
from uldp_transforms.rows.renamed_fields import fill_replaced, former_names, replaced_names, with_new_names
from uldp_transforms.rows.row_types import COMPARED_SCHEMA, ComparedValue

BEFORE: dict[str, Any] = {
    "type": "record",
    "name": "Made",
    "fields": [
        {"name": "fingerprint", "type": "string"},
        {"name": "status", "type": "string"},
        {"name": "x", "type": ["null", "double"], "default": None},
        {"name": "group", "type": ["null", "string"], "default": None},
    ],
}
NEW = {"name": "distance", "type": ["null", "double"], "default": None}
BOTH = BEFORE | {"fields": [*BEFORE["fields"], NEW | {"replaces": "x"}]}
AFTERWARDS = BEFORE | {"fields": [*BEFORE["fields"][:2], NEW | {"aliases": ["x"]}]}


class Made(NamedTuple):
    fingerprint: str
    status: str
    x: float | None = None
    group: str | None = None
    distance: float | None = None


fill_replaced(Made, BOTH)


def avro(rows: list[dict[str, Any]], schema: Any) -> io.BytesIO:
    file = io.BytesIO()
    fastavro.writer(file, schema, rows)
    file.seek(0)
    return file


def test_a_schema_says_which_fields_were_renamed() -> None:
    assert [former_names(schema) for schema in (BEFORE, BOTH, AFTERWARDS)] == [{}, {"x": "distance"}, {"x": "distance"}]
    assert [replaced_names(schema) for schema in (BEFORE, BOTH, AFTERWARDS)] == [{}, {"x": "distance"}, {}]


def test_rows_have_the_value_under_both_names() -> None:
    row = Made("f", "ok", distance=2.0)
    assert row == ("f", "ok", 2.0, None, 2.0) == pickle.loads(pickle.dumps(row)) and isinstance(row, Made)
    assert row._replace(distance=3.0) == ("f", "ok", 3.0, None, 3.0)
    assert row._replace(status="partial").x == 2.0
    assert json.loads(to_json(row)) == {"fingerprint": "f", "status": "ok", "x": 2.0, "group": None, "distance": 2.0}
    [read] = fastavro.reader(avro([to_avro(row, BOTH)], BOTH), BEFORE)
    assert read == {"fingerprint": "f", "status": "ok", "x": 2.0, "group": None}, "a consumer of the former name"


def test_readers_find_the_value_of_older_rows() -> None:
    older = {"fingerprint": "f", "status": "ok", "x": 2.0, "group": None}
    [after] = fastavro.reader(avro([older], BEFORE), AFTERWARDS)
    assert after["distance"] == 2.0, "by any reader of Avro"
    for schema in (BOTH, AFTERWARDS):
        former = former_names(schema)
        assert with_new_names(older, former)["distance"] == 2.0
        assert with_new_names({"x": 2.0, "distance": None}, former)["distance"] == 2.0
        assert with_new_names({"x": 2.0, "distance": 3.0}, former)["distance"] == 3.0
        assert with_new_names({"x": None}, former) == {"x": None}
        assert _table([older], schema).column("distance").to_pylist() == [2.0]
    assert with_new_names(older, {}) is older


@pytest.mark.parametrize(("schema", "number"), [(BOTH, 5), (BEFORE, 4)])
def test_views_show_the_value_of_older_rows(schema: Any, number: int) -> None:
    rank = (
        {"name": "run", "type": "string"},
        {"name": "num_reports", "type": "long"},
        {"name": "pane_index", "type": "long"},
    )
    times = {"name": "window_start", "type": "string"}, {"name": "window_end", "type": "string"}
    table = schema | {"fields": [*schema["fields"], *rank, *times]}
    columns = [field["name"] for field in table["fields"]]
    database = sqlite3.connect(":memory:")
    quoted = ", ".join(f'"{name}"' for name in columns)
    database.execute(f"CREATE TABLE estimates ({quoted})")
    for fingerprint, named in (("old", {"x": 2.0}), ("new", {"x": 3.0, "distance": 3.0})):
        values = {"fingerprint": fingerprint, "status": "ok", "run": "a", "pane_index": 0, **named}
        database.execute(
            f"INSERT INTO estimates VALUES ({', '.join('?' * len(columns))})", [values.get(name) for name in columns]
        )
    database.executescript(views.text_of(views.DIALECTS["latest"], {"estimates": table}))
    found = database.execute("SELECT * FROM latest_estimates ORDER BY fingerprint DESC")
    names = [column[0] for column in found.description]
    rows = [dict(zip(names, row)) for row in found]
    assert [row.get("distance", row["x"]) for row in rows] == [2.0, 3.0] and [row["x"] for row in rows] == [2.0, 3.0]
    assert ("distance" in names) == (number == 5)


# ---------------------------------------------------------------------- the place of a figure in comparisons


def compared(**more: Any) -> ComparedValue:
    numbers = dict.fromkeys(("difference", "low", "high", "p_value", "q_value", "lift", "lift_low", "lift_high"), 0.5)
    texts = {"value": "p90", "group_a": "arm=a", "group_b": "arm=b", "collection_id": "c"}
    return ComparedValue(window_start=None, window_end=None, **texts, **numbers, **more)


def test_comparisons_have_the_former_name_of_figure_at() -> None:
    assert former_names(COMPARED_SCHEMA) == {"at": "figure_at"}
    row = compared(figure="quantile", figure_at=0.9)
    assert (row.at, row._replace(interval="fixed").at) == (0.9, 0.9)
    assert {name: json.loads(to_json(row))[name] for name in ("at", "figure_at")} == {"at": 0.9, "figure_at": 0.9}


def test_comparisons_of_older_releases_are_read(tmp_path: Path) -> None:
    row = json.loads(to_json(compared(figure="quantile", figure_at=0.9)))
    older = {name: value for name, value in row.items() if name != "figure_at"}
    (tmp_path / "comparisons.jsonl").write_text(f"{json.dumps(older)}\n{json.dumps(row)}\n", "utf-8")
    (tmp_path / "estimates.jsonl").write_text("", "utf-8")
    table = read_rows(str(tmp_path), "comparisons", "arrow")
    assert table.column("figure_at").to_pylist() == table.column("at").to_pylist() == [0.9, 0.9]
