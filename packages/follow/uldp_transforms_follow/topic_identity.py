"""Whether a topic is the one of which records are counted: by its id (KIP-516), else by its last records.

Brokers number the records of a topic that was deleted and created again from 0. To continue at the stored offsets would
skip its first records, and nothing else would show it.
"""

from __future__ import annotations

import contextlib
import time as clock
from collections.abc import Mapping

from uldp_transforms.jobs.kafka import offsets as kafka_offsets
from uldp_transforms.jobs.kafka.offsets import NEEDED, BrokersAwayError, ConsumerSettings
from uldp_transforms.jobs.kafka.reader import Reading as Options
from uldp_transforms.jobs.kafka.settings import confluent_kafka, words_of
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_follow.state import FollowState

_GLANCE = 0.1  # seconds of one poll


class OtherTopicError(SpecError):
    """Another topic has the name of the counted one."""


class TopicIdentity:
    """Compares a topic with the one that a directory counts: by its id, else by the time of its last counted records.

    Args:
        topic: name of the topic.
        options: options for reading.
        state: the id and the last records of the counted topic.
    """

    def __init__(self, topic: str, options: Options, state: FollowState):
        self._topic, self._options, self._state = topic, options, state
        self._ids = TopicIds(options.settings, topic)
        self._known = state.topic_id()

    def check(self, first: Mapping[int, int]) -> None:
        """Compare, and store the id if there was none.

        Args:
            first: by partition, the first offset that brokers have.

        Raises:
            OtherTopicError: if it is another topic.
            BrokersAwayError: if brokers do not respond.
        """
        if self._known is not None:
            self.check_id()
            return
        found = self._ids.ask()
        self._check_records(first)
        if found is not None:
            self._state.set_topic_id(found)
            self._known = found

    def check_id(self) -> None:
        """Compare the ids, if the counted topic has one; raises as ``check``."""
        if self._known is None:
            return
        found = self._ids.ask()
        if found is None:
            raise BrokersAwayError("brokers of --bootstrap_servers must give the id of the topic, got none")
        if found != self._known:
            raise self._other(f"id {self._known}", f"id {found}")

    def _check_records(self, first: Mapping[int, int]) -> None:
        """Compare the times of the last counted records that brokers still have."""
        last = {
            number: record for number, record in self._state.last_records().items() if record[0] >= first.get(number, 0)
        }
        found = _times_at(self._topic, self._options, {number: offset for number, (offset, _) in last.items()})
        for number, moment in found.items():
            offset, counted = last[number]
            if moment != counted:
                place = f"offset {offset} of partition {number}"
                raise self._other(f"time {counted} at {place}", f"time {moment}")

    def _other(self, counted: str, found: str) -> OtherTopicError:
        return OtherTopicError(
            f"--kafka_topic must be the topic {self._topic!r} that --output has counted ({counted}), got another of "
            f"this name ({found}): it was deleted and created again, or is on other brokers; use another --output"
        )


def _times_at(topic: str, options: Options, offsets: Mapping[int, int]) -> dict[int, int]:
    """By partition, the time of the record at this offset, in milliseconds; without records that no longer exist."""
    found: dict[int, int | None] = {}
    if offsets:
        end = clock.monotonic() + kafka_offsets.ANSWER_SECONDS
        with contextlib.closing(options.reader(topic)) as reader:
            reader.seek(offsets)
            while offsets.keys() - found.keys() and clock.monotonic() < end:
                polled = reader.poll(_GLANCE)
                if polled is None:
                    continue
                for number, offset, moment in zip(*(column.tolist() for column in polled[1:])):
                    found.setdefault(number, moment if offset == offsets[number] else None)
    return {number: moment for number, moment in found.items() if moment is not None}


class TopicIds:
    """Asks brokers for the id of a topic; one that is deleted and created again under the same name gets another.

    Args:
        settings: settings of consumers; raises as ``ConsumerSettings.consumer``.
        topic: name of the topic.
    """

    def __init__(self, settings: ConsumerSettings, topic: str):
        self._client = confluent_kafka(NEEDED)
        self._errors = self._client.KafkaError
        self._admin = settings.admin()
        self._topic = topic

    def ask(self) -> str | None:
        """The current id of the topic; None if brokers give none, as those before Kafka 2.8.

        Raises:
            BrokersAwayError: if brokers do not respond.
        """
        try:
            found = self._admin.list_topics(self._topic, timeout=kafka_offsets.ANSWER_SECONDS)
            if found.controller_id not in found.brokers:
                return None  # librdkafka would ask nobody else
            asked = self._client.TopicCollection([self._topic])
            answer = self._admin.describe_topics(asked, request_timeout=kafka_offsets.ANSWER_SECONDS)[
                self._topic
            ].result()
        except self._client.KafkaException as error:
            if error.args[0].code() in (self._errors._UNSUPPORTED_FEATURE, self._errors.UNSUPPORTED_VERSION):
                return None
            raise BrokersAwayError(f"brokers of --bootstrap_servers must answer, got {words_of(error)}") from None
        words = (answer.topic_id.get_most_significant_bits(), answer.topic_id.get_least_significant_bits())
        return str(answer.topic_id) if any(words) else None
