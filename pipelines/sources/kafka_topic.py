"""Reports from Kafka, on engines that run Java next to Python."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, ClassVar

import apache_beam as beam
import grpc
from apache_beam.io.kafka import ReadFromKafka
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import PBegin, PCollection

from uldp_transforms.ldp.errors import SpecError

from .. import cli
from ..runners import require_java_engine
from .source import Source

CREATE_TIME, LOG_APPEND_TIME = ReadFromKafka.create_time_policy, ReadFromKafka.log_append_time


class ReadKafka(beam.PTransform[PBegin, PCollection[bytes]]):
    """Reads a topic from its first record on; each record's value is a message.

    Beam reads Kafka in Java: its expansion service writes this step when the pipeline is built. A record's own time is
    its arrival time, for the gate and for the watermark, so a job that reads the topic again judges and counts as the
    first one did.

    Output: ``bytes`` in the global window; a record without value is an empty message.

    Args:
        servers: HOST:PORT of brokers, separated by commas.
        topic: must exist.
        timestamps: ``message.timestamp.type`` of the topic: CREATE_TIME, by the clock of who sends a record, or
            LOG_APPEND_TIME, by that of the broker. Beam stops at a record that has the other one.
        expansion_service: HOST:PORT; None: Beam starts its own, for which it needs Java and downloads a jar.
        properties: more settings of Kafka's consumer, such as those of TLS and SASL.

    Raises:
        SpecError: when the pipeline is built, if there is no such service.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        timestamps: str = CREATE_TIME,
        expansion_service: str | None = None,
        properties: Mapping[str, str] | None = None,
    ):
        super().__init__()
        self._properties = dict(properties or {})
        self._servers = servers
        self._topic = topic
        self._timestamps = timestamps
        self._expansion_service = expansion_service

    def expand(self, begin: PBegin) -> PCollection[bytes]:
        consumer = self._properties | {"bootstrap.servers": self._servers, "auto.offset.reset": "earliest"}
        try:
            records = begin | "Read" >> ReadFromKafka(
                consumer, [self._topic], timestamp_policy=self._timestamps, expansion_service=self._expansion_service
            )
        except (grpc.RpcError, RuntimeError, OSError) as error:  # nobody there, no Java, no jar, or Java's own words
            raise SpecError(f"--kafka_topic needs Java and Beam's expansion service for Kafka, got {error}") from None
        return records | "Values" >> beam.Map(_message).with_output_types(bytes)

    def display_data(self) -> dict[str, Any]:
        return {"servers": self._servers, "topic": self._topic}


def _message(record: tuple[bytes | None, bytes | None]) -> bytes:
    return record[1] or b""


class KafkaTopic(Source):
    """A topic from its first record on."""

    option = "--kafka_topic"
    help = "Kafka topic (needs --bootstrap_servers and a runner that runs Java too)"
    own_options: ClassVar[cli.Options] = {
        "--bootstrap_servers": {"help": "HOST:PORT of Kafka's brokers, separated by commas"},
        "--kafka_timestamps": {
            "choices": (CREATE_TIME, LOG_APPEND_TIME),
            "help": f"message.timestamp.type of the topic, whose times are the arrival times; none: {CREATE_TIME}",
        },
        "--kafka_property": {
            "type": cli.name_and_value,
            "action": "append",
            "help": "NAME=VALUE, a setting of Kafka's consumer such as security.protocol=SASL_SSL; may be given "
            "several times",
        },
        "--expansion_service": {
            "help": "HOST:PORT of a service that knows Beam's Java transforms for Kafka; none: Beam's own"
        },
    }
    bounded = False

    def __init__(self, records: ReadKafka):
        self.records = records

    @classmethod
    def of(cls, args: argparse.Namespace, options: PipelineOptions) -> KafkaTopic:
        if args.bootstrap_servers is None:
            raise SpecError("--kafka_topic needs --bootstrap_servers, got none")
        require_java_engine(options, option=cls.option)
        timestamps, properties = args.kafka_timestamps or CREATE_TIME, dict(args.kafka_property or ())
        return cls(ReadKafka(args.bootstrap_servers, args.kafka_topic, timestamps, args.expansion_service, properties))

    def read(self, pipeline: beam.Pipeline) -> PCollection[bytes]:
        return pipeline | "ReadKafka" >> self.records
