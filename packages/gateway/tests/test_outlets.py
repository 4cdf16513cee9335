"""Outlets of the gateway, without brokers: what they tell their clients, and when a message is delivered."""

from __future__ import annotations

import argparse
import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from confluent_kafka import KafkaError, KafkaException
from google.api_core import exceptions
from google.cloud import pubsub_v1

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_gateway.outlets import OUTLETS, kafka_outlet
from uldp_transforms_gateway.outlets.kafka_outlet import KafkaOutlet
from uldp_transforms_gateway.outlets.outlet import Outlet, Undelivered, reason_of
from uldp_transforms_gateway.outlets.pubsub_outlet import PubSubOutlet

TOPIC = "projects/p/topics/reports"
SOON = 30.0
"""Seconds for what happens at once."""


def run(work: Awaitable[Any]) -> Any:
    async def within() -> Any:
        return await asyncio.wait_for(work, SOON)

    return asyncio.run(within())


async def is_waiting(task: asyncio.Task[None]) -> bool:
    """Whether a task goes on waiting after all that can run has run."""
    for _ in range(20):
        await asyncio.sleep(0)
    return not task.done()


# ---------------------------------------------------------------------- Kafka


class Client(mock.Mock):
    """Stands for librdkafka's producer; notes what it is asked to do."""

    def settings(self) -> dict[str, Any]:
        [call] = self.call_args_list
        assert call.kwargs == {"logger": logging.getLogger("kafka")}
        [found] = call.args
        return dict(found)


@pytest.fixture
def producer(monkeypatch: pytest.MonkeyPatch) -> Client:
    found = Client()
    monkeypatch.setattr(kafka_outlet, "Producer", found)
    return found


def test_a_message_is_delivered_once_and_to_all_replicas_or_told_within_20_seconds(producer: Client) -> None:
    KafkaOutlet("b:1", "reports")
    assert producer.settings() == {
        "bootstrap.servers": "b:1",
        "acks": "all",
        "enable.idempotence": True,
        "linger.ms": 5,
        "message.timeout.ms": 20_000,
        "message.max.bytes": kafka_outlet.MAX_MESSAGE_BYTES + 1000,
    }


def arguments(**given: Any) -> argparse.Namespace:
    absent = dict.fromkeys(("bootstrap_servers", "kafka_config", "kafka_property"))
    return argparse.Namespace(kafka_topic="reports", **(absent | given))


def test_settings_of_a_command_line_come_after_those_of_a_file(tmp_path: Path, producer: Client) -> None:
    file = tmp_path / "settings"
    file.write_text("bootstrap.servers=f:1\nlinger.ms=7\nclient.id=file\n", encoding="utf-8")
    outlet = KafkaOutlet.of(arguments(kafka_config=str(file), kafka_property=[("client.id", "line")]))
    found = producer.settings()
    names = ("bootstrap.servers", "linger.ms", "client.id", "acks")
    assert [found[name] for name in names] == ["f:1", "7", "line", "all"]
    assert outlet._topic == "reports"
    producer.reset_mock()
    KafkaOutlet.of(arguments(bootstrap_servers="b:1"))
    assert producer.settings()["bootstrap.servers"] == "b:1"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "--kafka_topic needs --bootstrap_servers or --kafka_config, got none"),
        (
            {"bootstrap_servers": "b:1", "kafka_config": "f"},
            "--kafka_topic needs --bootstrap_servers or --kafka_config, got both",
        ),
        (
            {"bootstrap_servers": "b:1", "kafka_property": [("sasl.password", "hidden")]},
            "--kafka_property must not contain secrets, which belong in the file of --kafka_config, got sasl.password",
        ),
        (
            {"kafka_config": "/nowhere"},
            "--kafka_config must be a file that can be read, got [Errno 2] No such file or directory: '/nowhere'",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    given: dict[str, Any], sentence: str, producer: Client
) -> None:
    with pytest.raises(SpecError) as caught:
        KafkaOutlet.of(arguments(**given))
    assert str(caught.value) == sentence
    producer.assert_not_called()


def fault(code: int = KafkaError.UNKNOWN_TOPIC_OR_PART, text: str = "of this test") -> KafkaError:
    return KafkaError(code, text)


