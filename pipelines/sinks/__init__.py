"""Where rows go. A new sink is a file here and a line below."""

from .bigquery_tables import BigQueryTables as BigQueryTables
from .kafka_topics import KafkaTopics as KafkaTopics
from .pubsub_topics import PubSubTopics as PubSubTopics
from .row_files import RowFiles as RowFiles
from .sink import Output as Output
from .sink import Sink as Sink

SINKS: list[type[Sink]] = [
    RowFiles,
    PubSubTopics,
    KafkaTopics,
    BigQueryTables,
]
