"""Rows in Kafka: what a record is, that a bundle ends with all of them there, and that no secret is shown.

Most tests talk to librdkafka's own mock cluster, in this process; the last ones to a real broker, with TLS and SASL.
"""

from __future__ import annotations

import io
import json
import pickle
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import fastavro
import numpy as np
import pytest

from packages.gateway.tests.support.gateways import gateway, needs_gateway, singles
from tests.rigs.flink import cached
from tests.rigs.flink.secured import certificate
from tests.support import cases, live
from tests.support.kafka.topics import SECRET, config, create, lines_of
from tests.support.messages_cases import decoder, write_files
from tests.support.refusals.jobs.kafka_topics import ANIMALS, WRONG, checking, naming, row
from uldp_transforms.jobs import estimate
from uldp_transforms.jobs.kafka import producer as kafka_producer
from uldp_transforms.jobs.kafka.producer import KafkaSettings, NotDelivered, check_topic, deliver
from uldp_transforms.jobs.sinks.kafka_topics import AVRO, JSON, KafkaTopics, RecordOfRow
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages import wire
from uldp_transforms.rows.row_types import ESTIMATE_SCHEMA, LEDGER_SCHEMA, REJECTED_SCHEMA, VALUE_SCHEMA

DAY = 86_400_000
MORNING = 20_000 * DAY
SCHEMAS = {"estimates": ESTIMATE_SCHEMA, "values": VALUE_SCHEMA, "rejected": REJECTED_SCHEMA, "ledger": LEDGER_SCHEMA}
needs_broker = pytest.mark.skipif(cached.missing() is not None, reason=str(cached.missing()))


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A mock cluster, which creates topics when they are asked for."""
    cluster = confluent_kafka.Producer({"test.mock.num.brokers": 1})
    brokers = cluster.list_topics(timeout=30).brokers.values()
    yield ",".join(f"{found.host}:{found.port}" for found in brokers)


def consumed(settings: dict[str, str], topic: str, number: int) -> list[Any]:
    """So many records of a topic, from its beginning, and no more; fewer if none comes for two minutes."""
    own = {"group.id": f"test-{time.time_ns()}", "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    consumer = confluent_kafka.Consumer(settings | own)
    consumer.subscribe([topic])
    found: list[Any] = []
    end = time.monotonic() + 120
    while len(found) < number and time.monotonic() < end:
        came = [record for record in consumer.consume(1000, 0.5) if record.error() is None]
        found += came
        end = time.monotonic() + 120 if came else end
    found += [record for record in consumer.consume(1000, 1.0) if record.error() is None]
    consumer.close()
    return found


def job(folder: Path, *more: str) -> int:
    """The main job over a file of three days, 200 reports each, and a message that is none."""
    rng = np.random.default_rng(5)
    times = np.repeat(MORNING + DAY * np.arange(3), 200)
    batch = ANIMALS.perturb(rng.choice(cases.VALUES, 600).tolist(), rng, times)
    write_files(folder, {"animals.json": ANIMALS})
    with (folder / "reports.avro").open("wb") as file:
        fastavro.writer(file, wire.REPORT_SCHEMA, wire.report_records(batch))
    argv = [f"--collection={folder}/animals.json", f"--input={folder}/reports.avro", f"--output={folder}/output"]
    return estimate.main([*argv, "--window=1d", *more])


def check_records(folder: Path, settings: dict[str, str], form: str, suffix: str = "") -> None:
    """Topics say what the files say; headers and keys say what it is about."""
    rows = [json.loads(line) for line in (folder / "output/estimates.jsonl").read_text("utf-8").splitlines()]
    ledger = [json.loads(line) for line in (folder / "output/ledger.jsonl").read_text("utf-8").splitlines()]
    assert len(rows) == 3
    values = sum(len(row["estimates"]) for row in rows)
    numbers = {"estimates": len(rows), "values": values, "ledger": len(ledger)}
    assert numbers["values"] == 3 * len(cases.VALUES)
    for kind, number in numbers.items():
        schema = SCHEMAS[kind]
        records = consumed(settings, kind + suffix, number)
        assert len(records) == number
        for record in records:
            headers = {name: text.decode() for name, text in record.headers()}
            assert headers["schema"] == f"{schema['namespace']}.{schema['name']}"
            assert headers["schema_fingerprint"] == wire.single_object_header(schema)[2:].hex()
            row = decoded(record.value(), schema, form)
            assert set(row) == {field["name"] for field in schema["fields"]}
            assert headers["run"] == row["run"]
            if kind == "estimates":
                assert row["num_reports"] == 200
                expected = {name: str(row[name]) for name in ("collection_id", "pane_index", "pane_timing", "status")}
                assert headers.items() >= expected.items()
        keys = [record.key().decode() for record in records]
        assert len(set(keys)) == number
        if kind == "estimates":
            key = "{collection_id}/{fingerprint}/{window_start}/{window_end}"
            assert sorted(keys) == sorted(key.format(**row) for row in rows)


def decoded(data: bytes, schema: Any, form: str) -> dict[str, Any]:
    if form == JSON:
        return dict(json.loads(data))
    header = wire.single_object_header(schema)
    assert data.startswith(header)
    row = fastavro.schemaless_reader(io.BytesIO(data[len(header) :]), schema, None)
    assert isinstance(row, dict)
    return row


TOPICS = ["--output_kafka_topic=estimates", "--values_kafka_topic=values", "--ledger_kafka_topic=ledger"]


@pytest.mark.parametrize("form", [JSON, AVRO])
def test_topics_have_the_rows_of_the_files(form: str, tmp_path: Path) -> None:
    cluster = confluent_kafka.Producer({"test.mock.num.brokers": 1})
    (found,) = cluster.list_topics(timeout=30).brokers.values()
    servers = f"{found.host}:{found.port}"
    path = config(tmp_path, servers)
    assert job(tmp_path, *TOPICS, f"--kafka_config={path}", f"--kafka_form={form}") == 0
    check_records(tmp_path, {"bootstrap.servers": servers}, form)


def test_a_stream_sends_its_rows_too(servers: str, tmp_path: Path) -> None:
    """Of a stream on the local engine, which needs no Java; told to stop, nothing is left behind."""
    write_files(tmp_path, {"animals.json": ANIMALS})
    now = time.time_ns() // 1_000_000
    output, log = tmp_path / "output", tmp_path / "log"
    options = [f"--collection={tmp_path}/animals.json", f"--subscription={live.SUBSCRIPTION}", f"--output={output}"]
    options += ["--window=2s", "--output_kafka_topic=stream", "--rejected_kafka_topic=refused", *live.SOON]
    options += [f"--kafka_config={config(tmp_path, servers)}"]
    with live.broker() as pubsub, live.job(options, log) as process:
        pubsub.publish([b"\x02garbage"] * 3)
        pubsub.publish(wire.encode_reports(ANIMALS.perturb(["ant"] * 9, np.random.default_rng(1), [now] * 9)))
        live.wait_until(lambda: bool(live.rows(output, "estimates")), process, log)  # garbage came before
        process.terminate()
        assert process.wait(live.PATIENCE) == 0, log.read_text()
    refused = consumed({"bootstrap.servers": servers}, "refused", 1)
    rows = [json.loads(record.value()) for record in refused]
    assert (sum(row["num_reports"] for row in rows), sum(row["num_messages"] for row in rows)) == (0, 3)
    assert {dict(record.headers())["reason"] for record in refused} == {b"malformed"}
    rows = [json.dumps(row, ensure_ascii=False) for row in live.rows(output, "estimates")]
    records = consumed({"bootstrap.servers": servers}, "stream", len(rows))
    assert sorted(record.value().decode() for record in records) == sorted(rows)
    assert {dict(record.headers())["status"] for record in records} == {b"suppressed"}


def test_what_is_not_acknowledged_fails_the_bundle(servers: str, tmp_path: Path) -> None:
    """A record that the brokers refuse; then it works again."""
    record_of = RecordOfRow(LEDGER_SCHEMA, JSON)
    settings = KafkaSettings(str(config(tmp_path, servers, "message.max.bytes=1000")))
    large = record_of(row(1))._replace(value=b"x" * 2000)
    with pytest.raises(NotDelivered) as caught:
        deliver(settings, "some", [record_of(row(1)), large])
    assert str(caught.value) == ("Kafka did not take 1 of 2 rows for topic 'some': Broker: Message size too large")
    deliver(settings, "some", [record_of(row(2))])
    deliver(settings, "some", [])
    assert len(consumed({"bootstrap.servers": servers}, "some", 2)) == 2


def test_a_producer_is_not_kept_after_a_fault(servers: str, tmp_path: Path) -> None:
    """The next attempt reads the settings again, so that what an operator mends takes effect without a restart."""
    large = RecordOfRow(LEDGER_SCHEMA, JSON)(row(1))._replace(value=b"x" * 2000)
    settings = KafkaSettings(str(config(tmp_path, servers, "message.max.bytes=1000")))
    with pytest.raises(NotDelivered):
        deliver(settings, "mended", [large])
    config(tmp_path, servers, "message.max.bytes=10000")
    deliver(settings, "mended", [large])  # raises if it is not acknowledged


@pytest.mark.parametrize(("lines", "sentence"), WRONG)
def test_wrong_settings_are_named_and_never_shown(lines: list[str], sentence: str) -> None:
    with pytest.raises(SpecError) as caught:
        checking(lines)()
    assert str(caught.value) == sentence
    assert SECRET not in sentence


def test_a_command_line_names_topics_by_kind_and_their_form() -> None:
    options = {option: f"topic-{name}" for name, option in KafkaTopics.KINDS.items()}
    line = " ".join(f"{option} {topic}" for option, topic in options.items())
    for more, form in (("", JSON), (f"--kafka_form {AVRO}", AVRO)):
        found = naming(f"{line} --kafka_config some {more}")()
        assert found is not None
        assert found._topics == {name: f"topic-{name}" for name in KafkaTopics.KINDS}
        assert found._form == form
    assert naming("")() is None


def test_the_graph_of_a_job_has_the_path_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is secret is read by each worker, from its file or its environment."""
    monkeypatch.setenv("ULDP_KAFKA_PASSWORD", SECRET)
    path = config(tmp_path, "a:1", "sasl.password=${ULDP_KAFKA_PASSWORD}", "sasl.username=me=you")
    settings = KafkaSettings(str(path))
    assert settings.read()["sasl.password"] == SECRET
    assert settings.read()["sasl.username"] == "me=you"
    assert SECRET.encode() not in pickle.dumps(settings)
    assert KafkaTopics.options.keys() >= set(KafkaTopics.KINDS.values())


