"""Any sequence of operations against a dictionary: what is counted is what a few lines of plain Python say.

Operations: publish, send again, send with other bytes under the same id, corrupt, let time pass, send late, switch
the version, restart from what was stored. The model is a dictionary from (collection, base period, id) to the report
with the smallest bytes. Every published report has a payload of its own (a tag), so that in a true histogram every cell
is 0 or 1: a report lost, doubled or put into another's place shows, and so does one of another version.

The same operations drive the decoder, the de-duplication and the counts without Beam, many times, and the main job on
Beam's TestStream, a few times.
"""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.fuzz.fuzz_inputs import Fuzzer
from tests.fuzz.fuzz_reference import Gate, Payloads, Reference
from tests.support import replay
from tests.support.messages_cases import Row, collection, data, decoder, long, numbered, packed, single
from uldp_transforms.beam.runtime.coders import CohortCountsCoder, ReportBatchCoder, timestamp_of
from uldp_transforms.collector.known_reports import KnownReports, to_rows
from uldp_transforms.collector.ledger_entries import received_entries
from uldp_transforms.collector.period_counts import count_periods
from uldp_transforms.ldp import CohortCounts, Collection, ReportBatch
from uldp_transforms.messages import wire
from uldp_transforms.windows import BasePeriods, TimeGate, Windows

MINUTE = 60_000
BASE = 10 * MINUTE
LATENESS = 5 * MINUTE
BEGIN = 1_000_000_200_000  # a multiple of BASE
COHORTS = 3
TAGS = 5_000

FIRST = collection("tags", numbered(TAGS), "krr", COHORTS)
SECOND = Collection.from_json(FIRST.to_json() | {"version": 2})
OTHER = collection("others", numbered(TAGS), "krr", COHORTS)
COLLECTIONS = (FIRST, SECOND, OTHER)
BY_PREFIX = {of.fingerprint[:8]: of for of in COLLECTIONS}
REFERENCE = Reference(
    collections=dict.fromkeys(BY_PREFIX, Payloads(kind="symbol", size=2, symbols=TAGS)),
    num_cohorts=COHORTS,
    gate=Gate(base=BASE, lateness=LATENESS),
    require_ids=True,
)

Key = tuple[bytes, int]
"""Beginning of the fingerprint and start of the base period."""


