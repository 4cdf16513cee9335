"""What consumers read: a live stream to files, topics and BigQuery, and the programs of docs/consume.md on its rows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apache_beam as beam
import fastavro
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from google.cloud import bigquery, pubsub_v1

from tests.servers.google_server import GoogleServer
from tests.servers.pubsub_servers import DEAD_LETTERS, FILTERS, params, preferred, serving
from tests.support import cases
from tests.support.live import PATIENCE
from tests.support.messages_cases import crc_64_avro
from tests.support.sinks.consumers import (
    AVRO,
    BIGQUERY,
    GCLOUD,
    JSON_LINES,
    LEDGER,
    ONE_VALUE,
    PROJECT,
    PUBSUB,
    blocks,
)
from uldp_transforms.collector.row_bytes import file_of
from uldp_transforms.jobs.check import latest_rows
from uldp_transforms.jobs.estimate.run import configure
from uldp_transforms.jobs.sinks.bigquery_tables import table_schema
from uldp_transforms.jobs.sinks.pubsub_topics import PublishRows
from uldp_transforms.messages import wire
from uldp_transforms.rows.json_and_avro import as_dict, to_json
from uldp_transforms.rows.row_types import ESTIMATE_SCHEMA, HEALTH_SCHEMA, REJECTED_SCHEMA, WindowedEstimate
from uldp_transforms.windows import rfc3339

WINDOW = 2000  # milliseconds

ANIMALS = cases.COLLECTIONS["closed-sensitive-urr"]


class Stream(NamedTuple):
    """What a job left behind, and the servers that hold it."""

    folder: Path
    google: GoogleServer
    topics: dict[str, list[Any]]  # messages by topic

    def lines(self, name: str) -> list[dict[str, Any]]:
        paths = self.folder.glob(f"output/{name}-*.jsonl")
        return [json.loads(line) for path in paths for line in path.read_text("utf-8").splitlines()]

    def refused(self) -> list[dict[str, Any]]:
        rows: list[Any] = []
        for path in self.folder.glob("output/rejected-*.avro"):
            with path.open("rb") as file:
                rows += fastavro.reader(file)
        return rows


COUNTED, TOO_OLD = 1000, 8


def wait_until(done: Callable[[], bool], pause: Callable[[], Any]) -> None:
    """Look again until it is so; a long time is a failure."""
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end
        pause()
        time.sleep(0.5)


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stream]:
    """A job that has counted everything, with rows for two windows of 2 s, one of them corrected after late reports;
    the table for health is of an older version."""
    folder = tmp_path_factory.mktemp("stream")
    (folder / "animals.json").write_text(json.dumps(ANIMALS.to_json()), encoding="utf-8")
    argv = f"""--collection {folder}/animals.json --output {folder}/output
        --subscription {PROJECT}/subscriptions/reports --bigquery my-project:my_dataset
        --output_topic {PROJECT}/topics/estimates --rejected_topic {PROJECT}/topics/rejected
        --window 2s --allowed_lateness 1h --min_reports 2 --late_every 1s --flush_every 1s"""
    with (
        serving(preferred()),
        GoogleServer() as google,
        google.environment(),
        pubsub_v1.SubscriberClient() as subscriber,
    ):
        publisher = pubsub_v1.PublisherClient()
        for topic in ("reports", "estimates", "rejected"):
            publisher.create_topic(name=f"{PROJECT}/topics/{topic}")
            for name in (topic, f"{topic}-too"):
                subscriber.create_subscription(
                    name=f"{PROJECT}/subscriptions/{name}", topic=f"{PROJECT}/topics/{topic}", ack_deadline_seconds=600
                )
        found = Stream(folder, google, {"estimates": [], "rejected": []})
        older = [column for column in table_schema(HEALTH_SCHEMA)["fields"] if column["name"] != "findings"]
        google.tables["my_dataset.health"] = {"schema": {"fields": older}}
        begin = time.time_ns() // 1_000_000 // WINDOW * WINDOW

        def publish(number: int, age: int) -> None:
            values = ["bee", "cat", "fox", "ant"] * (number // 4)
            batch = ANIMALS.perturb(values, np.random.default_rng(5), [begin - age] * number)
            publisher.publish(f"{PROJECT}/topics/reports", wire.encode_batch(batch)).result(PATIENCE)

        def pull() -> None:
            """Take what came; garbage wakes the local engine, which waits for messages."""
            publisher.publish(f"{PROJECT}/topics/reports", b"\xffheartbeat").result(PATIENCE)
            for topic, messages in found.topics.items():
                name = f"{PROJECT}/subscriptions/{topic}-too"
                response = subscriber.pull(subscription=name, max_messages=1000, timeout=PATIENCE)
                messages += [received.message for received in response.received_messages]

        def all_have(panes: int) -> bool:
            """So many estimates stand everywhere, in every form."""
            files = [found.lines(name) for name in ("estimates", "health", "undelivered")]
            places = [*files, found.topics["estimates"], google.rows["my_dataset.estimates"]]
            return all(len(place) == panes for place in places)

        def all_refused() -> bool:
            messages = [json.loads(message.data) for message in found.topics["rejected"]]
            places = [found.refused(), messages, google.rows["my_dataset.rejected"]]
            return all("too_old" in {row["reason"] for row in place} for place in places)

        def all_counted() -> bool:
            places = [found.lines("ledger"), google.rows["my_dataset.ledger"]]
            known = [[row["received"] for row in place if row["collection_id"] == ANIMALS.id] for place in places]
            return all(sum(numbers) == COUNTED + TOO_OLD for numbers in known)

        _, pipeline = configure(argv.split())
        job = pipeline.run()
        try:
            publish(400, 4 * WINDOW)
            publish(400, 2 * WINDOW)
            wait_until(lambda: all_have(panes=2), pull)
            publish(200, 4 * WINDOW)
            publish(TOO_OLD, 9_000_000)
            wait_until(lambda: all_have(panes=3) and all_refused() and all_counted(), pull)
        finally:
            job.cancel()
            publisher.stop()
        yield found


def by_text(rows: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


# ---------------------------------------------------------------------- the page


def test_all_programs_print_the_same(
    stream: Stream, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(stream.folder)
    printed = []
    for program in (JSON_LINES, AVRO, PUBSUB, BIGQUERY):
        exec(program, {})
        printed.append(capsys.readouterr().out.splitlines())
    heads = [line for line in printed[0] if not line.startswith(" ")]
    assert [line.split()[0] for line in heads] == [ANIMALS.id] * 2
    assert [line.split()[2:4] for line in heads] == [["ok", "600"], ["ok", "400"]]
    assert len(printed[0]) == 2 + 2 * len(cases.VALUES)
    assert printed == [printed[0]] * 4


def test_one_value_over_time(stream: Stream) -> None:
    latest = {row["window_start"]: row for row in sorted(stream.lines("estimates"), key=lambda row: row["pane_index"])}
    expected = [
        (start, entry["frequency"], entry["ci_low"], entry["ci_high"], ANIMALS.version)
        for start, row in sorted(latest.items())
        for entry in row["estimates"]
        if entry["value"] == "bee"
    ]
    rows = bigquery.Client(project="my-project").query_and_wait(ONE_VALUE.replace("'animals'", f"'{ANIMALS.id}'"))
    assert [(f"{row[0]:%Y-%m-%dT%H:%M:%SZ}", *row[1:]) for row in rows] == expected
    assert len(expected) == 2


def test_the_ledger_is_added_up(stream: Stream) -> None:
    heartbeats, animals = bigquery.Client(project="my-project").query_and_wait(LEDGER)
    [run] = {row["run"] for row in stream.lines("ledger")}
    assert tuple(animals) == (ANIMALS.id, run, COUNTED + TOO_OLD, COUNTED, 0, TOO_OLD, 0, 0)
    unread = sum(sum(row["unread_messages"].values()) for row in stream.lines("ledger"))
    assert unread > 0
    assert tuple(heartbeats) == (None, run, 0, 0, 0, 0, unread, 0)  # messages that are no reports


def test_the_columns_for_a_table_are_printed(tmp_path: Path) -> None:
    """By the command of the page as it stands, up to ``bq``, which creates the table."""
    [text] = blocks("bash")
    command, create = text.split("bq mk ")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    subprocess.run(["bash", "-ec", command], cwd=tmp_path, env=os.environ | {"PATH": path}, check=True)
    [file] = tmp_path.iterdir()
    assert json.loads(file.read_text("utf-8")) == table_schema(ESTIMATE_SCHEMA)["fields"]
    assert f"--schema={file.name} " in create


# ---------------------------------------------------------------------- subscriptions to rows

ROW = WindowedEstimate(
    collection_id="flights",
    collection_version=1,
    fingerprint=ANIMALS.fingerprint.hex(),
    window_start=rfc3339(0),
    window_end=rfc3339(WINDOW),
    pane_index=0,
    pane_timing="ON_TIME",
    num_reports=None,
    simulated=None,
    estimator="projected",
    unexplained_mass=None,
    unexplained_standard_error=None,
    redistributed_mass=None,
    fit_p_value=None,
    status="suppressed",
    software="",
    estimates=[],
)
CONSUMER = f"{PROJECT}/subscriptions/estimates"


@contextmanager
def rows_for_consumer(rows: list[WindowedEstimate], **subscription: Any) -> Iterator[Any]:
    """These rows, as the job publishes them, wait for a consumer whose subscription has these properties."""
    topic, dead = f"{PROJECT}/topics/estimates", f"{PROJECT}/topics/dead"
    publisher = pubsub_v1.PublisherClient()
    with pubsub_v1.SubscriberClient() as subscriber:
        for name in (topic, dead):
            publisher.create_topic(name=name)
        subscriber.create_subscription(request={"name": CONSUMER, "topic": topic} | subscription)
        subscriber.create_subscription(name=f"{PROJECT}/subscriptions/dead", topic=dead)
        with beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"])) as pipeline:
            _ = pipeline | beam.Create(rows) | PublishRows(topic, ESTIMATE_SCHEMA)
        yield subscriber
    publisher.stop()


def pull(subscriber: Any, name: str) -> list[Any]:
    return list(subscriber.pull(subscription=name, max_messages=100, timeout=PATIENCE).received_messages)


@pytest.mark.parametrize("server", params(FILTERS))
def test_the_filter_of_the_page(server: str) -> None:
    [text] = re.findall(r"--message-filter='(.*)'", GCLOUD)
    rows = [
        ROW._replace(collection_id=name, status=status)
        for name in ("flights", "animals")
        for status in ("ok", "suppressed")
    ]
    with serving(server), rows_for_consumer(rows, filter=text) as subscriber:
        received = pull(subscriber, CONSUMER)
    assert [(row["collection_id"], row["status"]) for row in map(read, received)] == [("flights", "ok")]


@pytest.mark.parametrize("server", params(DEAD_LETTERS))
def test_a_row_that_is_given_back_comes_again_and_then_goes_to_the_dead_letters(server: str) -> None:
    policy = {"dead_letter_topic": f"{PROJECT}/topics/dead", "max_delivery_attempts": 5}
    with serving(server), rows_for_consumer([ROW], dead_letter_policy=policy) as subscriber:
        copies = []
        for _ in range(5):
            [received] = pull(subscriber, CONSUMER)
            copies.append(received.message)
            ack_ids = [received.ack_id]
            subscriber.modify_ack_deadline(subscription=CONSUMER, ack_ids=ack_ids, ack_deadline_seconds=0)
        assert pull(subscriber, CONSUMER) == []
        [dead] = pull(subscriber, f"{PROJECT}/subscriptions/dead")
    assert read(dead) == json.loads(to_json(ROW))
    assert copies == [dead.message] * 5


def read(received: Any) -> dict[str, Any]:
    return json.loads(received.message.data)


# ---------------------------------------------------------------------- rows of several runs


def row_of(run: str | None, start: int, pane_index: int, status: str, number: int | None) -> dict[str, Any]:
    """A row as it stands in a file; without ``run`` that of an older version."""
    row = ROW._replace(window_start=rfc3339(start * WINDOW), window_end=rfc3339((start + 1) * WINDOW), run=run)
    found = as_dict(row._replace(pane_index=pane_index, status=status, num_reports=number))
    return found if run else {name: value for name, value in found.items() if name != "run"}


RUNS = {
    "of a stream whose directory a job over files used": [
        row_of(None, 0, 3, "ok", 60), row_of("20261122T081503Z-ffffff", 0, 0, "ok", 50),
        row_of("20261122T081504Z-000000", 0, 0, "ok", 40),
    ],
    "cut by a stop, and corrected in the next run": [
        row_of("a", 1, 0, "ok", 300), row_of("b", 1, 0, "partial", None), row_of("b", 1, 1, "partial", None),
    ],
    "open at a stop": [row_of("a", 2, 7, "partial", None), row_of("b", 2, 0, "partial", None)],
    "corrected": [row_of("b", 3, 1, "ok", 120), row_of("b", 3, 0, "ok", 110), row_of("a", 3, 9, "partial", None)],
    "written again, in other portions, after a worker was killed": [
        row_of("b", 4, 5, "ok", 150), row_of("b", 4, 3, "ok", 200), row_of("b", 4, 9, "suppressed", None),
    ],
}  # fmt: skip
TAKEN = [("ok", 40), ("ok", 300), ("partial", None), ("ok", 120), ("ok", 200)]


@pytest.mark.parametrize("backwards", [False, True])
def test_of_several_runs_every_program_takes_the_same_row(
    backwards: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """That of the latest run; a partial one only if there is no other. The highest pane of all would be another."""
    monkeypatch.chdir(tmp_path)
    rows = [row for found in RUNS.values() for row in found]
    rows = rows[::-1] if backwards else rows
    Path("output").mkdir()
    Path("output/estimates-1.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    content = file_of([ROW._replace(**row) for row in rows], "avro", ESTIMATE_SCHEMA)
    Path("output/estimates-1.avro").write_bytes(content)
    with GoogleServer() as google, google.environment():
        google.tables["my_dataset.estimates"] = {"schema": table_schema(ESTIMATE_SCHEMA)}
        google.rows["my_dataset.estimates"] = rows
        for program in (JSON_LINES, AVRO, BIGQUERY):
            exec(program, {})
            printed = capsys.readouterr().out.splitlines()
            assert [tuple(line.split()[2:4]) for line in printed] == [(status, str(n)) for status, n in TAKEN]
    found = sorted(latest_rows(rows), key=lambda row: row["window_start"])
    assert [(row["status"], row["num_reports"]) for row in found] == TAKEN


# ---------------------------------------------------------------------- what stands where


def test_topic_and_table_hold_the_rows_of_the_files(stream: Stream) -> None:
    rows = by_text(stream.lines("estimates"))
    assert by_text(json.loads(message.data) for message in stream.topics["estimates"]) == rows
    assert by_text(stream.google.rows["my_dataset.estimates"]) == rows


def test_what_an_older_table_refuses_is_kept(stream: Stream) -> None:
    kept = stream.lines("undelivered")
    assert {row["table"] for row in kept} == {"my-project:my_dataset.health"}
    assert by_text(json.loads(row["row"]) for row in kept) == by_text(stream.lines("health"))
    assert stream.google.rows["my_dataset.health"] == []


def fingerprint(schema: Any) -> str:
    """Of single-object encoding: CRC-64-AVRO in little-endian bytes."""
    return crc_64_avro(fastavro.schema.to_parsing_canonical_form(schema).encode()).to_bytes(8, "little").hex()


def test_messages_of_estimates_say_which_window_and_pane_they_are(stream: Stream) -> None:
    same = ("collection_id", "fingerprint", "window_start", "window_end", "pane_index", "pane_timing", "status", "run")
    schema = {"schema": "uldp.WindowedEstimate", "schema_fingerprint": fingerprint(ESTIMATE_SCHEMA)}
    for message in stream.topics["estimates"]:
        row = json.loads(message.data)
        assert dict(message.attributes) == schema | {name: str(row[name]) for name in same}


def test_what_is_refused_goes_to_its_topic(stream: Stream) -> None:
    [message] = [message for message in stream.topics["rejected"] if message.attributes["reason"] == "too_old"]
    row = json.loads(message.data)
    assert list(row) == [field["name"] for field in REJECTED_SCHEMA["fields"]]
    assert row["num_reports"] == TOO_OLD
    same = ("reason", "collection_id", "fingerprint", "window_start", "window_end", "received_at", "run")
    schema = {"schema": "uldp.RejectedReport", "schema_fingerprint": fingerprint(REJECTED_SCHEMA)}
    assert dict(message.attributes) == schema | {name: row[name] for name in same}


def test_what_nobody_can_read_has_a_message_without_a_collection(stream: Stream) -> None:
    unread = [message for message in stream.topics["rejected"] if message.attributes["reason"] == "unknown_schema"]
    assert unread
    for message in unread:
        assert set(message.attributes) == {"schema", "schema_fingerprint", "reason", "received_at", "run"}
        assert b"heartbeat" not in message.data
