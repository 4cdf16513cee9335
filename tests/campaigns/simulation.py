"""Clients, a gateway's door and spool, and the job that follows it, in one process, drawn from a seed.

``python -m tests.campaigns.simulation --seeds 10000`` runs 10,000 of them. A seed decides who sends what and when,
and which faults occur: answers that are lost (so that a client sends again), kills of the gateway at any byte of a
block that it writes, kills of the job at any of its commit points, copies of finished files under other names, files
that come in another order than they were begun, and bytes of the spool that are spoiled. The code is the one that
runs in production, without its sockets and threads; the clock is virtual. The gateway itself draws the order inside
of packs and the names of files, so a seed gives the same faults again, but not the same bytes.

At the end, each report that was sent has been counted in its window or is in a named loss: refused at the door with a
reason, never answered by the gateway, or in a spoiled file. Counts are compared cell by cell with those of the reports
that were on disk.
"""

from __future__ import annotations

import argparse
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

import fastavro
import numpy as np

from tests.support.messages_cases import KRR, URR
from uldp_transforms import JobSpec
from uldp_transforms.jobs.follow.follower import Follower
from uldp_transforms.jobs.follow.spool_reading import SpoolSource
from uldp_transforms.jobs.follow.state import FollowState
from uldp_transforms.jobs.gateway import spool_file
from uldp_transforms.jobs.gateway.admission import Admission
from uldp_transforms.jobs.gateway.packer import Pack
from uldp_transforms.jobs.gateway.spool_file import SpoolFile, manifest_path
from uldp_transforms.ldp import CohortCounts, ReportBatch
from uldp_transforms.messages import wire
from uldp_transforms.messages.decoder import MessageDecoder

COLLECTIONS = (KRR, URR)
MINUTE = 60_000
RUN = "20261122T081503.042Z-4f2a9c"
ROUNDS = 5

SENT, COUNTED, REFUSED, UNANSWERED, AGAIN, SPOILED = (
    *("sent", "counted", "refused at the door", "never answered", "counted again after a lost answer"),
    "in spoiled files",
)


class Killed(BaseException):
    """The job ends here, whatever it was doing."""


@functools.cache
def _spec() -> JobSpec:
    return JobSpec.of(collections=COLLECTIONS, bounded=True, run=RUN, window="1m", min_reports=1 << 30)


