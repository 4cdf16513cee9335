"""A consumer in a worker: reads records as arrays, and tracks the watermark of each partition."""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from uldp_transforms.jobs.kafka.offsets import ANSWER_SECONDS, NEEDED, ConsumerSettings
from uldp_transforms.jobs.kafka.records import Columns, Polled
from uldp_transforms.jobs.kafka.settings import confluent_kafka
from uldp_transforms.messages.set_groups import SetGroups
from uldp_transforms.windows import MIN_EVENT_TIME

AT_ONCE = 1 << 14
"""Maximum number of records per poll."""

IN_A_CALL = 256
"""Records that the client hands over together. It makes an object of each; when about 700 new ones are alive (2,000
since Python 3.13), Python looks for garbage among them, at times among all objects, which takes longer than reading."""

FILL_SECONDS = 0.2
"""Seconds after which a poll ends with the records that it has, as the client's own calls do."""

PATIENCE = 60.0
"""Seconds to wait for records that must exist before the read fails."""

_LOG = logging.getLogger("kafka")

KINDS_OF_TIMES = ["none", "CreateTime", "LogAppendTime"]
"""Values of the topic setting ``message.timestamp.type``, at the index that librdkafka uses for them."""


class KafkaReadError(RuntimeError):
    """Records cannot be read as expected; the engine retries from its last checkpoint."""


