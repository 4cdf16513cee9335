"""Rows as messages of Pub/Sub topics."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, ClassVar

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import PCollection

from uldp_transforms.jobs import cli
from uldp_transforms.jobs.engines.google_clients import require_google_clients
from uldp_transforms.jobs.sinks.sink import Output, Sink
from uldp_transforms.jobs.sources import Source
from uldp_transforms.messages.wire import single_object_header
from uldp_transforms.rows.avro_fields import time_fields
from uldp_transforms.rows.json_and_avro import to_json


class PublishRows(beam.PTransform[PCollection[Any], PCollection[Any]]):
    """Publishes each row as its JSON line, with attributes that describe it.

    Attributes: ``schema``, the full name of the Avro schema; ``schema_fingerprint``, the 8 bytes of Avro's
    single-object encoding in hexadecimal digits, which depends on the fields but not on comments; and, if the row has
    them, its times and the fields in ``ATTRIBUTES``.

    Args:
        topic: projects/P/topics/T.
        schema: Avro schema of the rows.
    """

    def __init__(self, topic: str, schema: Any):
        super().__init__()
        self._topic = topic
        self._times = tuple(time_fields(schema))
        self._schema = schema_attributes(schema)

    def expand(self, rows: PCollection[Any]) -> PCollection[Any]:
        return (
            rows
            | "Messages" >> beam.Map(_message, self._schema, self._times)
            | "Publish" >> beam.io.WriteToPubSub(self._topic, with_attributes=True)
        )


ATTRIBUTES = ("collection_id", "fingerprint", "pane_index", "pane_timing", "status", "reason", "run")
"""Fields that messages also carry as attributes, for subscription filters."""


def schema_attributes(schema: Any) -> dict[str, str]:
    """Message attributes that identify the schema of the rows."""
    return {
        "schema": f"{schema['namespace']}.{schema['name']}",
        "schema_fingerprint": single_object_header(schema)[2:].hex(),
    }


def attributes_of(row: Any, times: tuple[str, ...]) -> dict[str, str]:
    """The fields of a row that its message carries as attributes."""
    fields = row._asdict()
    return {name: str(fields[name]) for name in (*ATTRIBUTES, *times) if fields.get(name) is not None}


def _message(row: Any, schema: dict[str, str], times: tuple[str, ...]) -> beam.io.PubsubMessage:
    return beam.io.PubsubMessage(to_json(row).encode("utf-8"), schema | attributes_of(row, times))


class PubSubTopics(Sink):
    """Pub/Sub topics for estimates and for rejected reports."""

    options: ClassVar[cli.Options] = {
        "--output_topic": {
            "label": "Pub/Sub topic for estimates",
            "type": cli.resource("topics"),
            "help": "Pub/Sub topic for the estimates, projects/P/topics/T",
        },
        "--rejected_topic": {
            "label": "Pub/Sub topic for rejected reports",
            "type": cli.resource("topics"),
            "help": "Pub/Sub topic for rejected reports, projects/P/topics/T",
        },
    }

    takes_values = False

    LABELS: ClassVar[dict[str, str]] = {"estimates": "PublishEstimates", "rejected": "PublishRejected"}

    def __init__(self, topics: dict[str, str]):
        self._topics = topics

    @classmethod
    def of(cls, args: argparse.Namespace, source: type[Source], options: PipelineOptions) -> PubSubTopics | None:
        topics = {"estimates": args.output_topic, "rejected": args.rejected_topic}
        named = {name: topic for name, topic in topics.items() if topic is not None}
        if named:
            require_google_clients("--output_topic" if "estimates" in named else "--rejected_topic")
        return cls(named) if named else None

    def write(self, outputs: Sequence[Output]) -> None:
        for name, rows, schema, *_ in outputs:
            if name in self._topics:
                _ = rows | self.LABELS[name] >> PublishRows(self._topics[name], schema)
