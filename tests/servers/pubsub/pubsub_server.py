"""A small Pub/Sub server: real gRPC on a loopback port, with all state in memory until it closes.

    with PubsubServer() as server:
        server.address  # for PUBSUB_EMULATOR_HOST

As in the service, a subscription gets every message published to its topic since it was created; a message that was
handed out is leased, and is delivered again when its ack deadline passes or when it is nacked (deadline 0). If the
subscription requests it, messages of one ordering key are delivered in order; if the topic has an Avro schema, it
accepts only data of that schema. ``tests/servers/pubsub_servers.py`` describes the differences from other servers. The
real clients refuse a response above 4 MiB from an emulator, so no message may be larger than that.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from typing import Any, final

import grpc
from google.pubsub_v1 import types as pb
from grpc import ServicerContext as Context
from grpc import StatusCode

from tests.servers.pubsub.pubsub_refusals import (
    Refused,
    check_deadline,
    check_messages,
    check_new_name,
    check_supported,
    find,
    statuses,
)
from tests.servers.pubsub.pubsub_schemas import Schemas
from uldp_transforms.ldp.errors import SpecError

EMPTY_PULL_SECONDS = 0.2
DEFAULT_ACK_DEADLINE_SECONDS = 10
MAX_STREAM_MESSAGES = 100  # in one response of a stream
MAX_RESPONSE_BYTES = 3 << 20  # of the messages in one response, unless the first alone is larger
_CLOSING_SECONDS = 10
NUM_THREADS = 32  # each open StreamingPull keeps one

_TOPIC_FIELDS = {"name", "labels", "schema_settings"}
_SUBSCRIPTION_FIELDS = {"name", "topic", "ack_deadline_seconds", "labels", "enable_message_ordering"}


@final
class PubsubServer:
    """Topics, subscriptions, schemas and the RPCs on them; the lock `_changed` protects all of them.

    Args:
        lost_acks: number of initial Acknowledge requests that are answered but forgotten, which the service may do.
        port: port number; 0: any free port.
    """

    def __init__(self, lost_acks: int = 0, port: int = 0) -> None:
        self._port = port
        self.address = ""  # "127.0.0.1:PORT", set on entering
        self._changed = threading.Condition()
        self._topics: dict[str, pb.Topic] = {}
        self._subscriptions: dict[str, _Subscription] = {}
        self._schemas = Schemas()
        self._message_ids = itertools.count(1)
        self._lost_acks = lost_acks
        self._closing = False

    def __enter__(self) -> PubsubServer:
        """Listen on 127.0.0.1; raises SpecError if the port is in use."""
        options = [("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", -1)]
        self._pool = ThreadPoolExecutor(NUM_THREADS)
        self._server = grpc.server(self._pool, options=options)
        self._server.add_generic_rpc_handlers((self._publisher(), self._subscriber(), self._schema_service()))
        try:
            port = self._server.add_insecure_port(f"127.0.0.1:{self._port}")
        except RuntimeError:
            raise SpecError(f"--port must be free, got {self._port}") from None
        self.address = f"127.0.0.1:{port}"
        self._server.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Let waiting handlers answer, end open calls and free the port."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._server.stop(grace=0.5).wait(_CLOSING_SECONDS)
        self._pool.shutdown(wait=False)

    def backlog(self, subscription: str) -> int:
        """Number of unacknowledged messages of a subscription."""
        with self._changed:
            return self._subscriptions[subscription].number

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

    def _schema_service(self) -> grpc.GenericRpcHandler:
        methods = {
            "CreateSchema": self._rpc(self._schemas.create, pb.CreateSchemaRequest, pb.Schema),
            "GetSchema": self._rpc(self._schemas.get, pb.GetSchemaRequest, pb.Schema),
        }
        return grpc.method_handlers_generic_handler("google.pubsub.v1.SchemaService", methods)

    def _rpc(self, call: Callable[..., Any], request: Any, response: Any) -> grpc.RpcMethodHandler:
        """The gRPC handler of one method, which holds the lock; a method without a response returns None."""

        def handle(message: Any, context: Context) -> Any:
            with statuses(context), self._changed:
                return call(message, context)

        serialize = response.serialize if response else _serialize_nothing
        return grpc.unary_unary_rpc_method_handler(handle, request.deserialize, serialize)

    def _create_topic(self, topic: pb.Topic, _: Context) -> pb.Topic:
        check_new_name(topic.name, "topics", self._topics)
        check_supported(topic, _TOPIC_FIELDS)
        if "schema_settings" in topic:
            self._schemas.get(pb.GetSchemaRequest(name=topic.schema_settings.schema), None)
        self._topics[topic.name] = topic
        return topic

    def _get_topic(self, request: pb.GetTopicRequest, _: Context) -> pb.Topic:
        return find(request.topic, self._topics)

    def _delete_topic(self, request: pb.DeleteTopicRequest, _: Context) -> None:
        """Delete the topic; its subscriptions and their messages remain, as in the service."""
        find(request.topic, self._topics)
        del self._topics[request.topic]
        for subscription in self._of_topic(request.topic):
            subscription.config.topic = "_deleted-topic_"

    def _list_topics(self, request: pb.ListTopicsRequest, _: Context) -> pb.ListTopicsResponse:
        """All topics of the project, on one page."""
        names = sorted(name for name in self._topics if name.startswith(f"{request.project}/topics/"))
        return pb.ListTopicsResponse(topics=[self._topics[name] for name in names])

    def _publish(self, request: pb.PublishRequest, _: Context) -> pb.PublishResponse:
        """Assign ids and times to the messages, and queue them in each subscription of the topic."""
        topic = find(request.topic, self._topics)
        check_messages(request.messages)
        if "schema_settings" in topic:
            self._schemas.check(topic.schema_settings, request.messages)
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
        check_new_name(config.name, "subscriptions", self._subscriptions)
        check_supported(config, _SUBSCRIPTION_FIELDS)
        check_deadline(config.ack_deadline_seconds)
        find(config.topic, self._topics)
        config.ack_deadline_seconds = config.ack_deadline_seconds or DEFAULT_ACK_DEADLINE_SECONDS
        self._subscriptions[config.name] = _Subscription(config)
        return config

    def _get_subscription(self, request: pb.GetSubscriptionRequest, _: Context) -> pb.Subscription:
        return find(request.subscription, self._subscriptions).config

    def _delete_subscription(self, request: pb.DeleteSubscriptionRequest, _: Context) -> None:
        find(request.subscription, self._subscriptions)
        del self._subscriptions[request.subscription]

    def _pull(self, request: pb.PullRequest, context: Context) -> pb.PullResponse:
        limit = request.max_messages
        if limit < 1:
            raise Refused(StatusCode.INVALID_ARGUMENT, f"max_messages must be positive, got {limit}.")
        received = self._take(request.subscription, limit, 0, context)
        return pb.PullResponse(received_messages=received)

    def _acknowledge(self, request: pb.AcknowledgeRequest, _: Context) -> None:
        """Remove the messages, unless the request is one of ``lost_acks``."""
        subscription = find(request.subscription, self._subscriptions)
        if self._lost_acks:
            self._lost_acks -= 1
            return
        subscription.acknowledge(request.ack_ids)
        self._changed.notify_all()

    def _modify_ack_deadline(self, request: pb.ModifyAckDeadlineRequest, _: Context) -> None:
        """Set the leases to end after this number of seconds; with 0 the messages are available again at once."""
        check_deadline(request.ack_deadline_seconds)
        subscription = find(request.subscription, self._subscriptions)
        subscription.postpone(request.ack_ids, request.ack_deadline_seconds)
        self._changed.notify_all()

    def _streaming_pull(
        self, requests: Iterator[pb.StreamingPullRequest], context: Context
    ) -> Iterator[pb.StreamingPullResponse]:
        """Send messages as they arrive until the client disconnects.

        Only the first request is read: the client acknowledges and postpones by separate RPCs, and sends only
        heartbeats and changes of the stream's deadline here.
        """
        first = next(requests)
        with statuses(context):
            while context.is_active() and not self._closing:
                seconds = first.stream_ack_deadline_seconds
                received = self._take(first.subscription, MAX_STREAM_MESSAGES, seconds, context)
                if received:
                    yield pb.StreamingPullResponse(received_messages=received)

    def _take(self, name: str, limit: int, seconds: int, context: Context) -> list[pb.ReceivedMessage]:
        """Wait a short time for messages and lease up to `limit`, but none to a caller that has disconnected."""

        def is_over() -> bool:
            return self._closing or not context.is_active()

        with self._changed:
            subscription = find(name, self._subscriptions)
            self._changed.wait_for(lambda: is_over() or subscription.has_ready(), EMPTY_PULL_SECONDS)
            return [] if is_over() else subscription.lease(limit, seconds)


class _Subscription:
    """The messages of one subscription, pending or leased to a client."""

    def __init__(self, config: pb.Subscription) -> None:
        self.config = config
        self.waiting: deque[pb.PubsubMessage] = deque()
        self._leases: dict[str, tuple[float, pb.PubsubMessage]] = {}  # ack id -> end of the lease, message
        self._ack_ids = (f"{config.name}:{number}" for number in itertools.count(1))

    @property
    def number(self) -> int:
        """Number of messages, pending or leased."""
        return len(self.waiting) + len(self._leases)

    def has_ready(self) -> bool:
        """Whether a message is available, after expired leases are returned."""
        now = time.monotonic()
        ended = [ack_id for ack_id, (end, _) in self._leases.items() if end <= now]
        self.waiting.extendleft(self._leases.pop(ack_id)[1] for ack_id in reversed(ended))
        return next(self._free(), None) is not None

    def _free(self) -> Iterator[pb.PubsubMessage]:
        """The available messages; with ordering, only the first of each key, and none of a key with a lease."""
        if not self.config.enable_message_ordering:
            yield from self.waiting
            return
        taken = {message.ordering_key for _, message in self._leases.values()}
        for message in self.waiting:
            if not message.ordering_key or message.ordering_key not in taken:
                taken.add(message.ordering_key)
                yield message

    def lease(self, limit: int, seconds: int) -> list[pb.ReceivedMessage]:
        """Hand out up to `limit` messages for `seconds`, or for the subscription's own ack deadline if 0."""
        end = time.monotonic() + (seconds or self.config.ack_deadline_seconds)
        received = []
        for message in list(self._next_messages(limit)):
            self.waiting.remove(message)  # from the left, where it is first unless it was overtaken
            ack_id = next(self._ack_ids)
            self._leases[ack_id] = (end, message)
            received.append(pb.ReceivedMessage(ack_id=ack_id, message=message))
        return received

    def _next_messages(self, limit: int) -> Iterator[pb.PubsubMessage]:
        """Up to `limit` available messages that fit into one response, but at least one."""
        size = 0
        for count, message in enumerate(itertools.islice(self._free(), limit)):
            size += pb.PubsubMessage.pb(message).ByteSize()
            if count and size > MAX_RESPONSE_BYTES:
                return
            yield message

    def acknowledge(self, ack_ids: Iterable[str]) -> None:
        """Remove messages; unknown and outdated ack ids are ignored, as in the service."""
        for ack_id in ack_ids:
            self._leases.pop(ack_id, None)

    def postpone(self, ack_ids: Iterable[str], seconds: int) -> None:
        """Let the leases of these ack ids end `seconds` from now."""
        end = time.monotonic() + seconds
        for ack_id in ack_ids:
            if ack_id in self._leases:
                self._leases[ack_id] = (end, self._leases[ack_id][1])


def _serialize_nothing(_: None) -> bytes:
    """The bytes of a google.protobuf.Empty."""
    return b""
