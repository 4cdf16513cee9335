"""BigQuery: table schemas, rows, and the sink with Beam's and Google's own clients against a server of these tests."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.coders import RowCoder
from apache_beam.io.gcp import bigquery_tools
from apache_beam.typehints.row_type import RowTypeConstraint
from apache_beam.typehints.schemas import typing_to_runner_api
from apache_beam.utils.timestamp import Timestamp

from tests.servers.google_server import GoogleServer, misfits, request_refused, rows_refused
from tests.support.cases import golden
from tests.support.messages_cases import KRR, container, single, write_files
from tests.support.rows.rows_of_all_kinds import ROWS, estimate_row, ledger_row
from uldp_transforms.beam.runtime.coders import timestamp_of
from uldp_transforms.jobs import estimate
from uldp_transforms.jobs.cli import UNREAD
from uldp_transforms.jobs.estimate.run import configure
from uldp_transforms.jobs.sinks.bigquery_tables import INSERTS, LOADS, WriteTable, native_row, table_row, table_schema
from uldp_transforms.jobs.sinks.row_files import WriteRowFiles
from uldp_transforms.ldp import SpecError
from uldp_transforms.rows.json_and_avro import as_dict
from uldp_transforms.rows.row_types import (
    ESTIMATE_SCHEMA,
    HEALTH_SCHEMA,
    LEDGER_SCHEMA,
    REJECTED_SCHEMA,
    UNDELIVERED_SCHEMA,
    UndeliveredRow,
    ValueEstimate,
)
from uldp_transforms.spec.spec_fields import SHOW

TABLES = {"estimates": ESTIMATE_SCHEMA, "ledger": LEDGER_SCHEMA, "rejected": REJECTED_SCHEMA, "health": HEALTH_SCHEMA}

# ---------------------------------------------------------------------- table schemas


def columns(fields: list[dict[str, Any]], path: str = "") -> Iterator[dict[str, str]]:
    """All columns of a table, those inside records too."""
    for field in fields:
        yield {"column": f"{path}{field['name']}", "type": field["type"], "mode": field["mode"]}
        yield from columns(field.get("fields", []), f"{path}{field['name']}.")


def test_tables_are_those_that_people_have():
    """A column that is gone, or has another type, breaks tables that have rows."""
    now = [
        {"table": name} | column
        for name, schema in TABLES.items()
        for column in columns(table_schema(schema)["fields"])
    ]
    assert now == golden("tables.json", lambda: now)


@pytest.mark.parametrize("schema", [*TABLES.values(), UNDELIVERED_SCHEMA], ids=lambda schema: schema["name"])
def test_columns_are_the_fields_with_their_explanations(schema):
    table = table_schema(schema)
    assert [(c["name"], c["description"]) for c in table["fields"]] == [(f["name"], f["doc"]) for f in schema["fields"]]
    as_beam_sends_it = bigquery_tools.parse_table_schema_from_json(json.dumps(table))
    assert bigquery_tools.table_schema_to_dict(as_beam_sends_it) == table


def test_types_by_hand():
    inner = {"type": "record", "name": "R", "fields": [{"name": "x", "type": "double", "doc": "X."}]}
    kinds: list[tuple[Any, tuple[str, str]]] = [
        ("string", ("STRING", "REQUIRED")),
        (["null", "long"], ("INTEGER", "NULLABLE")),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, ("STRING", "REQUIRED")),
        (["null", {"type": "long", "logicalType": "timestamp-millis"}], ("TIMESTAMP", "NULLABLE")),
        ({"type": "array", "items": "boolean"}, ("BOOLEAN", "REPEATED")),
        ({"type": "array", "items": inner}, ("RECORD", "REPEATED")),
        ({"type": "map", "values": "double"}, ("RECORD", "REPEATED")),
    ]
    for kind, (form, mode) in kinds:
        [column] = table_schema({"fields": [{"name": "f", "type": kind, "doc": "F."}]})["fields"]
        assert (column["type"], column["mode"]) == (form, mode)
    [later] = table_schema({"fields": [{"name": "f", "type": "string", "default": "", "doc": "F."}]})["fields"]
    assert later["mode"] == "NULLABLE"


# ---------------------------------------------------------------------- rows

OF_TABLES = [(row, schema) for row, schema in ROWS if schema in TABLES.values()]


def maps_of(record: dict[str, Any]) -> dict[str, Any]:
    """The maps of a row of the ledger, which are repeated records in a table."""
    names = [name for name in ("rejected", "unread_messages", "unread_files") if name in record]
    return {name: {entry["key"]: entry["value"] for entry in record[name]} for name in names}


@pytest.mark.parametrize(("row", "schema"), OF_TABLES)
def test_rows_fit_their_tables_and_lose_nothing(row, schema):
    record = table_row(row, schema)
    assert list(misfits(record, table_schema(schema)["fields"])) == []
    assert record | maps_of(record) == as_dict(row)


def test_the_server_of_these_tests_refuses_what_does_not_fit():
    """Else the test above would say nothing."""
    good, table = table_row(ledger_row(0), LEDGER_SCHEMA), table_schema(LEDGER_SCHEMA)["fields"]
    entry = {"key": "too_old", "value": 1}
    for wrong in (
        {"more": 1},
        {"accepted": None},
        {"accepted": "1"},
        {"accepted": 1.0},
        {"accepted": True},
        {"accepted": 1 << 63},
        {"window_start": 0},
        {"window_start": "1970-01-01"},
        {"collection_id": 7},
        {"rejected": {"too_old": 1}},
        {"rejected": None},
        {"rejected": [entry | {"more": 1}]},
        {"rejected": [{"key": "too_old"}]},
    ):
        assert list(misfits(good | wrong, table)), wrong


@pytest.mark.parametrize(("row", "schema"), OF_TABLES)
def test_rows_go_through_the_coder_of_the_storage_write_api(row, schema):
    """The half of that interface that is Python: rows with Beam's types, which Java reads."""
    hints = bigquery_tools.get_beam_typehints_from_tableschema(table_schema(schema))
    coder = RowCoder(typing_to_runner_api(RowTypeConstraint.from_fields(hints)).row_type.schema)
    record = native_row(row, schema)
    back = coder.decode(coder.encode(bigquery_tools.beam_row_from_dict(dict(record), table_schema(schema))))
    for name, value in record.items():
        read = getattr(back, name)
        if isinstance(value, Timestamp):
            assert read == value
            assert value == timestamp_of(getattr(row, name))
        elif isinstance(value, list):
            assert [dict(zip(value[0], entry)) for entry in read] == value if value else list(read) == []
        elif isinstance(value, dict):
            assert as_dict(read) == value
        else:
            assert read == value


