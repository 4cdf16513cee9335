"""A stream of reports to a Kafka topic, what is wrong with some of them, and what must become of each."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import confluent_kafka
import numpy as np

from tests.fuzz.fuzz_inputs import NUM_COHORTS, Fuzzer
from tests.fuzz.fuzz_reference import Reference
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire
from uldp_transforms.windows import rfc3339

WINDOW, LATENESS = 30_000, 90_000
"""Of the jobs, milliseconds."""

HOUR = 3_600_000
PARTITIONS = 2
RECENT = 30.0
"""Seconds for which a message can be sent again."""

CLOCKS = {HOUR: "too_early", -HOUR: "too_old", 60_000: "accepted"}
"""Milliseconds by which the clocks of clients jump, and what becomes of their reports."""

STRANGERS = Reference(collections={}, num_cohorts=NUM_COHORTS)
"""Judges messages of collections that the jobs do not know."""

Ledger = dict[str | None, Counter[str]]


@dataclasses.dataclass(frozen=True)
class Message:
    """Bytes, and their reports by start of the base period and by what becomes of them."""

    content: bytes
    became: Mapping[tuple[str | None, str], int]

    def again(self) -> Message:
        """The same bytes, once they have been counted."""
        return Message(
            self.content,
            {(period, "duplicates" if end == "accepted" else end): n for (period, end), n in self.became.items()},
        )


class Traffic:
    """Sends reports, each second as many, and writes down what must become of them.

    The broker's clock is the time of arrival. A report that is to be in time is sent 70 s after its event at most, as
    are copies, and jobs wait ``LATENESS`` after the end of its period: a broker that is away for 20 s makes none late.

    Args:
        server: HOST:PORT of the broker.
        topic: with ``PARTITIONS`` partitions, whose records get the broker's time.
        collection: of the reports.
        singles: messages of one report a second; two packed ones of as many reports come with them.
        seed: any integer.
    """

    def __init__(self, server: str, topic: str, collection: Collection, singles: int, seed: int):
        settings: dict[str, Any] = {
            "bootstrap.servers": server,
            "enable.idempotence": True,
            "linger.ms": 5,
            "log_level": 0,
        }
        self._producer = confluent_kafka.Producer(settings | {"message.timeout.ms": 300_000})
        self._topic = topic
        self._collection = collection
        self._values = np.array(collection.alphabet.known_values)
        self._singles = singles
        self._rng = np.random.default_rng(seed)
        self._fuzzer = Fuzzer(seed)
        self._recent: deque[tuple[float, Message]] = deque()
        self._lock = threading.RLock()
        self.clocks = 0
        self.idle = threading.Event()
        self.messages = 0
        self.undelivered = 0
        self.ledger: Ledger = defaultdict(Counter)

    def run(self, stop: threading.Event) -> None:
        """Send every second, unless it is idle, until it is stopped."""
        begin, second = time.monotonic(), 0
        while not stop.is_set():
            if not self.idle.is_set():
                with self._lock:
                    self.send(self._usual())
            second += 1
            self._producer.poll(0)
            time.sleep(max(0.0, begin + second - time.monotonic()))
        self._producer.flush()

    def flood(self, number: int) -> None:
        """So many new reports at once, packed by a thousand."""
        with self._lock:
            self.send(self._pack(1000, 0, 5000) for _ in range(number // 1000))

    def send_recent_again(self) -> None:
        """Everything of the last half minute that was no copy itself."""
        with self._lock:
            self.send([message.again() for _, message in self._recent])

    def garbage(self, number: int) -> None:
        """So many messages of strangers, most of them spoiled."""
        with self._lock:
            self.send(self._strange(number))

    def send(self, messages: Iterable[Message]) -> None:
        """Hand messages over to the producer, and write down what must become of them."""
        for message in messages:
            while True:
                try:
                    self._producer.produce(
                        self._topic, message.content, partition=self.messages % PARTITIONS, on_delivery=self._delivered
                    )
                    break
                except BufferError:  # the broker is away
                    self._producer.poll(0.1)
            self.messages += 1
            for (period, end), number in message.became.items():
                self.ledger[period].update({"received": number, end: number})

    @property
    def counts(self) -> dict[str, int]:
        """Reports that each window must have counted."""
        return {period: found["accepted"] for period, found in self.ledger.items() if period and found["accepted"]}

    @property
    def received(self) -> int:
        return sum(entries["received"] for entries in self.ledger.values())

    def _delivered(self, error: object, record: object) -> None:
        self.undelivered += error is not None

    def _usual(self) -> list[Message]:
        """One second of everything, some of it late, too old, sent before, or not ours."""
        half = self._singles // 2
        new = self._single(half, 0) + self._single(self._singles - half, self.clocks)
        new += [self._pack(self._singles, 0, 10_000), self._pack(self._singles, self.clocks, 10_000)]
        new += [*self._single(5, -30_000), self._pack(10, -30_000, 10_000), *self._single(2, -HOUR)]
        now = time.monotonic()
        while self._recent and self._recent[0][0] < now - RECENT:
            self._recent.popleft()
        chosen = self._rng.integers(0, len(self._recent), 5) if self._recent else ()
        copies = [self._recent[i][1].again() for i in chosen]
        self._recent.extend((now, message) for message in new)
        return [*new, *copies, *self._strange(2)]

    def _single(self, number: int, clocks: int) -> list[Message]:
        times = self._times(number, clocks, 5000)
        reports = wire.encode_reports(self._collection.perturb(self._draw(number), self._rng, times))
        return [Message(report, became(times[i : i + 1], clocks)) for i, report in enumerate(reports)]

    def _pack(self, number: int, clocks: int, spread: int) -> Message:
        times = self._times(number, clocks, spread)
        reports = self._collection.perturb(self._draw(number), self._rng, times)
        return Message(wire.encode_batch(reports), became(times, clocks))

    def _draw(self, number: int) -> Sequence[str]:
        values: list[str] = self._rng.choice(self._values, number).tolist()
        return values

    def _times(self, number: int, clocks: int, spread: int) -> np.ndarray:
        return time.time_ns() // 1_000_000 + clocks - self._rng.integers(0, spread, number)

    def _strange(self, number: int) -> list[Message]:
        contents = [content for content in self._fuzzer.messages(number) if len(content) < 100_000]
        verdicts = map(STRANGERS.judge, contents)
        return [
            Message(content, {(None, reason): n for (reason, _, _), n in verdict.refused.items()})
            for content, verdict in zip(contents, verdicts)
        ]


def became(times: np.ndarray, clocks: int) -> dict[tuple[str | None, str], int]:
    """What becomes of reports whose clients' clocks are off by so much, by period."""
    starts, numbers = np.unique(times // WINDOW * WINDOW, return_counts=True)
    end = CLOCKS.get(clocks, "accepted")
    return {(rfc3339(start), end): number for start, number in zip(starts.tolist(), numbers.tolist())}
