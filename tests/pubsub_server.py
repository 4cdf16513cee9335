"""A small Pub/Sub server for tests: real gRPC on a loopback port, state in memory, gone when it closes.

    with PubsubServer() as server, server.environment():
        publisher = pubsub_v1.PublisherClient()  # talks to this server

As in the service, a subscription gets every message published to its topic since it was created; a message
that was handed out is leased, and comes back when its ack deadline passes or when it is nacked (deadline 0).
Unlike it, ack deadlines below 10 s are accepted, an empty Pull is answered after EMPTY_PULL_SECONDS, flow
control is left to the client, and a subscription that asks for a filter, push or ordering is refused. The
real clients refuse a response above 4 MiB from an emulator, so no message may be larger than that.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from typing import Any, final

import grpc
from google.pubsub_v1 import types as pb
from grpc import ServicerContext as Context
from grpc import StatusCode

EMPTY_PULL_SECONDS = 0.2
DEFAULT_ACK_DEADLINE_SECONDS = 10
MAX_ACK_DEADLINE_SECONDS = 600
MAX_STREAM_MESSAGES = 100  # in one response of a stream
MAX_RESPONSE_BYTES = 3 << 20  # of the messages in one response, unless the first alone is larger
NUM_THREADS = 32  # each open StreamingPull keeps one

_SUPPORTED_FIELDS = {"name", "topic", "ack_deadline_seconds", "labels"}
_VARIABLE = "PUBSUB_EMULATOR_HOST"


@final
class PubsubServer:
    """Topics, subscriptions and the RPCs on them; to read or change them takes the lock of `_changed`."""

    def __init__(self) -> None:
        self.address = ""  # "127.0.0.1:PORT", set on entering
        self._changed = threading.Condition()
        self._topics: dict[str, pb.Topic] = {}
        self._subscriptions: dict[str, _Subscription] = {}
        self._message_ids = itertools.count(1)
        self._closing = False

    def __enter__(self) -> PubsubServer:
        """Listen on a free port of 127.0.0.1."""
        options = [("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", -1)]
        self._pool = ThreadPoolExecutor(NUM_THREADS)
        self._server = grpc.server(self._pool, options=options)
        self._server.add_generic_rpc_handlers((self._publisher(), self._subscriber()))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Let the waiting handlers answer, end the open calls and free the port."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._server.stop(grace=0.5).wait()
        self._pool.shutdown(wait=False)

    @contextlib.contextmanager
    def environment(self) -> Iterator[None]:
        """Point the Pub/Sub clients that are built inside the block at this server."""
        before = os.environ.get(_VARIABLE)
        os.environ[_VARIABLE] = self.address
        try:
            yield
        finally:
            os.environ.pop(_VARIABLE, None)
            if before is not None:
                os.environ[_VARIABLE] = before

    def _publisher(self) -> grpc.GenericRpcHandler:
        methods = {
            "CreateTopic": self._rpc(self._create_topic, pb.Topic, pb.Topic),
            "GetTopic": self._rpc(self._get_topic, pb.GetTopicRequest, pb.Topic),
            "DeleteTopic": self._rpc(self._delete_topic, pb.DeleteTopicRequest, None),
            "ListTopics": self._rpc(self._list_topics, pb.ListTopicsRequest, pb.ListTopicsResponse),
            "Publish": self._rpc(self._publish, pb.PublishRequest, pb.PublishResponse),
        }
        return grpc.method_handlers_generic_handler("google.pubsub.v1.Publisher", methods)

    def _subscriber(self) -> grpc.GenericRpcHandler:
        stream_types = (pb.StreamingPullRequest.deserialize, pb.StreamingPullResponse.serialize)
        methods = {
            "CreateSubscription": self._rpc(self._create_subscription, pb.Subscription, pb.Subscription),
            "GetSubscription": self._rpc(self._get_subscription, pb.GetSubscriptionRequest, pb.Subscription),
            "DeleteSubscription": self._rpc(self._delete_subscription, pb.DeleteSubscriptionRequest, None),
            "Pull": self._rpc(self._pull, pb.PullRequest, pb.PullResponse),
            "Acknowledge": self._rpc(self._acknowledge, pb.AcknowledgeRequest, None),
            "ModifyAckDeadline": self._rpc(self._modify_ack_deadline, pb.ModifyAckDeadlineRequest, None),
            "StreamingPull": grpc.stream_stream_rpc_method_handler(self._streaming_pull, *stream_types),
        }
        return grpc.method_handlers_generic_handler("google.pubsub.v1.Subscriber", methods)

    def _rpc(self, call: Callable[..., Any], request: Any, response: Any) -> grpc.RpcMethodHandler:
        """The gRPC handler of one method, which holds the lock; a method without a response returns None."""

        def handle(message: Any, context: Context) -> Any:
            with _statuses(context), self._changed:
                return call(message, context)

        serialize = response.serialize if response else _serialize_nothing
        return grpc.unary_unary_rpc_method_handler(handle, request.deserialize, serialize)

    def _create_topic(self, topic: pb.Topic, _: Context) -> pb.Topic:
        _check_new_name(topic.name, "topics", self._topics)
        self._topics[topic.name] = topic
        return topic

    def _get_topic(self, request: pb.GetTopicRequest, _: Context) -> pb.Topic:
        return _find(request.topic, self._topics)

    def _delete_topic(self, request: pb.DeleteTopicRequest, _: Context) -> None:
        """Forget the topic; its subscriptions stay, with what they hold, as in the service."""
        _find(request.topic, self._topics)
        del self._topics[request.topic]
        for subscription in self._of_topic(request.topic):
            subscription.config.topic = "_deleted-topic_"

    def _list_topics(self, request: pb.ListTopicsRequest, _: Context) -> pb.ListTopicsResponse:
        """All topics of the project, on one page."""
        names = sorted(name for name in self._topics if name.startswith(f"{request.project}/topics/"))
        return pb.ListTopicsResponse(topics=[self._topics[name] for name in names])

    def _publish(self, request: pb.PublishRequest, _: Context) -> pb.PublishResponse:
        """Give the messages their id and time, and queue them in each subscription of the topic."""
        _find(request.topic, self._topics)
        _check_messages(request.messages)
        now = datetime.now(tz=timezone.utc)
        for message in request.messages:
            message.message_id = str(next(self._message_ids))
            message.publish_time = now
        for subscription in self._of_topic(request.topic):
            subscription.waiting.extend(request.messages)
        self._changed.notify_all()
        return pb.PublishResponse(message_ids=[message.message_id for message in request.messages])

    def _of_topic(self, topic: str) -> list[_Subscription]:
        return [each for each in self._subscriptions.values() if each.config.topic == topic]

    def _create_subscription(self, config: pb.Subscription, _: Context) -> pb.Subscription:
        _check_new_name(config.name, "subscriptions", self._subscriptions)
        _check_supported(config)
        _check_deadline(config.ack_deadline_seconds)
        _find(config.topic, self._topics)
        config.ack_deadline_seconds = config.ack_deadline_seconds or DEFAULT_ACK_DEADLINE_SECONDS
        self._subscriptions[config.name] = _Subscription(config)
        return config

    def _get_subscription(self, request: pb.GetSubscriptionRequest, _: Context) -> pb.Subscription:
        return _find(request.subscription, self._subscriptions).config

    def _delete_subscription(self, request: pb.DeleteSubscriptionRequest, _: Context) -> None:
        _find(request.subscription, self._subscriptions)
        del self._subscriptions[request.subscription]

    def _pull(self, request: pb.PullRequest, context: Context) -> pb.PullResponse:
        limit = request.max_messages
        if limit < 1:
            raise _Refused(StatusCode.INVALID_ARGUMENT, f"max_messages must be positive, got {limit}.")
        received = self._take(request.subscription, limit, 0, context)
        return pb.PullResponse(received_messages=received)

    def _acknowledge(self, request: pb.AcknowledgeRequest, _: Context) -> None:
        _find(request.subscription, self._subscriptions).acknowledge(request.ack_ids)

    def _modify_ack_deadline(self, request: pb.ModifyAckDeadlineRequest, _: Context) -> None:
        """Let leases end that many seconds from now; with 0 the messages are ready again at once."""
        _check_deadline(request.ack_deadline_seconds)
        subscription = _find(request.subscription, self._subscriptions)
        subscription.postpone(request.ack_ids, request.ack_deadline_seconds)
        self._changed.notify_all()

    def _streaming_pull(
        self, requests: Iterator[pb.StreamingPullRequest], context: Context
    ) -> Iterator[pb.StreamingPullResponse]:
        """Send messages as they come until the client goes away.

        Only the first request is read: the client acknowledges and postpones by the RPCs of those names, and
        sends heartbeats and its newest wish for the stream's deadline here.
        """
        first = next(requests)
        with _statuses(context):
            while context.is_active() and not self._closing:
                seconds = first.stream_ack_deadline_seconds
                received = self._take(first.subscription, MAX_STREAM_MESSAGES, seconds, context)
                if received:
                    yield pb.StreamingPullResponse(received_messages=received)

    def _take(self, name: str, limit: int, seconds: int, context: Context) -> list[pb.ReceivedMessage]:
        """Wait a short time for messages and lease up to `limit`, but none to a caller that went away."""

        def is_over() -> bool:
            return self._closing or not context.is_active()

        with self._changed:
            subscription = _find(name, self._subscriptions)
            self._changed.wait_for(lambda: is_over() or subscription.has_ready(), EMPTY_PULL_SECONDS)
            return [] if is_over() else subscription.lease(limit, seconds)


class _Subscription:
    """The messages of one subscription: those that wait, and those that are leased to a client."""

    def __init__(self, config: pb.Subscription) -> None:
        self.config = config
        self.waiting: deque[pb.PubsubMessage] = deque()
        self._leases: dict[str, tuple[float, pb.PubsubMessage]] = {}  # ack id -> end of the lease, message
        self._ack_ids = (f"{config.name}:{number}" for number in itertools.count(1))

    def has_ready(self) -> bool:
        """Whether a message can be handed out, after taking back those whose lease has ended."""
        now = time.monotonic()
        ended = [ack_id for ack_id, (end, _) in self._leases.items() if end <= now]
        self.waiting.extendleft(self._leases.pop(ack_id)[1] for ack_id in reversed(ended))
        return bool(self.waiting)

    def lease(self, limit: int, seconds: int) -> list[pb.ReceivedMessage]:
        """Hand out up to `limit` messages for `seconds`, or for the subscription's own ack deadline if 0."""
        end = time.monotonic() + (seconds or self.config.ack_deadline_seconds)
        received = []
        for message in self._next_messages(limit):
            ack_id = next(self._ack_ids)
            self._leases[ack_id] = (end, message)
            received.append(pb.ReceivedMessage(ack_id=ack_id, message=message))
        return received

    def _next_messages(self, limit: int) -> Iterator[pb.PubsubMessage]:
        """Take up to `limit` waiting messages that fit into one response, but at least one."""
        size = 0
        for count in range(min(limit, len(self.waiting))):
            size += pb.PubsubMessage.pb(self.waiting[0]).ByteSize()
            if count and size > MAX_RESPONSE_BYTES:
                return
            yield self.waiting.popleft()

    def acknowledge(self, ack_ids: Iterable[str]) -> None:
        """Forget messages for good; unknown and outdated ack ids are ignored, as in the service."""
        for ack_id in ack_ids:
            self._leases.pop(ack_id, None)

    def postpone(self, ack_ids: Iterable[str], seconds: int) -> None:
        """Let the leases of these ack ids end `seconds` from now."""
        end = time.monotonic() + seconds
        for ack_id in ack_ids:
            if ack_id in self._leases:
                self._leases[ack_id] = (end, self._leases[ack_id][1])


