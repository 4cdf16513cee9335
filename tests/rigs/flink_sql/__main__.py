"""The views of ``schemas/sql/latest_flink_spark.sql`` in Flink's SQL, over JSON files as the job writes them.

Needs Java and, for the first run, Maven.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.rigs import cache
from tests.rigs.flink.processes import java

FOLDER = Path(__file__).parent
JARS = cache.Jars(source=FOLDER, folder=cache.CACHE / "flink-sql-1.19.0")
VIEWS = cache.ROOT / "schemas" / "sql" / "latest_flink_spark.sql"
TABLES = ("estimates", "health")

COLUMNS = {
    "fingerprint": "STRING",
    "window_start": "TIMESTAMP_LTZ(3)",
    "window_end": "TIMESTAMP_LTZ(3)",
    "pane_index": "BIGINT",
    "num_reports": "BIGINT",
    "status": "STRING",
    "run": "STRING",
    "group": "STRING",
}
"""Columns that the views look at, with the types of a table over JSON files."""


def missing() -> str | None:
    """Why this cannot run here; None if it can."""
    return cache.missing("python -m tests.rigs.flink_sql", JARS.folder)


def statements(folder: Path) -> str:
    """Tables over the files of a folder for each of them; Flink reads all files of a folder."""
    columns = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())
    format = "'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601'"
    return "".join(
        f"CREATE TABLE {table} ({columns}) WITH "
        f"('connector' = 'filesystem', 'path' = '{(folder / table).as_uri()}', {format});\n"
        for table in TABLES
    )


def latest_rows(folder: Path, table: str) -> list[list[str]]:
    """The rows of a view, as texts.

    Args:
        folder: with a folder of JSON files for each table.
        table: whose view is asked.

    Raises:
        RuntimeError: Flink refused a statement.
    """
    names = ", ".join(f"`{name}`" for name in COLUMNS)
    before, after = folder / "tables.sql", folder / "query.sql"
    before.write_text(statements(folder), "utf-8")
    after.write_text(f"SELECT {names} FROM latest_{table};\n", "utf-8")
    program = java(JARS.class_path, str(FOLDER / "LatestRows.java"), *map(str, (before, VIEWS, after)), memory="1g")
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Flink must take {VIEWS.name}, got {done.stderr[-2000:]}")
    return [line.removeprefix("ROW ").split("|") for line in done.stdout.splitlines() if line.startswith("ROW ")]


def main() -> int:
    JARS.fetch()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for table in TABLES:
            (folder / table).mkdir()
            row = '{"fingerprint": "f", "pane_index": %d, "status": "ok", "num_reports": %d}\n'
            (folder / table / "rows.jsonl").write_text("".join(row % (i, 100 + i) for i in range(3)), "utf-8")
            print(table, *latest_rows(folder, table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
