"""The views of plain SQL in a real PostgreSQL, over tables with the types that one would give them."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jobs.sinks.test_views import COLUMNS, QUOTED, SQL, TABLES, chosen, rows

TYPES = ("text", "timestamptz", "timestamptz", "bigint", "bigint", "text", "text", "text")
NEEDED = ("initdb", "postgres", "pg_ctl", "psql")
USER = "postgres" if os.geteuid() == 0 else None
"""PostgreSQL refuses to run as root."""


def program(name: str) -> str | None:
    """Its path; Debian keeps those of the server in folders of their versions."""
    beside = sorted(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}")))
    return shutil.which(name) or next(reversed(beside), None)


PROGRAMS = {name: program(name) for name in NEEDED}
MISSING = [name for name, path in PROGRAMS.items() if path is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"PostgreSQL's {', '.join(MISSING)} not installed")


def call(name: str, *arguments: str, user: str | None = None) -> str:
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    command = [str(PROGRAMS[name]), *arguments]
    done = subprocess.run(
        command, cwd="/", env=environment, user=user, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def socket() -> Iterator[Path]:
    """The folder with the socket of a server that listens nowhere else."""
    with tempfile.TemporaryDirectory() as name:  # names of sockets must be short
        folder = Path(name)
        if USER:
            shutil.chown(folder, USER)
        data = str(folder / "data")
        call("initdb", f"--pgdata={data}", "--auth=trust", "--username=reader", "--no-sync", user=USER)
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        log = str(folder / "log")
        call("pg_ctl", "start", "--wait", f"--pgdata={data}", f"--log={log}", f"--options={options}", user=USER)
        try:
            yield folder
        finally:
            call("pg_ctl", "stop", f"--pgdata={data}", "--mode=immediate", user=USER)


def psql(socket: Path, *arguments: str) -> str:
    at = [f"--host={socket}", "--username=reader", "--dbname=postgres", "--no-psqlrc", "--quiet"]
    return call("psql", *at, "--set=ON_ERROR_STOP=1", *arguments)


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
