"""The views of plain SQL in a real PostgreSQL, over tables with the types that one would give them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.support.sinks.postgres import MISSING, psql
from tests.support.sinks.view_rows import COLUMNS, QUOTED, SQL, TABLES, chosen, rows

TYPES = ("text", "timestamptz", "timestamptz", "bigint", "bigint", "text", "text", "text")


pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"PostgreSQL's {', '.join(MISSING)} not installed")


def test_the_views_have_the_rows_that_count(socket: Path, tmp_path: Path) -> None:
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(QUOTED, TYPES))
    table_of_csv = tmp_path / "rows.csv"
    for table in TABLES:
        with table_of_csv.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(row.values() for row in rows(7))
        psql(socket, f"--command=CREATE TABLE {table} ({columns})")
        psql(socket, f"--command=\\copy {table} FROM '{table_of_csv}' WITH (FORMAT csv)")
    psql(socket, f"--file={SQL / 'latest.sql'}")
    times = [f"to_char({name} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')" for name in COLUMNS[1:3]]
    wanted = ", ".join([COLUMNS[0], *times, *QUOTED[3:]])
    for table in TABLES:
        among = chosen(rows(7))
        expected = sorted(["" if value is None else str(value) for value in row.values()] for row in among)
        answer = psql(socket, "--csv", "--tuples-only", f"--command=SELECT {wanted} FROM latest_{table}")
        assert sorted(csv.reader(answer.splitlines())) == expected
        assert len(expected) == 90