class Reader:
    """Consumer of some partitions of a topic.

    Args:
        settings: settings of the consumer.
        topic: the topic to read.
        kind_of_times: CreateTime or LogAppendTime.
        set_groups: sets dimensions from the headers of records.
    """

    def __init__(self, settings: ConsumerSettings, topic: str, kind_of_times: str, set_groups: SetGroups | None = None):
        self._client = confluent_kafka(NEEDED)
        self._consumer = settings.consumer()
        self._topic, self._kind_of_times, self._set_groups = topic, kind_of_times, set_groups
        self._said, self._waiting_since = "nothing", time.monotonic()
        self._fault: str | None = None
        self._positions: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._times: dict[int, int] = {}

    def seek(self, offsets: Mapping[int, int]) -> None:
        """Continue at these offsets; costs nothing if they follow the last polled records."""
        self._waiting_since = time.monotonic()
        if offsets != self._positions:
            self._consumer.assign([self._place(number, offset) for number, offset in offsets.items()])
            self._positions, self._ends, self._times, self._fault = dict(offsets), {}, {}, None

    def positions(self) -> tuple[int, ...]:
        """The offsets after the last polled records, in the order of ``seek``."""
        return tuple(self._positions.values())

    def poll(self, seconds: float) -> Polled | None:
        """Poll records for at most this time; None if there are none.

        Raises:
            KafkaReadError: for an error from which librdkafka does not recover, or timestamps of the other kind.
        """
        if self._fault is not None:
            raise KafkaReadError(self._fault)
        kind = KINDS_OF_TIMES.index(self._kind_of_times)
        columns = Columns(self._client.Message, kind, self._set_groups)
        for found in self._calls(seconds):
            columns.add(found)
        polled = columns.polled()
        self._heed(columns.errors, alone=polled is None)
        for other in columns.other_kinds:
            wanted, got = self._kind_of_times, KINDS_OF_TIMES[other]
            raise KafkaReadError(f"topic {self._topic!r} must have times of kind {wanted}, got {got}")
        if polled is not None:
            self._note(polled)
        return polled

    def _calls(self, seconds: float) -> Iterator[list[Any]]:
        """What the consumer has, in parts of ``IN_A_CALL``; waits at most this time for the first record."""
        end = time.monotonic() + min(seconds, FILL_SECONDS)
        for _ in range(AT_ONCE // IN_A_CALL):
            found = self._consumer.consume(IN_A_CALL, seconds)
            yield found
            if len(found) < IN_A_CALL:
                return
            seconds = max(0.0, end - time.monotonic())

    def _heed(self, events: Sequence[Any], *, alone: bool) -> None:
        """Record ends of partitions and lost connections; raise fatal errors."""
        errors = self._client.KafkaError
        for event in events:
            code = event.error().code()
            if code == errors._PARTITION_EOF:
                self._ends[event.partition()] = event.offset()
                continue
            self._said = event.error().str()
            if code not in (errors._TRANSPORT, errors._ALL_BROKERS_DOWN, errors._RESOLVE, errors._TIMED_OUT):
                self._fault = f"topic {self._topic!r} cannot be read: {self._said}"  # librdkafka may report it once
                if alone:
                    raise KafkaReadError(self._fault)
            _LOG.warning("topic %r: %s", self._topic, self._said)

    def _note(self, polled: Polled) -> None:
        self._said, self._waiting_since = "nothing", time.monotonic()
        last = polled.last()
        numbers, offsets = polled.partitions[last], polled.offsets[last]
        latest = np.full(1 + int(numbers[-1]), MIN_EVENT_TIME)
        np.maximum.at(latest, polled.partitions, polled.times)
        for number, offset, moment in zip(numbers.tolist(), offsets.tolist(), latest[numbers].tolist()):
            self._positions[number] = offset + 1
            self._times[number] = max(moment, self._times.get(number, moment))

    def has_reached(self, offset: int) -> bool:
        """Whether the single partition has no records left before this offset, which may be far after the last record.

        Raises:
            KafkaReadError: if no record arrived for a minute.
        """
        (number, position), *_ = self._positions.items()
        if max(position, self._ends.get(number, -1)) >= offset:
            return True
        if time.monotonic() - self._waiting_since > PATIENCE:
            place = f"partition {number} of topic {self._topic!r}"
            where = f"at offset {position}, before {offset}"
            raise KafkaReadError(f"{place} returned no records for {PATIENCE:g} s {where}: {self._said}")
        return False

    def watermark(self, idle_lag: int) -> int | None:
        """The minimum watermark over all partitions, in milliseconds; None if it is unknown for one of them.

        The watermark of a partition is the time of its latest record, or the clock if brokers confirm that there is
        nothing more to read.

        Args:
            idle_lag: milliseconds by which the watermark of an idle partition lags behind the clock.
        """
        clock = time.time_ns() // 1_000_000
        for number in self._at_their_ends(clock - idle_lag):
            self._times[number] = clock - idle_lag
        if self._times.keys() != self._positions.keys():
            return None
        return min(clock, *self._times.values())

    def _at_their_ends(self, moment: int) -> list[int]:
        """Idle partitions with a watermark before this time; none if brokers do not respond."""
        behind = [
            number
            for number, position in self._positions.items()
            if self._ends.get(number, -1) >= position and self._times.get(number, moment - 1) < moment
        ]
        if not behind:
            return []
        asked = [self._place(number, self._client.OFFSET_END) for number in behind]
        try:
            found = self._consumer.offsets_for_times(asked, timeout=ANSWER_SECONDS)
        except self._client.KafkaException:
            return []
        return [
            place.partition
            for place in found
            if place.error is None and 0 <= place.offset <= self._ends[place.partition]
        ]

    def partitions(self) -> set[int]:
        """The current partitions of the topic; none if brokers do not respond."""
        try:
            return set(self._consumer.list_topics(self._topic, timeout=ANSWER_SECONDS).topics[self._topic].partitions)
        except self._client.KafkaException:
            return set()

    def close(self) -> None:
        self._consumer.close()

    def _place(self, number: int, offset: int) -> Any:
        return self._client.TopicPartition(self._topic, number, offset)


class Pool:
    """The idle consumers of a process, kept because engines copy DoFns and alternate between them."""

    UNUSED_SECONDS = 60.0

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[Any, tuple[Reader, float]] = {}

    def take(self, key: Any, make: Callable[[], Reader]) -> Reader:
        """Take the consumer with this key, or create one."""
        with self._lock:
            found = self._waiting.pop(key, None)
            old = [name for name, (_, since) in self._waiting.items() if _now() - since > self.UNUSED_SECONDS]
            unused = [self._waiting.pop(name)[0] for name in old]
        for reader in unused:
            reader.close()
        return make() if found is None else found[0]

    def put_back(self, key: Any, reader: Reader) -> None:
        """Return a consumer for the next turn; if the key is already present, close it."""
        with self._lock:
            before = self._waiting.pop(key, None)
            self._waiting[key] = reader, _now()
        if before is not None:
            before[0].close()


def _now() -> float:
    return time.monotonic()


TURN_SECONDS = 1.0
"""Seconds for which partitions are read before control returns to the engine."""

IDLE_LAG = 2_000
"""Milliseconds by which the watermark of a partition without new records lags behind the clock, as in Beam's own reader
in Java.
"""

PARTITIONS_SECONDS = 60.0
"""Seconds between two checks whether the topic got more partitions."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reading:
    """Options for reading a topic.

    Attributes:
        settings: settings of the consumers.
        kind_of_times: CreateTime or LogAppendTime, as configured for the topic.
        idle_lag: milliseconds by which the watermark of a partition without new records lags behind the clock.
        readers: number of readers that share the partitions of a stream.
        partitions: number of partitions when the pipeline was built.
        set_groups: sets dimensions from the headers of records; None: no dimension is set here.
    """

    settings: ConsumerSettings
    kind_of_times: str
    idle_lag: int = IDLE_LAG
    readers: int = 1
    partitions: frozenset[int] = frozenset()
    set_groups: SetGroups | None = None

    def reader(self, topic: str) -> Reader:
        """Create a consumer."""
        return Reader(self.settings, topic, self.kind_of_times, self.set_groups)
