"""A consumer of one partition in a worker: records as arrays, many at a time, and whether there are more."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..kafka_settings import confluent_kafka
from .kafka_offsets import ANSWER_SECONDS, NEEDED, ConsumerSettings

AT_ONCE = 10_000
"""Records of a poll, at most."""

PATIENCE = 60.0
"""Seconds without records until what should have some is given up."""

_LOG = logging.getLogger("kafka")

KINDS_OF_TIMES = ["none", "CreateTime", "LogAppendTime"]
"""``message.timestamp.type`` of a topic, at the place of librdkafka's number for it."""


class KafkaReadError(RuntimeError):
    """Records cannot be read as they should; the engine tries again from its last checkpoint."""


class Polled(NamedTuple):
    """Records in the order of their offsets.

    Attributes:
        values: n bytes; empty where a record has none.
        offsets: (n,) int64; compacted topics and transactions have gaps.
        times: (n,) int64, milliseconds since 1970 UTC.
    """

    values: list[bytes]
    offsets: np.ndarray
    times: np.ndarray

    def before(self, stop: int) -> Polled:
        """Those below an offset."""
        number = int(np.searchsorted(self.offsets, stop))
        return Polled(self.values[:number], self.offsets[:number], self.times[:number])


class Partition:
    """A consumer that is assigned to one partition.

    Args:
        settings: of the consumer.
        topic: of the partition.
        number: of the partition.
        kind_of_times: CreateTime or LogAppendTime.
    """

    def __init__(self, settings: ConsumerSettings, topic: str, number: int, kind_of_times: str):
        self._client = confluent_kafka(NEEDED)
        self._consumer = settings.consumer()
        self._topic, self._number, self._kind_of_times = topic, number, kind_of_times
        self._waiting_since = time.monotonic()
        self._said = "nothing"
        self._position = -1
        self._end: int | None = None

    def seek(self, offset: int) -> None:
        """Go on at this offset; costs nothing if it follows what was polled last."""
        self._waiting_since = time.monotonic()
        if offset != self._position:
            self._consumer.assign([self._client.TopicPartition(self._topic, self._number, offset)])
            self._position, self._end = offset, None

    def poll(self, seconds: float) -> Polled | None:
        """What comes within this time; None: nothing.

        Raises:
            KafkaReadError: a fault that librdkafka does not mend by itself, or times of the other kind.
        """
        came = self._consumer.consume(AT_ONCE, seconds)
        records = [record for record in came if record.error() is None]
        if len(records) < len(came):
            self._heed([record for record in came if record.error() is not None], alone=not records)
        if not records:
            return None
        if came[-1].error() is None:
            self._end = None
        kinds, times = np.array([record.timestamp() for record in records], dtype=np.int64).T
        self._check_kinds(kinds)
        offsets = np.fromiter((record.offset() for record in records), dtype=np.int64, count=len(records))
        self._position, self._waiting_since, self._said = int(offsets[-1]) + 1, time.monotonic(), "nothing"
        return Polled([record.value() or b"" for record in records], offsets, times)

    def _heed(self, events: Sequence[Any], *, alone: bool) -> None:
        """Take note of the end of the partition, of connections that are lost, and stop at faults."""
        errors = self._client.KafkaError
        for event in events:
            code = event.error().code()
            if code == errors._PARTITION_EOF:
                self._end = event.offset()
                continue
            self._said = event.error().str()
            if code not in (errors._TRANSPORT, errors._ALL_BROKERS_DOWN, errors._RESOLVE, errors._TIMED_OUT) and alone:
                raise KafkaReadError(f"{self} cannot be read: {self._said}")
            _LOG.warning("%s: %s", self, self._said)

    def _check_kinds(self, kinds: np.ndarray) -> None:
        others = kinds[kinds != KINDS_OF_TIMES.index(self._kind_of_times)]
        if len(others):
            got = KINDS_OF_TIMES[others[0]]
            raise KafkaReadError(f"{self} must have times of kind {self._kind_of_times}, got {got}")

    def has_reached(self, offset: int) -> bool:
        """Whether there is nothing left before this offset, though the last record may lie far before it.

        Raises:
            KafkaReadError: nothing has come for a minute.
        """
        if self._position >= offset or (self._end is not None and self._end >= offset):
            return True
        if time.monotonic() - self._waiting_since > PATIENCE:
            place = f"at offset {self._position}, before {offset}"
            raise KafkaReadError(f"{self} gave nothing for {PATIENCE:g} s {place}: {self._said}")
        return False

    def is_at_its_end(self) -> bool:
        """Whether brokers say, now, that there is nothing more to read; False if they say nothing."""
        if self._end is None:
            return False
        place = self._client.TopicPartition(self._topic, self._number)
        try:
            return self._end >= int(self._consumer.get_watermark_offsets(place, timeout=ANSWER_SECONDS)[1])
        except self._client.KafkaException:
            return False

    def partitions(self) -> set[int]:
        """The partitions that the topic has now; none if brokers do not say."""
        try:
            return set(self._consumer.list_topics(self._topic, timeout=ANSWER_SECONDS).topics[self._topic].partitions)
        except self._client.KafkaException:
            return set()

    def close(self) -> None:
        self._consumer.close()

    def __str__(self) -> str:
        return f"partition {self._number} of topic {self._topic!r}"


class Pool:
    """The consumers of a process that are not reading now. Engines copy functions, and take turns with them."""

    UNUSED_SECONDS = 60.0

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[Any, tuple[Partition, float]] = {}

    def take(self, key: Any, make: Callable[[], Partition]) -> Partition:
        """The consumer of this key, or a new one."""
        with self._lock:
            found = self._waiting.pop(key, None)
            old = [name for name, (_, since) in self._waiting.items() if _now() - since > self.UNUSED_SECONDS]
            unused = [self._waiting.pop(name)[0] for name in old]
        for partition in unused:
            partition.close()
        return make() if found is None else found[0]

    def put_back(self, key: Any, partition: Partition) -> None:
        """Keep a consumer for the next turn; a second one of the same key is closed."""
        with self._lock:
            before = self._waiting.pop(key, None)
            self._waiting[key] = partition, _now()
        if before is not None:
            before[0].close()


def _now() -> float:
    return time.monotonic()
