"""The main job in a process of its own, on a subscription of a loopback server: to be fed, watched and killed."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from google.cloud import pubsub_v1

from requirements.companions import search_path
from tests.servers.pubsub_servers import IN_PROCESS, backlog, serving
from tests.support import forked
from tests.support.commands import command

ROOT = Path(__file__).parents[2]
TOPIC, SUBSCRIPTION = "projects/test-project/topics/reports", "projects/test-project/subscriptions/from-reports"
ESTIMATE = command("estimate")
SOON = ("--late_every=1s", "--flush_every=1s")
"""Options of a job whose rows a test waits for."""
PATIENCE = 600.0  # seconds; no wait is meant to end like this, only one that would never end


Process = subprocess.Popen[bytes] | forked.Forked


class Broker:
    """A topic with one subscription."""

    def __init__(self, ack_deadline_seconds: int = 10) -> None:
        self._publisher = pubsub_v1.PublisherClient()
        self._publisher.create_topic(name=TOPIC)
        with pubsub_v1.SubscriberClient() as subscriber:
            subscriber.create_subscription(name=SUBSCRIPTION, topic=TOPIC, ack_deadline_seconds=ack_deadline_seconds)

    def publish(self, messages: Sequence[bytes]) -> None:
        for future in [self._publisher.publish(TOPIC, message) for message in messages]:
            future.result(timeout=PATIENCE)

    def backlog(self) -> int:
        """Number of messages that nobody has acknowledged; of the server in this process alone."""
        return backlog(os.environ["PUBSUB_EMULATOR_HOST"], SUBSCRIPTION)

    def close(self) -> None:
        self._publisher.stop()
        self._publisher.transport.close()


@contextmanager
def broker(ack_deadline_seconds: int = 10, server: str = IN_PROCESS) -> Iterator[Broker]:
    """A server, one of those of ``pubsub_servers``, its topic and its subscription."""
    with serving(server):
        found = Broker(ack_deadline_seconds)
        try:
            yield found
        finally:
            found.close()


@contextmanager
def job(options: Sequence[str], log: Path, fork: bool = True, **environment: str) -> Iterator[Process]:
    """``pipelines.estimate`` with these options and variables; it does not outlive the block.

    Args:
        options: of the command line.
        log: for all that it prints.
        fork: from a process that has imported Beam (default: yes), not for what it costs from the start.
        environment: variables besides those of this process.
    """
    with log.open("ab") as errors:
        process = start(options, errors, fork, **environment)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def start(options: Sequence[str], log: IO[bytes], fork: bool = True, **environment: str) -> Process:
    """The same, for those who end it."""
    known = os.environ | {"PYTHONPATH": search_path(), "OPENBLAS_NUM_THREADS": "1"} | environment
    if fork:
        return forked.start(ESTIMATE[2], [*ESTIMATE[3:], *options], log, log, environment=known)
    return subprocess.Popen([*ESTIMATE, *options], cwd=ROOT, stdout=log, stderr=log, env=known)


def rows(output: Path, name: str) -> list[dict[str, Any]]:
    """All rows of one kind, from all files that are complete."""
    return [
        json.loads(line) for path in output.glob(f"{name}-*.jsonl") for line in path.read_text("utf-8").splitlines()
    ]


def books(output: Path) -> Counter[str]:
    """The sum of the ledger: received, accepted, duplicates and the reasons."""
    total: Counter[str] = Counter()
    for row in rows(output, "ledger"):
        total.update(row["rejected"])
        total.update({name: row[name] for name in ("received", "accepted", "duplicates")})
    return +total


def unread_messages(output: Path) -> Counter[str]:
    """Of the ledger the messages that could not be read, by reason; they are no reports."""
    return sum((Counter(row["unread_messages"]) for row in rows(output, "ledger")), Counter())


def balance(found: Counter[str]) -> int:
    """Received minus everything that became of it."""
    return 2 * found["received"] - found.total()


def wait_until(done: Callable[[], bool], process: Process, log: Path, seconds: float = PATIENCE) -> None:
    """Look again until it is so; a dead process or a long time is a failure."""
    end = time.monotonic() + seconds
    while not done():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.2)
