"""Parquet files hold the rows of the JSON files, and others read them: Arrow, DuckDB, Iceberg."""

from __future__ import annotations

import datetime
import io
import json
import re
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support import live
from tests.support.jobs.late_reports import ANIMALS, LATE, write
from tests.support.messages_cases import KRR, container, single, write_files
from tests.support.rows.rows_of_all_kinds import ROWS
from uldp_transforms.collector.row_bytes import file_of
from uldp_transforms.jobs import estimate
from uldp_transforms.jobs.cli import UNREAD
from uldp_transforms.jobs.records.row_forms import FORMS
from uldp_transforms.jobs.reestimate import reestimate_command as reestimate
from uldp_transforms.rows.arrow_form import arrow_schema
from uldp_transforms.rows.json_and_avro import as_dict
from uldp_transforms.rows.row_types import ESTIMATE_SCHEMA

ROOT = Path(__file__).parents[3]
SQL = ROOT / "schemas" / "sql"
PAGE = (ROOT / "docs" / "consume.md").read_text(encoding="utf-8")
KINDS = FORMS.keys() - {"counts", "discovered"}


def plain(value: Any) -> Any:
    """What was read, as it stands in JSON: times as texts, entries of a map as an object."""
    if isinstance(value, datetime.datetime):
        assert value.utcoffset() == datetime.timedelta(0)
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return {name: plain(item) for name, item in value.items()} if isinstance(value, dict) else value


def json_rows(rows: list[Any]) -> list[str]:
    """Rows of JSON files, in a common order and form."""
    found = []
    for row in rows:
        times = {name: row[name] for name in ("window_start", "window_end", "received_at") if row.get(name)}
        moments = {name: datetime.datetime.fromisoformat(text.replace("Z", "+00:00")) for name, text in times.items()}
        found.append(json.dumps(row | {name: plain(moment) for name, moment in moments.items()}, sort_keys=True))
    return sorted(found)


def maps_of(row: dict[str, Any]) -> dict[str, Any]:
    """The maps of a row of the ledger, which pyarrow reads as lists of pairs, an empty one too."""
    return {name: dict(row[name]) for name in ("rejected", "unread_messages", "unread_files") if name in row}


def parquet_rows(path: Path, pattern: str) -> list[str]:
    found = [row for file in sorted(path.glob(pattern)) for row in pq.read_table(file).to_pylist()]
    for row in found:
        row.update(maps_of(row))
    return sorted(json.dumps(plain(row), sort_keys=True) for row in found)


@pytest.mark.parametrize(("row", "schema"), ROWS, ids=lambda each: type(each).__name__)
def test_a_file_of_rows_holds_what_the_row_has(row: Any, schema: Any) -> None:
    content = file_of([row, row], "parquet", schema)
    table = pq.read_table(io.BytesIO(content))
    assert table.schema.equals(arrow_schema(schema))
    rows = table.to_pylist()
    for read in rows:
        read.update(maps_of(read))
    assert [json.dumps(plain(read), sort_keys=True) for read in rows] == json_rows([as_dict(row)] * 2)
    assert file_of([row, row], "parquet", schema) == content


def test_columns_are_the_fields_of_the_schema() -> None:
    """Spelled out for what an analyst looks at first."""
    schema = arrow_schema(ESTIMATE_SCHEMA)
    assert schema.names == [field["name"] for field in ESTIMATE_SCHEMA["fields"]]
    assert schema.field("window_start") == pa.field("window_start", pa.timestamp("us", tz="UTC"), nullable=True)
    assert schema.field("pane_index") == pa.field("pane_index", pa.int64(), nullable=False)
    assert schema.field("collection_version").type == pa.int32()
    assert schema.field("pane_timing") == pa.field("pane_timing", pa.string(), nullable=False)
    entry = schema.field("estimates").type.value_type
    assert entry.field("frequency") == pa.field("frequency", pa.float64(), nullable=False)
    assert entry.field("display_low") == pa.field("display_low", pa.float64(), nullable=True)


