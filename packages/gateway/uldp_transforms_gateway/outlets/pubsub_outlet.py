"""Packed messages to a Pub/Sub topic, by Google's own client, which is imported by the first gateway that uses it."""

from __future__ import annotations

import argparse
import asyncio
from typing import Any, ClassVar

from uldp_transforms.jobs import cli
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_gateway.outlets.outlet import Outlet, Undelivered

CHECK_SECONDS = 15.0
GIVE_UP_SECONDS = 20.0

_PASSING = (
    "Aborted",
    "Cancelled",
    "DeadlineExceeded",
    "InternalServerError",
    "ResourceExhausted",
    "ServiceUnavailable",
    "Unknown",
)
"""Errors after which the client library retries by itself."""


class PubSubOutlet(Outlet):
    """A Pub/Sub topic; a message is delivered when the service has given it an id."""

    option = "--topic"
    help = "Pub/Sub topic to publish to, projects/P/topics/T"
    kind: ClassVar[Any] = staticmethod(cli.resource("topics"))

    def __init__(self, topic: str):
        self._topic = topic
        self._client: Any = None

    @classmethod
    def of(cls, args: argparse.Namespace) -> PubSubOutlet:
        return cls(args.topic)

    def check(self) -> None:
        from google.api_core import exceptions  # noqa: PLC0415  # half a second, which other outlets do not need

        self._client = _publisher()
        try:
            self._client.get_topic(request={"topic": self._topic}, timeout=CHECK_SECONDS, retry=None)
        except exceptions.PermissionDenied:
            return  # to publish is another permission than to look
        except exceptions.NotFound:
            raise SpecError(f"--topic must exist, got {self._topic!r}") from None
        except exceptions.GoogleAPICallError as error:
            raise SpecError(f"--topic must be a topic that Pub/Sub can serve, got {error.message}") from None

    async def start(self) -> None:
        self._client = self._client or _publisher()

    async def deliver(self, message: bytes) -> None:
        from google.api_core import exceptions, retry  # noqa: PLC0415  # as above

        passing = retry.if_exception_type(*(getattr(exceptions, name) for name in _PASSING))
        again = retry.Retry(predicate=passing, timeout=GIVE_UP_SECONDS)
        try:
            publishing = self._client.publish(self._topic, message, retry=again, timeout=GIVE_UP_SECONDS)
            await asyncio.wait_for(asyncio.wrap_future(publishing), 2 * GIVE_UP_SECONDS)
        except (exceptions.GoogleAPICallError, exceptions.RetryError) as error:
            raise Undelivered(f"Pub/Sub says {error.message}") from None
        except asyncio.TimeoutError:
            raise Undelivered("Pub/Sub does not answer") from None

    async def close(self) -> None:
        await asyncio.to_thread(self._client.stop)
        self._client.transport.close()


def _publisher() -> Any:
    from google.cloud import pubsub_v1  # noqa: PLC0415  # as above

    return pubsub_v1.PublisherClient()
