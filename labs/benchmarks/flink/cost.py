"""What does a message cost on Flink? The main job counts reports from Kafka, read by Java and by Python.

Counted are the seconds of CPU of Flink itself (Java), of Beam's Java worker, which takes part in reading Kafka in Java,
and of the Python worker. The start, with the first messages, is not counted; then the same number of messages is
counted twice, because Java compiles its code while it runs. The floor is a job that only reads. Needs what
``tests.rigs.flink`` needs.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import apache_beam as beam
import numpy as np

from labs.benchmarks.flink.floor import tallied
from tests.rigs.flink.cached import JARS, client, fetch
from tests.rigs.flink.cluster import JOB_SERVER, Cluster, cluster
from tests.rigs.flink.java_worker import HARNESS
from tests.rigs.flink.kafka import broker, create_topic, expansion_service
from tests.rigs.flink.processes import process
from tests.rigs.flink.stream import PATIENCE, TOPIC, job
from tests.rigs.job import collection
from uldp_transforms.jobs.sources.kafka_topic import CREATE_TIME, JAVA, PYTHON
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire

FIRST = 20_000
"""Messages that are counted before the measurement begins: all processes run then, and have loaded their code."""

AT_ONCE = 10_000
"""Reports that get one event time, that of their sending."""

MANY = 1000
"""Reports of a message of which fewer are sent."""

ROUNDS = 2

Seconds = dict[str, float]
"""Of CPU time, by the column of the table."""

Counted = Callable[[], int]
"""How many reports a job has counted."""


@dataclasses.dataclass(frozen=True)
class Case:
    """What is measured.

    Attributes:
        reader: of Kafka, ``python`` or ``java``.
        pack: reports of a message.
        floor: whether messages are only read.
    """

    reader: str
    pack: int = 1
    floor: bool = False

    def __str__(self) -> str:
        what = "only read" if self.floor else "single" if self.pack == 1 else f"packed by {self.pack:,}"
        return f"{self.reader}, {what}"


CASES = [
    *(Case(reader) for reader in (PYTHON, JAVA)),
    *(Case(PYTHON, pack) for pack in (10, MANY)),
    *(Case(reader, floor=True) for reader in (PYTHON, JAVA)),
]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m labs.benchmarks.flink.cost", description=__doc__)
    parser.add_argument("--messages", type=int, default=300_000, help=f"of a round; a tenth if packed by {MANY:,}")
    parser.add_argument("--cases", help="those whose names have this text; none: all of them")
    args = parser.parse_args()
    fetch()
    print(f"{JARS.folder.name}, Python's Beam {beam.__version__}; microseconds of CPU a message:", flush=True)
    print(head(), flush=True)
    for case in CASES:
        if args.cases is not None and args.cases not in str(case):
            continue
        messages = args.messages if case.pack < MANY else args.messages // 10
        with tempfile.TemporaryDirectory() as name:
            try:
                for seconds in run(Path(name), case, messages):
                    print(line(case, messages, seconds), flush=True)
            except RuntimeError as error:
                print(error, file=sys.stderr)
                return 1
    return 0


def run(folder: Path, case: Case, messages: int) -> list[Seconds]:
    """Start everything, have the first messages counted, then twice so many more.

    Returns:
        What each of the two took, until all were counted.

    Raises:
        RuntimeError: a report is missing, or the job has ended or was started again.
    """
    with ExitStack() as stack:
        server = stack.enter_context(broker(folder))
        source = [f"--kafka_topic={TOPIC}", f"--bootstrap_servers={server}", f"--kafka_timestamps={CREATE_TIME}"]
        source.append(f"--kafka_reader={case.reader}")
        if case.reader == JAVA:
            source.append(f"--expansion_service={stack.enter_context(expansion_service(folder))}")
        flink = stack.enter_context(cluster(folder))
        create_topic(server, TOPIC, 1, CREATE_TIME)
        first = max(FIRST // case.pack, 1000)
        send(server, collection(folder), first, case.pack)
        counted = stack.enter_context((only_read if case.floor else counting)(folder, source, flink))
        sent = first * case.pack
        wait_until(counted, sent)
        found = []
        for _ in range(ROUNDS):
            before = spent(flink)
            send(server, collection(folder), messages, case.pack)
            sent += messages * case.pack
            wait_until(counted, sent)
            found.append({name: seconds - before[name] for name, seconds in spent(flink).items()})
        if flink.restarts():
            raise RuntimeError(f"no job must have been started again, got {flink.restarts()} restarts")
        return found


@contextmanager
def counting(folder: Path, source: Sequence[str], flink: Cluster) -> Iterator[Counted]:
    """The main job."""
    with job(folder, "cost", [*source, "--late_every=2s"], flink) as started:
        yield lambda: sum(started.latest().values())


@contextmanager
def only_read(folder: Path, source: Sequence[str], flink: Cluster) -> Iterator[Counted]:
    """A job that does nothing with the messages, of one report each."""
    tally, options = folder / "tally", [*flink.options(parallelism=1), "--experiments=use_deprecated_read"]
    command = [
        sys.executable,
        "-m",
        "labs.benchmarks.flink.floor",
        f"--tally={tally}",
        *source,
        *options,
        "--streaming",
    ]
    with process(command, folder / "floor.log"):
        yield lambda: tallied(tally)


def send(server: str, spec: Path, messages: int, pack: int) -> None:
    """Send reports of now, as fast as it goes, and wait until the broker has them.

    Args:
        server: HOST:PORT of the broker.
        spec: file of the collection.
        messages: their number.
        pack: reports of each.
    """
    reports_of, rng = Collection.from_json(spec), np.random.default_rng(1)
    producer = client().KafkaProducer(bootstrap_servers=server, linger_ms=50, batch_size=1 << 20)
    for begin in range(0, messages, max(1, AT_ONCE // pack)):
        number, now = min(max(1, AT_ONCE // pack), messages - begin), time.time_ns() // 1_000_000
        reports = reports_of.perturb(["flu"] * number * pack, rng, np.full(number * pack, now))
        packed = (wire.encode_batch(reports[at : at + pack]) for at in range(0, number * pack, pack))
        for message in wire.encode_reports(reports) if pack == 1 else packed:
            producer.send(TOPIC, message, timestamp_ms=now)
    producer.flush()
    producer.close()


def wait_until(counted: Counted, reports: int) -> None:
    """Wait until so many reports are counted; raises RuntimeError if that takes too long."""
    end = time.monotonic() + PATIENCE
    while counted() != reports:
        if time.monotonic() > end:
            raise RuntimeError(f"{reports:,} reports must be counted, got {counted():,}")
        time.sleep(1)


def spent(flink: Cluster) -> Seconds:
    """CPU time of the processes of the engine until now."""
    servers = java_children({os.getpid()}, JOB_SERVER)
    workers = java_children(set(servers), HARNESS)
    python = sum(flink.workers().values())
    return {"Flink": sum(servers.values()), "Java worker": sum(workers.values()), "Python": python}


def java_children(parents: set[int], main_class: str) -> dict[int, float]:
    """Children of some processes that run a main class: their process ids, and seconds of CPU time used by each."""
    seconds = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # processes end while we look
            _, parent, *rest = (folder / "stat").read_text().rpartition(") ")[2].split()
            if int(parent) in parents and main_class.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                seconds[int(folder.name)] = (int(rest[9]) + int(rest[10])) / os.sysconf("SC_CLK_TCK")
    return seconds


def head() -> str:
    return f"{'':<24}{'messages':>10}{'Flink':>9}{'Java worker':>13}{'Python':>9}{'all':>9}{'a report':>10}"


def line(case: Case, messages: int, seconds: Seconds) -> str:
    """Microseconds of CPU that a message takes in each process, and in all; and a report."""
    each = {name: used / messages * 1e6 for name, used in seconds.items()}
    numbers = f"{each['Flink']:>9.1f}{each['Java worker']:>13.1f}{each['Python']:>9.1f}"
    total = sum(each.values())
    return f"{case!s:<24}{messages:>10,}{numbers}{total:>9.1f}{total / case.pack:>10.3f}"


if __name__ == "__main__":
    sys.exit(main())