class _Refused(Exception):
    """A request that is answered with a status code and a sentence."""

    def __init__(self, code: StatusCode, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


def _serialize_nothing(_: None) -> bytes:
    """The bytes of a google.protobuf.Empty."""
    return b""


@contextlib.contextmanager
def _statuses(context: Context) -> Iterator[None]:
    """Answer a refusal inside the block with its status."""
    try:
        yield
    except _Refused as refused:
        context.abort(refused.code, str(refused))


def _find(name: str, resources: dict[str, Any]) -> Any:
    """The resource of this name, else NOT_FOUND."""
    if name not in resources:
        raise _Refused(StatusCode.NOT_FOUND, f"Resource not found: {name!r}.")
    return resources[name]


def _check_new_name(name: str, kind: str, resources: dict[str, Any]) -> None:
    """A name must follow the service's rules and be free."""
    if not re.fullmatch(rf"projects/[^/]+/{kind}/(?!goog)[A-Za-z][\w.~+%-]{{2,254}}", name, re.ASCII):
        raise _Refused(StatusCode.INVALID_ARGUMENT, f"Names are projects/PROJECT/{kind}/ID, got {name!r}.")
    if name in resources:
        raise _Refused(StatusCode.ALREADY_EXISTS, f"Resource already exists: {name!r}.")


def _check_supported(config: pb.Subscription) -> None:
    """What this server lacks must not be ignored silently."""
    others = {field.name for field, _ in pb.Subscription.pb(config).ListFields()} - _SUPPORTED_FIELDS
    if others:
        raise _Refused(StatusCode.UNIMPLEMENTED, f"This server does not support {', '.join(sorted(others))}.")


def _check_deadline(seconds: int) -> None:
    """A deadline must lie in the service's range, of which 0 means the default, or a nack."""
    if not 0 <= seconds <= MAX_ACK_DEADLINE_SECONDS:
        allowed = f"0 to {MAX_ACK_DEADLINE_SECONDS} seconds"
        raise _Refused(StatusCode.INVALID_ARGUMENT, f"An ack deadline must be {allowed}, got {seconds}.")


def _check_messages(messages: Collection[pb.PubsubMessage]) -> None:
    """There must be a message, and something in each."""
    if not messages:
        raise _Refused(StatusCode.INVALID_ARGUMENT, "A publish request must have at least one message.")
    if not all(message.data or message.attributes for message in messages):
        raise _Refused(StatusCode.INVALID_ARGUMENT, "A message must have data or at least one attribute.")
