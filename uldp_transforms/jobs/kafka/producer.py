"""Confluent's Kafka producer (librdkafka) in a worker: its settings, and acknowledged delivery."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Sequence
from typing import Any

from uldp_transforms.jobs.kafka.settings import accepted, confluent_kafka, read_settings, refuse_taken, words_of
from uldp_transforms.ldp.errors import SpecError

CHECK_SECONDS = 15.0

OURS = {"enable.idempotence": "true", "acks": "all"}
"""Settings that the file cannot change: retries of the client make no duplicates, and every record is written
completely.
"""

DEFAULTS = {
    "linger.ms": "5",
    "delivery.timeout.ms": "120000",
    "message.max.bytes": "20000000",
    "reconnect.backoff.ms": "1000",
}

_OPTION = "--kafka_config"


class NotDelivered(RuntimeError):
    """Kafka did not acknowledge records; the engine retries their bundle."""


@dataclasses.dataclass(frozen=True)
class KafkaSettings:
    """Location of a producer's settings. The graph of a job contains only the path, so secrets stay on the machine.

    Attributes:
        path: path of a file that each worker reads, with NAME=VALUE lines and ``#`` comments; may be in a store.
    """

    path: str

    def given(self) -> dict[str, str]:
        """The settings in the file, with environment variables in place of ``${NAME}``.

        Raises:
            SpecError: if a line is invalid, a variable is not set, or brokers are missing; values are never shown.
            OSError: if the file cannot be read.
        """
        found = read_settings(self.path, _OPTION)
        if not found.get("bootstrap.servers"):
            raise SpecError(f"{_OPTION} must contain bootstrap.servers, got none")
        return found

    def read(self) -> dict[str, str]:
        """The settings of a producer; raises as ``given``, and SpecError for settings that users cannot change."""
        found = self.given()
        refuse_taken(found, OURS, _OPTION)
        return DEFAULTS | found | OURS


def _client() -> Any:
    return confluent_kafka("Kafka topics for rows need")


_producers: dict[KafkaSettings, Any] = {}
_lock = threading.Lock()


def _producer(settings: KafkaSettings) -> Any:
    """The producer of this process, because engines create DoFns anew for each bundle."""
    with _lock:
        if settings not in _producers:
            _producers[settings] = new_producer(settings)
        return _producers[settings]


def new_producer(settings: KafkaSettings) -> Any:
    """Create a producer with these settings.

    Raises:
        SpecError: if librdkafka refuses a setting; its name is shown, its value never.
    """
    client, chosen = _client(), settings.read()
    return accepted(lambda: client.Producer(chosen, logger=logging.getLogger("kafka")), _OPTION)


def deliver(settings: KafkaSettings, topic: str, records: Sequence[Any]) -> None:
    """Send records (key, value, headers), and wait until Kafka has acknowledged all of them.

    Raises:
        NotDelivered: if not all are acknowledged; some may be stored. The next call opens a new connection.
    """
    if not records:
        return
    producer, faults, arrived = _producer(settings), list[str](), list[None]()

    def told(error: Any, _: Any) -> None:
        if error is None:
            arrived.append(None)
        else:
            faults.append(error.str())

    client = _client()
    for key, value, headers in records:
        while True:
            try:
                producer.produce(topic, value, key, headers=headers, on_delivery=told)
                break
            except BufferError:
                producer.poll(1.0)
            except client.KafkaException as error:
                faults.append(words_of(error))
                break
        producer.poll(0)
    producer.flush()
    if len(arrived) < len(records):
        with _lock:
            _producers.pop(settings, None)
        missing = len(records) - len(arrived)
        said = faults[0] if faults else "nothing"
        raise NotDelivered(f"Kafka did not take {missing} of {len(records)} rows for topic {topic!r}: {said}")


def check_topic(settings: KafkaSettings, topic: str, option: str) -> None:
    """Check that the brokers have a topic.

    Raises:
        SpecError: if the brokers do not respond, or the topic does not exist.
    """
    client, producer = _client(), new_producer(settings)
    try:
        error = producer.list_topics(topic, timeout=CHECK_SECONDS).topics[topic].error
    except client.KafkaException as caught:
        raise SpecError(f"brokers of --kafka_config must answer, got {words_of(caught)}") from None
    if error is not None and error.code() != client.KafkaError.LEADER_NOT_AVAILABLE:
        raise SpecError(f"{option} must be a topic that exists, got {topic!r}: {error.str()}")
