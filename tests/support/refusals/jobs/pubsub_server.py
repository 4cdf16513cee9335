"""Refusals of the stand-in for Pub/Sub: calls and their sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.pubsub_v1 import types as pb

from tests.servers.pubsub.pubsub_refusals import Refused
from tests.servers.pubsub.pubsub_server import PubsubServer
from tests.support.refusals.tables import Refusal

TOPIC, SUBSCRIPTION = "projects/p/topics/topic", "projects/p/subscriptions/subscription"
SCHEMA = "projects/p/schemas/schema"
WITH_SCHEMA = {"schema": SCHEMA, "encoding": pb.Encoding.BINARY}


def asked(method: str, request: Any) -> Callable[[], Any]:
    """A request to a server with a topic, a topic with a schema (texts), and a subscription."""

    def call() -> None:
        server: Any = PubsubServer()
        definition = pb.Schema(type_="AVRO", definition='"string"')
        server._schemas.create(pb.CreateSchemaRequest(parent="projects/p", schema=definition, schema_id="schema"), None)
        server._create_topic(pb.Topic(name=TOPIC), None)
        server._create_topic(pb.Topic(name=f"{TOPIC}-schema", schema_settings=WITH_SCHEMA), None)
        server._create_subscription(pb.Subscription(name=SUBSCRIPTION, topic=TOPIC), None)
        target = server._schemas if method == "create" else server
        getattr(target, method)(request, None)

    return call


def publishing(*messages: pb.PubsubMessage, topic: str = TOPIC) -> Callable[[], Any]:
    return asked("_publish", pb.PublishRequest(topic=topic, messages=messages))


def schema(kind: str, definition: str) -> Callable[[], Any]:
    described = pb.Schema(type_=kind, definition=definition)
    return asked("create", pb.CreateSchemaRequest(parent="projects/p", schema=described, schema_id="other"))


REFUSED: list[Refusal] = [
    (Refused, asked("_get_topic", pb.GetTopicRequest(topic="none")), "Resource not found: 'none'."),
    (Refused, asked("_create_topic", pb.Topic(name="t")), "Names are projects/PROJECT/topics/ID, got 't'."),
    (Refused, asked("_create_topic", pb.Topic(name=TOPIC)), f"Resource already exists: {TOPIC!r}."),
    (
        Refused,
        asked("_create_topic", pb.Topic(name=f"{TOPIC}-2", kms_key_name="key")),
        "This server does not support kms_key_name.",
    ),
    (
        Refused,
        asked("_modify_ack_deadline", pb.ModifyAckDeadlineRequest(subscription=SUBSCRIPTION, ack_deadline_seconds=601)),
        "An ack deadline must be 0 to 600 seconds, got 601.",
    ),
    (Refused, publishing(), "A publish request must have at least one message."),
    (Refused, publishing(pb.PubsubMessage()), "A message must have data or at least one attribute."),
    (
        Refused,
        publishing(pb.PubsubMessage(data=b"x", attributes={"google": "x"})),
        "Names of attributes must not begin with goog.",
    ),
    (Refused, schema("PROTOCOL_BUFFER", "x"), "This server supports only Avro schemas."),
    (Refused, schema("AVRO", "x"), "A definition must be an Avro schema: Expecting value: line 1 column 1 (char 0)."),
    (
        Refused,
        publishing(pb.PubsubMessage(data=b"\x04x"), topic=f"{TOPIC}-schema"),
        f"A message must be a datum of {SCHEMA}.",
    ),
    (
        Refused,
        asked("_pull", pb.PullRequest(subscription=SUBSCRIPTION, max_messages=0)),
        "max_messages must be positive, got 0.",
    ),
]
