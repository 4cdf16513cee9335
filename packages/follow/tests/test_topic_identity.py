"""A topic that was deleted and created again under its name is refused: it has other records at the same offsets."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import confluent_kafka
import pytest

from packages.follow.tests.support.followed_topic import NOW, FollowedTopic
from packages.follow.tests.support.refused_identity import answered, created_again
from packages.follow.tests.support.topic_ids import ids
from tests.support.kafka_cluster import Cluster
from uldp_transforms.jobs import estimate
from uldp_transforms.jobs.engines.signals import Signals
from uldp_transforms.jobs.kafka.offsets import BrokersAwayError
from uldp_transforms_follow import topic_reading
from uldp_transforms_follow.follow_job import BROKEN, run_follow
from uldp_transforms_follow.topic_identity import TopicIds

AWAY = BrokersAwayError("brokers of --bootstrap_servers must answer, got none")


@pytest.fixture(autouse=True)
def _short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_reading, "TURN_SECONDS", 0.1)


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
    assert "\nestimate: the run failed: --kafka_topic must be the topic" in said
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


# ---------------------------------------------------------------------- ids of topics


def ids_of(controller: int = 1, words: tuple[int, int] = (0, 7), fault: Any = None) -> tuple[TopicIds, mock.Mock]:
    admin = mock.Mock()
    admin.list_topics.return_value = SimpleNamespace(controller_id=controller, brokers={1: None})
    answer = mock.Mock(topic_id=confluent_kafka.Uuid(*words))
    admin.describe_topics.return_value = {"t": mock.Mock(result=mock.Mock(return_value=answer, side_effect=fault))}
    settings: Any = SimpleNamespace(admin=lambda: admin)
    return TopicIds(settings, "t"), admin


@pytest.mark.parametrize("words", [(0, 7), (7, 0), (7, 7)])
def test_a_topic_has_the_id_that_its_controller_knows(words: tuple[int, int]) -> None:
    ids, admin = ids_of(words=words)
    assert ids.ask() == str(confluent_kafka.Uuid(*words))
    admin.list_topics.assert_called_once_with("t", timeout=15.0)
    assert admin.describe_topics.call_args.kwargs == {"request_timeout": 15.0}
    assert ids_of(words=(0, 0))[0].ask() is None
    ids, admin = ids_of(controller=2)
    assert ids.ask() is None
    admin.describe_topics.assert_not_called()


@pytest.mark.parametrize("name", ["_UNSUPPORTED_FEATURE", "UNSUPPORTED_VERSION", "_TIMED_OUT"])
def test_brokers_without_ids_are_not_away(name: str) -> None:
    ids, _ = ids_of(
        fault=confluent_kafka.KafkaException(
            confluent_kafka.KafkaError(getattr(confluent_kafka.KafkaError, name), "of this test")
        )
    )
    if name == "_TIMED_OUT":
        with pytest.raises(BrokersAwayError, match=r"^brokers of --bootstrap_servers must answer, got of this test$"):
            ids.ask()
    else:
        assert ids.ask() is None
