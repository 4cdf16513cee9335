"""The records of a topic that a job reads: a range of offsets per partition, fixed when the pipeline is built."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

from uldp_transforms.jobs.kafka.settings import accepted, confluent_kafka, read_settings, refuse_taken, words_of
from uldp_transforms.ldp.errors import SpecError

ANSWER_SECONDS = 15.0

NO_END = 2**63 - 1
"""An offset after all others."""

OURS = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
}
"""Settings that users cannot change: the engine keeps the position of a job, and missing records are an error."""

DEFAULTS = {
    "group.id": "uldp",
    "queued.max.messages.kbytes": "16384",
    "fetch.queue.backoff.ms": "100",
    "reconnect.backoff.ms": "1000",
}
"""Settings of the consumer of each partition, which buffers at most 16 MiB."""

NEEDED = "--kafka_topic read by Python needs"

_OWNER = "--kafka_consumer_config and --kafka_property"


_UNHEARD = logging.Logger("kafka", logging.CRITICAL)
"""Of a client beside a consumer, which logs the same connections."""


class BrokersAwayError(SpecError):
    """Brokers do not answer, or not yet; the same request may succeed later."""


class Part(NamedTuple):
    """Records of a partition from the offset ``start`` to before ``stop``."""

    topic: str
    partition: int
    start: int
    stop: int


class Share(NamedTuple):
    """Partitions that one reader reads without end, each from its offset on."""

    topic: str
    partitions: tuple[int, ...]
    starts: tuple[int, ...]


def shares_of(parts: Sequence[Part], readers: int) -> list[Share]:
    """Divide the partitions into about equal shares, at most one per partition."""
    dealt = [parts[number::readers] for number in range(min(readers, len(parts)))]
    return [
        Share(own[0].topic, tuple(part.partition for part in own), tuple(part.start for part in own)) for own in dealt
    ]


@dataclasses.dataclass(frozen=True)
class ConsumerSettings:
    """Settings of consumers. The graph of a job contains the path of the settings file, not its content.

    Attributes:
        servers: HOST:PORT of the brokers, separated by commas.
        properties: names and values of settings that are in the graph.
        path: path of a file with further settings, which each worker reads; None: there is none.
    """

    servers: str
    properties: tuple[tuple[str, str], ...] = ()
    path: str | None = None

    def consumer(self) -> Any:
        """Create a consumer.

        Raises:
            SpecError: if no client is installed, or a setting is wrong; its name is shown, its value never.
            OSError: if the file cannot be read.
        """
        client = confluent_kafka(NEEDED)
        chosen = DEFAULTS | self._given() | OURS | {"bootstrap.servers": self.servers}
        return accepted(lambda: client.Consumer(chosen, logger=logging.getLogger("kafka")), _OWNER)

    def admin(self) -> Any:
        """Create a client that asks about topics; raises as for ``consumer``."""
        confluent_kafka(NEEDED)
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415  # an extra

        chosen: dict[str, Any] = self._given() | {"bootstrap.servers": self.servers}
        return accepted(lambda: AdminClient(chosen, logger=_UNHEARD), _OWNER)

    def _given(self) -> dict[str, str]:
        found = {} if self.path is None else read_settings(self.path, "--kafka_consumer_config")
        found |= dict(self.properties)
        refuse_taken(found, OURS, _OWNER)
        return found


def parts_of(
    settings: ConsumerSettings, topic: str, *, ends: bool, since: int | None = None, until: int | None = None
) -> list[Part]:
    """All partitions of a topic, with the ranges to read.

    Args:
        settings: settings of the consumer.
        topic: an existing topic.
        ends: whether the ranges are bounded; otherwise ``until`` is ignored.
        since: milliseconds; start at the first record of this time or later; None: at the first record.
        until: milliseconds; stop before the first record of this time or later; None: after the current last record.

    Raises:
        BrokersAwayError: if brokers do not respond, or have no leader of a partition yet.
        SpecError: if they do not have the topic.
    """
    client = confluent_kafka(NEEDED)
    consumer = settings.consumer()
    try:
        found = consumer.list_topics(topic, timeout=ANSWER_SECONDS).topics[topic]
        if found.error is not None:
            is_away = found.error.code() == client.KafkaError.LEADER_NOT_AVAILABLE
            kind = BrokersAwayError if is_away else SpecError
            raise kind(f"--kafka_topic must be a topic that exists, got {topic!r}: {found.error.str()}")
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
        raise BrokersAwayError(f"brokers of --bootstrap_servers must answer, got {words_of(error)}") from None
    finally:
        consumer.close()


def _since(consumer: Any, places: Sequence[Any], moment: int, behind: Sequence[int]) -> list[int]:
    """Offsets of the first records of this time or later; the ends of partitions that have none."""
    client = confluent_kafka(NEEDED)
    asked = [client.TopicPartition(place.topic, place.partition, moment) for place in places]
    found = {place.partition: place.offset for place in consumer.offsets_for_times(asked, timeout=ANSWER_SECONDS)}
    return [found[place.partition] if found[place.partition] >= 0 else last for place, last in zip(places, behind)]
