"""Where reports come from. A new source is a file here and a line below."""

from .avro_files import AvroFiles as AvroFiles
from .kafka_topic import KafkaTopic as KafkaTopic
from .pubsub_subscription import PubSubSubscription as PubSubSubscription
from .source import Source as Source

SOURCES: list[type[Source]] = [
    AvroFiles,
    PubSubSubscription,
    KafkaTopic,
]
