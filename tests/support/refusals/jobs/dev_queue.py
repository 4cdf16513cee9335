"""Refusals of the queue of a developer: calls and their sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labs.dev_queue import configure
from tests.servers.pubsub.pubsub_server import PubsubServer
from uldp_transforms.ldp import SpecError

TOPICS = ("projects/a/topics/reports", "projects/a/topics/others")


def in_use() -> None:
    with PubsubServer() as server, PubsubServer(port=int(server.address.rpartition(":")[2])):
        pass


REFUSED: list[tuple[type[Exception], Callable[[], Any], str]] = [
    (SpecError, lambda: configure(["--port=70000"]), "--port must be a number from 0 to 65535, got 70000"),
    (
        SpecError,
        lambda: configure(["--topic=reports"]),
        "--topic must be projects/PROJECT/topics/NAME, got 'reports'",
    ),
    (
        SpecError,
        lambda: configure([f"--topic={TOPICS[0]}"] * 2),
        f"--topic must be given once for each topic, got {TOPICS[0]}, {TOPICS[0]}",
    ),
    (SpecError, in_use, "--port must be free, got "),
]
