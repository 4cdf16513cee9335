"""Programs on pages and SQL files, over rows with groups and versions: each shows every row that counts, and no other.

A program that forgets a field of the key mixes rows: some are missing, or the shares of several are added up.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.cloud import bigquery, pubsub_v1

from tests.project.documents import DOCS, blocks
from tests.servers.google_server import GoogleServer
from tests.servers.pubsub_servers import preferred, serving
from tests.support.messages_cases import KRR, write_files
from tests.support.sinks.consumers import AVRO, BIGQUERY, JSON_LINES, ONE_VALUE, PROJECT, PUBSUB
from tests.support.sinks.view_rows import SQL, needs_duckdb
from uldp_transforms import read_rows
from uldp_transforms.collector.row_bytes import file_of
from uldp_transforms.jobs import uldp
from uldp_transforms.jobs.sinks.bigquery_tables import table_schema
from uldp_transforms.rows.row_types import ESTIMATE_SCHEMA, WindowedEstimate

RESULTS = Path(__file__).parents[3] / "deploy" / "results"
QUESTION = KRR.to_json() | {"id": "diet", "question": "diet"}
ARMS = {"dimensions": [{"name": "arm", "values": ["new", "control"]}]}
PLACES = 2 * 3 * (1 + 2)  # windows, of two versions and their question, each with two groups

Key = tuple[str, str, int, str]
"""Collection, start of the window, version and group."""
Shares = dict[Key, dict[str, float]]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two versions of a question in two arms on two days, with earlier panes whose shares are all wrong."""
    folder = tmp_path_factory.mktemp("printed")
    write_files(folder, {f"{n}.json": json.dumps(QUESTION | ARMS | {"version": n}).encode() for n in (1, 2)})
    for version in (1, 2):
        lines = ["value,arm,event_time"]
        for day in (2, 3):
            for arm, common in (("new", 300 + 90 * version), ("control", 600)):
                values = ["0"] * common + ["1"] * (900 - common)
                lines += [f"{value},{arm},2026-11-{day:02}T12:00:00Z" for value in values]
        (folder / "V.csv").write_text("\n".join(lines) + "\n")
        made = f"--values {folder}/V.csv --seed {version} --output {folder}/R{version}.avro"
        assert uldp.main(["simulate", f"{folder}/{version}.json", *made.split()]) == 0
    job = f"--collection {folder}/1.json --collection {folder}/2.json --input {folder}/R*.avro --output {folder}/output"
    assert uldp.main(["estimate", *f"{job} --window 1d --by arm --write_counts --write_parquet".split()]) == 0
    assert uldp.main(["reestimate", f"{folder}/output", "--window", "all", "--by", "arm"]) == 0
    rows = rows_of(folder)
    for row in list(rows):
        wrong = [entry | {"frequency": 9.0, "raw_frequency": 9.0} for entry in row["estimates"]]
        rows.append(row | {"pane_index": -1, "num_reports": row["num_reports"] - 1, "estimates": wrong})
    lines = [json.dumps(row) + "\n" for row in rows]
    (folder / "output" / "estimates.jsonl").write_text("".join(lines), encoding="utf-8")
    made_rows = [WindowedEstimate(**row) for row in rows]
    for form in ("avro", "parquet"):
        (folder / "output" / f"estimates.{form}").write_bytes(file_of(made_rows, form, ESTIMATE_SCHEMA))
    return folder


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return list(map(json.loads, (folder / "output" / "estimates.jsonl").read_text("utf-8").splitlines()))


@pytest.fixture
def expected(output: Path, monkeypatch: pytest.MonkeyPatch) -> Shares:
    """What the job estimated; and the programs look for its files here."""
    monkeypatch.chdir(output)
    found = {
        (row["collection_id"], row["window_start"], row["collection_version"], row["group"] or ""): {
            entry["value"]: entry["frequency"] for entry in row["estimates"]
        }
        for row in rows_of(output)
        if row["pane_index"] >= 0
    }
    assert len(found) == PLACES
    assert all(sum(shares.values()) == pytest.approx(1) for shares in found.values())
    return found


def rounded(shares: Shares) -> dict[Key, dict[str, str]]:
    return {key: {value: f"{share:.1%}" for value, share in of.items()} for key, of in shares.items()}


def printed(text: str) -> dict[Key, dict[str, str]]:
    """The rows that one of the first four programs printed; none twice."""
    found: dict[Key, dict[str, str]] = {}
    for line in text.splitlines():
        if not line.startswith(" "):
            name, start, status, _, _, version, group = line.split()
            assert status == "ok"
            key = (name, start, int(version), "" if group == "everybody" else group)
            assert key not in found
            found[key] = {}
        else:
            value, share = line.split()[:2]
            found[key][value] = share.removesuffix(",")
    return found


def collected(rows: Any) -> Shares:
    """Rows of (key, value, share), none twice."""
    found: Shares = defaultdict(dict)
    for key, value, share in rows:
        assert value not in found[key]
        found[key][value] = share
    return dict(found)


@pytest.mark.parametrize("program", [JSON_LINES, AVRO], ids=["JSON lines", "Avro"])
def test_programs_over_files(program: str, expected: Shares, capsys: pytest.CaptureFixture[str]) -> None:
    exec(program, {})
    assert printed(capsys.readouterr().out) == rounded(expected)


@contextlib.contextmanager
def tables(output: Path) -> Iterator[None]:
    with GoogleServer() as google, google.environment():
        google.tables["my_dataset.estimates"] = {"schema": table_schema(ESTIMATE_SCHEMA)}
        google.rows["my_dataset.estimates"] = rows_of(output)
        yield


