"""Topics of a real broker without secrets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic

MORE = {
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "log.cleaner.backoff.ms": 200,
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 1,
}
"""Settings of the broker, for quick tests."""


def create(server: str, topic: str, partitions: int = 1, settings: Mapping[str, str] | None = None) -> None:
    client = AdminClient({"bootstrap.servers": server})
    client.create_topics([NewTopic(topic, partitions, 1, config=dict(settings or {}))])[topic].result(60)


def send(server: str, topic: str, values: Sequence[bytes | None], times: Sequence[int], partition: int = 0) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": server})
    for value, moment in zip(values, times, strict=True):
        producer.produce(topic, value, value and value[:1], partition=partition, timestamp=moment)
    assert producer.flush(60) == 0