# ---------------------------------------------------------------------- the sink


@pytest.fixture
def server() -> Iterator[GoogleServer]:
    with GoogleServer() as server, server.environment():
        yield server


@pytest.fixture
def dataset(request: pytest.FixtureRequest) -> str:
    """One of this test's own: Beam remembers in a process which tables exist."""
    return f"test_{abs(hash(request.node.nodeid))}"


def write(rows: list[Any], schema: Any, dataset: str, folder: Path, method: str = INSERTS) -> list[dict[str, Any]]:
    """Write rows into the table ``t``; what became undeliverable."""
    options = beam.options.pipeline_options.PipelineOptions(["--temp_location=gs://bucket/tmp", "--runner=FnApiRunner"])
    with beam.Pipeline(options=options) as pipeline:
        undelivered = pipeline | beam.Create(rows) | WriteTable(f"some-project:{dataset}", "t", schema, method)
        _ = undelivered | WriteRowFiles(str(folder), "undelivered", "jsonl", UNDELIVERED_SCHEMA, unbounded=False)
    return [json.loads(line) for line in (folder / "undelivered.jsonl").read_text("utf-8").splitlines()]


def by_text(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


LEDGER: list[Any] = [ledger_row(60_000 * minute, accepted=minute) for minute in range(50)]
EXPECTED = by_text([table_row(row, LEDGER_SCHEMA) for row in LEDGER])


@pytest.mark.parametrize("method", [INSERTS, LOADS])
def test_a_new_table_gets_all_rows(server, dataset, tmp_path, method):
    assert write(LEDGER, LEDGER_SCHEMA, dataset, tmp_path, method) == []
    table = server.tables[f"{dataset}.t"]
    assert table["tableReference"] == {"projectId": "some-project", "datasetId": dataset, "tableId": "t"}
    assert table["schema"] == table_schema(LEDGER_SCHEMA)
    assert by_text(server.rows[f"{dataset}.t"]) == EXPECTED


def test_the_longest_estimate_fits_into_a_request(server, dataset, tmp_path):
    values = [f"candidate {number} of a long list" for number in range(SHOW)]
    entries = [dict.fromkeys(ENTRY, 1 / 3) | {"value": value} for value in values]
    row = estimate_row(0, estimates=[ValueEstimate(**entry) for entry in entries])
    assert write([row], ESTIMATE_SCHEMA, dataset, tmp_path) == []
    [row] = server.rows[f"{dataset}.t"]
    assert row["estimates"] == entries


ENTRY = ValueEstimate._fields


@pytest.mark.parametrize(
    "fault",
    [rows_refused(1, "backendError"), rows_refused(1, "timeout"), request_refused(503, "backendError")],
    ids=["row", "slow row", "request"],
)
def test_faults_that_pass_lose_nothing(server, dataset, tmp_path, fault):
    server.faults[f"{dataset}.t"].append(fault)
    assert write(LEDGER[:1], LEDGER_SCHEMA, dataset, tmp_path) == []
    assert by_text(server.rows[f"{dataset}.t"]) == by_text([table_row(LEDGER[0], LEDGER_SCHEMA)])
    assert len(server.inserts) == 2


def test_a_lost_answer_doubles_nothing(server, dataset, tmp_path):
    server.lost_answers[f"{dataset}.t"] = 1
    assert write(LEDGER, LEDGER_SCHEMA, dataset, tmp_path) == []
    assert by_text(server.rows[f"{dataset}.t"]) == EXPECTED
    assert len(server.inserts) > 1


def without_duplicates() -> dict[str, Any]:
    """The ledger's table of a time when it had no such column."""
    fields = [column for column in table_schema(LEDGER_SCHEMA)["fields"] if column["name"] != "duplicates"]
    return {"schema": {"fields": fields}}


def test_what_an_older_table_refuses_is_kept(server, dataset, tmp_path):
    server.tables[f"{dataset}.t"] = without_duplicates()
    kept = write(LEDGER, LEDGER_SCHEMA, dataset, tmp_path)
    assert server.rows[f"{dataset}.t"] == []
    assert by_text([json.loads(row["row"]) for row in kept]) == EXPECTED
    assert {row["table"] for row in kept} == {f"some-project:{dataset}.t"}
    assert {tuple(row["errors"]) for row in kept} == {("invalid: no such field: duplicates.",)}


def test_only_the_refused_rows_are_kept(server, dataset, tmp_path):
    table = table_schema(LEDGER_SCHEMA)
    next(column for column in table["fields"] if column["name"] == "window_start")["mode"] = "REQUIRED"
    server.tables[f"{dataset}.t"] = {"schema": table}
    kept = write([*LEDGER, ledger_row(None)], LEDGER_SCHEMA, dataset, tmp_path)
    assert by_text(server.rows[f"{dataset}.t"]) == EXPECTED
    assert [json.loads(row["row"]) for row in kept] == [table_row(ledger_row(None), LEDGER_SCHEMA)]


def test_a_row_above_the_limit_of_requests_is_kept(server, dataset, tmp_path):
    entries = [dict.fromkeys(ENTRY, 0.5) | {"value": str(number) * 1_000_000} for number in range(10)]
    row = estimate_row(0, estimates=[ValueEstimate(**entry) for entry in entries])
    [kept] = write([row], ESTIMATE_SCHEMA, dataset, tmp_path)
    assert len(json.loads(kept["row"])["estimates"]) == 10
    assert "exceeds the maximum insert payload size" in kept["errors"][0]


def test_a_deleted_table_keeps_the_rows(server, dataset, tmp_path):
    assert write(LEDGER[:1], LEDGER_SCHEMA, dataset, tmp_path) == []
    server.tables.clear()
    kept = write(LEDGER, LEDGER_SCHEMA, dataset, tmp_path)
    assert by_text([json.loads(row["row"]) for row in kept]) == EXPECTED


def test_a_refused_load_fails_the_job(server, dataset, tmp_path):
    server.tables[f"{dataset}.t"] = without_duplicates()
    with pytest.raises(RuntimeError, match="no such field: duplicates"):
        write(LEDGER, LEDGER_SCHEMA, dataset, tmp_path, LOADS)
    assert server.rows[f"{dataset}.t"] == []


def test_rows_that_were_refused_follow_their_schema(tmp_path):
    row = UndeliveredRow(table="p:d.t", errors=["invalid"], row="{}")
    assert list(as_dict(row)) == [field["name"] for field in UNDELIVERED_SCHEMA["fields"]]


# ---------------------------------------------------------------------- the job


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    strange = b"\x02garbage"
    write_files(tmp_path, {"krr.json": KRR, "good.avro": container([(150, single() * 150), (1, strange)])})
    monkeypatch.chdir(tmp_path)
    return tmp_path


BATCH = "--collection krr.json --input good.avro --output out --window 1h"


def test_a_job_over_files_loads_all_its_rows(server, dataset, folder):
    argv = f"{BATCH} --bigquery some-project:{dataset} --temp_location gs://bucket/tmp --write_counts"
    assert estimate.main(argv.split()) == UNREAD
    assert {name.removeprefix(f"{dataset}.") for name in server.tables} == set(TABLES)
    assert by_text(server.rows[f"{dataset}.estimates"]) == by_text(read_lines(folder / "out/estimates.jsonl"))
    assert by_text(server.rows[f"{dataset}.health"]) == by_text(read_lines(folder / "out/health.jsonl"))
    ledger = [row | maps_of(row) for row in server.rows[f"{dataset}.ledger"]]
    assert sum((Counter(row["unread_files"]) for row in ledger), Counter()) == {"corrupt_block": 1}
    assert by_text(ledger) == by_text(read_lines(folder / "out/ledger.jsonl"))
    refused = server.rows[f"{dataset}.rejected"]
    assert [(row["num_reports"], row["num_files"]) for row in refused] == [(0, 1)]
    assert read_lines(folder / "out/undelivered.jsonl") == []


def test_the_storage_write_api_says_what_it_needs(folder):
    """Without the jar that speaks it, which is looked for when the pipeline is built."""
    target = "sdks:java:io:google-cloud-platform:expansion-service:build"
    services = json.dumps({target: str(folder / "none.jar")})
    argv = f"{BATCH} --bigquery some-project:d --bigquery_method storage_write_api".split()
    with pytest.raises(SpecError) as caught:
        configure([*argv, f"--beam_services={services}"])
    said = str(caught.value)
    assert said.startswith("--bigquery_method storage_write_api needs Java and Beam's expansion service for Google ")
