"""What Pub/Sub may do to the main job: messages come again, come in order, come from a topic with a schema.

The job acknowledges whatever it has taken, good or bad, and gives nothing back. So a message that nobody can read comes
once, and stands in the ledger, in the files and on ``--rejected_topic``.
"""

from __future__ import annotations

import dataclasses
import io
import json
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest
from google.api_core import exceptions
from google.cloud import pubsub_v1
from google.pubsub_v1 import types

from tests.servers.pubsub_servers import (
    CHECKED_SCHEMAS,
    DEAD_LETTERS,
    FEATURES,
    IN_PROCESS,
    LOST_ACKS,
    STORED_SCHEMAS,
    params,
    serving,
)
from tests.support import live
from tests.support.messages_cases import BATCH, KRR, REPORT, decoder, packed, read_datum, single, write_files
from uldp_transforms.jobs import estimate
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages import wire
from uldp_transforms.rows.row_types import ESTIMATE_SCHEMA

PROJECT = "projects/test-project"
NUMBER, GARBAGE = 60, 4


def reports() -> list[bytes]:
    """Messages of one moment, a minute ago."""
    times = [time.time_ns() // 1_000_000 - 60_000] * NUMBER
    return wire.encode_reports(KRR.perturb(["0", "1", "2"] * (NUMBER // 3), np.random.default_rng(7), times))


@contextmanager
def publishing(**options: Any) -> Iterator[Any]:
    """A publisher with these options."""
    publisher = pubsub_v1.PublisherClient(publisher_options=pubsub_v1.types.PublisherOptions(**options))
    try:
        yield publisher
    finally:
        publisher.stop()
        publisher.transport.close()


def create(publisher: Any, schema: dict[str, str] | None = None, **subscription: Any) -> None:
    """The topic of the reports, perhaps with a schema, and its subscription, with these properties."""
    publisher.create_topic(request={"name": live.TOPIC, "schema_settings": schema}, timeout=live.PATIENCE)
    with pubsub_v1.SubscriberClient() as subscriber:
        named = {"name": live.SUBSCRIPTION, "topic": live.TOPIC, "ack_deadline_seconds": 600}
        subscriber.create_subscription(request=named | subscription)


def publish(publisher: Any, messages: list[bytes], topic: str = live.TOPIC, **attributes: str) -> None:
    """Publish and wait until all are there."""
    for future in [publisher.publish(topic, message, **attributes) for message in messages]:
        future.result(timeout=live.PATIENCE)


def options(folder: Path) -> list[str]:
    """Of a job that reads the subscription, and writes to a folder in this one."""
    if not (folder / "krr.json").exists():
        write_files(folder, {"krr.json": KRR})
    found = [f"--collection={folder / 'krr.json'}", f"--subscription={live.SUBSCRIPTION}", "--streaming"]
    found += [f"--output={folder / 'output'}", "--window=1s", "--allowed_lateness=1h", "--min_reports=1"]
    return [*found, *live.SOON]


def run_job(folder: Path, finished: Callable[[], bool], *more: str) -> None:
    """Run the job until then, and stop it. Its last row must hold every report once."""
    log, output = folder / "log", folder / "output"
    with live.job([*options(folder), *more], log) as process:
        live.wait_until(finished, process, log)
        process.send_signal(signal.SIGTERM)
        assert process.wait(live.PATIENCE) == 0, log.read_text()
    assert "Traceback" not in log.read_text()
    assert number_in_last_row(output) == NUMBER


def books_of_job(folder: Path, refused: int, *more: str) -> Counter[str]:
    """The ledger of a job that is stopped when rows have all reports and so many refused ones.

    While the job runs, its ledger waits for a minute; to stop it completes the ledger.
    """
    output = folder / "output"
    run_job(folder, lambda: number_in_last_row(output) == NUMBER and number_of_refused(output) == refused, *more)
    return live.books(output)


def number_of_refused(output: Path) -> int:
    """Reports in the rows of refused ones, and messages that could not be read."""
    found = 0
    for path in output.glob("rejected-*.avro"):
        with path.open("rb") as file:
            found += sum(row["num_reports"] + (row["num_messages"] or 0) for row in fastavro.reader(file))
    return found


def number_in_last_row(output: Path) -> int:
    """Reports in the last pane of the only window; 0 if there is none."""
    rows = [row for row in live.rows(output, "estimates") if not row["group"]]
    return max(rows, key=lambda row: row["pane_index"])["num_reports"] if rows else 0


# ---------------------------------------------------------------------- delivery


@pytest.mark.parametrize("server", params(LOST_ACKS))
def test_what_is_delivered_twice_counts_once(server: str, tmp_path: Path) -> None:
    """Three acknowledgements, of 1 to 10 messages each, get lost, and the leases of these messages expire."""
    with serving(server, lost_acks=3), publishing() as publisher:
        create(publisher, ack_deadline_seconds=1)
        publish(publisher, reports())
        seen: list[Counter[str]] = []  # to stop the job may cut short what comes again

        def finished() -> bool:
            seen.append(live.books(tmp_path / "output"))
            whole = live.balance(seen[-1]) == 0 and number_in_last_row(tmp_path / "output") == NUMBER
            return seen[-1]["duplicates"] >= 3 and whole

        run_job(tmp_path, finished, "--deduplicate")
    books = seen[-1]
    assert books["accepted"] == NUMBER
    assert books == Counter(received=NUMBER + books["duplicates"], accepted=NUMBER, duplicates=books["duplicates"])


@pytest.mark.parametrize("server", params())
def test_messages_with_ordering_keys_count_once_and_none_is_given_back(server: str, tmp_path: Path) -> None:
    """Without ``--deduplicate``: a message that came again would count again."""
    with serving(server), publishing(enable_message_ordering=True) as publisher:
        create(publisher, enable_message_ordering=True)
        messages = [*reports(), *[b"\x02garbage"] * GARBAGE]
        for key in range(5):
            publish(publisher, messages[key::5], ordering_key=f"gateway-{key}")
        books = books_of_job(tmp_path, GARBAGE)
    assert books == Counter(received=NUMBER, accepted=NUMBER)
    assert live.unread_messages(tmp_path / "output") == Counter(malformed=GARBAGE)


@pytest.mark.parametrize("server", params(DEAD_LETTERS))
def test_what_cannot_be_read_is_no_dead_letter(server: str, tmp_path: Path) -> None:
    """The subscription would set aside what was given back or left until its lease ended, five times."""
    dead, from_dead = f"{PROJECT}/topics/dead", f"{PROJECT}/subscriptions/dead"
    with serving(server), publishing() as publisher, pubsub_v1.SubscriberClient() as subscriber:
        publisher.create_topic(name=dead)
        subscriber.create_subscription(name=from_dead, topic=dead)
        create(publisher, dead_letter_policy={"dead_letter_topic": dead, "max_delivery_attempts": 5})
        publish(publisher, [*reports(), *[b"\x02garbage"] * GARBAGE])
        books = books_of_job(tmp_path, GARBAGE)
        assert pull(live.SUBSCRIPTION) == pull(from_dead) == []
    assert books == Counter(received=NUMBER, accepted=NUMBER)
    assert live.unread_messages(tmp_path / "output") == Counter(malformed=GARBAGE)


# ---------------------------------------------------------------------- attributes


def test_an_attribute_of_a_message_sets_a_dimension(tmp_path: Path) -> None:
    """And no sender can set it in the report: such a report is in the ledger."""
    country = {"name": "country", "values": ["DE", "FR"], "set_by": "attribute"}
    collection = Collection.from_json(KRR.to_json() | {"dimensions": [country]})
    times = [time.time_ns() // 1_000_000 - 60_000] * NUMBER
    batch = collection.perturb(["0", "1", "2"] * (NUMBER // 3), np.random.default_rng(29), times)
    forged = dataclasses.replace(batch[:GARBAGE], cohorts=np.zeros(GARBAGE, dtype=np.uint16))
    with serving(IN_PROCESS), publishing() as publisher:
        create(publisher)
        publish(publisher, wire.encode_reports(batch[:25]), cc="DE")
        publish(publisher, [wire.encode_batch(batch[25:50])], cc="PL")
        publish(publisher, [wire.encode_batch(batch[50:])], country="DE")
        publish(publisher, wire.encode_reports(forged), cc="DE")
        write_files(tmp_path, {"krr.json": collection})
        more = ["--by=country", "--dimension=country=attribute:cc"]
        books = books_of_job(tmp_path, GARBAGE, *more)
    assert books == Counter(received=NUMBER + GARBAGE, accepted=NUMBER, cohort_range=GARBAGE)
    groups = {row["group"]: row["num_reports"] for row in live.rows(tmp_path / "output", "estimates")}
    assert groups == {"": NUMBER, "country=DE": 25, "country=other": NUMBER - 25}


# ---------------------------------------------------------------------- schemas

SERVICE = "googclient_schema"  # attributes by which the service says what it has checked


def create_schema(schema: Any) -> types.Schema:
    with pubsub_v1.SchemaServiceClient() as client:
        avro = {"type_": "AVRO", "definition": json.dumps(schema)}
        return client.create_schema(request={"parent": PROJECT, "schema_id": schema["name"], "schema": avro})


def create_topic(publisher: Any, schema: Any, encoding: str) -> dict[str, str]:
    """The topic with this schema; returns the attributes that its messages have."""
    made = create_schema(schema)
    create(publisher, {"schema": made.name, "encoding": encoding})
    said = {"name": made.name, "encoding": encoding, "revisionid": made.revision_id}
    return {SERVICE + name: value for name, value in said.items()}


def pull(subscription: str) -> list[Any]:
    """What is there."""
    with pubsub_v1.SubscriberClient() as subscriber:
        response = subscriber.pull(subscription=subscription, max_messages=100, timeout=live.PATIENCE)
    return [received.message for received in response.received_messages]


@pytest.mark.parametrize("server", params(STORED_SCHEMAS))
def test_a_topic_with_the_schema_of_reports(server: str, tmp_path: Path) -> None:
    """What a client sends are data of the schema; the job reads them, whatever the service says in attributes."""
    with serving(server), publishing() as publisher:
        attributes = create_topic(publisher, REPORT, "BINARY")
        messages = reports()
        assert all(read_datum(REPORT, message) for message in messages)
        publish(publisher, messages, **({} if CHECKED_SCHEMAS in FEATURES[server] else attributes))
        books = books_of_job(tmp_path, 0)
    assert books == Counter(received=NUMBER, accepted=NUMBER)


@pytest.mark.parametrize("server", params(CHECKED_SCHEMAS))
@pytest.mark.parametrize("schema, message", [(REPORT, single()), (BATCH, packed())], ids=["report", "batch"])
def test_messages_say_by_which_schema_they_were_checked(server: str, schema: Any, message: bytes) -> None:
    with serving(server), publishing() as publisher:
        attributes = create_topic(publisher, schema, "BINARY")
        publish(publisher, [message])
        [received] = pull(live.SUBSCRIPTION)
        for spoiled in (wire.single_object_header(schema) + message, message + b"\0", b"garbage"):
            with pytest.raises(exceptions.InvalidArgument):
                publish(publisher, [spoiled])
    assert (received.data, dict(received.attributes)) == (message, attributes)
    decoded = decoder().decode([received.data])
    assert decoded.batches and not decoded.rejections


@pytest.mark.parametrize("server", params(CHECKED_SCHEMAS))
@pytest.mark.parametrize("schema, message", [(REPORT, single()), (BATCH, packed())], ids=["report", "batch"])
def test_the_json_form_of_a_schema_is_refused(server: str, schema: Any, message: bytes) -> None:
    """Topics must have the encoding BINARY; of the other one every message stands in the ledger."""
    text = io.StringIO()
    fastavro.json_writer(text, schema, [read_datum(schema, message)])
    with serving(server), publishing() as publisher:
        create_topic(publisher, schema, "JSON")
        publish(publisher, [text.getvalue().encode()])
        [received] = pull(live.SUBSCRIPTION)
    decoded = decoder().decode([received.data])
    assert not decoded.batches
    assert [refused.reason for refused in decoded.rejections] == [Reason.UNKNOWN_SCHEMA]


@pytest.mark.parametrize("server", params(CHECKED_SCHEMAS))
@pytest.mark.parametrize("encoding", ["BINARY", "JSON"])
def test_a_topic_with_a_schema_takes_no_rows(server: str, encoding: str, tmp_path: Path) -> None:
    """They are JSON with times as text, which is no encoding of Avro; the job fails, and loses nothing in silence."""
    estimates, log = f"{PROJECT}/topics/estimates", tmp_path / "log"
    with serving(server), publishing() as publisher:
        create(publisher)
        made = create_schema(ESTIMATE_SCHEMA)
        settings = {"schema": made.name, "encoding": encoding}
        publisher.create_topic(request={"name": estimates, "schema_settings": settings})
        publish(publisher, reports())
        with live.job([*options(tmp_path), f"--output_topic={estimates}"], log) as process:
            assert process.wait(live.PATIENCE) == 1
    assert f"A message must be a datum of {made.name}" in log.read_text()


# ---------------------------------------------------------------------- rows of files


def test_a_job_over_files_publishes_its_rows_too(tmp_path: Path) -> None:
    """Also on the engine for files; the topic has the rows of the files."""
    topic, from_rows = f"{PROJECT}/topics/rows", f"{PROJECT}/subscriptions/rows"
    write_files(tmp_path, {"krr.json": KRR})
    with (tmp_path / "reports.avro").open("wb") as file:
        batch = KRR.perturb(["0", "1", "2"] * 40, np.random.default_rng(7), [1_000_000_000_000] * 120)
        fastavro.writer(file, wire.REPORT_SCHEMA, wire.report_records(batch))
    with serving(IN_PROCESS), publishing() as publisher, pubsub_v1.SubscriberClient() as subscriber:
        publisher.create_topic(name=topic)
        subscriber.create_subscription(name=from_rows, topic=topic, ack_deadline_seconds=600)
        argv = [f"--collection={tmp_path}/krr.json", f"--input={tmp_path}/reports.avro", "--window=1h"]
        assert estimate.main([*argv, f"--output={tmp_path}/output", f"--output_topic={topic}"]) == 0
        messages = pull(from_rows)
    [line] = (tmp_path / "output/estimates.jsonl").read_text("utf-8").splitlines()
    assert [message.data.decode() for message in messages] == [line]
    assert messages[0].attributes["schema"] == "uldp.WindowedEstimate"
