"""Where reports come from. A new source is a file here and a line below."""

from uldp_transforms.jobs.sources.avro_files import AvroFiles as AvroFiles
from uldp_transforms.jobs.sources.kafka_topic import KafkaTopic as KafkaTopic
from uldp_transforms.jobs.sources.pubsub_subscription import PubSubSubscription as PubSubSubscription
from uldp_transforms.jobs.sources.source import Source as Source

SOURCES: list[type[Source]] = [
    AvroFiles,
    PubSubSubscription,
    KafkaTopic,
]
