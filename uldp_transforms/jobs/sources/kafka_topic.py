"""Reports from Kafka, as a stream or a bounded range, read in Python or by Beam in Java."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import apache_beam as beam
import grpc
from apache_beam.io.kafka import ReadFromKafka
from apache_beam.options.pipeline_options import FlinkRunnerOptions, PipelineOptions, StandardOptions
from apache_beam.pvalue import PBegin, PCollection
from apache_beam.transforms.external import ExpansionAndArtifactRetrievalStub

from uldp_transforms.beam.runtime.engines import PRISM
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.engines.runners import (
    choose_local_engine,
    require_java_engine,
    require_stream_engine,
    runs_in_this_process,
)
from uldp_transforms.jobs.engines.step_streams import prepare_engine
from uldp_transforms.jobs.kafka.polled import PollKafka
from uldp_transforms.jobs.kafka.secrets import PROVIDERS, references_to, refuse_secrets
from uldp_transforms.jobs.kafka.settings import refuse_taken
from uldp_transforms.jobs.kafka.topic_options import (
    CONFIG,
    CREATE_TIME,
    JAVA,
    OPTIONS,
    PYTHON,
    first_moment,
    moment_of_option,
    reading_options,
    require_servers,
)
from uldp_transforms.jobs.message_attributes import set_groups_of
from uldp_transforms.jobs.sources.source import Source
from uldp_transforms.ldp.errors import SpecError


class ReadKafka(beam.PTransform[PBegin, PCollection[bytes]]):
    """Reads a topic from its first record on; the value of each record is a message.

    Beam reads Kafka in Java: its expansion service creates this step when the pipeline is built. The timestamp of a
    record is its arrival time, for the gate and for the watermark, so a job that reads the topic again gives the same
    verdicts and counts.

    Output: ``bytes`` in the global window; a record without a value is an empty message.

    Args:
        servers: HOST:PORT of the brokers, separated by commas.
        topic: an existing topic.
        timestamps: ``message.timestamp.type`` of the topic: CREATE_TIME, by the clock of the sender, or
            LOG_APPEND_TIME, by that of the broker. Beam fails at a record of the other kind.
        expansion_service: HOST:PORT; None: Beam starts its own, for which it needs Java and downloads a jar.
        properties: further settings of the Kafka consumer, such as those of TLS and SASL. They are in the job's graph,
            so secrets should be references (``kafka.secrets.references_to``).

    Raises:
        SpecError: when the pipeline is built, if the expansion service is not available.
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
        service = None if self._expansion_service is None else _connected(self._expansion_service)
        try:
            records = begin | "Read" >> ReadFromKafka(
                consumer, [self._topic], timestamp_policy=self._timestamps, expansion_service=service
            )
        except (grpc.RpcError, RuntimeError, OSError) as error:  # no service, no Java, no jar, or an error in Java
            raise SpecError(f"--kafka_topic needs Java and Beam's expansion service for Kafka, got {error}") from None
        return records | "Values" >> beam.Map(_message).with_output_types(bytes)

    def display_data(self) -> dict[str, Any]:
        return {"servers": self._servers, "topic": self._topic}


@contextlib.contextmanager
def _connected(address: str) -> Iterator[ExpansionAndArtifactRetrievalStub]:
    """Connect to an expansion service at any address; given a text, Beam connects only to addresses of this machine."""
    with grpc.insecure_channel(address, [("grpc.max_receive_message_length", -1)]) as channel:
        yield ExpansionAndArtifactRetrievalStub(channel)


def _message(record: tuple[bytes | None, bytes | None]) -> bytes:
    return record[1] or b""


_OF_PYTHON = ("--kafka_from", "--kafka_until", "--kafka_idle_lag", "--kafka_readers")
_OF_JAVA = ("--expansion_service",)


class KafkaTopic(Source):
    """Source that reads a Kafka topic."""

    option = "--kafka_topic"
    help = "Kafka topic (needs --bootstrap_servers)"
    own_options: ClassVar[cli.Options] = OPTIONS
    bounded = False
    takes_attributes = True

    def __init__(self, records: ReadKafka | PollKafka):
        self.records = records

    @classmethod
    def variant(cls, args: argparse.Namespace) -> type[Source]:
        return cls if args.kafka_until is None else KafkaRange

    @classmethod
    def of(cls, args: argparse.Namespace, options: PipelineOptions) -> KafkaTopic:
        require_servers(args)
        reader = args.kafka_reader or cls._usual_reader(options)
        for option in _OF_JAVA if reader == PYTHON else _OF_PYTHON:
            if getattr(args, option[2:]) is not None:
                needed = JAVA if reader == PYTHON else PYTHON
                raise SpecError(f"{option} needs --kafka_reader {needed}, got {reader}")
        return cls(cls._polled(args, options) if reader == PYTHON else cls._by_java(args, options))

    @classmethod
    def _usual_reader(cls, options: PipelineOptions) -> str:
        without_java = options.view_as(StandardOptions).runner in (None, PRISM) or runs_in_this_process(options)
        return PYTHON if without_java else JAVA

    @classmethod
    def _by_java(cls, args: argparse.Namespace, options: PipelineOptions) -> ReadKafka:
        if set_groups_of(args) is not None:
            raise SpecError(f"--dimension needs --kafka_reader {PYTHON}, got {JAVA}")
        require_java_engine(options, option=cls.option)
        timestamps, properties = args.kafka_timestamps or CREATE_TIME, dict(args.kafka_property or ())
        refuse_secrets(properties.items(), CONFIG, references=True)
        if args.kafka_consumer_config is not None:
            refuse_taken(properties, PROVIDERS, f"--kafka_property beside {CONFIG}")
            properties = references_to(args.kafka_consumer_config, CONFIG) | properties
        return ReadKafka(args.bootstrap_servers, args.kafka_topic, timestamps, args.expansion_service, properties)

    @classmethod
    def _polled(cls, args: argparse.Namespace, options: PipelineOptions) -> PollKafka:
        if cls.bounded:
            choose_local_engine(options, streaming=False)
        else:
            require_stream_engine(options, option=cls.option, ends="--kafka_until")
            prepare_engine(options)
        runner, readers = options.view_as(StandardOptions).runner, args.kafka_readers
        if runner == PRISM and (readers or 1) > 1:
            raise SpecError(f"--kafka_readers must be 1 on {PRISM}, which mixes up their watermarks, got {readers}")
        slots = options.view_as(FlinkRunnerOptions).parallelism
        reading = reading_options(args, readers or max(1, slots if runner != PRISM else 1))
        until = moment_of_option(args.kafka_until, "--kafka_until")
        return PollKafka(args.kafka_topic, reading, ends=cls.bounded, since=first_moment(args), until=until)

    def read(self, pipeline: beam.Pipeline) -> PCollection[Any]:
        return pipeline | "ReadKafka" >> self.records


class KafkaRange(KafkaTopic):
    """Source that reads the current records of a topic, or those of a past time range."""

    option = "--kafka_topic with --kafka_until"
    bounded = True

    @classmethod
    def _usual_reader(cls, options: PipelineOptions) -> str:
        return PYTHON