# ---------------------------------------------------------------------- jobs


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The rows of a job over files, with some reports that are refused."""
    reports = [single() for _ in range(30)] + [b"\x02garbage"]
    write_files(tmp_path, {"krr.json": KRR, "in.avro": container([(1, message) for message in reports])})
    monkeypatch.chdir(tmp_path)
    options = "--collection krr.json --input in.avro --output out --window 1h --min_reports 1 --write_counts"
    assert estimate.main([*options.split(), "--write_parquet", "--max_rejected_share=1"]) == UNREAD
    return tmp_path / "out"


def test_a_job_over_files_writes_one_file_of_each_kind(job: Path) -> None:
    assert {path.name for path in job.glob("*.parquet")} == {f"{name}.parquet" for name in KINDS}
    for name in ("estimates", "ledger", "health"):
        rows = [json.loads(line) for line in (job / f"{name}.jsonl").read_text("utf-8").splitlines()]
        assert rows
        assert parquet_rows(job, f"{name}.parquet") == json_rows(rows)
    values = pq.read_table(job / "values.parquet").to_pylist()
    (row,) = [json.loads(line) for line in (job / "estimates.jsonl").read_text("utf-8").splitlines()]
    assert [value["frequency"] for value in values] == [entry["frequency"] for entry in row["estimates"]]
    assert pq.read_table(job / "rejected.parquet").num_rows == 1


def test_kinds_without_rows_have_a_file_with_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {"krr.json": KRR, "in.avro": container([(1, single())])})
    monkeypatch.chdir(tmp_path)
    assert estimate.main(["--collection", "krr.json", "--input", "in.avro", "--output", "out", "--write_parquet"]) == 0
    assert pq.read_table(tmp_path / "out" / "rejected.parquet").num_rows == 0
    assert "reason" in pq.read_table(tmp_path / "out" / "rejected.parquet").schema.names


def test_there_are_none_without_the_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {"krr.json": KRR, "in.avro": container([(1, single())])})
    monkeypatch.chdir(tmp_path)
    assert estimate.main(["--collection", "krr.json", "--input", "in.avro", "--output", "out"]) == 0
    assert not list((tmp_path / "out").glob("*.parquet"))


def test_stored_counts_are_estimated_again_into_parquet(job: Path) -> None:
    again = "--collection krr.json out --output again --min_reports 1 --write_parquet"
    assert reestimate.main(again.split()) == 0
    folder = job.parent / "again"
    rows = [json.loads(line) for line in (folder / "estimates.jsonl").read_text("utf-8").splitlines()]
    assert parquet_rows(folder, "estimates.parquet") == json_rows(rows)


@pytest.mark.parametrize("flush_every", [0, 60_000])
def test_a_stream_writes_the_rows_of_its_other_files(flush_every: int, tmp_path: Path) -> None:
    folder = write(tmp_path, LATE, flush_every, with_parquet=True)
    for name in ("estimates", "ledger", "health"):
        assert len(live.rows(folder, name)) > 1
        assert parquet_rows(folder, f"{name}-*.parquet") == json_rows(live.rows(folder, name))
    if flush_every:
        assert len(list(folder.glob("estimates-*.parquet"))) == 1


def test_duckdb_reads_all_files_of_a_stream(tmp_path: Path) -> None:
    folder = write(tmp_path, LATE, 0, with_parquet=True)
    rows = live.rows(folder, "estimates")
    answer = duckdb.connect().execute(
        f"SELECT max(pane_index), count(*) FROM read_parquet('{folder}/estimates-*.parquet')"
    )
    (found,) = answer.fetchall()
    assert found == (max(row["pane_index"] for row in rows), len(rows))


# ---------------------------------------------------------------------- tables that read them


def test_the_views_over_parquet_have_the_latest_rows(tmp_path: Path) -> None:
    """The rule itself is tested on many rows, in the same words, in test_views.py."""
    folder = write(tmp_path, LATE, 0, with_parquet=True)
    latest = max(live.rows(folder, "estimates"), key=lambda row: row["pane_index"])
    database = duckdb.connect()
    database.execute(f"SET file_search_path = '{folder}'")
    database.execute((SQL / "latest_duckdb_parquet.sql").read_text("utf-8"))
    for table in ("estimates", "health"):
        (found,) = database.execute(f"SELECT pane_index, run FROM latest_{table}").fetchall()
        assert found == (latest["pane_index"], latest["run"])


def test_the_query_of_the_page_reads_values(tmp_path: Path) -> None:
    (query,) = re.findall(r"## Parquet and Iceberg.*?```sql\n(.*?)```", PAGE, re.DOTALL)
    folder = write(tmp_path / "output", LATE, 0, with_parquet=True)
    database = duckdb.connect()
    database.execute(f"SET file_search_path = '{tmp_path}'")
    rows = database.execute(query.replace("'animals'", f"'{ANIMALS.id}'")).fetchall()
    panes = sorted(live.rows(folder, "estimates"), key=lambda row: (row["num_reports"] or 0, row["pane_index"]))
    latest = {row["window_start"]: row for row in panes if row["estimates"]}
    written = [(row["pane_index"], each["value"]) for row in latest.values() for each in row["estimates"]]
    assert sorted((row[-1], row[3]) for row in rows) == sorted(written)
    assert written and len(latest) < len(panes)


def test_the_program_of_the_page_makes_an_iceberg_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second time it adds the files that are new, and nothing twice."""
    (program,) = re.findall(r"## Parquet and Iceberg.*?```python\n(.*?)```", PAGE, re.DOTALL)
    folder, later = write(tmp_path / "all", LATE, 0, with_parquet=True), tmp_path / "later"
    rows = json_rows(live.rows(folder, "estimates"))
    late = sorted(folder.glob("estimates-*.parquet"))[-1]
    late.rename(later)
    (tmp_path / "output").symlink_to(folder)
    monkeypatch.chdir(tmp_path)
    counts = []
    for _ in range(2):
        names: dict[str, Any] = {"__name__": "consume"}
        exec(program, names)
        found = names["table"].scan().to_arrow().to_pylist()
        counts.append(len(found))
        if not late.exists():
            later.rename(late)
    assert sorted(json.dumps(plain(row), sort_keys=True) for row in found) == rows
    assert counts == [len(rows) - pq.read_table(late).num_rows, len(rows)]
    partial = names["table"].scan(row_filter="pane_timing = 'LATE'").to_arrow().num_rows
    assert partial == sum(json.loads(row)["pane_timing"] == "LATE" for row in rows) > 0
