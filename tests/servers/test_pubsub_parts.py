"""Parts of Pub/Sub on this machine, without a network: leases, pulls, bundles, and messages at the server."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from apache_beam.transforms.timeutil import TimeDomain
from apache_beam.transforms.trigger import AfterProcessingTime, GeneralTriggerDriver, InMemoryUnmergedState
from apache_beam.utils.timestamp import MAX_TIMESTAMP, Timestamp
from google.api_core import exceptions
from google.cloud import pubsub_v1
from google.pubsub_v1 import types as pb
from grpc import StatusCode

from tests.servers.pubsub import pubsub_server
from tests.servers.pubsub.local_topics import create_topic
from tests.servers.pubsub.pubsub_refusals import (
    Refused,
    check_deadline,
    check_new_name,
    statuses,
)
from tests.servers.pubsub.pubsub_server import PubsubServer
from uldp_transforms.jobs.engines.signals import Stop
from uldp_transforms.jobs.pubsub import local_pubsub, pubsub_access
from uldp_transforms.jobs.pubsub.local_pubsub import Leases, Reader
from uldp_transforms.ldp.errors import SpecError

SUBSCRIPTION, OTHER = "projects/p/subscriptions/first", "projects/p/subscriptions/other"
TOPIC = "projects/p/topics/first"
SOON = 30.0
"""Seconds for what another thread does at once."""

# ---------------------------------------------------------------------- leases


@pytest.fixture
def client() -> mock.Mock:
    return mock.Mock()


def test_without_a_message_nothing_is_extended(client: mock.Mock) -> None:
    """The thread looks until leases have ended."""
    with mock.patch("threading.Thread") as thread:
        leases = Leases(client, SUBSCRIPTION)
    thread.return_value.start.assert_called_once_with()
    with mock.patch.object(leases, "_ended") as ended:
        ended.wait.side_effect = [False, False, True]
        leases._keep()
        assert [call.args for call in ended.wait.call_args_list] == [(local_pubsub.EXTEND_EVERY,)] * 3
    client.modify_ack_deadline.assert_not_called()


def test_all_that_was_taken_is_acknowledged_once(client: mock.Mock) -> None:
    leases = Leases(client, SUBSCRIPTION)
    leases.acknowledge()
    client.acknowledge.assert_not_called()
    leases.take(["a", "b"])
    leases.take(["c"])
    for _ in range(2):
        leases.acknowledge()
    client.acknowledge.assert_called_once_with(subscription=SUBSCRIPTION, ack_ids=["a", "b", "c"])
    leases.end()


def test_what_could_not_be_acknowledged_is_next_time(client: mock.Mock) -> None:
    client.acknowledge.side_effect = [exceptions.ServiceUnavailable("away"), None]
    leases = Leases(client, SUBSCRIPTION)
    leases.take(["a"])
    with pytest.raises(exceptions.ServiceUnavailable):
        leases.acknowledge()
    leases.acknowledge()
    assert [call.kwargs["ack_ids"] for call in client.acknowledge.call_args_list] == [["a"], ["a"]]
    leases.end()


def test_leases_are_extended_until_they_end(client: mock.Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice at least within the shortest lease of a subscription, 10 s, also after a request that failed."""
    assert 2 * local_pubsub.EXTEND_EVERY <= 10 < local_pubsub.EXTEND_BY
    monkeypatch.setattr(local_pubsub, "EXTEND_EVERY", 0.001)
    asked, faults = threading.Event(), [exceptions.Unknown("once")]

    def extend(**_: Any) -> None:
        if faults:
            raise faults.pop()
        asked.set()

    client.modify_ack_deadline.side_effect = extend
    leases = Leases(client, SUBSCRIPTION)
    [thread] = [thread for thread in threading.enumerate() if thread.name == "leases" and thread.daemon][-1:]
    leases.take(["a"])
    assert asked.wait(SOON)
    leases.end()
    thread.join(SOON)
    assert not thread.is_alive()
    client.modify_ack_deadline.assert_called_with(
        subscription=SUBSCRIPTION, ack_ids=["a"], ack_deadline_seconds=30, timeout=0.001
    )


# ---------------------------------------------------------------------- pulls


