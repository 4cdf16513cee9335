"""The servers of the tests behave like Pub/Sub for the real client and for Beam; ``pubsub_servers`` says where not."""

from __future__ import annotations

import json
import os
import queue
import time
from collections.abc import Callable, Iterator
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.io import ReadFromPubSub, WriteToPubSub
from apache_beam.options.pipeline_options import PipelineOptions
from google.api_core import exceptions
from google.cloud import pubsub_v1
from google.pubsub_v1 import types

from tests.servers.pubsub_servers import (
    CHECKED_SCHEMAS,
    IN_PROCESS,
    LARGE_BACKLOGS,
    LOST_ACKS,
    NEW_ACK_IDS,
    SHORT_LEASES,
    STORED_SCHEMAS,
    params,
    serving,
)
from tests.support.live import PATIENCE
from tests.support.messages_cases import REPORT, REPORT_HEADER, single
from uldp_transforms.messages import wire

PROJECT = "projects/test-project"
TOPIC = f"{PROJECT}/topics/reports"
SUBSCRIPTION = f"{PROJECT}/subscriptions/reports-reader"
SECOND = f"{PROJECT}/subscriptions/second"
NO_TOPIC = f"{PROJECT}/topics/none"


@pytest.fixture(params=params(SHORT_LEASES))
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of the server that runs."""
    with serving(request.param):
        yield request.param


def only(*features: str) -> pytest.MarkDecorator:
    """For a test of what only some servers do."""
    return pytest.mark.parametrize("server", params(*features), indirect=True)


@pytest.fixture
def publisher(server: str) -> Iterator[pubsub_v1.PublisherClient]:
    client = pubsub_v1.PublisherClient()
    yield client
    client.stop()
    client.transport.close()


@pytest.fixture
def subscriber(server: str) -> Iterator[pubsub_v1.SubscriberClient]:
    with pubsub_v1.SubscriberClient() as client:
        yield client


@pytest.fixture
def subscription(publisher: pubsub_v1.PublisherClient, subscriber: pubsub_v1.SubscriberClient) -> str:
    """A subscription to TOPIC, both new."""
    publisher.create_topic(name=TOPIC)
    return subscriber.create_subscription(name=SUBSCRIPTION, topic=TOPIC, ack_deadline_seconds=60).name


def publish(publisher: pubsub_v1.PublisherClient, *payloads: bytes, topic: str = TOPIC) -> list[str]:
    """Publish and wait for the message ids."""
    futures = [publisher.publish(topic, payload) for payload in payloads]
    return [future.result(timeout=PATIENCE) for future in futures]


def publish_with_keys(messages: list[tuple[bytes, str]]) -> None:
    """Publish to TOPIC, in this order."""
    options = pubsub_v1.types.PublisherOptions(enable_message_ordering=True)
    client = pubsub_v1.PublisherClient(publisher_options=options)
    for future in [client.publish(TOPIC, data, ordering_key=key) for data, key in messages]:
        future.result(timeout=PATIENCE)
    client.stop()
    client.transport.close()


def pull(subscriber: pubsub_v1.SubscriberClient, name: str, limit: int = 100) -> list[types.ReceivedMessage]:
    """What one Pull answers."""
    return list(subscriber.pull(subscription=name, max_messages=limit, timeout=PATIENCE).received_messages)


def pull_until(
    subscriber: pubsub_v1.SubscriberClient, subscription: str, count: int, seconds: float = PATIENCE
) -> list[types.ReceivedMessage]:
    """Pull until `count` messages have come; what came by the deadline otherwise."""
    received: list[types.ReceivedMessage] = []
    end = time.monotonic() + seconds
    while len(received) < count and time.monotonic() < end:
        received += pull(subscriber, subscription)
    return received


def nack(subscriber: pubsub_v1.SubscriberClient, subscription: str, received: types.ReceivedMessage) -> None:
    """Give one message back."""
    ack_ids = [received.ack_id]
    subscriber.modify_ack_deadline(subscription=subscription, ack_ids=ack_ids, ack_deadline_seconds=0)


def payloads(received: list[types.ReceivedMessage]) -> list[bytes]:
    """The data of the messages, in an order of their own: delivery keeps none."""
    return sorted(item.message.data for item in received)


def test_environment_is_set_inside_the_block_and_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PUBSUB_EMULATOR_HOST", raising=False)
    with serving(IN_PROCESS) as address:
        assert os.environ["PUBSUB_EMULATOR_HOST"] == address
    assert "PUBSUB_EMULATOR_HOST" not in os.environ
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", "elsewhere:1")
    with serving(IN_PROCESS):
        pass
    assert os.environ["PUBSUB_EMULATOR_HOST"] == "elsewhere:1"


def test_topics_are_created_listed_and_deleted(publisher: pubsub_v1.PublisherClient) -> None:
    names = [f"{PROJECT}/topics/first", f"{PROJECT}/topics/second"]
    for name in [*names, "projects/other-project/topics/third"]:
        publisher.create_topic(name=name)
    assert [topic.name for topic in publisher.list_topics(project=PROJECT)] == names
    publisher.delete_topic(topic=names[0])
    assert [topic.name for topic in publisher.list_topics(project=PROJECT)] == names[1:]


def test_a_pulled_message_is_complete(
    publisher: pubsub_v1.PublisherClient, subscriber: pubsub_v1.SubscriberClient, subscription: str
) -> None:
    before = time.time()
    message_id = publisher.publish(TOPIC, b"\x00\xff", cohort="3").result(timeout=PATIENCE)
    [received] = pull_until(subscriber, subscription, 1)
    message = received.message
    assert (message.data, dict(message.attributes)) == (b"\x00\xff", {"cohort": "3"})
    assert message.message_id == message_id
    assert before - 0.01 <= message.publish_time.timestamp() <= time.time() + 0.01


def test_every_subscription_gets_every_later_message(
    publisher: pubsub_v1.PublisherClient, subscriber: pubsub_v1.SubscriberClient, subscription: str
) -> None:
    publish(publisher, b"early")
    second = subscriber.create_subscription(name=SECOND, topic=TOPIC).name
    publish(publisher, b"later")
    assert payloads(pull_until(subscriber, subscription, 2)) == [b"early", b"later"]
    assert payloads(pull_until(subscriber, second, 1)) == [b"later"]


def test_a_pull_respects_max_messages(
    publisher: pubsub_v1.PublisherClient, subscriber: pubsub_v1.SubscriberClient, subscription: str
) -> None:
    publish(publisher, b"one", b"two", b"three")
    assert [len(pull(subscriber, subscription, limit=2)) for _ in range(2)] == [2, 1]


@only(LARGE_BACKLOGS)
def test_messages_of_more_than_a_response_come_in_several(
    publisher: pubsub_v1.PublisherClient, subscriber: pubsub_v1.SubscriberClient, subscription: str
) -> None:
    sent = [b"%03d" % number + bytes(100_000) for number in range(100)]
    publish(publisher, *sent)
    assert payloads(pull_until(subscriber, subscription, len(sent))) == sent


def test_an_empty_pull_is_answered_soon(subscriber: pubsub_v1.SubscriberClient, subscription: str) -> None:
    start = time.monotonic()
    assert pull(subscriber, subscription) == []
    assert 0.15 < time.monotonic() - start < 20  # seconds; other servers hold it for half a minute


def test_an_acknowledged_message_does_not_come_back(
    publisher: pubsub_v1.PublisherClient, subscriber: pubsub_v1.SubscriberClient, subscription: str
) -> None:
    publish(publisher, b"once")
    [received] = pull_until(subscriber, subscription, 1)
    subscriber.acknowledge(subscription=subscription, ack_ids=[received.ack_id])
    nack(subscriber, subscription, received)  # of an ack id that is no longer known: ignored
    assert pull(subscriber, subscription) == []


def test_a_nacked_message_comes_back(
    publisher: pubsub_v1.PublisherClient, subscriber: pubsub_v1.SubscriberClient, subscription: str
) -> None:
    publish(publisher, b"again")
    [first] = pull_until(subscriber, subscription, 1)
    assert pull(subscriber, subscription) == []
    nack(subscriber, subscription, first)
    [second] = pull_until(subscriber, subscription, 1)
    assert second.message == first.message


@only(NEW_ACK_IDS)
def test_an_outdated_ack_id_acknowledges_nothing(
    publisher: pubsub_v1.PublisherClient, subscriber: pubsub_v1.SubscriberClient, subscription: str
) -> None:
    publish(publisher, b"again")
    [first] = pull_until(subscriber, subscription, 1)
    nack(subscriber, subscription, first)
    [second] = pull_until(subscriber, subscription, 1)
    assert second.ack_id != first.ack_id
    subscriber.acknowledge(subscription=subscription, ack_ids=[first.ack_id])
    nack(subscriber, subscription, second)
    assert payloads(pull_until(subscriber, subscription, 1)) == [b"again"]


@pytest.mark.parametrize("server", params(LOST_ACKS))
def test_a_lost_acknowledgement_brings_the_message_back(server: str) -> None:
    with serving(server, lost_acks=1), pubsub_v1.SubscriberClient() as subscriber:
        publisher = pubsub_v1.PublisherClient()
        publisher.create_topic(name=TOPIC)
        subscriber.create_subscription(name=SUBSCRIPTION, topic=TOPIC, ack_deadline_seconds=1)
        publish(publisher, b"again")
        for _ in range(2):
            [received] = pull_until(subscriber, SUBSCRIPTION, 1)
            assert received.message.data == b"again"
            subscriber.acknowledge(subscription=SUBSCRIPTION, ack_ids=[received.ack_id])
        time.sleep(1.1)  # longer than the lease
        assert pull(subscriber, SUBSCRIPTION) == []
        publisher.stop()


def test_messages_of_a_key_come_in_order_each_until_it_is_acknowledged(
    publisher: pubsub_v1.PublisherClient, subscriber: pubsub_v1.SubscriberClient
) -> None:
    publisher.create_topic(name=TOPIC)
    ordered = {"name": SUBSCRIPTION, "topic": TOPIC, "enable_message_ordering": True, "ack_deadline_seconds": 60}
    subscriber.create_subscription(request=ordered)
    numbers = [b"%d" % number for number in range(10)]
    publish_with_keys([(data, key) for data in numbers for key in ("a", "b")])
    publish(publisher, b"without a key")
    came: dict[str, list[bytes]] = {"a": [], "b": [], "": []}
    seen: set[str] = set()
    for _ in range(2 * len(numbers)):
        for received in pull(subscriber, SUBSCRIPTION):
            came[received.message.ordering_key].append(received.message.data)
            if received.message.message_id in seen:
                subscriber.acknowledge(subscription=SUBSCRIPTION, ack_ids=[received.ack_id])
            else:
                nack(subscriber, SUBSCRIPTION, received)
            seen.add(received.message.message_id)
    twice = [data for data in numbers for _ in range(2)]
    assert came == {"a": twice, "b": twice, "": [b"without a key"] * 2}
    assert pull(subscriber, SUBSCRIPTION) == []


def test_an_unacknowledged_message_comes_back_after_its_deadline(
    publisher: pubsub_v1.PublisherClient, subscriber: pubsub_v1.SubscriberClient
) -> None:
    publisher.create_topic(name=TOPIC)
    subscriber.create_subscription(name=SUBSCRIPTION, topic=TOPIC, ack_deadline_seconds=1)
    publish(publisher, b"again")
    start = time.monotonic()
    assert payloads(pull_until(subscriber, SUBSCRIPTION, 2)) == [b"again", b"again"]
    assert time.monotonic() - start > 0.9


def test_a_streaming_pull_delivers_and_redelivers(
    publisher: pubsub_v1.PublisherClient, subscriber: pubsub_v1.SubscriberClient, subscription: str
) -> None:
    delivered: queue.Queue[bytes] = queue.Queue()
    seen: set[bytes] = set()

    def nack_then_ack(message: Any) -> None:
        delivered.put(message.data)
        answer = message.ack if message.data in seen else message.nack
        seen.add(message.data)
        answer()

    stream = subscriber.subscribe(subscription, callback=nack_then_ack)
    try:
        publish(publisher, b"one", b"two")
        received = sorted(delivered.get(timeout=PATIENCE) for _ in range(4))
    finally:
        stream.cancel()
        stream.result(timeout=PATIENCE)
    assert received == [b"one", b"one", b"two", b"two"]


def test_a_deleted_topic_leaves_its_subscription_and_messages(
    publisher: pubsub_v1.PublisherClient, subscriber: pubsub_v1.SubscriberClient, subscription: str
) -> None:
    publish(publisher, b"kept")
    publisher.delete_topic(topic=TOPIC)
    assert subscriber.get_subscription(subscription=subscription).topic == "_deleted-topic_"
    assert payloads(pull_until(subscriber, subscription, 1)) == [b"kept"]
    subscriber.delete_subscription(subscription=subscription)
    with pytest.raises(exceptions.NotFound):
        subscriber.get_subscription(subscription=subscription)


Call = Callable[[Any, Any], object]
UNKNOWN: list[tuple[type[Exception], str, Call]] = [
    (exceptions.NotFound, NO_TOPIC, lambda pub, sub: pub.get_topic(topic=NO_TOPIC)),
    (exceptions.NotFound, NO_TOPIC, lambda pub, sub: pub.delete_topic(topic=NO_TOPIC)),
    (exceptions.NotFound, NO_TOPIC, lambda pub, sub: publish(pub, b"lost", topic=NO_TOPIC)),
    (exceptions.NotFound, NO_TOPIC, lambda pub, sub: sub.create_subscription(name=SECOND, topic=NO_TOPIC)),
    (exceptions.NotFound, "none", lambda pub, sub: pull(sub, f"{PROJECT}/subscriptions/none")),
    (exceptions.NotFound, "none", lambda pub, sub: sub.delete_subscription(subscription="none")),
    (
        exceptions.NotFound,
        "none",
        lambda pub, sub: sub.subscribe("none", callback=print).result(timeout=PATIENCE),
    ),
    (exceptions.AlreadyExists, "topics/reports", lambda pub, sub: pub.create_topic(name=TOPIC)),
    (
        exceptions.AlreadyExists,
        "reports-reader",
        lambda pub, sub: sub.create_subscription(name=SUBSCRIPTION, topic=TOPIC),
    ),
]
REFUSED: list[tuple[type[Exception], str, Call]] = [
    (exceptions.InvalidArgument, "got 'x'", lambda pub, sub: pub.create_topic(name="x")),
    (
        exceptions.MethodNotImplemented,
        "does not support filter",
        lambda pub, sub: sub.create_subscription(
            request={"name": SECOND, "topic": TOPIC, "filter": "attributes:cohort"}
        ),
    ),
]


def check_refusals(refusals: list[tuple[type[Exception], str, Call]], publisher: Any, subscriber: Any) -> None:
    for error, sentence, call in refusals:
        with pytest.raises(error, match=sentence):
            call(publisher, subscriber)


def test_unknown_and_taken_names_have_a_status_and_a_sentence(
    publisher: pubsub_v1.PublisherClient, subscriber: pubsub_v1.SubscriberClient, subscription: str
) -> None:
    check_refusals(UNKNOWN, publisher, subscriber)


@pytest.mark.parametrize("server", [IN_PROCESS], indirect=True)
def test_refusals_have_a_status_and_a_sentence(
    publisher: pubsub_v1.PublisherClient, subscriber: pubsub_v1.SubscriberClient, subscription: str
) -> None:
    check_refusals(REFUSED, publisher, subscriber)


def create_schema(definition: str, type_: str = "AVRO", name: str = "report") -> types.Schema:
    with pubsub_v1.SchemaServiceClient() as client:
        schema = {"type_": type_, "definition": definition}
        return client.create_schema(request={"parent": PROJECT, "schema_id": name, "schema": schema})


@only(STORED_SCHEMAS)
def test_schemas_are_created_read_and_named_by_topics(publisher: pubsub_v1.PublisherClient) -> None:
    created = create_schema(json.dumps(REPORT))
    settings = {"schema": created.name, "encoding": "BINARY"}
    publisher.create_topic(request={"name": TOPIC, "schema_settings": settings})
    assert publisher.get_topic(topic=TOPIC).schema_settings == types.SchemaSettings(settings)
    with pubsub_v1.SchemaServiceClient() as client:
        assert client.get_schema(name=created.name).definition == json.dumps(REPORT)
    assert len(created.revision_id) == 8


NOT_REPORTS = [b"garbage", b"", wire.SINGLE_OBJECT_MARKER, single() + b"\0", single()[:-1], REPORT_HEADER + single()]


@only(CHECKED_SCHEMAS)
def test_a_topic_with_a_schema_takes_its_data_only(
    publisher: pubsub_v1.PublisherClient, subscriber: pubsub_v1.SubscriberClient
) -> None:
    name = create_schema(json.dumps(REPORT)).name
    publisher.create_topic(request={"name": TOPIC, "schema_settings": {"schema": name, "encoding": "BINARY"}})
    subscriber.create_subscription(name=SUBSCRIPTION, topic=TOPIC)
    for data in NOT_REPORTS:
        with pytest.raises(exceptions.InvalidArgument):
            publish(publisher, data)
    publish(publisher, single())
    [received] = pull_until(subscriber, SUBSCRIPTION, 1)
    assert received.message.data == single()
    assert set(received.message.attributes) == {f"googclient_schema{end}" for end in ("name", "encoding", "revisionid")}


@only(CHECKED_SCHEMAS)
def test_schemas_that_are_none_are_refused(publisher: pubsub_v1.PublisherClient) -> None:
    with pytest.raises(exceptions.InvalidArgument, match="must be an Avro schema"):
        create_schema('{"type": "record"}')
    with pytest.raises(exceptions.MethodNotImplemented, match="supports only Avro schemas"):
        create_schema("message M {}", "PROTOCOL_BUFFER")
    with pytest.raises(exceptions.NotFound, match="none"):
        settings = {"schema": f"{PROJECT}/schemas/none", "encoding": "BINARY"}
        publisher.create_topic(request={"name": TOPIC, "schema_settings": settings})


def test_closing_is_fast_while_clients_wait() -> None:
    with serving(IN_PROCESS):
        publisher, subscriber = pubsub_v1.PublisherClient(), pubsub_v1.SubscriberClient()
        publisher.create_topic(name=TOPIC)
        subscriber.create_subscription(name=SUBSCRIPTION, topic=TOPIC)
        delivered: queue.Queue[bytes] = queue.Queue()
        stream = subscriber.subscribe(SUBSCRIPTION, callback=lambda message: delivered.put(message.data))
        publish(publisher, b"open")
        delivered.get(timeout=PATIENCE)
        start = time.monotonic()
    assert time.monotonic() - start < 20  # seconds; a pull that nobody ends is held for longer
    stream.cancel()
    subscriber.close()
    publisher.stop()


def test_beam_reads_from_and_writes_to_the_server(
    publisher: pubsub_v1.PublisherClient, subscriber: pubsub_v1.SubscriberClient, subscription: str
) -> None:
    output = publisher.create_topic(name=f"{PROJECT}/topics/output").name
    reader = subscriber.create_subscription(name=f"{PROJECT}/subscriptions/output-reader", topic=output).name
    pipeline = beam.Pipeline(runner="BundleBasedDirectRunner", options=PipelineOptions([], streaming=True))
    (
        pipeline
        | "Read" >> ReadFromPubSub(subscription=subscription)
        | "Upper" >> beam.Map(bytes.upper).with_output_types(bytes)
        | "Write" >> WriteToPubSub(output)
    )
    sent = [b"report-%02d" % number for number in range(25)]
    result = pipeline.run()  # does not block: the runner works in threads of its own
    try:
        publish(publisher, *sent)
        received = pull_until(subscriber, reader, len(sent))
    finally:
        result.cancel()
    assert payloads(received) == [payload.upper() for payload in sent]
