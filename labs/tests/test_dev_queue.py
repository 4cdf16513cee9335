"""``uldp dev-queue``: Google's own clients publish to it and pull from it; it ends by a signal."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest
from apache_beam.io.gcp.pubsub import parse_subscription
from google.pubsub_v1 import PublisherClient, SubscriberClient
from google.pubsub_v1.services.publisher.transports import PublisherGrpcTransport
from google.pubsub_v1.services.subscriber.transports import SubscriberGrpcTransport

from labs.dev_queue import TOPIC, configure
from labs.tests.refusals.dev_queue import REFUSED, TOPICS
from tests.support.refusals.raised import check_sentence
from tests.support.refusals.tables import with_kinds
from uldp_transforms.jobs.uldp import main
from uldp_transforms.ldp import SpecError

COMMAND = [sys.executable, "-m", "uldp_transforms.jobs", "dev-queue"]


@pytest.fixture
def queue() -> Iterator[subprocess.Popen[str]]:
    argv = [*COMMAND, "--port", "0", *(word for topic in TOPICS for word in ("--topic", topic))]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by what runs in a shell's background
    try:
        started = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    with started as process:
        try:
            yield process
        finally:
            process.kill()


def address(queue: subprocess.Popen[str]) -> str:
    assert queue.stdout is not None
    for topic in TOPICS:
        assert queue.stdout.readline() == f"dev-queue: {topic}, {topic.replace('/topics/', '/subscriptions/')}\n"
    found = re.fullmatch(r"export PUBSUB_EMULATOR_HOST=(127\.0\.0\.1:[0-9]+)\n", queue.stdout.readline())
    assert found is not None
    return found[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_is_published_is_pulled_until_a_signal(queue: subprocess.Popen[str], number: signal.Signals) -> None:
    with grpc.insecure_channel(address(queue)) as channel:
        publisher = PublisherClient(transport=PublisherGrpcTransport(channel=channel))
        subscriber = SubscriberClient(transport=SubscriberGrpcTransport(channel=channel))
        for topic in TOPICS:
            publisher.publish(topic=topic, messages=[{"data": topic.encode()}])
        for topic in TOPICS:
            pulled = subscriber.pull(subscription=topic.replace("/topics/", "/subscriptions/"), max_messages=10)
            assert [each.message.data for each in pulled.received_messages] == [topic.encode()]
    queue.send_signal(number)
    assert queue.communicate(timeout=600) == ("", "")
    assert queue.returncode == 0


def test_a_port_in_use_is_refused(queue: subprocess.Popen[str], capfd: pytest.CaptureFixture[str]) -> None:
    port = address(queue).rpartition(":")[2]
    assert main(["dev-queue", "--port", port]) == 2
    lines = capfd.readouterr().err.splitlines()
    assert lines[-1] == f"dev-queue: --port must be free, got {port}"


@pytest.mark.parametrize("port", [0, 65535])
def test_a_queue_has_a_port_and_topics(port: int) -> None:
    usual = configure([])
    assert (usual.port, usual.topics) == (8085, [TOPIC])
    given = configure([f"--port={port}", *(f"--topic={topic}" for topic in TOPICS)])
    assert (given.port, given.topics) == (port, list(TOPICS))
    for wrong in (-1, 65536):
        with pytest.raises(SpecError, match=rf"^--port must be a number from 0 to 65535, got {wrong}$"):
            configure([f"--port={wrong}"])


@pytest.mark.parametrize(("kind", "call", "sentence"), with_kinds(REFUSED))
def test_a_wrong_command_line_is_refused(kind: type[Exception], call: Callable[[], Any], sentence: str) -> None:
    check_sentence(kind, call, sentence)


def test_a_job_can_read_the_topic_that_is_there_by_default() -> None:
    """Beam reads no subscription of a project with a short name."""
    assert parse_subscription(TOPIC.replace("/topics/", "/subscriptions/")) == ("local-dev", "reports")
