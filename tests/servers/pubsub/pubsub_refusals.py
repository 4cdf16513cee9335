"""Requests that the server refuses, and the resulting status codes."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator
from typing import Any

from google.pubsub_v1 import types as pb
from grpc import ServicerContext as Context
from grpc import StatusCode

MAX_ACK_DEADLINE_SECONDS = 600


class Refused(Exception):
    """A request that is answered with a status code and a sentence."""

    def __init__(self, code: StatusCode, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


@contextlib.contextmanager
def statuses(context: Context) -> Iterator[None]:
    """Turn a refusal inside the block into its status."""
    try:
        yield
    except Refused as refused:
        context.abort(refused.code, str(refused))


def find(name: str, resources: dict[str, Any]) -> Any:
    """The resource with this name; NOT_FOUND if there is none."""
    if name not in resources:
        raise Refused(StatusCode.NOT_FOUND, f"Resource not found: {name!r}.")
    return resources[name]


def check_new_name(name: str, kind: str, resources: dict[str, Any]) -> None:
    """Require that a name follows the service's rules and is not in use."""
    if not re.fullmatch(rf"projects/[^/]+/{kind}/(?!goog)[A-Za-z][\w.~+%-]{{2,254}}", name, re.ASCII):
        raise Refused(StatusCode.INVALID_ARGUMENT, f"Names are projects/PROJECT/{kind}/ID, got {name!r}.")
    if name in resources:
        raise Refused(StatusCode.ALREADY_EXISTS, f"Resource already exists: {name!r}.")


def check_supported(config: Any, supported: set[str]) -> None:
    """Refuse requests for features that this server does not implement."""
    others = {field.name for field, _ in type(config).pb(config).ListFields()} - supported
    if others:
        raise Refused(StatusCode.UNIMPLEMENTED, f"This server does not support {', '.join(sorted(others))}.")


def check_deadline(seconds: int) -> None:
    """Require a deadline in the service's range, or 0, which means the default or a nack."""
    if not 0 <= seconds <= MAX_ACK_DEADLINE_SECONDS:
        allowed = f"0 to {MAX_ACK_DEADLINE_SECONDS} seconds"
        raise Refused(StatusCode.INVALID_ARGUMENT, f"An ack deadline must be {allowed}, got {seconds}.")


def check_messages(messages: Collection[pb.PubsubMessage]) -> None:
    """Require at least one message, content in each, and no attributes that are reserved for the service."""
    if not messages:
        raise Refused(StatusCode.INVALID_ARGUMENT, "A publish request must have at least one message.")
    if not all(message.data or message.attributes for message in messages):
        raise Refused(StatusCode.INVALID_ARGUMENT, "A message must have data or at least one attribute.")
    if any(name.startswith("goog") for message in messages for name in message.attributes):
        raise Refused(StatusCode.INVALID_ARGUMENT, "Names of attributes must not begin with goog.")