def test_the_program_over_tables(output: Path, expected: Shares, capsys: pytest.CaptureFixture[str]) -> None:
    with tables(output):
        exec(BIGQUERY, {})
    assert printed(capsys.readouterr().out) == rounded(expected)


def test_the_program_over_messages(output: Path, expected: Shares, capsys: pytest.CaptureFixture[str]) -> None:
    topic = f"{PROJECT}/topics/estimates"
    with serving(preferred()), pubsub_v1.SubscriberClient() as subscriber:
        publisher = pubsub_v1.PublisherClient()
        publisher.create_topic(name=topic)
        subscriber.create_subscription(name=f"{PROJECT}/subscriptions/estimates", topic=topic)
        for row in rows_of(output):
            publisher.publish(topic, json.dumps(row).encode()).result()
        publisher.stop()
        exec(PUBSUB, {})
    assert printed(capsys.readouterr().out) == rounded(expected)


def test_one_value_over_time_is_that_of_everybody(output: Path, expected: Shares) -> None:
    query = ONE_VALUE.replace("'animals'", "'diet'").replace("'bee'", "'0'")
    with tables(output):
        rows = list(bigquery.Client(project="my-project").query_and_wait(query))
    found = {(f"{row[0]:%Y-%m-%dT%H:%M:%SZ}", row["collection_version"]): row[1] for row in rows}
    assert len(rows) == len(found)
    assert found == {key[1:3]: shares["0"] for key, shares in expected.items() if not key[3]}


def test_the_analysts_query(output: Path, expected: Shares) -> None:
    [block] = blocks(DOCS / "quickstart-analyst.md", "sql")
    with tables(output):
        rows = list(bigquery.Client(project="my-project").query_and_wait(block.code))
    keys = [
        ("diet", f"{row['window_start']:%Y-%m-%dT%H:%M:%SZ}", row["collection_version"], row["group"] or "")
        for row in rows
    ]
    assert collected((key, row[1], row[2]) for key, row in zip(keys, rows)) == expected


def test_the_analysts_program(output: Path, expected: Shares) -> None:
    [block] = blocks(DOCS / "quickstart-analyst.md")
    names: dict[str, Any] = {}
    exec(block.code, names)
    key = ["collection_id", "window_start", "collection_version", "group"]
    table = names["values"][[*key, "value", "frequency"]].itertuples(index=False)
    found = collected((tuple(row[:4]), *row[4:]) for row in table)
    assert found == {key: pytest.approx(shares) for key, shares in expected.items()}  # pandas reads 15 digits
    rows = [row for row in rows_of(output) if row["pane_index"] >= 0]
    for place, mean in names["mean"].items():
        of = [row for row in rows if (row["collection_id"], row["collection_version"], row["group"] or "") == place[:3]]
        raw = [[entry["raw_frequency"] for entry in row["estimates"] if entry["value"] == place[3]] for row in of]
        weights = [row["num_reports"] for row in of]
        assert len(of) == 2
        assert mean == pytest.approx(sum(w * share for w, (share,) in zip(weights, raw)) / sum(weights))


def test_the_notebooks_program(expected: Shares) -> None:
    block = blocks(DOCS / "notebook.md")[-1]
    names: dict[str, Any] = {}
    exec(block.code, names)
    shares = names["shares"]
    assert len(shares) == len([key for key in expected if not key[3]])
    for (name, version, start), row in shares.iterrows():
        assert row.to_dict() == expected[name, f"{start:%Y-%m-%dT%H:%M:%SZ}", version, ""]


@pytest.fixture
def duckdb(output: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    import duckdb  # noqa: PLC0415  # tests without it are skipped

    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


@needs_duckdb
def test_the_query_over_parquet(expected: Shares, duckdb: Any) -> None:
    _, _, query = blocks(DOCS / "consume.md", "sql")
    rows = list(duckdb.execute(query.code.replace("'animals'", "'diet'")).df().itertuples())
    keys = [("diet", f"{row.window_start:%Y-%m-%dT%H:%M:%SZ}", row.collection_version, row.group or "") for row in rows]
    assert collected((key, row.value, row.frequency) for key, row in zip(keys, rows)) == expected


@needs_duckdb
@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_four_questions(
    version: int, output: Path, expected: Shares, duckdb: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each version of the question: one share for each value, and those of one version only."""
    monkeypatch.chdir(output / "output")
    for path in (SQL / "latest_duckdb.sql", RESULTS / "duckdb.sql"):
        duckdb.execute(path.read_text("utf-8"))
    text = re.sub(r"--[^\n]*", "", (RESULTS / "questions.sql").read_text("utf-8"))
    text = text.replace("'sleep'", "'diet'").replace("version = 1", f"version = {version}")
    last, whole, arms, _ = (duckdb.execute(query).df() for query in text.split(";")[:4])
    newest = expected["diet", "2026-11-03T00:00:00Z", version, ""]
    assert dict(zip(last["value"], last["frequency"])) == newest and len(last) == len(newest)
    totals = read_rows(".", "totals")
    of = totals[(totals["collection_version"] == version) & (totals["group"].fillna("") == "")]
    assert dict(zip(whole["value"], whole["frequency"])) == dict(zip(of["value"], of["frequency"]))
    assert len(whole) == len(newest) and whole["frequency"].sum() == pytest.approx(1)
    assert len(arms) == 2 * len(newest)
