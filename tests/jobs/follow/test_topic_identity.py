"""A topic that was deleted and created again under its name is refused: it has other records at the same offsets."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import confluent_kafka
import pytest

from tests.jobs.follow.test_follow_topic import NOW, FollowedTopic
from tests.support.kafka_cluster import Cluster
from uldp_transforms.jobs import estimate
from uldp_transforms.jobs.engines.signals import Signals
from uldp_transforms.jobs.follow import topic_reading
from uldp_transforms.jobs.follow.follow_job import BROKEN, run_follow
from uldp_transforms.jobs.follow.topic_identity import OtherTopicError, TopicIdentity
from uldp_transforms.jobs.kafka.offsets import BrokersAwayError, ConsumerSettings, parts_of
from uldp_transforms.jobs.kafka.topic_ids import TopicIds

AWAY = BrokersAwayError("brokers of --bootstrap_servers must answer, got none")


@pytest.fixture(autouse=True)
def _short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_reading, "TURN_SECONDS", 0.1)


def ids(*answers: str | Exception | None) -> Any:
    """Brokers that give these ids, the last one from then on; the mock cluster gives none."""
    return mock.patch.object(TopicIds, "ask", side_effect=itertools.chain(answers, itertools.repeat(answers[-1])))


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


def content(followed: FollowedTopic) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in followed.output.iterdir()}


def test_without_ids_the_last_counted_records_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    followed = created_again(tmp_path)
    before = content(followed)
    assert estimate.main(followed.argv()) == 2
    assert capsys.readouterr().err == (
        f"estimate: --kafka_topic must be the topic {followed.topic!r} that --output has counted (time {NOW} at offset "
        f"5 of partition 0), got another of this name (time {NOW + 1}): it was deleted and created again, or is on "
        "other brokers; use another --output\n"
    )
    assert content(followed) == before


def test_a_copy_of_a_topic_goes_on(tmp_path: Path) -> None:
    """Records of the same times at the same offsets, as a mirror of the topic has them."""
    followed = created_again(tmp_path, NOW)
    job = followed.job()
    assert job.source._start.offsets == {0: 6, 1: 6, 2: 0, 3: 0}
    for part in (job.source, job.state, job.directory):
        part.close()


def test_an_id_is_stored_and_another_one_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    followed = FollowedTopic(tmp_path, Cluster())
    followed.send()
    followed.until_counted()  # by a program that knew no ids
    with ids("A"):
        followed.send()
        followed.until_counted()
    before = content(followed)
    with ids("B"):
        assert estimate.main(followed.argv()) == 2
    assert "has counted (id A), got another of this name (id B): it was deleted" in capsys.readouterr().err
    assert content(followed) == before
    followed.assert_exact()


def test_nothing_of_another_topic_is_counted_while_the_job_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Records are counted only after brokers have said that the topic is still the same."""
    followed = FollowedTopic(tmp_path, Cluster())
    with ids("A"):
        followed.send()
        followed.until_counted()
        job = followed.job()
    counted = followed.sums(followed.output)
    followed.send()
    with ids("B"):
        assert run_follow(job, Signals("estimate")) == BROKEN
    said = capsys.readouterr().err
    assert said.startswith("estimate: the run failed: --kafka_topic must be the topic")
    assert "continues" not in said, "the next start is refused too"
    assert followed.sums(followed.output) == counted


def test_records_wait_until_brokers_say_of_which_topic_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    followed = FollowedTopic(tmp_path, Cluster())
    with ids("A"):
        followed.send()
        followed.until_counted()
    followed.send()
    with ids("A", AWAY, None, AWAY, "A"):
        followed.until_counted()
    said = capsys.readouterr().err
    assert said == f"estimate: waiting until topic {followed.topic!r} can be read: {AWAY}\n"
    followed.assert_exact()


@pytest.mark.parametrize("error", ["_UNSUPPORTED_FEATURE", "UNSUPPORTED_VERSION"])
def test_old_brokers_have_no_ids(error: str) -> None:
    assert answered(confluent_kafka.KafkaError(getattr(confluent_kafka.KafkaError, error))) is None


def test_a_topic_without_an_id_has_that_of_zeros() -> None:
    assert answered(None, confluent_kafka.Uuid(0, 0)) is None
    assert answered(None, confluent_kafka.Uuid(0, 7)) == str(confluent_kafka.Uuid(0, 7))


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


REFUSED: list[tuple[type[Exception], Callable[[], Any], str]] = [
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


@pytest.mark.parametrize(("kind", "call", "sentence"), REFUSED, ids=[row[2][:50] for row in REFUSED])
def test_sentences(kind: type[Exception], call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    said = str(caught.value)
    assert said == sentence or (sentence.endswith(" ") and said.startswith(sentence))
