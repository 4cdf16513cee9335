"""Destinations of rows. To add one, write a module here and a line below."""

from uldp_transforms.jobs.sinks.bigquery_tables import BigQueryTables as BigQueryTables
from uldp_transforms.jobs.sinks.kafka_topics import KafkaTopics as KafkaTopics
from uldp_transforms.jobs.sinks.pubsub_topics import PubSubTopics as PubSubTopics
from uldp_transforms.jobs.sinks.row_files import RowFiles as RowFiles
from uldp_transforms.jobs.sinks.sink import Output as Output
from uldp_transforms.jobs.sinks.sink import Sink as Sink
from uldp_transforms.ldp.registry import Table

SINKS: Table[type[Sink]] = Table(
    "sink",
    [
        RowFiles,
        PubSubTopics,
        KafkaTopics,
        BigQueryTables,
    ],
    options=lambda sink: sink.options,
)
