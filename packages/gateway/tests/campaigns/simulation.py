"""Clients, a gateway's door, what carries its reports, and the job that follows it, in one process, from a seed.

``python -m packages.gateway.tests.campaigns.simulation --seeds 10000`` runs 10,000 of them. A seed decides who sends
what and when, whether a spool or a Kafka topic carries the reports, whether the job counts groups, and which faults
occur: answers that are lost (so that a client sends again), kills of the gateway at any byte of a block or between two
messages, kills of the job at any of its commit points; copies of finished files under other names, files that come in
another order than they were begun, and spoiled bytes; brokers that are away, get partitions, delete records or have
them twice. Pages send navigations to the same gateway, whose log is torn by kills and full disks. The code is the one
that runs in production, without its sockets and threads; the clock is virtual. The gateway itself draws the order
inside of packs and the names of files, so a seed gives the same faults again, but not the same bytes.

At the end, each report that was sent has been counted in its window or is in a named loss: refused at the door with a
reason, never answered by the gateway, in a spoiled file, or deleted unread. Counts are compared cell by cell with those
of the reports that were on disk or in the topic, in total and by group.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import numpy as np

from packages.gateway.tests.campaigns.simulated import (
    AGAIN,
    COUNTED,
    DELETED,
    MISSED,
    REFUSED,
    SENT,
    SPOILED,
    UNANSWERED,
    UNREAD,
    Faults,
)
from packages.gateway.tests.campaigns.simulated.navigation_pages import NavigationPages
from packages.gateway.tests.campaigns.simulated.spool_way import SpoolWay
from packages.gateway.tests.campaigns.simulated.topic_way import TopicWay
from tests.support.ldp.dimensions import GROUPED
from tests.support.messages_cases import KRR, URR
from uldp_transforms import JobSpec
from uldp_transforms.jobs.kafka.reader import KafkaReadError
from uldp_transforms.jobs.records.row_forms import RowForms
from uldp_transforms.ldp import CohortCounts, ReportBatch
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages import wire
from uldp_transforms.messages.decoder import MessageDecoder
from uldp_transforms_follow.follower import Follower, Source
from uldp_transforms_follow.state import FollowState
from uldp_transforms_gateway.admission import Admission
from uldp_transforms_gateway.packer import Pack

COLLECTIONS = (KRR, URR, GROUPED)
MINUTE = 60_000
RUN = "20261122T081503.042Z-4f2a9c"
ROUNDS = 5


class Killed(BaseException):
    """The job ends here, whatever it was doing."""


@functools.cache
def _spec(by: tuple[str, ...] | None) -> JobSpec:
    return JobSpec.of(collections=COLLECTIONS, bounded=True, run=RUN, window="1m", min_reports=1 << 30, by=by)


class Simulation:
    """One seed.

    Args:
        seed: of everything.
        folder: empty; gets the spool and the output.
    """

    def __init__(self, seed: int, folder: Path):
        self._faults = Faults(seed)
        self._rng, self._numbers = self._faults.rng, self._faults.numbers
        self._output = folder / "out"
        self._output.mkdir()
        self._clock = time.time_ns() // 1_000_000 // MINUTE * MINUTE
        self._spec = _spec(("arm",) if self._rng.random() < 0.3 else None)
        self._topic = TopicWay(folder, self._faults, lambda: self._clock) if self._rng.random() < 0.4 else None
        self._way = self._topic or SpoolWay(folder, self._faults)
        self._pages = NavigationPages(folder, self._faults)
        self._admission = Admission(MessageDecoder(self._spec.catalog), 1000)
        self._state: FollowState | None = None
        self._source: Source | None = None

    def run(self) -> Counter[str]:
        """Reports by what became of them, and faults by name; raises AssertionError if a report is neither counted nor
        in a named loss."""
        with self._topic.times() if self._topic else contextlib.nullcontext():
            for _ in range(ROUNDS):
                self._clock += int(self._rng.integers(5_000, 40_000))
                self._clients_send()
                self._pages.send(self._clock)
                self._way.rest()
                self._job_goes_on(faults=True)
            self._way.end()
            self._clock += 20 * MINUTE
            for _ in range(3):
                self._job_goes_on(faults=False)
            self._ended()
        self._check()
        self._pages.check()
        return self._numbers

    # ---------------------------------------------------------------- clients and the gateway

    def _clients_send(self) -> None:
        """A few clients send a message each; what is not answered is sent again, at most twice more."""
        waiting = [self._message() for _ in range(int(self._rng.integers(1, 5)))]
        counted: set[int] = set()
        for _ in range(3):
            answered = self._gateway_takes([message for message, _ in waiting])
            for (_, batch), (kept, _) in zip(waiting, answered):
                if kept and id(batch) in counted:
                    self._numbers[AGAIN] += len(batch)
                counted |= {id(batch)} if kept else set()
            waiting = [each for each, (_, is_answered) in zip(waiting, answered) if not is_answered]
        self._numbers[UNANSWERED] += sum(len(batch) for _, batch in waiting if id(batch) not in counted)

    def _message(self) -> tuple[bytes, ReportBatch]:
        """A message, and its reports; one in ten is spoiled, and refused."""
        of = COLLECTIONS[int(self._rng.integers(len(COLLECTIONS)))]
        size = int(self._rng.integers(1, 30))
        times = (self._clock - self._rng.integers(0, 2 * MINUTE, size)).tolist()
        groups = {each.name: self._rng.choice(each.all_values, size).tolist() for each in of.dimensions} or None
        values = self._rng.choice(of.alphabet.known_values, size).tolist()
        batch = of.perturb(values, self._rng, times, groups)
        if self._faults.happens(0.5, "batches without ids"):
            batch = dataclasses.replace(batch, report_ids=batch.report_ids[:0])
        self._numbers[SENT] += size
        message = wire.encode_batch(batch)
        if self._faults.happens(0.1, "spoiled messages"):
            message = message[:1] + bytes([message[1] ^ 0xFF]) + message[2:]  # of another collection
        return message, batch

    def _gateway_takes(self, messages: Sequence[bytes]) -> list[tuple[bool, bool]]:
        """Whether the reports of each message were kept, and whether the client has an answer."""
        packs: dict[bytes, Pack] = {}
        verdicts, accepted = [], []
        for message in messages:
            [([verdict], batches)] = self._admission.judge([message], self._clock)
            verdicts.append(verdict)
            accepted.append(batches)
            for batch in batches:
                packs.setdefault(batch.fingerprint, Pack()).add(batch)
            self._numbers[REFUSED] += verdict.refused.total()
        if self._faults.happens(0.1, "kills of the gateway before it writes"):
            self._way.killed()
            return [(False, not verdict.accepted) for verdict in verdicts]
        parts = [part for pack in packs.values() for part in _parts(pack)]
        if not parts:
            return [(False, True) for _ in verdicts]
        kept, answers = self._way.carry([message for pack in packs.values() for message in pack.messages()], parts)
        answers = answers and not self._faults.happens(0.1, "lost answers")
        there = {id(batch) for batch in kept}
        return [
            (bool(batches) and all(id(batch) in there for batch in batches), answers or not verdict.accepted)
            for verdict, batches in zip(verdicts, accepted)
        ]

    # ---------------------------------------------------------------- the job

    def _job_goes_on(self, *, faults: bool) -> None:
        """A step of the job; a kill or a fault ends it anywhere, and a new one goes on."""
        left = int(self._rng.integers(1, 30)) if faults and self._rng.random() < 0.4 else -1

        def reached(point: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                self._numbers["kills of the job"] += 1
                raise Killed

        try:
            self._state = self._state or FollowState(str(self._output), RUN, "windows")
            self._source = self._source or self._way.source(self._spec, self._state)
            job = Follower(
                self._source,
                *(str(self._output), self._spec, self._state),
                late_every=0,
                forms=RowForms(counts=True),
                reached=reached,
                clock=lambda: self._clock,
            )
            job.step()
        except Killed:
            self._ended()
        except (KafkaReadError, SpecError):  # a supervisor starts it again
            self._numbers["runs that brokers ended"] += 1
            self._ended()

    def _ended(self) -> None:
        if self._source is not None:
            self._source.close()
        if self._state is not None:
            self._state.close()
        self._source = self._state = None

    # ---------------------------------------------------------------- what must hold

    def _check(self) -> None:
        """Counts, cell by cell, and the ledger: everything is counted or in a named loss."""
        expected: dict[tuple[str, int], CohortCounts] = {}
        for batch in self._way.kept():
            of = next(one for one in COLLECTIONS if one.fingerprint == batch.fingerprint)
            starts = batch.event_times // MINUTE * MINUTE
            for start in np.unique(starts).tolist():
                key, counts = (of.fingerprint.hex(), start), of.count(batch[np.flatnonzero(starts == start)])
                expected[key] = expected[key] + counts if key in expected else counts
        found, spoiled = self._counts(), bool(self._numbers["spoiled files"])
        accepted = 0
        for key in expected.keys() | found.keys():
            cells, number = found.get(key, (np.zeros(1), 0))
            accepted += number
            if not spoiled:
                assert key in expected and key in found, key
                assert (cells == expected[key].cells.ravel()).all() and number == expected[key].total, key
        assert len(self._ledger()) == 1 or accepted == 0
        ledger = sum(self._ledger(), Counter())
        assert ledger["received"] == ledger["accepted"] + ledger["rejected"], ledger
        missed = ledger["not_as_listed"] - self._numbers[MISSED]
        assert 0 <= missed <= self._numbers[UNREAD] or not self._topic, ledger
        waiting = ledger["accepted"] - accepted  # in windows that are not over, of spoiled times
        assert 0 <= waiting <= self._numbers[SPOILED] * spoiled, (ledger, accepted)
        self._numbers[COUNTED] = accepted
        kept = sum(map(len, self._way.kept()))
        assert kept <= accepted + waiting <= kept + self._numbers[SPOILED]
        lost = self._numbers[REFUSED] + self._numbers[UNANSWERED] + self._numbers[DELETED] - self._numbers[AGAIN]
        assert self._numbers[SENT] - lost == kept + self._numbers[SPOILED]

    def _counts(self) -> dict[tuple[str, int], tuple[np.ndarray, int]]:
        """The last row of the counts of each window: its cells and number of reports; groups add up to them."""
        last: dict[tuple[str, int, str | None], tuple[int, np.ndarray, int]] = {}
        for path in self._output.glob("counts-*.avro"):
            with path.open("rb") as file:
                for row in fastavro.reader(file):
                    key = row["fingerprint"], int(row["window_start"].timestamp() * 1000), row["group"]
                    number = sum(row["num_reports"])
                    last[key] = max(
                        last.get(key, (-1, None, 0)),
                        (row["pane_index"], np.array(row["cells"]), number),
                        key=lambda pane: pane[0],
                    )
        groups: dict[tuple[str, int], list[Any]] = {}
        for (name, start, group), (_, cells, number) in last.items():
            if group:
                groups.setdefault((name, start), []).append((cells, number))
        totals = {(name, at): (cells, number) for (name, at, group), (_, cells, number) in last.items() if not group}
        for window, parts in groups.items():
            cells, number = totals[window]
            assert (sum(part for part, _ in parts) == cells).all(), window
            assert sum(part for _, part in parts) == number, window
        grouped = {(name, at) for name, at in totals if name == GROUPED.fingerprint.hex()} if self._spec.by else set()
        assert groups.keys() == grouped
        return totals

    def _ledger(self) -> list[Counter[str]]:
        """The sums of the ledger, in one counter; none if there are no rows."""
        sums: Counter[str] = Counter()
        for path in self._output.glob("ledger-*.jsonl"):
            for row in map(json.loads, path.read_text("utf-8").splitlines()):
                sums.update(received=row["received"], accepted=row["accepted"] + row["duplicates"])
                sums.update(row["rejected"], rejected=sum(row["rejected"].values()))
                sums.update(row["unread_messages"])
        return [sums] if sums else []


def _parts(pack: Pack) -> list[list[ReportBatch]]:
    """The reports of each message of a pack."""
    with_ids = [batch for batch in pack._batches if len(batch.report_ids)]
    without = [batch for batch in pack._batches if not len(batch.report_ids)]
    return [part for part in (with_ids, without) if part]


def simulate(seeds: Sequence[int], place: Path | None = None) -> Counter[str]:
    """Run seeds one after the other; returns the sum of their numbers.

    Raises:
        AssertionError: with the seed that went wrong.
    """
    numbers: Counter[str] = Counter()
    memory = Path("/dev/shm")  # no disk is slower here, where nothing outlives the process
    with tempfile.TemporaryDirectory(dir=place or (memory if memory.is_dir() else None)) as folder:
        for seed in seeds:
            own = Path(folder, str(seed))
            own.mkdir()
            try:
                numbers += Simulation(seed, own).run()
            except Exception as error:
                raise AssertionError(f"seed {seed}: {error!r}") from error
            shutil.rmtree(own)
    return numbers


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args(argv)
    numbers = simulate(range(args.first, args.first + args.seeds))
    for name, number in sorted(numbers.items()):
        print(f"{number:12,} {name}")
    print(f"{args.seeds:,} seeds: everything that was sent is counted or in a named loss")
    return 0


if __name__ == "__main__":
    sys.exit(main())
