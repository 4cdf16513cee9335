"""Refusals of the identity of a topic: calls and their sentences."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import confluent_kafka

from packages.follow.tests.support.followed_topic import NOW, FollowedTopic
from packages.follow.tests.support.topic_ids import ids
from tests.support.kafka_cluster import Cluster
from tests.support.refusals.tables import Refusal
from uldp_transforms.jobs.kafka.offsets import BrokersAwayError, ConsumerSettings, parts_of
from uldp_transforms_follow.topic_identity import OtherTopicError, TopicIdentity, TopicIds


def created_again(folder: Path, moment: int = NOW + 1) -> FollowedTopic:
    """A topic that was counted, and then is one of the same name with as many records."""
    followed = FollowedTopic(folder, Cluster())
    followed.send()
    followed.send()
    followed.until_counted()
    followed.cluster = Cluster()
    assert followed.cluster.topic() == followed.topic
    for partition in (0, 1):
        followed.cluster.send(followed.topic, [*followed.messages(), None, None], moment, partition=partition)
    return followed


def answered(error: Any, topic_id: Any = None) -> str | None:
    """What is made of a recorded answer of brokers that have a controller."""
    asks = TopicIds(ConsumerSettings("127.0.0.1:1"), "t")
    asks._admin = mock.Mock()
    asks._admin.list_topics.return_value = mock.Mock(controller_id=1, brokers={1: None})
    answer = mock.Mock()
    asks._admin.describe_topics.return_value = {"t": answer}
    answer.result.return_value = mock.Mock(topic_id=topic_id)
    answer.result.side_effect = None if error is None else confluent_kafka.KafkaException(error)
    return asks.ask()


def _another_id() -> None:
    with tempfile.TemporaryDirectory() as folder:
        followed = FollowedTopic(Path(folder), Cluster())
        for answer in ("A", "B"):
            with ids(answer):
                job = followed.job()
                for part in (job.source, job.state, job.directory):
                    part.close()


def _no_id_any_more() -> None:
    state = mock.Mock()
    state.topic_id.return_value = "A"
    with ids(None):
        TopicIdentity("t", mock.Mock(settings=ConsumerSettings("127.0.0.1:1")), state).check_id()


def _other_records() -> None:
    with tempfile.TemporaryDirectory() as folder:
        created_again(Path(folder)).job()


def _no_leader() -> None:
    settings = mock.Mock()
    error = confluent_kafka.KafkaError(confluent_kafka.KafkaError.LEADER_NOT_AVAILABLE, "no leader")
    settings.consumer.return_value.list_topics.return_value.topics = {"t": mock.Mock(error=error)}
    parts_of(settings, "t", ends=True)


REFUSED: list[Refusal] = [
    (OtherTopicError, _another_id, "--kafka_topic must be the topic 'topic-1' that --output has counted (id A), "),
    (OtherTopicError, _other_records, "--kafka_topic must be the topic 'topic-1' that --output has counted (time "),
    (BrokersAwayError, _no_id_any_more, "brokers of --bootstrap_servers must give the id of the topic, got none"),
    (BrokersAwayError, _no_leader, "--kafka_topic must be a topic that exists, got 't': no leader"),
    (
        BrokersAwayError,
        lambda: answered(confluent_kafka.KafkaError(confluent_kafka.KafkaError._TIMED_OUT, "timed out")),
        "brokers of --bootstrap_servers must answer, got timed out",
    ),
]
