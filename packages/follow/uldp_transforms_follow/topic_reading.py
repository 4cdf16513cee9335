"""Reads a Kafka topic on one machine; the offsets are stored with the counts, in one transaction."""

from __future__ import annotations

import dataclasses
import time as clock
from collections.abc import Iterator

from uldp_transforms.jobs.kafka.offsets import BrokersAwayError, Part, parts_of
from uldp_transforms.jobs.kafka.reader import PARTITIONS_SECONDS, TURN_SECONDS, Reader
from uldp_transforms.jobs.kafka.reader import Reading as Options
from uldp_transforms.jobs.kafka.records import Polled
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms_follow.follow_reading import MessageCounter, Reading
from uldp_transforms_follow.notices import say
from uldp_transforms_follow.state import FollowState
from uldp_transforms_follow.topic_identity import TopicIdentity

SAY_EVERY = 60.0
"""Seconds between two sentences that say that brokers do not answer."""


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

    Records that brokers deleted before they were read are unread messages (``not_as_listed``), one per offset. Nothing
    is new while brokers do not answer, also before the first record.

    Args:
        topic: an existing topic.
        options: options for reading.
        since: milliseconds; where a partition was not read yet, start at the first record of this time or later; None:
            at the first record.
        spec: specification of the job, with windows.
        state: the offsets of what is counted.

    Raises:
        SpecError: if brokers do not have the topic, or have another topic of this name.
    """

    def __init__(self, topic: str, options: Options, since: int | None, spec: JobSpec, state: FollowState):
        self._topic, self._options, self._since, self._state = topic, options, since, state
        self._counter = MessageCounter(spec, state.forgotten_until)
        self._identity = TopicIdentity(topic, options, state)
        self._reader: Reader | None = None
        self._said_at: float | None = None
        self.seen_until: int | None = None
        self._start = self._find_start()

    def _find_start(self) -> Start | None:
        """Where to begin; None while brokers do not answer."""
        settings, counted = self._options.settings, self._state.offsets()
        self._looked = clock.monotonic()
        try:
            existing = parts_of(settings, self._topic, ends=True)
            chosen = existing
            if self._since is not None:
                chosen = parts_of(settings, self._topic, ends=True, since=self._since)
            start = start_of(self._topic, counted, existing, chosen)
            self._identity.check({part.partition: part.start for part in existing})
        except BrokersAwayError as error:
            self._say_away(error)
            return None
        return start

    def _say_away(self, error: BrokersAwayError) -> None:
        """Print the sentence, at most once in ``SAY_EVERY``."""
        now = clock.monotonic()
        if self._said_at is None or now - self._said_at >= SAY_EVERY:
            self._said_at = now
            say(f"waiting until topic {self._topic!r} can be read: {error}")

    def news(self, time: int) -> Iterator[Reading]:
        """Records that are polled within a second; see ``Source``.

        Raises:
            KafkaReadError: for an error from which librdkafka does not recover.
            SpecError: as when it was created.
        """
        reader = self._reader
        if reader is None:
            start = self._start = self._start or self._find_start()
            if start is None:
                return
            yield self._begin(start)
            reader = self._reader = self._options.reader(self._topic)
            reader.seek(start.offsets)
        try:
            yield from self._turn(reader)
        except BrokersAwayError as error:  # nothing of the polled records is counted
            self._say_away(error)
            reader.seek(self._state.offsets())
            return
        self.seen_until = reader.watermark(self._options.idle_lag)
        self._check_topic(reader)

    def _turn(self, reader: Reader) -> Iterator[Reading]:
        """Polled records, each of which is of the counted topic: its id is asked for after they came."""
        ends = clock.monotonic() + TURN_SECONDS
        while (left := ends - clock.monotonic()) > 0:
            polled = reader.poll(left)
            if polled is not None:
                self._identity.check_id()
                yield self._count(polled)

    def close(self) -> None:
        """End the connection to the brokers."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _begin(self, start: Start) -> Reading:
        """The first offsets, and what is lost before them."""
        reading = Reading(offsets=dict(start.offsets))
        for number, lost in start.lost.items():
            source = f"{self._topic}/{number}"
            say(f"not counted: brokers deleted {lost} records of {source} before they were read")
            reading.reject([Rejection(Reason.NOT_AS_LISTED, 0, 0, source=source, num_messages=lost)])
        return reading

    def _count(self, polled: Polled) -> Reading:
        """Polled records; one without a value is an empty message."""
        last = polled.last()
        numbers = polled.partitions[last].tolist()
        reading = Reading(
            offsets=dict(zip(numbers, (polled.offsets[last] + 1).tolist())),
            times=dict(zip(numbers, polled.times[last].tolist())),
        )
        self._counter.count(reading, polled.values, polled.times)
        return reading

    def _check_topic(self, reader: Reader) -> None:
        """Begin again once a minute if the topic has new partitions, or no id that tells it from another one."""
        if clock.monotonic() < self._looked + PARTITIONS_SECONDS:
            return
        self._looked = clock.monotonic()
        if self._state.topic_id() is None or reader.partitions() - self._state.offsets().keys():
            start = self._find_start()
            if start is not None and start.offsets.keys() - self._state.offsets().keys():
                self.close()
                self._start = start
