"""librdkafka's own mock cluster, in the process of a test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import confluent_kafka
import numpy as np

from uldp_transforms.jobs.kafka.offsets import ConsumerSettings


class Cluster:
    """A mock cluster in this process, whose topics have four partitions."""

    def __init__(self) -> None:
        self._producer = confluent_kafka.Producer({"test.mock.num.brokers": 1})
        (found,) = self._producer.list_topics(timeout=30).brokers.values()
        self.servers = f"{found.host}:{found.port}"
        self.settings = ConsumerSettings(self.servers)
        self._topics = 0

    def topic(self) -> str:
        """A new one, without records."""
        self._topics += 1
        name = f"topic-{self._topics}"
        self._producer.list_topics(name, timeout=30)
        return name

    def send(
        self,
        topic: str,
        values: Sequence[bytes | None],
        times: Sequence[int] | int,
        partition: int = 0,
        headers: Sequence[tuple[str, Any]] = (),
    ) -> None:
        moments = np.broadcast_to(times, len(values)).tolist()
        for value, moment in zip(values, moments):
            self._producer.produce(topic, value, b"key", partition=partition, timestamp=moment, headers=[*headers])
        self._producer.flush()

    def values(self, topic: str) -> list[bytes]:
        """What the records of a topic hold, partition by partition."""
        consumer = confluent_kafka.Consumer({"bootstrap.servers": self.servers, "group.id": "values"})
        found: list[bytes] = []
        for partition in consumer.list_topics(topic, timeout=30).topics[topic].partitions:
            place = confluent_kafka.TopicPartition(topic, partition)
            first, end = consumer.get_watermark_offsets(place, timeout=30)
            place.offset = first
            consumer.assign([place])
            while first < end:
                record = consumer.poll(30)
                assert record is not None and record.error() is None, record
                found.append(record.value() or b"")
                first = (record.offset() or 0) + 1
        consumer.close()
        return found
