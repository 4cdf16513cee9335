"""Checks access to Pub/Sub before a job starts, so that a wrong address gives an error message."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from uldp_transforms.ldp.errors import SpecError

PATIENCE = 15.0
"""Seconds to wait for an answer."""


def require_subscription(option: str, subscription: str) -> None:
    """Check that Pub/Sub answers and has the subscription.

    Raises:
        SpecError: if Pub/Sub does not respond within ``PATIENCE``, or the subscription does not exist.
        google.auth.exceptions.DefaultCredentialsError: if there are no credentials.
    """
    from google.cloud.pubsub_v1 import SubscriberClient  # noqa: PLC0415  # slow to import

    with SubscriberClient() as client:
        _require(option, lambda: client.get_subscription(subscription=subscription, retry=None, timeout=PATIENCE))


def require_topic(option: str, topic: str) -> None:
    """Check that Pub/Sub answers and has the topic; raises as ``require_subscription``."""
    from google.cloud.pubsub_v1 import PublisherClient  # noqa: PLC0415  # slow to import

    client = PublisherClient()
    _require(option, lambda: client.get_topic(topic=topic, retry=None, timeout=PATIENCE))


def _require(option: str, ask: Callable[[], Any]) -> None:
    from google.api_core.exceptions import (  # noqa: PLC0415  # of the extra gcp
        GoogleAPICallError,
        NotFound,
        PermissionDenied,
        RetryError,
    )

    try:
        ask()
    except PermissionDenied:
        pass  # permission to pull or publish does not include permission to look up
    except NotFound:
        raise SpecError(f"{option} must exist, got a name that {_server()} does not know") from None
    except (GoogleAPICallError, RetryError) as error:
        answer = getattr(error, "grpc_status_code", None)
        name = answer.name if answer is not None else type(error).__name__
        raise SpecError(f"{option} needs {_server()} to answer within {PATIENCE:.0f} s, got {name}") from None


def _server() -> str:
    emulator = os.environ.get("PUBSUB_EMULATOR_HOST")
    return f"PUBSUB_EMULATOR_HOST={emulator}" if emulator else "Google Cloud Pub/Sub"