class Simulation:
    """One seed.

    Attributes:
        numbers: reports by what became of them, and faults by name.

    Args:
        seed: of everything.
        folder: empty; gets the spool and the output.
    """

    def __init__(self, seed: int, folder: Path):
        self._rng = np.random.default_rng(seed)
        self._spool, self._output = folder / "spool", folder / "out"
        self._spool.mkdir()
        self._output.mkdir()
        self._clock = time.time_ns() // 1_000_000 // MINUTE * MINUTE
        self._admission = Admission(MessageDecoder(_spec().catalog), 1000)
        self._files: list[SpoolFile] = []  # of this gateway, and of earlier ones that were killed
        self._on_disk: dict[Path, list[ReportBatch]] = {}
        self._held_back: list[Path] = []
        self._job: Follower | None = None
        self._state: FollowState | None = None
        self.numbers: Counter[str] = Counter()

    def run(self) -> Counter[str]:
        """Run it; raises AssertionError if a report is neither counted nor in a named loss."""
        for _ in range(ROUNDS):
            self._clock += int(self._rng.integers(5_000, 40_000))
            self._clients_send()
            self._files_change()
            self._job_goes_on(faults=True)
        self._finish_all()
        for part, whole in [(path, path.with_suffix("")) for path in self._held_back]:
            part.rename(whole)
        self._clock += 20 * MINUTE
        for _ in range(2):
            self._job_goes_on(faults=False)
        assert self._state is not None
        self._state.close()
        self._check()
        return self.numbers

    def _is(self, chance: float, fault: str) -> bool:
        """Whether a fault happens now."""
        found = bool(self._rng.random() < chance)
        self.numbers[fault] += found
        return found

    # ---------------------------------------------------------------- clients and the gateway

    def _clients_send(self) -> None:
        """A few clients send a message each; what is not answered is sent again, at most twice more."""
        waiting = [self._message() for _ in range(int(self._rng.integers(1, 5)))]
        counted: set[int] = set()
        for _ in range(3):
            answered = self._gateway_takes([message for message, _ in waiting])
            for (_, batch), outcome in zip(waiting, answered):
                on_disk, _ = outcome
                if on_disk and id(batch) in counted:
                    self.numbers[AGAIN] += len(batch)
                counted |= {id(batch)} if on_disk else set()
            waiting = [each for each, (_, is_answered) in zip(waiting, answered) if not is_answered]
        self.numbers[UNANSWERED] += sum(len(batch) for _, batch in waiting if id(batch) not in counted)

    def _message(self) -> tuple[bytes, ReportBatch]:
        """A message, and its reports; one in ten is spoiled, and refused."""
        of = COLLECTIONS[int(self._rng.integers(len(COLLECTIONS)))]
        size = int(self._rng.integers(1, 30))
        times = (self._clock - self._rng.integers(0, 2 * MINUTE, size)).tolist()
        batch = of.perturb(self._rng.choice(of.alphabet.known_values, size).tolist(), self._rng, times)
        if self._is(0.5, "batches without ids"):
            batch = dataclasses.replace(batch, report_ids=batch.report_ids[:0])
        self.numbers[SENT] += size
        message = wire.encode_batch(batch)
        if self._is(0.1, "spoiled messages"):
            message = message[:1] + bytes([message[1] ^ 0xFF]) + message[2:]  # of another collection
        return message, batch

    def _gateway_takes(self, messages: Sequence[bytes]) -> list[tuple[bool, bool]]:
        """Whether the reports of each message are on disk, and whether the client has an answer."""
        packs: dict[bytes, Pack] = {}
        verdicts, accepted = [], []
        for message in messages:
            [([verdict], batches)] = self._admission.judge([message], self._clock)
            verdicts.append(verdict)
            accepted.append(batches)
            for batch in batches:
                packs.setdefault(batch.fingerprint, Pack()).add(batch)
            self.numbers[REFUSED] += verdict.refused.total()
        if self._is(0.1, "kills of the gateway before it writes"):
            self._killed(self._file())
            return [(False, not verdict.accepted) for verdict in verdicts]
        packed = [message for pack in packs.values() for message in pack.messages()]
        batches = [batch for of_message in accepted for batch in of_message]
        if not packed:
            return [(False, True) for _ in verdicts]
        file = self._file()
        if self._is(0.15, "kills of the gateway in a block"):
            whole = self._write_part(file, packed)
            if whole:
                self._on_disk.setdefault(file.path, []).extend(batches)
            self._killed(file)
            return [(whole and bool(verdict.accepted), not verdict.accepted) for verdict in verdicts]
        file.append(packed)
        self._on_disk.setdefault(file.path, []).extend(batches)
        lost = self._is(0.1, "lost answers")
        return [(bool(verdict.accepted), not (lost and verdict.accepted)) for verdict in verdicts]

    def _file(self) -> SpoolFile:
        if not self._files or self._files[-1]._file.closed:
            self._files.append(SpoolFile(self._spool))
        return self._files[-1]

    def _write_part(self, file: SpoolFile, packed: Sequence[bytes]) -> bool:
        """Write a block up to any of its bytes; whether it was all of them."""
        before = file.path.stat().st_size
        file.append(packed)
        size = file.path.stat().st_size
        cut = int(self._rng.integers(before, size + 1))
        with file.path.open("r+b") as there:
            there.truncate(cut)
        return cut == size

    def _killed(self, file: SpoolFile) -> None:
        """The gateway ends; the next one finishes its files when it begins."""
        file._file.close()
        for part in sorted(self._spool.glob(f"*{spool_file.PART}")):
            self._finished(part)

    # ---------------------------------------------------------------- files

    def _files_change(self) -> None:
        """Files are finished, held back, copied and spoiled."""
        if self._files and not self._files[-1]._file.closed and self._rng.random() < 0.7:
            file = self._files[-1]
            file._file.close()
            self._finished(file.path)
        whole = sorted(self._spool.glob(f"reports-*{spool_file.WHOLE}"))
        if whole and self._is(0.2, "copies under another name"):
            self._copy(whole[int(self._rng.integers(len(whole)))])

    @staticmethod
    def _copy(whole: Path) -> None:
        """Copy a file with its manifest, as an operator may who moves a spool."""
        copy = whole.with_name(f"copy-{whole.name}")
        shutil.copy(whole, copy)
        text = manifest_path(whole).read_text("utf-8").replace(whole.name, copy.name)
        manifest_path(copy).write_text(text, encoding="utf-8")

    def _finished(self, part: Path) -> None:
        """Finish a file, with what may happen to it before the job looks."""
        batches = self._on_disk.pop(part, [])
        whole = spool_file.finish(part)
        if whole is None:
            assert not batches
            return
        self._on_disk[whole] = batches
        if self._is(0.1, "spoiled files"):
            content = bytearray(whole.read_bytes())
            at = int(self._rng.integers(len(spool_file._header(bytes(16))), len(content)))
            content[at] ^= int(self._rng.integers(1, 256))
            whole.write_bytes(content)
            self.numbers[SPOILED] += sum(map(len, self._on_disk.pop(whole)))
        elif self._is(0.2, "files that come late"):
            late = whole.with_name(f"{whole.name}.late")
            whole.rename(late)
            self._held_back.append(late)

    def _finish_all(self) -> None:
        if self._files:
            self._killed(self._files[-1])

    # ---------------------------------------------------------------- the job

    def _job_goes_on(self, *, faults: bool) -> None:
        """A step of the job; a kill ends it anywhere, and a new one goes on."""
        left = int(self._rng.integers(1, 30)) if faults and self._rng.random() < 0.4 else -1

        def reached(point: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                self.numbers["kills of the job"] += 1
                raise Killed

        self._state = self._state or FollowState(str(self._output), RUN, "windows")
        spec = _spec()
        job = Follower(
            SpoolSource(str(self._spool), spec, self._state),
            *(str(self._output), spec, self._state),
            **{"late_every": 0, "with_counts": True, "reached": reached, "clock": lambda: self._clock},
        )
        try:
            job.step()
        except Killed:
            self._state.close()
            self._state = None

    # ---------------------------------------------------------------- what must hold

    def _check(self) -> None:
        """Counts, cell by cell, and the ledger: everything is counted or in a named loss."""
        expected: dict[tuple[str, int], CohortCounts] = {}
        for batch in (batch for batches in self._on_disk.values() for batch in batches):
            of = next(one for one in COLLECTIONS if one.fingerprint == batch.fingerprint)
            starts = batch.event_times // MINUTE * MINUTE
            for start in np.unique(starts).tolist():
                key, counts = (of.fingerprint.hex(), start), of.count(batch[np.flatnonzero(starts == start)])
                expected[key] = expected[key] + counts if key in expected else counts
        found, spoiled = self._counts(), bool(self.numbers["spoiled files"])
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
        waiting = ledger["accepted"] - accepted  # in windows that are not over, of spoiled times
        assert 0 <= waiting <= self.numbers[SPOILED] * spoiled, (ledger, accepted)
        self.numbers[COUNTED] = accepted
        on_disk = sum(len(batch) for batches in self._on_disk.values() for batch in batches)
        assert on_disk <= accepted + waiting <= on_disk + self.numbers[SPOILED]
        lost = self.numbers[REFUSED] + self.numbers[UNANSWERED] - self.numbers[AGAIN]
        assert self.numbers[SENT] - lost == on_disk + self.numbers[SPOILED]

    def _counts(self) -> dict[tuple[str, int], tuple[np.ndarray, int]]:
        """The last row of the counts of each window: its cells and number of reports."""
        last: dict[tuple[str, int], tuple[int, np.ndarray, int]] = {}
        for path in self._output.glob("counts-*.avro"):
            with path.open("rb") as file:
                for row in fastavro.reader(file):
                    key = row["fingerprint"], int(row["window_start"].timestamp() * 1000)
                    number = sum(row["num_reports"])
                    last[key] = max(
                        last.get(key, (-1, None, 0)),
                        (row["pane_index"], np.array(row["cells"]), number),
                        key=lambda pane: pane[0],
                    )
        return {key: (cells, number) for key, (_, cells, number) in last.items()}

    def _ledger(self) -> list[Counter[str]]:
        """The sums of the ledger, in one counter; none if there are no rows."""
        sums: Counter[str] = Counter()
        for path in self._output.glob("ledger-*.jsonl"):
            for row in map(json.loads, path.read_text("utf-8").splitlines()):
                sums.update(received=row["received"], accepted=row["accepted"] + row["duplicates"])
                sums.update(rejected=sum(row["rejected"].values()))
        return [sums] if sums else []


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
