"""Packed messages to a Kafka topic, by Confluent's client (librdkafka)."""

from __future__ import annotations

import argparse
import asyncio
import logging
import threading
from collections.abc import Mapping
from typing import Any, ClassVar

from confluent_kafka import KafkaError, KafkaException, Producer

from uldp_transforms.jobs import cli
from uldp_transforms.jobs.kafka.producer import KafkaSettings
from uldp_transforms.jobs.kafka.secrets import refuse_secrets
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages.wire import MAX_MESSAGE_BYTES
from uldp_transforms_gateway.outlets.outlet import Outlet, Undelivered

CHECK_SECONDS = 15.0
GIVE_UP_SECONDS = 20.0

_POLL = 0.1  # seconds


class KafkaOutlet(Outlet):
    """A Kafka topic; a message is delivered when all in-sync replicas have it, exactly once."""

    option = "--kafka_topic"
    help = "Kafka topic (needs --bootstrap_servers or --kafka_config) to publish to"
    own_options: ClassVar[cli.Options] = {
        "--bootstrap_servers": {"type": cli.servers, "help": "HOST:PORT of Kafka's brokers, separated by commas"},
        "--kafka_property": {
            "type": cli.name_and_value,
            "action": "append",
            "help": "NAME=VALUE, a setting of librdkafka such as security.protocol=SASL_SSL, not a secret; may be "
            "given several times",
        },
        "--kafka_config": {
            "help": "file with settings of a producer (librdkafka), including bootstrap.servers, one NAME=VALUE per "
            "line, instead of --bootstrap_servers; the value ${NAME} stands for an environment variable"
        },
    }

    def __init__(self, servers: str, topic: str, properties: Mapping[str, str] | None = None):
        self._topic = topic
        settings: dict[str, Any] = {
            "bootstrap.servers": servers,
            "acks": "all",
            "enable.idempotence": True,  # the client's own repetitions make no duplicates
            "linger.ms": 5,
            "message.timeout.ms": int(1000 * GIVE_UP_SECONDS),
            "message.max.bytes": MAX_MESSAGE_BYTES + 1000,
        }
        try:
            self._producer = Producer(settings | dict(properties or {}), logger=logging.getLogger("kafka"))
        except (KafkaException, TypeError, ValueError) as error:
            raise SpecError(f"--kafka_property must be a setting of librdkafka, got {_text(error)}") from None
        self._stopping = threading.Event()
        self._polling: threading.Thread | None = None

    @classmethod
    def of(cls, args: argparse.Namespace) -> KafkaOutlet:
        named = [args.bootstrap_servers, args.kafka_config]
        if named.count(None) != 1:
            got = "both" if all(named) else "none"
            raise SpecError(f"--kafka_topic needs --bootstrap_servers or --kafka_config, got {got}")
        properties = tuple(args.kafka_property or ())
        refuse_secrets(properties, "--kafka_config")
        settings = {"bootstrap.servers": args.bootstrap_servers} if args.kafka_config is None else _given(args)
        servers = settings.pop("bootstrap.servers")
        return cls(servers, args.kafka_topic, settings | dict(properties))

    def check(self) -> None:
        try:
            error = self._producer.list_topics(self._topic, timeout=CHECK_SECONDS).topics[self._topic].error
        except KafkaException as caught:
            raise SpecError(f"--bootstrap_servers must be brokers that answer, got {_text(caught)}") from None
        if error is not None and error.code() != KafkaError.LEADER_NOT_AVAILABLE:
            raise SpecError(f"--kafka_topic must exist, got {self._topic!r}: {error.str()}")

    async def start(self) -> None:
        self._polling = threading.Thread(target=self._poll, name="kafka", daemon=True)
        self._polling.start()

    def _poll(self) -> None:
        while not self._stopping.is_set():
            self._producer.poll(_POLL)

    async def deliver(self, message: bytes) -> None:
        loop = asyncio.get_running_loop()
        arrived: asyncio.Future[KafkaError | None] = loop.create_future()

        def told(error: KafkaError | None, _: Any) -> None:  # in the thread that polls
            loop.call_soon_threadsafe(_settle, arrived, error)

        try:
            self._producer.produce(self._topic, message, on_delivery=told)
        except (BufferError, KafkaException) as error:
            raise Undelivered(f"Kafka says {_text(error)}") from None
        fault = await arrived
        if fault is not None:
            raise Undelivered(f"Kafka says {fault.str()}")

    async def close(self) -> None:
        await asyncio.to_thread(self._producer.flush, GIVE_UP_SECONDS)
        self._stopping.set()
        if self._polling is not None:
            await asyncio.to_thread(self._polling.join)


def _given(args: argparse.Namespace) -> dict[str, str]:
    try:
        return KafkaSettings(args.kafka_config).given()
    except OSError as error:
        raise SpecError(f"--kafka_config must be a file that can be read, got {error}") from None


def _settle(arrived: asyncio.Future[KafkaError | None], error: KafkaError | None) -> None:
    if not arrived.done():
        arrived.set_result(error)


def _text(error: Exception) -> str:
    """librdkafka's error message without the code before it."""
    first = error.args[0] if error.args else error
    return first.str() if isinstance(first, KafkaError) else str(first)
