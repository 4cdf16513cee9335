"""Rows as records of Kafka topics."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import apache_beam as beam
import fastavro
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import PCollection

from uldp_transforms.collector.row_bytes import avro_record
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.kafka.producer import KafkaSettings, check_topic, deliver
from uldp_transforms.jobs.sinks.pubsub_topics import attributes_of, schema_attributes
from uldp_transforms.jobs.sinks.sink import Output, Sink
from uldp_transforms.jobs.sources import Source
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages.wire import single_object_header
from uldp_transforms.rows.avro_fields import time_fields
from uldp_transforms.rows.json_and_avro import to_json

JSON, AVRO = "json", "avro"

KEY = ("collection_id", "fingerprint", "window_start", "window_end", "group", "value")
"""Fields that form the key of a record, if the row has them."""


class KafkaRecord(NamedTuple):
    """A Kafka record: the key identifies the row, and the headers let consumers filter."""

    key: bytes
    value: bytes
    headers: list[tuple[str, bytes]]


class RecordOfRow:
    """Converts rows to records.

    The value is the row's JSON, or its Avro in single-object encoding: a two-byte marker, the schema's CRC-64-AVRO and
    the record. Headers are the same as the attributes of Pub/Sub messages.

    Args:
        schema: Avro schema of the rows.
        form: JSON or AVRO.
    """

    def __init__(self, schema: Any, form: str):
        self._parsed = fastavro.parse_schema(schema)
        self._head = single_object_header(schema)
        self._said = schema_attributes(schema)
        self._times = tuple(time_fields(schema))
        self._form = form

    def __call__(self, row: Any) -> KafkaRecord:
        fields = row._asdict()
        key = "/".join(str(fields[name]) for name in KEY if fields.get(name) not in (None, ""))
        value = to_json(row).encode() if self._form == JSON else self._head + avro_record(row, self._parsed)
        said = self._said | attributes_of(row, self._times)
        return KafkaRecord(key.encode(), value, [(name, text.encode()) for name, text in said.items()])


class ProduceRows(beam.PTransform[PCollection[Any], PCollection[None]]):
    """Sends each row to a topic; a bundle ends only when all its records are acknowledged.

    A repeated bundle sends its records again, with the same keys and values.

    Args:
        topic: an existing topic, unless brokers create topics.
        schema: Avro schema of the rows.
        settings: settings of the producer.
        form: JSON or AVRO.
    """

    def __init__(self, topic: str, schema: Any, settings: KafkaSettings, form: str = JSON):
        super().__init__()
        self._topic = topic
        self._record_of = RecordOfRow(schema, form)
        self._settings = settings

    def expand(self, rows: PCollection[Any]) -> PCollection[None]:
        return rows | "Produce" >> beam.ParDo(_ProduceFn(self._topic, self._record_of, self._settings))

    def display_data(self) -> dict[str, Any]:
        return {"topic": self._topic}


class _ProduceFn(beam.DoFn):
    def __init__(self, topic: str, record_of: RecordOfRow, settings: KafkaSettings):
        self._topic = topic
        self._record_of = record_of
        self._settings = settings

    def start_bundle(self) -> None:
        self._records: list[KafkaRecord] = []

    def process(self, row: Any) -> Iterator[None]:
        self._records.append(self._record_of(row))
        yield from ()

    def finish_bundle(self) -> None:
        deliver(self._settings, self._topic, self._records)


class KafkaTopics(Sink):
    """Kafka topics for estimates, values, the ledger and rejected reports."""

    KINDS: ClassVar[dict[str, str]] = {
        "estimates": "--output_kafka_topic",
        "values": "--values_kafka_topic",
        "rejected": "--rejected_kafka_topic",
        "ledger": "--ledger_kafka_topic",
    }
    """Kinds of rows, and the options that name their topics."""

    options: ClassVar[cli.Options] = {
        "--output_kafka_topic": {"help": "Kafka topic for the estimates (needs --kafka_config)"},
        "--values_kafka_topic": {"help": "Kafka topic for the estimates, one record per value"},
        "--rejected_kafka_topic": {"help": "Kafka topic for rejected reports"},
        "--ledger_kafka_topic": {"help": "Kafka topic for the ledger"},
        "--kafka_config": {
            "help": "file with settings of a producer such as bootstrap.servers, TLS "
            "and SASL, one NAME=VALUE per line, with the "
            "names of librdkafka; each worker reads it; the value ${NAME} stands for an environment variable"
        },
        "--kafka_form": {"choices": (JSON, AVRO), "help": f"format of the records (default: {JSON})"},
    }

    LABELS: ClassVar[dict[str, str]] = {name: f"Produce_{name}" for name in KINDS}

    def __init__(self, topics: dict[str, str], settings: KafkaSettings, form: str = JSON):
        self.takes_values = "values" in topics
        self._topics = topics
        self._settings = settings
        self._form = form

    @classmethod
    def of(cls, args: argparse.Namespace, source: type[Source], options: PipelineOptions) -> KafkaTopics | None:
        found = {name: getattr(args, option[2:]) for name, option in cls.KINDS.items()}
        topics = {name: topic for name, topic in found.items() if topic is not None}
        if not topics:
            for option in ("--kafka_config", "--kafka_form"):
                if getattr(args, option[2:]) is not None:
                    raise SpecError(f"{option} needs {' or '.join(cls.KINDS.values())}, got none")
            return None
        first = cls.KINDS[next(iter(topics))]
        if args.kafka_config is None:
            raise SpecError(f"{first} needs --kafka_config, got none")
        if len(set(topics.values())) < len(topics):
            raise SpecError(f"topics must be different for each kind of row, got {', '.join(topics.values())}")
        return cls(topics, KafkaSettings(args.kafka_config), args.kafka_form or JSON)

    def write(self, outputs: Sequence[Output]) -> None:
        for name, rows, schema, *_ in outputs:
            if name in self._topics:
                _ = rows | self.LABELS[name] >> ProduceRows(self._topics[name], schema, self._settings, self._form)

    def prepare(self) -> None:
        for name, topic in self._topics.items():
            check_topic(self._settings, topic, self.KINDS[name])
