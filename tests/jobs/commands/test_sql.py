"""``uldp sql``: what DuckDB counts by the printed query is estimated as the reports themselves are, row by row."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from tests.support.messages_cases import KRR, STRANGER, URAP, write_files
from tests.support.tolerance import generator
from uldp_transforms.jobs import sql
from uldp_transforms.jobs.estimate.options import read_arguments
from uldp_transforms.jobs.uldp import main
from uldp_transforms.ldp import Collection, ReportBatch, SpecError
from uldp_transforms.messages import wire
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME

NAMES = ("collection", "report_id", "event_time", "cohort", "payload")
JOB = "estimate --collection krr.json --collection urap.json --window 1h --min_reports 10 --max_rejected_share 1"
BAD: tuple[dict[str, Any], ...] = (
    {"payload": b"\7"},
    {"payload": b"\1\1"},
    {"payload": None},
    {"cohort": -1},
    {"cohort": None},
    {"event_time": None},
    {"collection": None},
)


def drawn(collection: Collection, number: int) -> ReportBatch:
    rng = generator("sql", collection.id)
    values = [str(value) for value in rng.integers(0, 3, number)]
    return collection.perturb(values, rng, rng.integers(-5_000_000, 5_000_000, number))


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[duckdb.DuckDBPyConnection]:
    """Reports of two collections before and after 1970, of a stranger, and bad rows."""
    write_files(tmp_path, {"krr.json": KRR, "urap.json": URAP})
    monkeypatch.chdir(tmp_path)
    rows = [
        row
        for one, number in ((KRR, 500), (URAP, 300), (STRANGER, 20))
        for row in wire.report_records(drawn(one, number))
    ]
    rows += [row | change for row, change in zip(rows, BAD)]
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE reports (collection BLOB, report_id BLOB, event_time BIGINT, cohort INTEGER, payload BLOB)"
        )
        connection.executemany(
            "INSERT INTO reports VALUES (?, ?, ?, ?, ?)", [[row[name] for name in NAMES] for row in rows]
        )
        yield connection


def query(options: str = "") -> str:
    return sql.text_of(sql.configure(shlex.split(f"krr.json urap.json --dialect duckdb {options}")))


def written(connection: duckdb.DuckDBPyConnection, text: str, name: str) -> str:
    connection.execute(f"COPY (\n{text}) TO '{name}' (FORMAT parquet)")
    return name


def rows_of(kind: str, folder: str) -> list[dict[str, Any]]:
    lines = Path(folder, f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [{name: value for name, value in json.loads(line).items() if name != "run"} for line in lines]
    return sorted(rows, key=json.dumps)


def estimated(
    name: str, folder: str, options: str = "", job: str = JOB
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    assert main(shlex.split(f"{job} --input {name} --output {folder} {options}")) == 0
    return rows_of("estimates", folder), rows_of("ledger", folder)


def test_counted_where_they_lie_reports_have_the_same_rows(database: duckdb.DuckDBPyConnection) -> None:
    reports = written(database, f"SELECT {', '.join(NAMES)} FROM reports", "reports.parquet")
    expected = estimated(reports, "expected")
    assert estimated(written(database, query(), "counts.parquet"), "counted") == expected
    assert sum(row["received"] for row in expected[1]) == 827
    assert sum(row["accepted"] for row in expected[1]) == 800
    counted = database.sql(query()).fetchall()
    assert len(counted) < 600 and sum(row[-1] for row in counted) == 827


def test_polars_counts_the_same(database: duckdb.DuckDBPyConnection) -> None:
    """The same group by in a frame; a frame is Parquet too."""
    expected = estimated(written(database, query(), "counts.parquet"), "expected")
    frame = database.sql(f"SELECT {', '.join(NAMES)} FROM reports").pl()
    start = pl.col("event_time") - pl.col("event_time").mod(sql.QUARTER_HOUR)
    keys = ["collection", start, "cohort", "payload"]
    frame.group_by(keys).agg(pl.len().alias("num_reports")).write_parquet("frame.parquet")
    assert estimated("frame.parquet", "frame", "--num_reports num_reports") == expected


def test_times_may_be_timestamps(database: duckdb.DuckDBPyConnection) -> None:
    expected = database.sql(query()).fetchall()
    database.execute("ALTER TABLE reports ALTER event_time TYPE TIMESTAMPTZ USING to_timestamp(event_time / 1000)")
    assert sorted(map(repr, database.sql(query("--timestamps")).fetchall())) == sorted(map(repr, expected))


def test_weeks_are_counted_for_windows_of_weeks(database: duckdb.DuckDBPyConnection) -> None:
    """Those without a time zone, which begin as 1970 did; weeks that begin on Mondays need shorter periods."""
    job = JOB.replace("--window 1h", "--window 1w")
    expected = estimated(written(database, query(), "counts.parquet"), "expected", job=job)
    assert len(expected[0]) > 0
    weeks = estimated(written(database, query("--period 1w"), "weeks.parquet"), "weeks", job=job)
    assert weeks == expected
    with pytest.raises(SpecError, match="must consist of whole periods of 604800000 ms"):
        command = "--collection krr.json --input weeks.parquet --output out --window 1w --timezone UTC"
        read_arguments(shlex.split(command))


@pytest.mark.parametrize("options", ["", "--period 365d"])
def test_no_time_of_a_report_ends_the_query(options: str, database: duckdb.DuckDBPyConnection) -> None:
    """Whoever sends a report chooses its time: the start of the period of the first one is no 64-bit integer."""
    times = [-(1 << 63), -(1 << 63) + 1, (1 << 63) - 1, MIN_EVENT_TIME - 1, MIN_EVENT_TIME, MAX_EVENT_TIME]
    database.execute("DELETE FROM reports WHERE event_time IS NULL")
    one = "SELECT collection, report_id, ?, cohort, payload FROM reports WHERE payload IS NOT NULL LIMIT 1"
    for time in times:
        database.execute(f"INSERT INTO reports {one}", [time])
    counted = database.sql(query(options)).fetchall()
    length = 365 * 86_400_000 if options else sql.QUARTER_HOUR
    starts = [*times[:4], *(time - time % length for time in times[4:])]
    assert set(starts) <= {row[1] for row in counted}
    assert {row[4] for row in counted} == {length}
    if not options:
        _, ledger = estimated(written(database, query(), "counts.parquet"), "out")
        assert sum(row["received"] for row in ledger) == 826 + len(times)


WINDOWS = {
    "--window 15m": None,
    "--window 1h --slide 30m --window_offset 15m": None,
    "--window 1d --timezone Europe/Berlin": None,
    "--window 10m": "--window must consist of whole periods of 900000 ms, in which the rows of '",
    "--window 1h --slide 20m": "--window must consist of whole periods of 900000 ms, in which the rows of '",
    "--window 1h --window_offset 10m": "--window must consist of whole periods of 900000 ms, in which the rows of '",
}


@pytest.mark.parametrize(("options", "sentence"), WINDOWS.items(), ids=WINDOWS)
def test_windows_must_consist_of_whole_periods(
    options: str, sentence: str | None, database: duckdb.DuckDBPyConnection
) -> None:
    """Otherwise all reports of a period would silently count in the window of its start."""
    written(database, query(), "counts.parquet")
    written(database, f"SELECT {', '.join(NAMES)} FROM reports", "reports.parquet")
    command = f"--collection krr.json --input {{}} --output out {options}"
    assert read_arguments(shlex.split(command.format("reports.parquet"))).spec.windows is not None
    if sentence is None:
        assert read_arguments(shlex.split(command.format("*s.parquet"))).spec.windows is not None
        return
    with pytest.raises(SpecError) as caught:
        read_arguments(shlex.split(command.format("*s.parquet")))
    assert str(caught.value).startswith(sentence)
    assert str(caught.value).endswith("; count again with another --period of uldp sql")


def test_without_windows_any_period_will_do(database: duckdb.DuckDBPyConnection) -> None:
    written(database, query("--period 7ms"), "counts.parquet")
    assert read_arguments(shlex.split("--collection krr.json --input counts.parquet --output out")).spec.windows is None


def test_copies_count_once_if_asked(database: duckdb.DuckDBPyConnection) -> None:
    database.execute("DELETE FROM reports WHERE payload IS NULL OR cohort IS NULL OR event_time IS NULL OR cohort < 0")
    ids = database.execute("SELECT count(DISTINCT (report_id, payload)), count(*) FROM reports").fetchone()
    database.execute("INSERT INTO reports SELECT * FROM reports")
    database.execute("INSERT INTO reports SELECT collection, NULL, event_time, cohort, payload FROM reports LIMIT 3")
    assert ids is not None
    assert sum(row[-1] for row in database.sql(query()).fetchall()) == 2 * ids[1] + 3
    assert sum(row[-1] for row in database.sql(query("--distinct")).fetchall()) == ids[1] + 3


@pytest.mark.parametrize("number", [0, -1, (1 << 30) + 1, None])
def test_impossible_numbers_are_malformed(
    number: int | None, database: duckdb.DuckDBPyConnection, capfd: pytest.CaptureFixture[str]
) -> None:
    """A row without a number stands for one report."""
    shown = "NULL" if number is None else str(number)
    text = (
        f"SELECT * EXCLUDE report_id, CASE WHEN cohort = 1 THEN {shown} ELSE 1 END::BIGINT AS num_reports FROM reports"
    )
    database.execute("DELETE FROM reports WHERE octet_length(payload) > 1 OR cohort IS NULL OR event_time IS NULL")
    ones = database.execute("SELECT count(*) FROM reports WHERE cohort = 1").fetchone()
    missing = database.execute("SELECT count(*) FROM reports WHERE payload IS NULL OR collection IS NULL").fetchone()
    assert ones is not None and missing is not None
    both = database.execute("SELECT count(*) FROM reports WHERE cohort = 1 AND (payload IS NULL OR collection IS NULL)")
    malformed = missing[0] if number is None else ones[0] + missing[0] - both.fetchall()[0][0]
    estimated(written(database, text, "n.parquet"), "out", "--num_reports num_reports")
    assert f"malformed {malformed}" in capfd.readouterr().err


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(("text", "period"), [("1ms", 1), ("1w", 7 * 86_400_000), ("365d", 365 * 86_400_000)])
def test_periods_are_of_a_millisecond_to_a_year(text: str, period: int) -> None:
    asked = sql.configure(shlex.split(f"krr.json --dialect spark --period {text}"))
    assert (asked.period, asked.table, asked.timestamps, asked.distinct) == (period, "reports", False, False)
    assert sql.configure(shlex.split("krr.json --dialect spark")).period == 900_000


REFUSED = {
    "--dialect oracle": "--dialect must be one of duckdb, bigquery, snowflake, spark, got 'oracle'",
    "--dialect duckdb --table 'a; DROP TABLE b'": "--table must be the name of a table, got 'a; DROP TABLE b'",
    "--dialect duckdb --table a--b": "--table must be the name of a table, got 'a--b'",
    "--dialect duckdb --period 0ms": "--period must be from 1ms to 365d, got 0ms",
    "--dialect duckdb --period 366d": "--period must be from 1ms to 365d, got 31622400000ms",
}


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(("options", "sentence"), REFUSED.items(), ids=REFUSED)
def test_a_wrong_command_line_is_refused(options: str, sentence: str) -> None:
    with pytest.raises(SpecError) as caught:
        sql.configure(shlex.split(f"krr.json {options}"))
    assert str(caught.value).startswith(sentence)


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("dialect", sql.DIALECTS)
def test_the_page_has_the_query_of_each_dialect(dialect: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Only DuckDB runs here; of the others the text is what a reader of the page can review."""
    page = (Path(__file__).parents[3] / "docs/lake.md").read_text(encoding="utf-8")
    assert main(["sql", "krr.json", "--dialect", dialect]) == 0
    lines = capsys.readouterr().out.splitlines()
    chosen = sql.DIALECTS[dialect]
    for what in (chosen.literal.format("..."), chosen.milliseconds.format("event_time")):
        assert f"`{what}`" in page
    assert lines[-2:] == ["FROM reports", "GROUP BY 1, 2, 3, 4"]


def test_the_name_of_a_collection_ends_no_comment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = {"version": 1, "alphabet": {"id": "closed", "values": ["a", "b"]}, "mechanism": {"id": "krr", "epsilon": 1}}
    (tmp_path / "C.json").write_text(json.dumps({"id": "a\nDROP TABLE reports", **spec}), encoding="utf-8")
    code = main(["sql", str(tmp_path / "C.json"), "--dialect", "duckdb"])
    assert code == 2 or not any(line.startswith("DROP") for line in capsys.readouterr().out.splitlines())