# ---------------------------------------------------------------------- a real broker, with TLS and SASL


@pytest.mark.slow
@needs_broker
@pytest.mark.parametrize("form", [JSON, AVRO])
def test_a_real_broker_with_tls_and_sasl(
    secured: dict[str, str],
    form: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ULDP_KAFKA_PASSWORD", SECRET)
    hidden = secured | {"sasl.password": "${ULDP_KAFKA_PASSWORD}"}
    path = config(tmp_path, secured["bootstrap.servers"], *lines_of(hidden))
    topics = [f"{option}-{form}" for option in TOPICS]
    create(secured, [option.partition("=")[2] for option in topics])
    assert job(tmp_path, *topics, f"--kafka_config={path}", f"--kafka_form={form}") == 0
    said = capfd.readouterr()
    assert SECRET not in said.out + said.err
    check_records(tmp_path, secured, form, f"-{form}")


@pytest.mark.slow
@needs_broker
@needs_gateway
def test_a_gateway_publishes_with_tls_and_sasl(
    secured: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is accepted is in the topic; its password is on no command line, and in no log."""
    monkeypatch.setenv("ULDP_KAFKA_PASSWORD", SECRET)
    hidden = secured | {"sasl.password": "${ULDP_KAFKA_PASSWORD}"}
    path = config(tmp_path, secured["bootstrap.servers"], *lines_of(hidden))
    create(secured, ["from-gateway"])
    messages = singles(30, 26)
    with gateway(["--kafka_topic=from-gateway", f"--kafka_config={path}"], tmp_path, fork=False) as found:
        assert {found.send(message).status for message in messages} == {200}
        command = Path(f"/proc/{found.process.pid}/cmdline").read_bytes()
        found.process.send_signal(signal.SIGTERM)
        assert found.process.wait(600) == 0
    batches, rejections, *_ = decoder().decode([record.value() for record in consumed(secured, "from-gateway", 30)])
    ids = [found_id.tobytes() for batch in batches for found_id in batch.report_ids]
    assert not rejections
    assert sorted(ids) == sorted(message[9:25] for message in messages)
    assert SECRET.encode() not in command + found.log.read_bytes()


@pytest.mark.slow
@needs_broker
@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"sasl.password": "wrong"}, id="password"),
        pytest.param({"security.protocol": "SASL_PLAINTEXT"}, id="no TLS"),
        pytest.param({"ssl.ca.location": None}, id="another authority"),
    ],
)
def test_a_real_broker_lets_nobody_else_in(
    secured: dict[str, str], wrong: dict[str, str | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_producer, "CHECK_SECONDS", 5.0)
    certificate(tmp_path, "stranger")
    settings = secured | {name: value or str(tmp_path / "stranger.pem") for name, value in wrong.items()}
    path = config(tmp_path, secured["bootstrap.servers"], *lines_of(settings))
    with pytest.raises(SpecError, match=r"^brokers of --kafka_config must answer, got Local: "):
        check_topic(KafkaSettings(str(path)), "topic", "--output_kafka_topic")