@pytest.mark.parametrize("error", [None, fault(KafkaError.LEADER_NOT_AVAILABLE)])
def test_a_topic_that_is_there_may_have_no_leader_yet(error: KafkaError | None, producer: Client) -> None:
    producer().list_topics.return_value.topics = {"reports": SimpleNamespace(error=error)}
    producer.reset_mock()
    KafkaOutlet("b:1", "reports").check()
    producer().list_topics.assert_called_once_with("reports", timeout=15.0)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (
            {"return_value.topics": {"reports": SimpleNamespace(error=fault())}},
            "--kafka_topic must exist, got 'reports': of this test",
        ),
        (
            {"side_effect": KafkaException(fault())},
            "--bootstrap_servers must be brokers that answer, got of this test",
        ),
    ],
)
def test_a_topic_that_is_not_there_is_told_at_once(asked: dict[str, Any], sentence: str, producer: Client) -> None:
    producer().list_topics.configure_mock(**asked)
    with pytest.raises(SpecError) as caught:
        KafkaOutlet("b:1", "reports").check()
    assert str(caught.value) == sentence


@pytest.mark.parametrize("error", [None, fault()])
def test_a_message_is_delivered_when_kafka_says_so(error: KafkaError | None, producer: Client) -> None:
    """In the thread that polls; what comes to somebody who has gone changes nothing."""
    outlet = KafkaOutlet("b:1", "reports")

    async def deliver() -> None:
        gone, task = (asyncio.create_task(outlet.deliver(b"message")) for _ in range(2))
        assert await is_waiting(task)
        calls = producer().produce.call_args_list
        assert [call.args for call in calls] == [("reports", b"message")] * 2
        gone.cancel()
        for call in calls:
            threading.Thread(target=call.kwargs["on_delivery"], args=(error, None)).start()
        if error is None:
            await task
        else:
            with pytest.raises(Undelivered, match=r"^Kafka says of this test$"):
                await task

    run(deliver())


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (BufferError("Local: Queue full"), "Kafka says Local: Queue full"),
        (KafkaException(fault(text="too large")), "Kafka says too large"),
        (BufferError(), "Kafka says "),
    ],
)
def test_a_message_that_the_client_does_not_take_is_undelivered(
    error: Exception, sentence: str, producer: Client
) -> None:
    producer().produce.side_effect = error
    with pytest.raises(Undelivered) as caught:
        run(KafkaOutlet("b:1", "reports").deliver(b"message"))
    assert str(caught.value) == sentence


def test_a_client_is_polled_until_all_is_delivered(producer: Client) -> None:
    """Its queue is emptied first, for 20 s at most; then the thread ends."""
    polled, done = threading.Event(), list[str]()
    producer().poll.side_effect = lambda seconds: polled.set()
    outlet = KafkaOutlet("b:1", "reports")
    producer().flush.side_effect = lambda seconds: done.append(f"{seconds} {outlet._stopping.is_set()}")

    async def work() -> None:
        await outlet.start()
        thread = outlet._polling
        assert thread is not None
        assert (thread.name, thread.daemon) == ("kafka", True)
        assert await asyncio.to_thread(polled.wait, SOON)
        await outlet.close()
        assert not thread.is_alive()

    run(work())
    producer().poll.assert_called_with(0.1)
    assert done == ["20.0 False"]


def test_an_outlet_that_never_began_is_closed(producer: Client) -> None:
    outlet = KafkaOutlet("b:1", "reports")
    run(outlet.close())
    producer().flush.assert_called_once_with(20.0)


# ---------------------------------------------------------------------- Pub/Sub


@pytest.fixture
def publisher(monkeypatch: pytest.MonkeyPatch) -> mock.Mock:
    found = mock.Mock()
    monkeypatch.setattr(pubsub_v1, "PublisherClient", found)
    return found


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (None, None),
        (exceptions.PermissionDenied("no"), None),  # to publish is another permission than to look
        (exceptions.NotFound("no"), f"--topic must exist, got '{TOPIC}'"),
        (exceptions.Unauthenticated("who"), "--topic must be a topic that Pub/Sub can serve, got who"),
    ],
)
def test_a_topic_of_pubsub_is_looked_at(error: Exception | None, sentence: str | None, publisher: mock.Mock) -> None:
    publisher().get_topic.side_effect = error
    publisher.reset_mock()
    outlet = PubSubOutlet.of(argparse.Namespace(topic=TOPIC))
    if sentence is None:
        outlet.check()
    else:
        with pytest.raises(SpecError) as caught:
            outlet.check()
        assert str(caught.value) == sentence
    publisher().get_topic.assert_called_once_with(request={"topic": TOPIC}, timeout=15.0, retry=None)


