"""Reads a Kafka topic on one machine; the offsets are stored with the counts, in one transaction."""

from __future__ import annotations

import dataclasses
import time as clock
from collections.abc import Iterator

import numpy as np

from uldp_transforms.beam.spec.job_spec import JobSpec
from uldp_transforms.jobs.follow.follow_reading import MessageCounter, Reading
from uldp_transforms.jobs.follow.notices import say
from uldp_transforms.jobs.follow.state import FollowState
from uldp_transforms.jobs.kafka.offsets import Part, parts_of
from uldp_transforms.jobs.kafka.polled import PARTITIONS_SECONDS, TURN_SECONDS
from uldp_transforms.jobs.kafka.polled import Reading as Options
from uldp_transforms.jobs.kafka.reader import Polled, Reader
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages.rejection import Rejection


@dataclasses.dataclass(frozen=True)
class Start:
    """Where reading begins.

    Attributes:
        offsets: by partition, the offset of the first record to read.
        lost: by partition, the number of offsets that were not read and that brokers no longer have.
    """

    offsets: dict[int, int]
    lost: dict[int, int]


def check_topic(topic: str, options: Options) -> None:
    """Ask the brokers for the topic; raises SpecError if they do not respond, or do not have it."""
    parts_of(options.settings, topic, ends=True)


def start_of(topic: str, counted: dict[int, int], existing: list[Part], chosen: list[Part]) -> Start:
    """Where to begin in each partition: after the counted records, or where a partition was not read yet, as chosen.

    Args:
        topic: name of the topic.
        counted: by partition, the offset after the counted records.
        existing: all partitions, with the first offset that brokers have, and the offset after the last record.
        chosen: the same partitions, with the offset at which reading begins.

    Raises:
        SpecError: if records were counted that the topic never had.
    """
    offsets, lost = {}, {}
    for part, own in zip(existing, chosen):
        number = part.partition
        offsets[number] = max(part.start, counted.get(number, own.start))
        if number in counted and counted[number] < part.start:
            lost[number] = part.start - counted[number]
        if counted.get(number, 0) > part.stop:
            raise SpecError(
                f"--kafka_topic must be the topic {topic!r} of which --output has counted {counted[number]} offsets in "
                f"partition {number}, got one that ends at offset {part.stop}"
            )
    gone = sorted(counted.keys() - offsets.keys())
    if gone:
        raise SpecError(
            f"--kafka_topic must be the topic {topic!r} of which --output has counted partition {gone[0]}, got one "
            f"with {len(offsets)} partitions"
        )
    return Start(offsets, lost)


class TopicSource:
    """A Kafka topic that receives records while the job runs.

    Records that brokers deleted before they were read are rejected (``not_as_listed``), one per offset.

    Args:
        topic: an existing topic.
        options: options for reading.
        since: milliseconds; where a partition was not read yet, start at the first record of this time or later; None:
            at the first record.
        spec: specification of the job, with windows.
        state: the offsets of what is counted.

    Raises:
        SpecError: if brokers do not respond, do not have the topic, or have another topic of this name.
    """

    def __init__(self, topic: str, options: Options, since: int | None, spec: JobSpec, state: FollowState):
        self._topic, self._options, self._since, self._state = topic, options, since, state
        self._counter = MessageCounter(spec)
        self._start = self._find_start()
        self._reader: Reader | None = None
        self.seen_until: int | None = None

    def _find_start(self) -> Start:
        settings, counted = self._options.settings, self._state.offsets()
        existing = parts_of(settings, self._topic, ends=True)
        chosen = existing
        if self._since is not None:
            chosen = parts_of(settings, self._topic, ends=True, since=self._since)
        self._looked = clock.monotonic()
        return start_of(self._topic, counted, existing, chosen)

    def news(self, time: int) -> Iterator[Reading]:
        """Records that are polled within a second; see ``Source``.

        Raises:
            KafkaReadError: for an error from which librdkafka does not recover.
            SpecError: as when it was created, if the topic has more partitions than before.
        """
        if self._reader is None:
            yield self._begin()
            self._reader = self._options.reader(self._topic)
            self._reader.seek(self._start.offsets)
        ends = clock.monotonic() + TURN_SECONDS
        while (left := ends - clock.monotonic()) > 0:
            polled = self._reader.poll(left)
            if polled is not None:
                yield self._count(polled)
        self.seen_until = self._reader.watermark(self._options.idle_lag)
        self._check_partitions(self._reader)

    def close(self) -> None:
        """End the connection to the brokers."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _begin(self) -> Reading:
        """The first offsets, and what is lost before them."""
        reading = Reading(offsets=dict(self._start.offsets))
        for number, lost in self._start.lost.items():
            source = f"{self._topic}/{number}"
            say(f"not counted: brokers deleted {lost} records of {source} before they were read")
            reading.reject([Rejection(Reason.NOT_AS_LISTED, lost, 0, source=source)])
        return reading

    def _count(self, polled: Polled) -> Reading:
        """Polled records; one without a value is an empty message."""
        numbers, index = np.unique(polled.partitions, return_inverse=True)
        last = np.zeros(len(numbers), dtype=np.int64)
        np.maximum.at(last, index, polled.offsets)
        reading = Reading(offsets=dict(zip(numbers.tolist(), (last + 1).tolist())))
        self._counter.count(reading, polled.values)
        return reading

    def _check_partitions(self, reader: Reader) -> None:
        """Begin again if the topic has new partitions."""
        if clock.monotonic() < self._looked + PARTITIONS_SECONDS:
            return
        self._looked = clock.monotonic()
        if reader.partitions() - self._start.offsets.keys():
            self.close()
            self._start = self._find_start()
