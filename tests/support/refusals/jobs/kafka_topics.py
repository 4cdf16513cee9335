"""Refusals of the writer of Kafka: calls and their sentences."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import confluent_kafka
from apache_beam.options.pipeline_options import PipelineOptions

from tests.rigs.flink.processes import free_port
from tests.support import cases
from tests.support.kafka.topics import SECRET, config
from tests.support.refusals.tables import Refusal
from uldp_transforms.jobs.kafka import producer as kafka_producer
from uldp_transforms.jobs.kafka.producer import KafkaSettings, NotDelivered, check_topic, deliver
from uldp_transforms.jobs.sinks.kafka_topics import JSON, KafkaTopics, RecordOfRow
from uldp_transforms.jobs.sources import AvroFiles
from uldp_transforms.rows.row_identity import name_of, span_of
from uldp_transforms.rows.row_types import LEDGER_SCHEMA, LedgerRow

ANIMALS = cases.COLLECTIONS["closed-sensitive-urr"]


def row(number: int) -> LedgerRow:
    return LedgerRow(**name_of(ANIMALS), **span_of(0, 1000), received=number, accepted=0, duplicates=0, rejected={})


WRONG = [
    ([SECRET], "--kafka_config must have NAME=VALUE in each line, got a different text in line 1"),
    ([f"={SECRET}"], "--kafka_config must have NAME=VALUE in each line, got a different text in line 1"),
    ([f"sasl.password={SECRET}"], "--kafka_config must contain bootstrap.servers, got none"),
    (
        ["bootstrap.servers=a:1", "acks=1"],
        "--kafka_config must not contain enable.idempotence, acks, which this program sets, got acks",
    ),
    (
        ["bootstrap.servers=a:1", "sasl.password=${ULDP_NOT_SET}"],
        "--kafka_config takes sasl.password from the environment variable ULDP_NOT_SET, which must be set, got none",
    ),
    (
        ["bootstrap.servers=a:1", f"sasl.pasword={SECRET}"],
        "settings of --kafka_config must be settings of librdkafka, got sasl.pasword",
    ),
    (
        ["bootstrap.servers=a:1", f"security.protocol={SECRET}"],
        "settings of --kafka_config must be settings of librdkafka, got security.protocol",
    ),
    (
        ["bootstrap.servers=a:1", "security.protocol=SSL", f"ssl.ca.location={SECRET}"],
        "settings of --kafka_config must be settings of librdkafka, got one, or a combination, that it refuses",
    ),
    (
        ["bootstrap.servers=127.0.0.1:1"],
        "brokers of --kafka_config must answer, got Local: Broker transport failure",
    ),
]


def checking(lines: list[str]) -> Callable[[], None]:
    """Asks the brokers of these settings for a topic."""

    def call() -> None:
        with tempfile.TemporaryDirectory() as name, mock.patch.object(kafka_producer, "CHECK_SECONDS", 2.0):
            path = Path(name) / "kafka.properties"
            path.write_text("\n".join(lines), encoding="utf-8")
            check_topic(KafkaSettings(str(path)), "topic", "--output_kafka_topic")

    return call


def without_client() -> None:
    with mock.patch.dict(sys.modules, {"confluent_kafka": None}):
        checking(["bootstrap.servers=a:1"])()


def without_topic() -> None:
    """A broker that knows none; a real one says so too, below."""
    error = confluent_kafka.KafkaError(confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART)
    found = SimpleNamespace(topics={"topic": SimpleNamespace(error=error)})
    asked = SimpleNamespace(list_topics=lambda *_, **__: found)
    with mock.patch.object(kafka_producer, "new_producer", lambda _: asked):
        checking(["bootstrap.servers=a:1"])()


def without_broker() -> None:
    with tempfile.TemporaryDirectory() as name:
        settings = KafkaSettings(str(config(Path(name), f"127.0.0.1:{free_port()}", "delivery.timeout.ms=1500")))
        deliver(settings, "some", [RecordOfRow(LEDGER_SCHEMA, JSON)(row(3))])


def naming(options: str) -> Callable[[], Any]:
    """The sink that a command line names."""

    def call() -> Any:
        parser = argparse.ArgumentParser()
        for option in KafkaTopics.options:
            parser.add_argument(option)
        return KafkaTopics.of(parser.parse_args(options.split()), AvroFiles, PipelineOptions())

    return call


KINDS = " or ".join(KafkaTopics.KINDS.values())
REFUSED: list[Refusal] = [
    *((checking(lines), sentence) for lines, sentence in WRONG),
    (without_client, "Kafka topics for rows need the package confluent-kafka (pip install '.[kafka]'), got none"),
    (
        without_topic,
        "--output_kafka_topic must be a topic that exists, got 'topic': Broker: Unknown topic or partition",
    ),
    (NotDelivered, without_broker, "Kafka did not take 1 of 1 rows for topic 'some': Local: Message timed out"),
    (naming("--output_kafka_topic a"), "--output_kafka_topic needs --kafka_config, got none"),
    (naming("--ledger_kafka_topic a"), "--ledger_kafka_topic needs --kafka_config, got none"),
    (naming("--kafka_form avro"), f"--kafka_form needs {KINDS}, got none"),
    (naming("--kafka_config k"), f"--kafka_config needs {KINDS}, got none"),
    (
        naming("--output_kafka_topic a --rejected_kafka_topic a --kafka_config k"),
        "topics must be different for each kind of row, got a, a",
    ),
]
"""Error, what raises it, and its sentence."""
