"""A topic of a real broker that a job follows: created again, it is not counted."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from packages.follow.tests.support.followed_topic import FollowedTopic
from tests.rigs.flink import cached
from tests.rigs.flink.kafka import broker
from tests.support.kafka.plain_topics import MORE, create, send
from uldp_transforms.jobs import estimate
from uldp_transforms.jobs.kafka.reader import KafkaReadError
from uldp_transforms.jobs.records.row_forms import RowForms
from uldp_transforms_follow.follower import Follower
from uldp_transforms_follow.topic_identity import OtherTopicError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(cached.missing() is not None, reason=str(cached.missing())),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with broker(tmp_path_factory.mktemp("broker"), more=MORE) as found:
        yield found


class Real:
    """A broker with what the tests of ``--follow`` ask of a cluster."""

    def __init__(self, server: str):
        self.servers = server

    def topic(self) -> str:
        """A topic with the name of an earlier one, which is deleted."""
        client = AdminClient({"bootstrap.servers": self.servers})
        if "again" in client.list_topics(timeout=60).topics:
            client.delete_topics(["again"])["again"].result(60)
        end = time.monotonic() + 120
        while "again" in client.list_topics(timeout=60).topics:
            assert time.monotonic() < end
            time.sleep(0.1)
        create(self.servers, "again", 4)
        return "again"

    def send(self, topic: str, values: Sequence[bytes | None], moment: int, partition: int, headers: object) -> None:
        send(self.servers, topic, values, [moment] * len(values), partition)


def test_a_topic_that_was_created_again_is_not_counted(
    server: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """While the job runs, without an error of the client, and at the next start."""
    followed = FollowedTopic(tmp_path, Real(server))
    followed.send()
    followed.until_counted()
    job = followed.job()
    follower = Follower(
        job.source, str(followed.output), job.spec, job.state, late_every=0, forms=RowForms(counts=True)
    )
    follower.step()
    counted, topic_id = followed.sums(followed.output), job.state.topic_id()
    assert len(topic_id) == 22
    followed.cluster.topic()
    for _ in range(4):  # more records in each partition than were counted
        followed.send(5)
    with pytest.raises((OtherTopicError, KafkaReadError)) as caught:
        for _ in range(100):
            follower.step()
    for part in (job.source, job.state, job.directory):
        part.close()
    assert followed.sums(followed.output) == counted
    assert estimate.main(followed.argv()) == 2
    said = capfd.readouterr().err
    assert f"has counted (id {topic_id}), got another of this name (id " in said
    assert isinstance(caught.value, KafkaReadError) or topic_id in str(caught.value)
