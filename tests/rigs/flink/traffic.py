"""Reports for a stream, and what must become of them: new ones, late ones, copies, too old ones, and garbage."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np

from tests.rigs.flink.cached import client
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire
from uldp_transforms.windows import rfc3339

WINDOW, LATENESS = 10_000, 30_000
"""Of the jobs, milliseconds."""

LATE, TOO_OLD = 15_000, 60_000
"""Milliseconds from an event to its report's arrival: within the lateness, and far beyond it."""

PARTITIONS = 2


@dataclasses.dataclass(kw_only=True)
class Sent:
    """What was sent.

    Attributes:
        messages: their number; one is a report, a packed batch, or garbage.
        ledger: what the sums of the ledger must be, by start of the base period (None: of no period).
        unread: messages that could not be read, by reason.
        late: reports that came after the end of their window and in time, by start of the window.
    """

    messages: int = 0
    ledger: dict[str | None, Counter[str]] = dataclasses.field(default_factory=lambda: defaultdict(Counter))
    unread: Counter[str] = dataclasses.field(default_factory=Counter)
    late: Counter[str] = dataclasses.field(default_factory=Counter)

    def enter(self, event_time: int | None, number: int, became: str) -> None:
        """Enter a number of reports of one event time, in milliseconds, and what must become of them."""
        period = None if event_time is None else rfc3339(event_time // WINDOW * WINDOW)
        self.ledger[period].update({"received": number, became: number})

    @property
    def counts(self) -> dict[str, int]:
        """Reports that each window must have counted."""
        return {
            window: entries["accepted"] for window, entries in self.ledger.items() if window and entries["accepted"]
        }

    @property
    def received(self) -> int:
        return sum(entries["received"] for entries in self.ledger.values())


def send(server: str, topic: str, spec: Path, rate: int, seconds: int) -> Sent:
    """Send reports for some time, every second as many, and wait until the broker has them.

    Args:
        server: HOST:PORT of the broker.
        topic: with ``PARTITIONS`` partitions.
        spec: file of the collection.
        rate: new reports a second; half of them packed. A 20th comes twice, a 20th as many are late, a 50th too old.
        seconds: for how long.
    """
    collection, rng, sent = Collection.from_json(spec), np.random.default_rng(1), Sent()
    producer = client().KafkaProducer(bootstrap_servers=server)
    copies: list[bytes] = []
    before, begin = 0, time.monotonic()
    for second in range(seconds):
        now = time.time_ns() // 1_000_000
        messages: list[bytes | None] = [None, b"garbage", *copies]
        sent.unread.update(("malformed", "unknown_schema"))
        if copies:
            sent.enter(before, len(copies), "duplicates")
        new = _messages(collection, rng, rate, now)
        late = _messages(collection, rng, rate // 20, now - LATE)
        too_old = _messages(collection, rng, rate // 50, now - TOO_OLD)
        sent.enter(now, rate, "accepted")
        sent.enter(now - LATE, rate // 20, "accepted")
        sent.late[rfc3339((now - LATE) // WINDOW * WINDOW)] += rate // 20
        sent.enter(now - TOO_OLD, rate // 50, "too_old")
        messages += new + late + too_old
        for number, message in enumerate(messages):
            producer.send(topic, message, key=b"key", partition=number % PARTITIONS, timestamp_ms=now)
        producer.flush()
        sent.messages += len(messages)
        before, copies = now, new[: rate // 20]
        time.sleep(max(0.0, begin + second + 1 - time.monotonic()))
    producer.close()
    return sent


def _messages(collection: Collection, rng: np.random.Generator, number: int, event_time: int) -> list[bytes]:
    """Reports of one event time, half of them packed into one message."""
    reports = collection.perturb(["flu"] * number, rng, np.full(number, event_time))
    return [*wire.encode_reports(reports[: number // 2]), wire.encode_batch(reports[number // 2 :])]