@pytest.mark.parametrize("checks", [True, False])
def test_one_client_is_made_and_closed(checks: bool, publisher: mock.Mock) -> None:
    outlet = PubSubOutlet(TOPIC)
    if checks:
        outlet.check()

    async def work() -> None:
        await outlet.start()
        await outlet.close()

    run(work())
    publisher.assert_called_once_with()
    publisher().stop.assert_called_once_with()
    publisher().transport.close.assert_called_once_with()


def delivering(publisher: mock.Mock, then: Callable[[concurrent.futures.Future[str]], Any]) -> None:
    """Deliver a message; ``then`` settles what the client promised while delivery waits for it."""
    outlet, promised = PubSubOutlet(TOPIC), concurrent.futures.Future[str]()
    publisher().publish.return_value = promised

    async def work() -> None:
        await outlet.start()
        task = asyncio.create_task(outlet.deliver(b"message"))
        assert await is_waiting(task)
        then(promised)
        await task

    run(work())


def test_a_message_is_delivered_when_pubsub_has_given_it_an_id(publisher: mock.Mock) -> None:
    """The client itself repeats what can be repeated, for 20 s."""
    delivering(publisher, lambda promised: promised.set_result("1"))
    [call] = publisher().publish.call_args_list
    assert call.args == (TOPIC, b"message")
    assert call.kwargs["timeout"] == call.kwargs["retry"]._timeout == 20.0
    repeats = call.kwargs["retry"]._predicate
    passing = "Aborted Cancelled DeadlineExceeded InternalServerError ResourceExhausted ServiceUnavailable Unknown"
    assert all(repeats(getattr(exceptions, name)("x")) for name in passing.split())
    assert not any(repeats(error) for error in (exceptions.NotFound("x"), exceptions.PermissionDenied("x")))


@pytest.mark.parametrize("error", [exceptions.NotFound("of this test"), exceptions.RetryError("of this test", None)])
def test_what_pubsub_refuses_is_undelivered(error: Exception, publisher: mock.Mock) -> None:
    with pytest.raises(Undelivered, match=r"^Pub/Sub says of this test$"):
        delivering(publisher, lambda promised: promised.set_exception(error))


def test_a_client_that_says_nothing_is_waited_for_twice_as_long_as_it_may_repeat(
    publisher: mock.Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = list[float]()

    async def no_answer(_: Any, seconds: float) -> None:
        waited.append(seconds)
        raise asyncio.TimeoutError

    publisher().publish.return_value = concurrent.futures.Future()
    outlet = PubSubOutlet(TOPIC)

    async def work() -> None:
        await outlet.start()
        with mock.patch.object(asyncio, "wait_for", no_answer):
            await outlet.deliver(b"message")

    with pytest.raises(Undelivered, match=r"^Pub/Sub does not answer$"):
        asyncio.run(work())
    assert waited == [40.0]


# ---------------------------------------------------------------------- all of them


def test_outlets_are_chosen_by_an_option_of_their_own() -> None:
    assert [(outlet, outlet.option) for outlet in OUTLETS] == [
        (PubSubOutlet, "--topic"),
        (KafkaOutlet, "--kafka_topic"),
    ]
    assert PubSubOutlet.kind(TOPIC) == TOPIC
    with pytest.raises(argparse.ArgumentTypeError):
        PubSubOutlet.kind("reports")
    assert PubSubOutlet.own_options == Outlet.own_options == {}
    assert all("default" not in option for option in KafkaOutlet.own_options.values())


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("with data"), "OSError"),
        (ValueError("with data"), "ValueError"),
    ],
)
def test_reasons_have_no_text_of_a_fault(error: Exception, reason: str) -> None:
    assert reason_of(error) == reason