@pytest.fixture
def reader() -> Iterator[Any]:
    stop: Any = mock.Mock(Stop)
    found = Reader(stop)
    yield found
    found.abandon()


def received(*ids: str) -> SimpleNamespace:
    return SimpleNamespace(received_messages=[SimpleNamespace(ack_id=name, message=f"of {name}") for name in ids])


def test_pulled_messages_are_acknowledged_together(reader: Any, client: mock.Mock) -> None:
    reader.acknowledge()
    client.pull.side_effect = [received("a", "b"), received("c")]
    assert reader.pull(client, SUBSCRIPTION) == ["of a", "of b"]
    assert reader.pull(client, SUBSCRIPTION) == ["of c"]
    client.pull.assert_called_with(subscription=SUBSCRIPTION, max_messages=1_000, timeout=2.0, retry=None)
    reader.acknowledge()
    client.acknowledge.assert_called_once_with(subscription=SUBSCRIPTION, ack_ids=["a", "b", "c"])
    leases = reader._leases
    assert not leases._ended.is_set()
    reader.abandon()
    assert leases._ended.is_set()


@pytest.mark.parametrize("kind", [exceptions.Aborted, exceptions.ServiceUnavailable, exceptions.Unknown])
def test_an_outage_is_no_message_and_a_pause(
    kind: type[Exception], reader: Any, client: mock.Mock, caplog: pytest.LogCaptureFixture
) -> None:
    client.pull.side_effect = kind("away")  # type: ignore[call-arg]  # of Google's errors
    assert reader.pull(client, SUBSCRIPTION) == []
    reader.stop.wait.assert_called_once_with(2.0)
    assert "Pub/Sub does not answer; trying again: " in caplog.text


def test_nothing_there_is_no_outage_and_other_errors_are_errors(
    reader: Any, client: mock.Mock, caplog: pytest.LogCaptureFixture
) -> None:
    client.pull.side_effect = [exceptions.DeadlineExceeded("nothing"), exceptions.PermissionDenied("no")]
    with caplog.at_level(logging.DEBUG):
        assert reader.pull(client, SUBSCRIPTION) == []
    reader.stop.wait.assert_not_called()
    assert not caplog.records
    with pytest.raises(exceptions.PermissionDenied):
        reader.pull(client, SUBSCRIPTION)