class Model:
    """The clients and the clock, and in plain Python what the collector should have counted."""

    def __init__(self) -> None:
        self.now = BEGIN
        self.sent: list[bytes] = []
        self.counted: dict[tuple[Key, bytes], Row] = {}
        self.books: Counter[str] = Counter()
        self.unread: Counter[str] = Counter()
        self._tags = 0

    def report(self, of: Collection, age: int) -> tuple[Collection, Row]:
        """A new report with the next tag, made so long ago."""
        self._tags += 1
        moment = self.now - age
        report_id = (self._tags * 7_919 % 65_521).to_bytes(16, "big")[::-1]  # spread over all shards
        return of, (self._tags % COHORTS, moment, report_id, self._tags.to_bytes(2, "little"))

    def again_but_different(self, of: Collection, row: Row) -> tuple[Collection, Row]:
        """The same id in the same period, with the next tag."""
        self._tags += 1
        return of, (row[0], row[1], row[2], self._tags.to_bytes(2, "little"))

    def receive(self, message: bytes) -> None:
        """What the collector has to do with a message that arrives now."""
        self.sent.append(message)
        verdict = REFERENCE.judge(message, self.now)
        for (reason, _, _), number in verdict.refused.items():
            (self.unread if verdict.is_unread else self.books)[reason] += number
        for row in verdict.accepted:
            key = ((verdict.collection or b"", row[1] // BASE * BASE), row[2])
            known = self.counted.get(key)
            self.books["accepted" if known is None else "duplicates"] += 1
            self.counted[key] = row if known is None else min(known, row, key=as_compared)

    def counts(self) -> dict[Key, CohortCounts]:
        """Counts of each base period, report by report."""
        counts: dict[Key, CohortCounts] = {}
        for (key, _), (cohort, _, _, payload) in self.counted.items():
            number, cells = np.zeros(COHORTS, np.int64), np.zeros((COHORTS, TAGS), np.int64)
            number[cohort] = cells[cohort, int.from_bytes(payload, "little")] = 1
            counts[key] = counts.get(key, CohortCounts.empty(COHORTS, TAGS)) + CohortCounts(number, cells)
        return counts


def as_compared(row: Row) -> bytes:
    """Which of two reports with one id counts: the one whose time, cohort and payload, little-endian, come first."""
    return row[1].to_bytes(8, "little", signed=True) + row[0].to_bytes(2, "little") + row[3]


def encode(of: Collection, row: Row) -> bytes:
    cohort, moment, report_id, payload = row
    return single(of, report_id=report_id, event_time=long(moment), cohort=long(cohort), payload=data(payload))


class Collector:
    """Decoder, de-duplication and counts, put together without Beam; all that it remembers can be stored."""

    def __init__(self) -> None:
        self._decoder = decoder(
            COLLECTIONS, gate=TimeGate(periods=BasePeriods(BASE), allowed_lateness=LATENESS), require_ids=True
        )
        self._log: dict[Key, bytes] = {}
        self._known: dict[Key, KnownReports] = {}
        self._sums: dict[Key, bytes] = {}
        self.books: Counter[str] = Counter()
        self.unread: Counter[str] = Counter()
        self.received = 0

    def receive(self, messages: list[bytes], arrival: int) -> None:
        decoded = self._decoder.decode(messages, np.full(len(messages), arrival))
        self.received += sum(entry.num_reports for entry in received_entries(decoded, BasePeriods(BASE)))
        for rejection in decoded.rejections:
            self.books[rejection.reason.code] += rejection.num_reports
            self.unread[rejection.reason.code] += rejection.num_messages
        for batch in decoded.batches:
            shipped = ReportBatchCoder().decode(ReportBatchCoder().encode(batch))
            for period in np.unique(shipped.event_times // BASE).tolist():
                self._count(shipped[np.flatnonzero(shipped.event_times // BASE == period)], period * BASE)

    def _count(self, batch: ReportBatch, period: int) -> None:
        of = BY_PREFIX[batch.fingerprint[:8]]
        key = (batch.fingerprint[:8], period)
        rows = to_rows(batch)
        known = self._known.setdefault(key, KnownReports(rows.shape[1]))
        if not len(known):
            known.add(np.frombuffer(self._log.get(key, b""), dtype=np.uint8).reshape(-1, rows.shape[1]))
        removed, added, duplicates = known.add(rows)
        self._log[key] = self._log.get(key, b"") + added.tobytes()
        self.books["accepted"] += len(added) - len(removed)
        self.books["duplicates"] += duplicates
        total = CohortCountsCoder().decode(self._sums.get(key, b"")) or CohortCounts.empty(COHORTS, TAGS)
        for rows, sign in ((added, 1), (removed, -1)):
            for _, counts in count_periods(of, as_batch(of, rows), BasePeriods(BASE)) if len(rows) else ():
                delta = CohortCountsCoder().encode(CohortCounts(sign * counts.num_reports, sign * counts.cells))
                total = total + CohortCountsCoder().decode(delta)
        self._sums[key] = CohortCountsCoder().encode(total)

    def restarted(self) -> Collector:
        """Another collector, which knows only the stored bytes of this one."""
        other = Collector()
        other._log, other._sums = dict(self._log), dict(self._sums)
        other.books, other.unread, other.received = Counter(self.books), Counter(self.unread), self.received
        return other

    def counts(self) -> dict[Key, CohortCounts]:
        return {key: CohortCountsCoder().decode(stored) for key, stored in self._sums.items()}


def as_batch(of: Collection, rows: np.ndarray) -> ReportBatch:
    """Reports from rows of id, time, cohort and payload."""
    return ReportBatch(
        fingerprint=of.fingerprint,
        cohorts=np.ascontiguousarray(rows[:, 24:26]).view("<u2")[:, 0].astype(np.uint16),
        payloads=np.ascontiguousarray(rows[:, 26:]),
        event_times=np.ascontiguousarray(rows[:, 16:24]).view("<i8")[:, 0].astype(np.int64),
        report_ids=np.ascontiguousarray(rows[:, :16]),
    )


# ---------------------------------------------------------------------- operations

AGES = [0, 1, BASE // 2, BASE, BASE + LATENESS, 2 * BASE + LATENESS, -300_000, -300_001, 10 * BASE]


@dataclasses.dataclass
class Stream:
    """Draws operations; every message goes to the model and stays to be delivered to a collector."""

    rng: random.Random
    model: Model = dataclasses.field(default_factory=Model)
    published: list[tuple[Collection, Row]] = dataclasses.field(default_factory=list)
    current: Collection = FIRST

    def publish(self, number: int, in_one_message: bool, age: int) -> list[bytes]:
        of = self.rng.choice((self.current, OTHER))
        reports = [self.model.report(of, age) for _ in range(number)]
        self.published += reports
        rows = [row for _, row in reports]
        return self._deliver([packed(of, rows)] if in_one_message else [encode(of, row) for row in rows])

    def send_again(self, number: int) -> list[bytes]:
        return self._deliver([self.rng.choice(self.model.sent) for _ in range(number)] if self.model.sent else [])

    def conflict(self, number: int) -> list[bytes]:
        reports = [self.rng.choice(self.published) for _ in range(number)] if self.published else []
        return self._deliver([encode(*self.model.again_but_different(of, row)) for of, row in reports])

    def corrupt(self, number: int) -> list[bytes]:
        spoiled = [b"", b"\x02garbage", packed(FIRST, [(0, self.model.now, b"", bytes(2))])]
        for message in self.rng.sample(self.model.sent, min(number, len(self.model.sent))):
            at = self.rng.randrange(len(message) + 1)
            spoiled += [message[:at], message[:at] + b"\x80" + message[at:], message + b"\0"]
        return self._deliver(self.rng.sample(spoiled, min(number, len(spoiled))))

    def switch_version(self) -> None:
        self.current = SECOND if self.current is FIRST else FIRST

    def _deliver(self, messages: list[bytes]) -> list[bytes]:
        for message in messages:
            self.model.receive(message)
        return messages


def check(
    model: Model, counts: dict[Key, CohortCounts], books: Counter[str], unread: Counter[str], received: int
) -> None:
    """The collector's counts, ledger and tags are the model's."""
    expected = model.counts()
    assert {key: value for key, value in counts.items() if value.total} == expected
    assert +books == +model.books
    assert +unread == +model.unread
    assert received == books.total()
    for value in counts.values():
        assert value.cells.min() >= 0
        assert value.cells.max() <= 1, "a tag is counted twice"
    assert sum(value.total for value in counts.values()) == books["accepted"]


class AnySequence(RuleBasedStateMachine):
    """Hypothesis draws and shrinks the operations."""

    @initialize(seed=st.integers(0, 1 << 32))
    def start(self, seed: int) -> None:
        self.stream = Stream(random.Random(seed))
        self.collector = Collector()

    def _receive(self, messages: list[bytes]) -> None:
        self.collector.receive(messages, self.stream.model.now)

    @rule(number=st.integers(1, 6), in_one_message=st.booleans(), age=st.sampled_from(AGES))
    def publish(self, number: int, in_one_message: bool, age: int) -> None:
        self._receive(self.stream.publish(number, in_one_message, age))

    @rule(number=st.integers(1, 8))
    def send_again(self, number: int) -> None:
        self._receive(self.stream.send_again(number))

    @rule(number=st.integers(1, 4))
    def send_other_bytes_under_the_same_id(self, number: int) -> None:
        self._receive(self.stream.conflict(number))

    @rule(number=st.integers(1, 6))
    def corrupt(self, number: int) -> None:
        self._receive(self.stream.corrupt(number))

    @rule(step=st.sampled_from([1, MINUTE, LATENESS, BASE - 1, BASE, BASE + LATENESS]))
    def let_time_pass(self, step: int) -> None:
        self.stream.model.now += step

    @rule()
    def switch_version(self) -> None:
        self.stream.switch_version()

    @rule()
    def restart(self) -> None:
        self.collector = self.collector.restarted()

    @invariant()
    def everything_is_counted_once(self) -> None:
        found = self.collector
        check(self.stream.model, found.counts(), found.books, found.unread, found.received)


TestAnySequence = AnySequence.TestCase
TestAnySequence.settings = settings(max_examples=30, stateful_step_count=40, derandomize=True)


# ---------------------------------------------------------------------- the main job


def random_events(stream: Stream, steps: int) -> list[Any]:
    """The same operations as bundles of a TestStream; the watermark follows the time of arrival."""
    events: list[Any] = []
    rng = stream.rng
    for _ in range(steps):
        messages = rng.choice(
            (
                lambda: stream.publish(rng.randint(1, 6), rng.random() < 0.5, rng.choice(AGES)),
                lambda: stream.publish(rng.randint(1, 6), rng.random() < 0.5, rng.choice(AGES)),
                lambda: stream.send_again(rng.randint(1, 8)),
                lambda: stream.conflict(rng.randint(1, 4)),
                lambda: stream.corrupt(rng.randint(1, 6)),
            )
        )()
        if messages:
            events.append(replay.arrive(stream.model.now, messages))
        if rng.random() < 0.4:
            stream.model.now += rng.choice((1, MINUTE, LATENESS, BASE, BASE + LATENESS))
            events.append(replay.watermark(stream.model.now))
        if rng.random() < 0.1:
            stream.switch_version()
    return events


@pytest.mark.parametrize("seed", range(4))
def test_the_main_job_counts_the_same(seed: int) -> None:
    stream = Stream(random.Random(seed))
    events = random_events(stream, 25)
    job = replay.streaming_job(list(COLLECTIONS), Windows(size=BASE), allowed_lateness=LATENESS, deduplicate=True)
    rows = replay.replay(job, events)
    last: dict[Key, Any] = {}
    for row in sorted(rows["counts"], key=lambda row: row.pane_index):
        last[bytes.fromhex(row.fingerprint)[:8], timestamp_of(row.window_start).micros // 1000] = row
    counts = {
        key: CohortCounts(np.array(row.num_reports), np.array(row.cells).reshape(COHORTS, TAGS))
        for key, row in last.items()
    }
    books: Counter[str] = Counter()
    for row in rows["ledger"]:
        books.update(row.rejected)
        books.update(accepted=row.accepted, duplicates=row.duplicates)
    unread, _ = replay.sum_unread(rows["ledger"])
    check(stream.model, counts, books, unread, sum(row.received for row in rows["ledger"]))


def test_random_messages_are_no_operation() -> None:
    """A thousand messages of other collections change nothing that was counted."""
    stream = Stream(random.Random(9))
    collector = Collector()
    collector.receive(stream.publish(50, False, 0), stream.model.now)
    before = collector.counts()
    collector.receive([m for m in Fuzzer(1).messages(1_000) if len(m) < 50_000], stream.model.now)
    assert collector.counts() == before
    assert wire.MAX_MESSAGE_BYTES == 10_000_000
