"""Refusals of the queue of a developer: calls and their sentences."""

from __future__ import annotations

from labs.dev_queue import configure
from tests.servers.pubsub.pubsub_server import PubsubServer
from tests.support.refusals.tables import Refusal

TOPICS = ("projects/a/topics/reports", "projects/a/topics/others")


def in_use() -> None:
    with PubsubServer() as server, PubsubServer(port=int(server.address.rpartition(":")[2])):
        pass


REFUSED: list[Refusal] = [
    (lambda: configure(["--port=70000"]), "--port must be a number from 0 to 65535, got 70000"),
    (lambda: configure(["--topic=reports"]), "--topic must be projects/PROJECT/topics/NAME, got 'reports'"),
    (
        lambda: configure([f"--topic={TOPICS[0]}"] * 2),
        f"--topic must be given once for each topic, got {TOPICS[0]}, {TOPICS[0]}",
    ),
    (in_use, "--port must be free, got "),
]
