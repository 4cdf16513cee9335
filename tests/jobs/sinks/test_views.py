"""The views of ``schemas/sql`` show the rows that the reader's rule of docs/consume.md chooses."""

from __future__ import annotations

import functools
import importlib.util
import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.sinks.view_rows import COLUMNS, QUOTED, SQL, TABLES, Row, chosen, needs_duckdb, rows
from uldp_transforms.jobs.check import latest_rows
from uldp_transforms.schemas import load


def in_sqlite(table: str, among: list[Row], folder: Path, file: str = "latest.sql") -> list[tuple[Any, ...]]:
    with sqlite3.connect(":memory:") as database:
        for name in TABLES:
            database.execute(f"CREATE TABLE {name} ({', '.join(QUOTED)})")
        values = [tuple(row.values()) for row in among]
        database.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(COLUMNS))})", values)
        database.executescript((SQL / file).read_text("utf-8"))
        return database.execute(f"SELECT {', '.join(QUOTED)} FROM latest_{table}").fetchall()


def in_duckdb(file: str, prefix: str = "") -> Callable[[str, list[Row], Path], list[tuple[Any, ...]]]:
    """Runs a file of views over files of rows, as the job writes them."""

    def answer(table: str, among: list[Row], folder: Path) -> list[tuple[Any, ...]]:
        duckdb = importlib.import_module("duckdb")
        for name in TABLES:
            for part in range(2):
                lines = "".join(json.dumps(row) + "\n" for row in among[part::2])
                (folder / f"{name}-{part}.jsonl").write_text(lines, "utf-8")
        database = duckdb.connect()
        database.execute(f"SET file_search_path = '{folder}'; SET TimeZone = 'UTC'")
        if prefix:
            database.execute("CREATE SCHEMA my_dataset")
        if file != "latest_duckdb.sql":
            for name in TABLES:
                database.execute(f"CREATE TABLE {prefix}{name} AS SELECT * FROM read_json('{name}*.jsonl')")
        database.execute((SQL / file).read_text("utf-8"))
        times = "strftime(window_start, '%Y-%m-%dT%H:%M:%SZ'), strftime(window_end, '%Y-%m-%dT%H:%M:%SZ')"
        names = ", ".join(QUOTED).replace('"window_start", "window_end"', times)
        return database.execute(f"SELECT {names} FROM {prefix}latest_{table}").fetchall()

    return answer


ENGINES = [
    pytest.param(in_sqlite, id="plain SQL in SQLite"),
    pytest.param(functools.partial(in_sqlite, file="latest_flink_spark.sql"), id="Flink's and Spark's in SQLite"),
    pytest.param(in_duckdb("latest.sql"), id="plain SQL in DuckDB", marks=needs_duckdb),
    pytest.param(in_duckdb("latest_duckdb.sql"), id="DuckDB over files", marks=needs_duckdb),
    pytest.param(in_duckdb("latest_bigquery.sql", "my_dataset."), id="BigQuery's in DuckDB", marks=needs_duckdb),
]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_view_has_the_rows_that_count(engine: Callable[..., Any], table: str, tmp_path: Path) -> None:
    among = rows(7)
    expected = [tuple(row.values()) for row in chosen(among)]
    assert {row["status"] for row in chosen(among)} == {"ok", "suppressed", "partial"}
    assert sorted(engine(table, among, tmp_path), key=lambda row: tuple(map(str, row))) == expected
    assert len(expected) == 90


def test_the_commands_take_the_same_rows() -> None:
    """``uldp check`` and ``uldp report``; the highest pane of a run would be another row where a worker was killed."""
    among = [row for row in rows(7) if not row["group"]]
    assert latest_rows(rows(7)) == latest_rows(among), "rows of groups are left out"
    found = sorted(latest_rows(among), key=lambda row: tuple(map(str, row.values())))
    assert found == chosen(among)
    highest: Counter[Any] = Counter()
    for row in among:
        highest[window_of(row)] = max(highest[window_of(row)], row["pane_index"])
    assert any(row["pane_index"] < highest[window_of(row)] for row in found)


def window_of(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("fingerprint", "window_start", "window_end", "run"))


def test_views_without_windows_have_one_row() -> None:
    among = [dict.fromkeys(COLUMNS) | {"fingerprint": "a", "pane_index": pane, "status": "ok"} for pane in (1, 10, 9)]
    assert [row[3] for row in in_sqlite("estimates", among, Path())] == [10]


def test_the_rows_have_these_columns() -> None:
    for schema in TABLES.values():
        assert set(COLUMNS) <= {field["name"] for field in load(schema)["fields"]}
