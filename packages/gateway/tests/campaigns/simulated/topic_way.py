"""A Kafka topic between a simulated gateway and a job: brokers that are away, that delete, and that have repetitions.

The reader is the one that runs in production; ``Consumer`` stands in for the client of the brokers.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import confluent_kafka

from packages.gateway.tests.campaigns.simulated import AGAIN, DELETED, MISSED, UNREAD, Faults
from uldp_transforms import JobSpec
from uldp_transforms.jobs.kafka import reader
from uldp_transforms.jobs.kafka.reader import Reading
from uldp_transforms.jobs.kafka.topic_options import CREATE_TIME
from uldp_transforms.ldp import ReportBatch
from uldp_transforms_follow import topic_reading
from uldp_transforms_follow.state import NAME, FollowState
from uldp_transforms_follow.topic_reading import TopicSource

TOPIC = "reports"
MOST_PARTITIONS = 4
_ERRORS = confluent_kafka.KafkaError


class Record(NamedTuple):
    """A record, and the reports that it has."""

    value: bytes | None
    time: int
    batches: list[ReportBatch]


def _event(partition: int, offset: int, record: Record | None = None, code: int | None = None) -> Any:
    """A record of a partition as the client gives it, or an error."""
    place: dict[str, Any] = {"partition": partition, "offset": offset}
    if record is None:
        return confluent_kafka.Message(error=_ERRORS(code), **place)
    kind = reader.KINDS_OF_TIMES.index(CREATE_TIME)
    return confluent_kafka.Message(value=record.value, timestamp=(kind, record.time), **place)


class Brokers:
    """The records of a topic.

    Attributes:
        records: of each partition, from its first offset on.
        firsts: offset of the first record of each partition that was not deleted.
        away: whether nobody answers.
    """

    def __init__(self) -> None:
        self.records: list[list[Record]] = [[], []]
        self.firsts = [0, 0]
        self.away = False

    def consumer(self) -> Consumer:
        """As of the settings of consumers."""
        return Consumer(self)

    def admin(self) -> Admin:
        """As of the settings of consumers."""
        return Admin(self)

    def end_of(self, partition: int) -> int:
        return len(self.records[partition])


class Admin:
    """A client that asks the brokers for the id of the topic."""

    def __init__(self, brokers: Brokers):
        self._brokers = brokers

    def list_topics(self, topic: str, timeout: float) -> Any:
        if self._brokers.away:
            raise confluent_kafka.KafkaException(_ERRORS(_ERRORS._TRANSPORT))
        return SimpleNamespace(controller_id=1, brokers={1: None})

    def describe_topics(self, topics: Any, request_timeout: float) -> dict[str, Future[Any]]:
        answer: Future[Any] = Future()
        answer.set_result(SimpleNamespace(topic_id=confluent_kafka.Uuid(0, 1)))
        return {TOPIC: answer}


class Consumer:
    """A client of the brokers."""

    def __init__(self, brokers: Brokers):
        self._brokers = brokers
        self._next: dict[int, int] = {}
        self._told: dict[int, int] = {}
        self._was_away = False

    def _ask(self) -> None:
        if self._brokers.away:
            raise confluent_kafka.KafkaException(_ERRORS(_ERRORS._TRANSPORT))

    def list_topics(self, topic: str, timeout: float) -> Any:
        self._ask()
        partitions = dict.fromkeys(range(len(self._brokers.records)))
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions=partitions)})

    def get_watermark_offsets(self, place: Any, timeout: float) -> tuple[int, int]:
        self._ask()
        return self._brokers.firsts[place.partition], self._brokers.end_of(place.partition)

    def offsets_for_times(self, places: Sequence[Any], timeout: float) -> list[Any]:
        self._ask()
        ends = {place.partition: self._brokers.end_of(place.partition) for place in places}
        return [confluent_kafka.TopicPartition(TOPIC, number, end) for number, end in ends.items()]

    def assign(self, places: Sequence[Any]) -> None:
        self._next, self._told = {place.partition: place.offset for place in places}, {}

    def consume(self, most: int, seconds: float) -> list[Any]:
        """The next records of one partition, and the ends of those that have no more; nothing if brokers are away."""
        was_away, self._was_away = self._was_away, self._brokers.away
        if self._brokers.away:
            return [] if was_away else [_event(0, 0, code=_ERRORS._TRANSPORT)]
        for partition, offset in self._next.items():
            if offset < self._brokers.firsts[partition]:
                return [_event(partition, offset, code=_ERRORS._AUTO_OFFSET_RESET)]
            records = self._brokers.records[partition][offset:][:3]
            self._next[partition] += len(records)
            if records:
                return [_event(partition, offset + at, record) for at, record in enumerate(records)]
            if self._told.get(partition) != offset:
                self._told[partition] = offset
                return [_event(partition, offset, code=_ERRORS._PARTITION_EOF)]
        return []

    def close(self) -> None:
        """Nothing is open."""


class TopicWay:
    """A topic whose partitions get records in turn.

    Args:
        folder: output of the job is in its folder ``out``.
        faults: what happens.
        clock: milliseconds since 1970.
    """

    def __init__(self, folder: Path, faults: Faults, clock: Callable[[], int]):
        self._output, self._faults, self._clock = folder / "out", faults, clock
        self._brokers = Brokers()
        self._waited = 0.0

    def carry(self, packed: Sequence[bytes], parts: Sequence[list[ReportBatch]]) -> tuple[list[ReportBatch], bool]:
        """Send messages, which have these reports; what the topic has then, and whether the gateway could answer."""
        faults = self._faults
        if faults.happens(0.1, "messages of others"):
            self._append(Record([None, b"", faults.rng.bytes(40)][int(faults.rng.integers(3))], self._clock(), []))
        sent = list(zip(packed, parts))
        killed = faults.happens(0.15, "kills of the gateway between messages")
        for message, batches in sent[: int(faults.rng.integers(len(sent) + 1))] if killed else sent:
            self._append(Record(message, self._clock(), batches))
            if faults.happens(0.05, "messages that a producer repeats"):
                self._append(Record(message, self._clock(), batches))
                faults.numbers[AGAIN] += sum(map(len, batches))
        there = {id(batch) for part in self._brokers.records for record in part for batch in record.batches}
        return [batch for part in parts for batch in part if id(batch) in there], not killed

    def _append(self, record: Record) -> None:
        self._brokers.records[int(self._faults.rng.integers(len(self._brokers.records)))].append(record)

    def killed(self) -> None:
        """Messages that were not sent are nowhere."""

    def rest(self) -> None:
        """Brokers go away and come back, get partitions, and delete records, which the job may not have read."""
        faults, brokers = self._faults, self._brokers
        brokers.away = faults.happens(0.2, "brokers that are away")
        if len(brokers.records) < MOST_PARTITIONS and faults.happens(0.1, "partitions that are added"):
            brokers.records.append([])
            brokers.firsts.append(0)
        if faults.happens(0.3, "deletions"):
            partition = int(faults.rng.integers(len(brokers.records)))
            before = brokers.firsts[partition]
            first = int(faults.rng.integers(before, brokers.end_of(partition) + 1))
            brokers.firsts[partition] = first
            counted = self._counted_offsets()
            read = max(before, counted.get(partition, 0))
            unread = [record.batches for record in brokers.records[partition][read:first]]
            brokers.records[partition][read:first] = [Record(b"", 0, []) for _ in unread]
            faults.numbers[DELETED] += sum(len(batch) for batches in unread for batch in batches)
            faults.numbers[MISSED if partition in counted else UNREAD] += len(unread)

    def _counted_offsets(self) -> dict[int, int]:
        """What the job has committed, from its database."""
        path = self._output / NAME
        if not path.exists():
            return {}
        with contextlib.closing(sqlite3.connect(path)) as database:
            return dict(database.execute("SELECT partition, next FROM offsets"))

    def end(self) -> None:
        self._brokers.away = False

    def source(self, spec: JobSpec, state: FollowState) -> TopicSource:
        """What the job follows; raises SpecError if brokers are away."""
        # brokers of this process stand where the settings of real ones do
        options = Reading(settings=self._brokers, kind_of_times=CREATE_TIME, idle_lag=0)  # type: ignore[arg-type]
        return TopicSource(TOPIC, options, None, spec, state)

    @contextlib.contextmanager
    def times(self) -> Iterator[None]:
        """The reader has the virtual clock; each look at it takes some time."""

        def monotonic() -> float:
            self._waited += 0.01
            return self._clock() / 1000 + self._waited

        virtual = SimpleNamespace(time_ns=lambda: self._clock() * 1_000_000, monotonic=monotonic)
        with mock.patch.object(reader, "time", virtual), mock.patch.object(topic_reading, "clock", virtual):
            yield

    def kept(self) -> list[ReportBatch]:
        """The reports that must be counted, as often as the topic has them."""
        return [batch for part in self._brokers.records for record in part for batch in record.batches]
