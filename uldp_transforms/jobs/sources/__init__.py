"""Sources of reports. To add one, write a module here and a line below."""

from uldp_transforms.jobs.sources.avro_files import AvroFiles as AvroFiles
from uldp_transforms.jobs.sources.kafka_topic import KafkaTopic as KafkaTopic
from uldp_transforms.jobs.sources.pubsub_subscription import PubSubSubscription as PubSubSubscription
from uldp_transforms.jobs.sources.source import Source as Source
from uldp_transforms.ldp.registry import Table

SOURCES: Table[type[Source]] = Table(
    "source",
    [
        AvroFiles,
        PubSubSubscription,
        KafkaTopic,
    ],
    options=lambda source: (source.option, *source.own_options),
)
