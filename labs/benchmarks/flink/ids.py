"""What does it cost on Flink to count each id once, while a base period fills? Packed reports with ids come from Kafka.

All reports have one event time. After each step, and after all are sent once more as copies, the row must have exactly
the reports that are different. With ``--kill`` the Python worker is killed before the copies come. The next one reads
what was written; its start is in that line. Needs what ``tests.rigs.flink`` needs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from labs.benchmarks.flink.cost import spent
from tests.rigs.flink.cached import client
from tests.rigs.flink.cluster import Cluster, cluster
from tests.rigs.flink.kafka import broker, create_topic, expansion_service
from tests.rigs.flink.processes import process
from tests.rigs.flink.stream import TOPIC, Job
from tests.rigs.flink.trial import try_out
from tests.rigs.job import collection
from uldp_transforms.jobs.kafka.topic_options import CREATE_TIME
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire

PACK = 1_000
"""Reports of a message."""

FIRST = 20_000
"""Reports before the measurement begins: all processes run then, and have loaded their code."""


class Line(NamedTuple):
    """What one step took, for each of its reports, and what was held after it.

    Attributes:
        what: known reports before the step, or that they are copies.
        cost: microseconds of CPU a report, by process.
        memory: bytes of the largest Python worker.
        checkpoint: bytes of the newest complete checkpoint.
    """

    what: str
    cost: dict[str, float]
    memory: int
    checkpoint: int


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m labs.benchmarks.flink.ids", description=__doc__)
    parser.add_argument("--reports", type=int, default=1_000_000, help="different ones, of one base period")
    parser.add_argument("--steps", type=int, default=5, help="in which they are sent")
    parser.add_argument("--kill", action="store_true", help="kill the Python worker before the copies come")
    args = parser.parse_args()

    def fill(folder: Path) -> None:
        run(folder, args.reports, args.steps, args.kill)

    return try_out(fill)


def run(folder: Path, reports: int, steps: int, kill: bool) -> list[Line]:
    """Start everything, have the first reports counted, then all others step by step, and then copies of all of them.

    Returns:
        A line for each step, which is printed too.

    Raises:
        RuntimeError: a report is missing or counted twice, or the job has ended or was started again unasked.
    """
    with ExitStack() as stack:
        server = stack.enter_context(broker(folder))
        service = stack.enter_context(expansion_service(folder))
        flink = stack.enter_context(cluster(folder))
        create_topic(server, TOPIC, 1, CREATE_TIME)
        source = [f"--kafka_topic={TOPIC}", f"--bootstrap_servers={server}", f"--kafka_timestamps={CREATE_TIME}"]
        source += [f"--expansion_service={service}"]
        sender = Sender(server, collection(folder))
        started = stack.enter_context(job(folder, source, flink))
        known, lines = 0, []
        sizes = [FIRST, *[reports // steps // PACK * PACK] * steps]
        print(f"us of CPU a report:\n{'known before':>22}{'Flink':>10}{'Java':>8}{'Python':>8}   after it", flush=True)
        for seed, size in enumerate(sizes):
            before = spent(flink)
            sender.send(seed, size)
            known = counted(started, known + size)
            lines += measured(f"{known - size:,}", size, before, folder, flink)
        if kill:
            os.kill(worker := max(flink.workers(), key=memory), signal.SIGKILL)
            started.wait(lambda: worker not in flink.workers())
        before = spent(flink)
        for seed, size in enumerate(sizes):
            sender.send(seed, size)
        sender.send(len(sizes), PACK)
        counted(started, known + PACK)
        lines += measured("copies, killed" if kill else "copies", known, before, folder, flink)
        if flink.restarts() != kill:
            raise RuntimeError(f"the job must have been started again {kill:d} times, got {flink.restarts()}")
        return lines


class Sender:
    """Sends packed reports of one moment; the same seed makes the same reports."""

    def __init__(self, server: str, spec: Path):
        self._collection = Collection.from_json(spec)
        self._producer = client().KafkaProducer(bootstrap_servers=server, linger_ms=20, batch_size=1 << 18)
        self._moment = time.time_ns() // 1_000_000

    def send(self, seed: int, reports: int) -> None:
        """Send them, and wait until the broker has them."""
        rng = np.random.default_rng(seed)
        for _ in range(0, reports, PACK):
            batch = self._collection.perturb(["flu"] * PACK, rng, np.full(PACK, self._moment))
            self._producer.send(TOPIC, wire.encode_batch(batch), timestamp_ms=self._moment)
        self._producer.flush()


def counted(started: Job, reports: int) -> int:
    """Wait until the row of the window has so many reports.

    Raises:
        RuntimeError: it has more.
    """
    started.wait(lambda: sum(started.latest().values()) >= reports)
    found = sum(started.latest().values())
    if found != reports:
        raise RuntimeError(f"{reports:,} different reports were sent, {found:,} were counted")
    return reports


def measured(what: str, reports: int, before: dict[str, float], folder: Path, flink: Cluster) -> Iterator[Line]:
    """A line, which is printed too."""
    after = spent(flink)
    cost = {name: 1e6 * (seconds - before[name]) / reports for name, seconds in after.items()}
    line = Line(what, cost, max(map(memory, flink.workers())), newest_checkpoint(folder))
    numbers = "".join(f"{each:>{width}.2f}" for each, width in zip(cost.values(), (10, 8, 8), strict=True))
    print(f"{what:>22}{numbers}   worker {line.memory / 1e6:,.0f} MB, checkpoint {line.checkpoint / 1e6:,.0f} MB")
    yield line


def memory(pid: int) -> int:
    """Bytes of memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def newest_checkpoint(folder: Path) -> int:
    """Bytes of all files of the checkpoint that was completed last; 0: there is none."""
    complete = (folder / "checkpoints").glob("*/chk-*/_metadata")
    for path in sorted(complete, key=lambda path: int(path.parent.name.removeprefix("chk-")), reverse=True):
        with contextlib.suppress(FileNotFoundError):  # there is a newer one
            return sum(file.stat().st_size for file in path.parent.iterdir())
    return 0


@contextmanager
def job(folder: Path, options: list[str], flink: Cluster) -> Iterator[Job]:
    """Start the main job with windows of thirty days, of which it shows what it has; it ends on leaving."""
    output, log = folder / "rows", folder / "job.log"
    command = [sys.executable, "-m", "uldp_transforms.jobs", "estimate", f"--collection={collection(folder)}"]
    command += [f"--output={output}", "--window=30d", "--early_every=2s", "--flush_every=1s", "--min_reports=1"]
    command += ["--deduplicate", *options, *flink.options(parallelism=1), "--experiments=use_deprecated_read"]
    with process(command, log) as started:
        yield Job(started, output, log)


if __name__ == "__main__":
    sys.exit(main())
