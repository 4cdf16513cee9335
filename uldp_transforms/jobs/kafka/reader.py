"""A consumer in a worker: reads records as arrays, and tracks the watermark of each partition."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import operator
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from uldp_transforms.jobs.kafka.offsets import ANSWER_SECONDS, NEEDED, ConsumerSettings
from uldp_transforms.jobs.kafka.settings import confluent_kafka
from uldp_transforms.messages.set_groups import SetGroups
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME

AT_ONCE = 10_000
"""Maximum number of records per poll."""

PATIENCE = 60.0
"""Seconds to wait for records that must exist before the read fails."""

_LOG = logging.getLogger("kafka")

# mapped over records, which is faster than a call of each
_ERROR, _TIMESTAMP, _PARTITION, _OFFSET, _VALUE, _HEADERS = map(
    operator.methodcaller, ("error", "timestamp", "partition", "offset", "value", "headers")
)

KINDS_OF_TIMES = ["none", "CreateTime", "LogAppendTime"]
"""Values of the topic setting ``message.timestamp.type``, at the index that librdkafka uses for them."""


class KafkaReadError(RuntimeError):
    """Records cannot be read as expected; the engine retries from its last checkpoint."""


class Polled(NamedTuple):
    """Polled records, in order of offset within each partition.

    Attributes:
        values: n bytes objects; empty if a record has no value.
        partitions: (n,) int64.
        offsets: (n,) int64; compacted topics and transactions have gaps.
        times: (n,) int64, milliseconds since 1970 UTC.
    """

    values: list[bytes]
    partitions: np.ndarray
    offsets: np.ndarray
    times: np.ndarray

    def before(self, stop: int) -> Polled:
        """The records before an offset, from a single partition."""
        number = int(np.searchsorted(self.offsets, stop))
        return Polled(self.values[:number], *(column[:number] for column in self[1:]))


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
        records = self._consumer.consume(AT_ONCE, seconds)
        if any(map(_ERROR, records)):
            came, records = records, [record for record in records if record.error() is None]
            self._heed([record for record in came if record.error() is not None], alone=not records)
        if not records:
            return None
        stamps = itertools.chain.from_iterable(map(_TIMESTAMP, records))
        kinds, times = np.fromiter(stamps, np.int64, 2 * len(records)).reshape(-1, 2).T
        self._check_kinds(kinds)
        times = np.clip(times, MIN_EVENT_TIME, MAX_EVENT_TIME)  # senders may choose any 64-bit number
        partitions, offsets = self._places(records)
        self._note(partitions, offsets, times)
        values = [value or b"" for value in map(_VALUE, records)]
        if self._set_groups is not None:
            headers = (found or () for found in map(_HEADERS, records))
            values = list(map(self._set_groups.in_message, values, headers))
        return Polled(values, partitions=partitions, offsets=offsets, times=times)

    def _places(self, records: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Partition and offset (n,) of records. Offsets of a partition increase, so none of n consecutive ones needs to
        be asked for but the first and the last one."""
        first, last = records[0].offset(), records[-1].offset()
        if len(self._positions) == 1 and last - first == len(records) - 1:
            return np.full(len(records), records[0].partition()), np.arange(first, last + 1)
        partitions, offsets = (
            np.fromiter(map(part, records), np.int64, len(records)) for part in (_PARTITION, _OFFSET)
        )
        return partitions, offsets

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

    def _check_kinds(self, kinds: np.ndarray) -> None:
        others = kinds[kinds != KINDS_OF_TIMES.index(self._kind_of_times)]
        if len(others):
            wanted, got = self._kind_of_times, KINDS_OF_TIMES[others[0]]
            raise KafkaReadError(f"topic {self._topic!r} must have times of kind {wanted}, got {got}")

    def _note(self, partitions: np.ndarray, offsets: np.ndarray, times: np.ndarray) -> None:
        self._said, self._waiting_since = "nothing", time.monotonic()
        numbers, index = np.unique(partitions, return_inverse=True)
        last, latest = np.full((2, len(numbers)), -1)
        np.maximum.at(last, index, offsets)
        np.maximum.at(latest, index, times)
        for number, offset, moment in zip(numbers.tolist(), last.tolist(), latest.tolist()):
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