def test_the_clock_of_timers_is_steady_and_shows_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watermark is that of the system, but never goes back."""
    assert abs(local_pubsub.steady_time() - time.time()) < 3600
    found, moments = Reader(Stop()), iter([0.5, 7.0, 6.0, 8.0])
    monkeypatch.setattr(local_pubsub, "time", SimpleNamespace(time=lambda: next(moments), monotonic=lambda: 5.0))
    assert local_pubsub.steady_time() == 5.0 + local_pubsub._APART
    assert [found.watermark() for _ in range(4)] == list(map(Timestamp, (0.5, 7, 7, 8)))


# ---------------------------------------------------------------------- bundles of the engine


def evaluated(
    reader: mock.Mock, *, pending: tuple[bool, ...] = (), with_attributes: bool = False
) -> tuple[Any, list[Any], Any]:
    """One pull of the engine: its result, the bundles that were made, and the watermarks of the step."""
    bundles, steps = (
        list[Any](),
        [SimpleNamespace(_pending=[mock.Mock(has_elements=lambda is_full=is_full: is_full)]) for is_full in pending],
    )
    step, watermarks = mock.Mock(), mock.Mock()
    manager = mock.Mock(_transform_to_watermarks=dict(enumerate(steps)))
    manager.get_watermarks.side_effect = {step: watermarks}.get
    context = mock.Mock(_watermark_manager=manager)

    def create_bundle(of: Any) -> Any:
        bundles.append(mock.Mock(of=of))
        return bundles[-1]

    context.create_bundle.side_effect = create_bundle
    evaluator: Any = object.__new__(local_pubsub._Evaluator)
    evaluator.__dict__ |= {
        "_reader": reader,
        "_applied_ptransform": step,
        "_evaluation_context": context,
        "_input_committed_bundle": "asked",
        "_outputs": ["output"],
        "_sub_name": SUBSCRIPTION,
        "_execution_context": mock.Mock(),
        "source": mock.Mock(with_attributes=with_attributes),
        "_get_subscriber_client": {step: "client"}.get,
    }
    return evaluator.finish_bundle(), bundles, watermarks


def stream(messages: list[Any], *, stops: bool = False) -> mock.Mock:
    found = mock.Mock(Reader)
    found.stop = mock.Mock(is_set=lambda: stops)
    found.pull.return_value = messages
    found.watermark.return_value = Timestamp(7)
    return found


NOON = datetime(2026, 11, 26, 12, tzinfo=timezone.utc)
MESSAGE = pb.PubsubMessage(data=b"report", attributes={"a": "b"}, message_id="1", publish_time=NOON)


@pytest.mark.parametrize("with_attributes", [False, True])
def test_a_pull_hands_on_messages_at_their_times_and_asks_again(with_attributes: bool) -> None:
    reader = stream([MESSAGE])
    result, [bundle, again], watermarks = evaluated(reader, with_attributes=with_attributes)
    reader.pull.assert_called_once_with("client", SUBSCRIPTION)
    [(value,)] = [call.args for call in bundle.output.call_args_list]
    assert (value.value.attributes if with_attributes else value.value) == (
        {"a": "b"} if with_attributes else b"report"
    )
    assert value.timestamp == Timestamp.from_utc_datetime(NOON)
    assert (bundle.of, result.uncommitted_output_bundles) == ("output", [bundle])
    assert (result.unprocessed_bundles, result.keyed_watermark_holds) == ([again], {None: Timestamp(7)})
    watermarks.remove_pending.assert_called_once_with("asked")


def test_where_nothing_came_no_bundle_is_made() -> None:
    result, [again], _ = evaluated(stream([]))
    assert (result.uncommitted_output_bundles, result.unprocessed_bundles) == ([], [again])


@pytest.mark.parametrize(
    ("pending", "is_done"), [((), True), ((False, False), True), ((False, True), False), ((True, False), False)]
)
def test_messages_are_acknowledged_when_no_step_has_work_left(pending: tuple[bool, ...], is_done: bool) -> None:
    reader = stream([])
    evaluated(reader, pending=pending)
    assert reader.acknowledge.call_count == is_done


def test_a_stopped_stream_pulls_nothing_and_ends_at_the_end_of_time() -> None:
    """What was worked on is acknowledged before."""
    reader = stream([MESSAGE], stops=True)
    result, bundles, _ = evaluated(reader)
    assert (bundles, result.uncommitted_output_bundles, result.unprocessed_bundles) == ([], [], [])
    assert result.keyed_watermark_holds == {None: MAX_TIMESTAMP}
    reader.acknowledge.assert_called_once_with()
    reader.pull.assert_not_called()


def test_beam_is_as_before_after_a_stream_that_failed() -> None:
    before = [getattr(place, name) for place, name, _ in local_pubsub.MENDED]
    abandoning, failing = mock.patch.object(Reader, "abandon"), pytest.raises(ZeroDivisionError)
    with abandoning as abandoned, failing, local_pubsub.reading_until(Stop()):
        assert [getattr(place, name) for place, name, _ in local_pubsub.MENDED] == [
            mended for *_, mended in local_pubsub.MENDED
        ]
        _ = 1 / 0
    assert [getattr(place, name) for place, name, _ in local_pubsub.MENDED] == before
    assert local_pubsub.TransformEvaluatorRegistry._test_evaluators_overrides == {}
    abandoned.assert_called_once_with()
    assert [(place, name) for place, name, _ in local_pubsub.MENDED[:4]] == [
        (GeneralTriggerDriver, "process_elements"),
        (GeneralTriggerDriver, "process_timer"),
        (InMemoryUnmergedState, "get_timers"),
        (AfterProcessingTime, "should_fire"),
    ]


@pytest.mark.parametrize(
    ("watermark", "processing", "late"),
    [(MAX_TIMESTAMP, 20, 20), (MAX_TIMESTAMP, 90, 60), (Timestamp(99), 20, 60), (MAX_TIMESTAMP, None, 60)],
)
def test_only_timers_of_late_panes_are_due_at_the_end_of_time(
    watermark: Timestamp, processing: int | None, late: int
) -> None:
    keys = [
        ("triggerlate", TimeDomain.REAL_TIME),
        ("triggerlate", TimeDomain.WATERMARK),
        ("early", TimeDomain.REAL_TIME),
    ]
    timers = {(*key, ""): Timestamp(60) for key in keys}
    state = SimpleNamespace(timers={"window": timers})
    with mock.patch.object(local_pubsub, "_get_timers") as found:
        local_pubsub._without_waiting_at_the_end(state, True, watermark, processing)
    found.assert_called_once_with(state, True, watermark, processing)
    assert timers == dict(zip(timers, map(Timestamp, (late, 60, 60))))


@pytest.mark.parametrize(("fires", "waits"), [(True, 3), (True, 0), (False, 3)])
def test_a_timer_fires_panes_that_wait(fires: bool, waits: int) -> None:
    context = mock.Mock()
    context.get_state.side_effect = {AfterProcessingTime.STATE_TAG: waits}.get
    with mock.patch.object(local_pubsub, "_should_fire", return_value=fires):
        assert local_pubsub._only_what_waits("t", "d", 1, "w", context) is (fires and waits > 0)


def test_watermarks_say_what_is_late() -> None:
    with mock.patch.object(local_pubsub, "_process_elements") as elements:
        for output, watermark in ((9, 11), (11, 9)):
            local_pubsub._without_late_holds("d", "s", [], Timestamp(output), Timestamp(watermark))
            elements.assert_called_with("d", "s", [], Timestamp(11), Timestamp(watermark))
    with mock.patch.object(local_pubsub, "_process_timer") as timer:
        for domain, moment, expected in (
            (TimeDomain.REAL_TIME, 5, 9),
            (TimeDomain.REAL_TIME, 12, 12),
            (TimeDomain.WATERMARK, 5, 5),
        ):
            local_pubsub._late_by_the_watermark("d", "w", "n", domain, Timestamp(moment), "s", Timestamp(9))
            timer.assert_called_with("d", "w", "n", domain, Timestamp(expected), "s", Timestamp(9))


# ---------------------------------------------------------------------- access


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (None, None),
        (exceptions.PermissionDenied("no"), None),
        (exceptions.NotFound("no"), "--topic must exist, got a name that {} does not know"),
        (exceptions.DeadlineExceeded("no"), "--topic needs {} to answer within 15 s, got DEADLINE_EXCEEDED"),
        (exceptions.RetryError("no", None), "--topic needs {} to answer within 15 s, got RetryError"),
    ],
)
@pytest.mark.parametrize(
    ("host", "server"), [("localhost:1", "PUBSUB_EMULATOR_HOST=localhost:1"), ("", "Google Cloud Pub/Sub")]
)
def test_a_name_must_be_there_but_to_look_it_up_is_another_permission(
    fault: Exception | None, sentence: str | None, host: str, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PUBSUB_EMULATOR_HOST", host)
    asked = mock.Mock(side_effect=fault)
    if sentence is None:
        pubsub_access._require("--topic", asked)
        return
    with pytest.raises(SpecError) as caught:
        pubsub_access._require("--topic", asked)
    assert str(caught.value) == sentence.format(server)


def test_names_are_looked_up_once_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    subscriber, publisher = mock.MagicMock(), mock.Mock()
    monkeypatch.setattr(pubsub_v1, "SubscriberClient", subscriber)
    monkeypatch.setattr(pubsub_v1, "PublisherClient", publisher)
    pubsub_access.require_subscription("--subscription", SUBSCRIPTION)
    pubsub_access.require_topic("--topic", TOPIC)
    limits = {"retry": None, "timeout": 15.0}
    subscriber().__enter__().get_subscription.assert_called_once_with(subscription=SUBSCRIPTION, **limits)
    publisher().get_topic.assert_called_once_with(topic=TOPIC, **limits)


# ---------------------------------------------------------------------- the server


class Context:
    """A client that stays for some looks."""

    def __init__(self, looks: int = 1_000):
        self.looks = looks

    def is_active(self) -> bool:
        self.looks -= 1
        assert self.looks > -100, "nobody looks for the client any more"
        return self.looks >= 0


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """One with a topic and its subscription, which answers at once; its lock is held, as during a request."""
    monkeypatch.setattr(pubsub_server, "EMPTY_PULL_SECONDS", 0.001)
    found: Any = PubsubServer()
    found._create_topic(pb.Topic(name=TOPIC), None)
    found._create_subscription(pb.Subscription(name=SUBSCRIPTION, topic=TOPIC), None)
    with found._changed:
        yield found


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(pubsub_server, "time", SimpleNamespace(monotonic=found))
    return found


def publish(server: Any, *data: bytes, topic: str = TOPIC, key: str = "") -> list[str]:
    messages = [pb.PubsubMessage(data=each, ordering_key=key) for each in data]
    return list(server._publish(pb.PublishRequest(topic=topic, messages=messages), None).message_ids)


def pull(server: Any, number: int = 100, name: str = SUBSCRIPTION) -> list[pb.ReceivedMessage]:
    request = pb.PullRequest(subscription=name, max_messages=number)
    return list(server._pull(request, Context()).received_messages)


def data_of(messages: list[pb.ReceivedMessage]) -> list[bytes]:
    return [each.message.data for each in messages]


def postpone(server: Any, seconds: int, *ids: str) -> None:
    request = pb.ModifyAckDeadlineRequest(subscription=SUBSCRIPTION, ack_ids=ids, ack_deadline_seconds=seconds)
    server._modify_ack_deadline(request, None)


@pytest.mark.parametrize(("given", "seconds"), [(0, 10), (25, 25), (600, 600)])
def test_a_lease_ends_after_the_deadline_of_its_subscription(
    given: int, seconds: int, server: Any, clock: Clock
) -> None:
    """And the messages are the first again, in their order."""
    server._create_subscription(pb.Subscription(name=OTHER, topic=TOPIC, ack_deadline_seconds=given), None)
    asked = pb.GetSubscriptionRequest(subscription=OTHER)
    assert server._get_subscription(asked, None).ack_deadline_seconds == seconds
    publish(server, b"a", b"b", b"c")
    assert data_of(pull(server, 2, OTHER)) == [b"a", b"b"]
    clock.now += seconds - 0.01
    assert data_of(pull(server, name=OTHER)) == [b"c"]
    clock.now += 0.01
    assert data_of(pull(server, name=OTHER)) == [b"a", b"b"]


def test_a_lease_that_is_extended_ends_later(server: Any, clock: Clock) -> None:
    publish(server, b"a")
    [first] = pull(server)
    clock.now += 9
    postpone(server, 30, first.ack_id, "unknown")
    clock.now += 29.9
    assert pull(server) == []
    clock.now += 0.1
    [again] = pull(server)
    assert again.message.data == b"a" and again.ack_id != first.ack_id


@pytest.mark.parametrize(("room", "expected"), [(3, 3), (2.5, 2), (2, 2), (1, 1), (0.5, 1)])
def test_a_response_has_the_messages_that_fit_but_one_at_least(
    room: float, expected: int, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(server, b"aaaa", b"bbbb", b"cccc")
    size = max(pb.PubsubMessage.pb(each).ByteSize() for each in server._subscriptions[SUBSCRIPTION].waiting)
    monkeypatch.setattr(pubsub_server, "MAX_RESPONSE_BYTES", room * size)
    assert len(pull(server)) == expected


def test_a_stream_of_messages_has_leases_of_its_own_and_ends_with_its_client(server: Any, clock: Clock) -> None:
    publish(server, *(b"%d" % number for number in range(150)))
    request = pb.StreamingPullRequest(subscription=SUBSCRIPTION, stream_ack_deadline_seconds=40)
    responses = server._streaming_pull(iter([request]), Context(8))
    assert [len(next(responses).received_messages) for _ in range(2)] == [100, 50]
    assert list(responses) == []
    clock.now += 39.9
    assert pull(server) == []
    clock.now += 0.1
    assert len(pull(server, 1000)) == 150


@pytest.mark.parametrize("looks", [0, 1])
def test_a_client_that_has_gone_leases_nothing(looks: int, server: Any) -> None:
    publish(server, b"a")
    assert server._take(SUBSCRIPTION, 1, 0, Context(looks)) == []
    server._closing = True
    assert server._take(SUBSCRIPTION, 1, 0, Context()) == []
    server._closing = False
    assert data_of(pull(server)) == [b"a"]


def test_a_port_is_free_or_refused() -> None:
    with PubsubServer() as first:
        port = int(first.address.removeprefix("127.0.0.1:"))
        with pytest.raises(SpecError, match=f"^--port must be free, got {port}$"), PubsubServer(port=port):
            pass
        assert create_topic(first.address, TOPIC) == SUBSCRIPTION
        with pytest.raises(exceptions.AlreadyExists):
            create_topic(first.address, TOPIC)
        assert first._subscriptions[SUBSCRIPTION].config.ack_deadline_seconds == 60
        assert first._subscriptions[SUBSCRIPTION].config.topic == TOPIC


# ---------------------------------------------------------------------- refusals and schemas


def code_of(call: Any, *arguments: Any) -> StatusCode | None:
    """The status with which something is refused; None: it is not."""
    context = mock.Mock()
    with statuses(context):
        call(*arguments)
    if not context.abort.called:
        return None
    [(code, sentence)] = [each.args for each in context.abort.call_args_list]
    assert sentence.endswith(".")
    return StatusCode(code)


@pytest.mark.parametrize(
    ("name", "is_good"),
    [
        ("projects/p/topics/abc", True),
        ("projects/p/topics/ab", False),
        ("projects/p/topics/" + "a" * 255, True),
        ("projects/p/topics/" + "a" * 256, False),
        ("projects/p/topics/A-._~+%9", True),
        ("projects/p/topics/9abc", False),
        ("projects/p/topics/google", False),
        ("projects/p/topics/abß", False),
        ("projects/p/topics/a b c", False),
        ("projects/p/subscriptions/abc", False),
        ("projects/p/q/topics/abc", False),
        ("projects//topics/abc", False),
        ("projects/p/topics/abc\n", False),
    ],
)
def test_names_follow_the_rules_of_the_service(name: str, is_good: bool) -> None:
    assert code_of(check_new_name, name, "topics", {}) == (None if is_good else StatusCode.INVALID_ARGUMENT)
    if is_good:
        assert code_of(check_new_name, name, "topics", {name: 1}) == StatusCode.ALREADY_EXISTS


@pytest.mark.parametrize(("seconds", "is_good"), [(-1, False), (0, True), (600, True), (601, False)])
def test_a_deadline_is_ten_minutes_at_most(seconds: int, is_good: bool) -> None:
    assert code_of(check_deadline, seconds) == (None if is_good else StatusCode.INVALID_ARGUMENT)


@pytest.mark.parametrize(
    ("encoding", "data", "is_datum"),
    [
        ("BINARY", b"\x04hi", True),
        ("BINARY", b"\x04hi!", False),
        ("BINARY", b"\x04h", False),
        ("JSON", b'"hi"', True),
        ("JSON", b"\xff", False),
        ("JSON", b" ", False),
        ("JSON", b'"hi"\n"ho"', False),
    ],
)
def test_data_are_one_datum_and_say_of_which_schema(encoding: str, data: bytes, is_datum: bool, server: Any) -> None:
    definition = pb.Schema(type_="AVRO", definition='"string"')
    request = pb.CreateSchemaRequest(parent="projects/p", schema=definition, schema_id="text")
    schema = server._schemas.create(request, None)
    assert server._schemas.get(pb.GetSchemaRequest(name=schema.name), None) == schema
    assert (schema.name, len(schema.revision_id)) == ("projects/p/schemas/text", 8)
    settings = {"schema": schema.name, "encoding": encoding}
    server._create_topic(pb.Topic(name=f"{TOPIC}-2", schema_settings=settings), None)
    server._create_subscription(pb.Subscription(name=OTHER, topic=f"{TOPIC}-2"), None)
    if not is_datum:
        with pytest.raises(Refused, match=r"^A message must be a datum of projects/p/schemas/text\.$"):
            publish(server, data, topic=f"{TOPIC}-2")
        assert server.backlog(OTHER) == 0
        return
    publish(server, data, topic=f"{TOPIC}-2")
    [found] = pull(server, name=OTHER)
    assert dict(found.message.attributes) == {
        "googclient_schemaname": schema.name,
        "googclient_schemaencoding": encoding,
        "googclient_schemarevisionid": schema.revision_id,
    }
