"""Which records of a topic a job reads: a range of offsets for each partition, fixed when the pipeline is built."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from uldp_transforms.jobs.kafka.settings import accepted, confluent_kafka, read_settings, refuse_taken, words_of
from uldp_transforms.ldp.errors import SpecError

ANSWER_SECONDS = 15.0

NO_END = 2**63 - 1
"""Behind all offsets."""

OURS = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
}
"""What is not left to the user: where a job stands is kept by the engine, and what is missing is an error."""

DEFAULTS = {
    "group.id": "uldp",
    "queued.max.messages.kbytes": "16384",
    "fetch.queue.backoff.ms": "100",
    "reconnect.backoff.ms": "1000",
}
"""A partition has a consumer of its own, and no more than 16 MiB wait in each."""

NEEDED = "--kafka_topic read by Python needs"

_OWNER = "--kafka_consumer_config and --kafka_property"


class Part(NamedTuple):
    """Records of a partition, from the offset ``start`` to that before ``stop``."""

    topic: str
    partition: int
    start: int
    stop: int


class Share(NamedTuple):
    """Partitions that are read together, without end, each from its offset on."""

    topic: str
    partitions: tuple[int, ...]
    starts: tuple[int, ...]


def shares_of(parts: Sequence[Part], readers: int) -> list[Share]:
    """The partitions in about equal shares; no more of them than partitions."""
    dealt = [parts[number::readers] for number in range(min(readers, len(parts)))]
    return [
        Share(own[0].topic, tuple(part.partition for part in own), tuple(part.start for part in own)) for own in dealt
    ]


@dataclasses.dataclass(frozen=True)
class ConsumerSettings:
    """Settings of consumers. The graph of a job has the path of a file, not what is in it.

    Attributes:
        servers: HOST:PORT of brokers, separated by commas.
        properties: names and values, which are in the graph.
        path: of a file of more of them, which each worker reads; None: there is none.
    """

    servers: str
    properties: tuple[tuple[str, str], ...] = ()
    path: str | None = None

    def consumer(self) -> Any:
        """A new consumer.

        Raises:
            SpecError: no client is installed, or a setting is wrong; its name is shown, its value never.
            OSError: the file cannot be read.
        """
        client = confluent_kafka(NEEDED)
        found = {} if self.path is None else read_settings(self.path, "--kafka_consumer_config")
        found |= dict(self.properties)
        refuse_taken(found, OURS, _OWNER)
        chosen = DEFAULTS | found | OURS | {"bootstrap.servers": self.servers}
        return accepted(lambda: client.Consumer(chosen, logger=logging.getLogger("kafka")), _OWNER)


def parts_of(
    settings: ConsumerSettings, topic: str, *, ends: bool, since: int | None = None, until: int | None = None
) -> list[Part]:
    """All partitions of a topic, with the records that are to be read.

    Args:
        settings: of the consumer.
        topic: must exist.
        ends: whether there is an end; without one ``until`` has no meaning.
        since: milliseconds; from the first record of this time or later on; None: from the first one that is there.
        until: milliseconds; to the one before the first record of this time or later; None: all that are there now.

    Raises:
        SpecError: brokers do not answer, or know no such topic.
    """
    client = confluent_kafka(NEEDED)
    consumer = settings.consumer()
    try:
        found = consumer.list_topics(topic, timeout=ANSWER_SECONDS).topics[topic]
        if found.error is not None:
            raise SpecError(f"--kafka_topic must be a topic that exists, got {topic!r}: {found.error.str()}")
        places = [client.TopicPartition(topic, number) for number in sorted(found.partitions)]
        there = [consumer.get_watermark_offsets(place, timeout=ANSWER_SECONDS) for place in places]
        firsts, behind = [first for first, _ in there], [behind for _, behind in there]
        starts = firsts if since is None else _since(consumer, places, since, behind)
        stops = [NO_END] * len(places)
        if ends:
            stops = behind if until is None else _since(consumer, places, until, behind)
        return [
            Part(topic, place.partition, min(start, stop), stop) for place, start, stop in zip(places, starts, stops)
        ]
    except client.KafkaException as error:
        raise SpecError(f"brokers of --bootstrap_servers must answer, got {words_of(error)}") from None
    finally:
        consumer.close()


def _since(consumer: Any, places: Sequence[Any], moment: int, behind: Sequence[int]) -> list[int]:
    """Offsets of the first records of this time or later; behind the last one where there is none."""
    client = confluent_kafka(NEEDED)
    asked = [client.TopicPartition(place.topic, place.partition, moment) for place in places]
    found = {place.partition: place.offset for place in consumer.offsets_for_times(asked, timeout=ANSWER_SECONDS)}
    return [found[place.partition] if found[place.partition] >= 0 else last for place, last in zip(places, behind)]
