"""The streaming job on Flink with a fault every minute: ``python -m tests.campaigns.soak_faults --minutes 60``.

A Kafka broker, Flink, and two jobs that read one topic with ``--deduplicate``, one of them with ``--release final``.
Each minute has the next fault of ``FAULTS``. At the end each window of both jobs must have counted what was sent,
`final` in one row; nothing may be missing in the ledger, and nothing be too much; files must be as many as
``--flush_every`` promises; and memory in the last quarter of a long run must be that of the second one.

Needs what ``tests.rigs.flink`` needs. The jobs get ``--max_rejected_share 1``: without it they stop when nearly
everything is refused, as in a storm of garbage.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.campaigns.soak_traffic import CLOCKS, LATENESS, PARTITIONS, WINDOW, Traffic
from tests.campaigns.soak_watch import Meter, files, processes, seconds_behind, stored
from tests.rigs.flink.cached import FOLDER, fetch
from tests.rigs.flink.cluster import WORKED, Cluster, cluster
from tests.rigs.flink.kafka import create_topic, expansion_service, prepare, serve
from tests.rigs.flink.stream import Job, job
from tests.rigs.job import collection
from uldp_transforms.jobs.kafka.topic_options import LOG_APPEND_TIME
from uldp_transforms.ldp import Collection

TOPIC = "reports"
FLUSH = 30.0
"""Seconds for which rows wait for their file."""

LAST = 300.0
"""Seconds without change after which what is missing is lost: longer than a window, its lateness, the margin of a
release and a flush together."""

GROWTH, SPREAD = 1.25, 50.0
"""Memory of the last quarter is at most so many times that of the second, and so many MiB more."""


class Run:
    """Everything that runs, and what faults do to it."""

    def __init__(self, folder: Path, stack: ExitStack, rate: int, seed: int):
        self._random = random.Random(seed)
        self._folder = folder
        self.checkpoints = folder / "checkpoints"
        self._brokers = stack.enter_context(ExitStack())
        self._starts = itertools.count()
        server, self._properties = prepare(folder)
        self._start_broker()
        create_topic(server, TOPIC, PARTITIONS, LOG_APPEND_TIME)
        service = stack.enter_context(expansion_service(folder))
        self.flink: Cluster = stack.enter_context(cluster(folder, config=FOLDER / "lasting.yaml"))
        options = [f"--kafka_topic={TOPIC}", f"--bootstrap_servers={server}", f"--kafka_timestamps={LOG_APPEND_TIME}"]
        options += [f"--expansion_service={service}", "--deduplicate", "--max_rejected_share=1"]
        options += [f"--window={WINDOW}ms", f"--allowed_lateness={LATENESS}ms", f"--flush_every={FLUSH:.0f}s"]
        self.jobs: dict[str, Job] = {}
        for name in ("corrected", "final"):
            started = job(folder, name, [*options, f"--release={name}", f"--job_name={name}"], self.flink)
            self.jobs[name] = stack.enter_context(started)
        self.traffic = Traffic(server, TOPIC, Collection.from_json(collection(folder)), rate, seed)

    def output(self, name: str) -> Path:
        return self._folder / name

    def has_rows(self, name: str) -> bool:
        return bool(files(self.output(name)))

    def restarts(self, name: str) -> int:
        """How often Flink has started a job again."""
        lines = (self._folder / "flink.log").read_text("utf-8", "replace").splitlines()
        return sum(f"Job {name} (" in line and "from state RESTARTING to RUNNING" in line for line in lines)

    def _start_broker(self) -> None:
        log = self._folder / f"kafka-{next(self._starts)}.log"
        self._broker = self._brokers.enter_context(serve(self._properties, log))

    def restart_broker(self) -> None:
        self._broker.kill()
        self._broker.wait()
        time.sleep(3)
        self._start_broker()

    def kill_python_worker(self) -> None:
        """One that has started: whoever waits for one that is starting may wait for ever."""
        os.kill(self._worker(), signal.SIGKILL)

    def stop_python_worker(self) -> None:
        worker = self._worker()
        os.kill(worker, signal.SIGSTOP)
        time.sleep(20)
        os.kill(worker, signal.SIGCONT)

    def _worker(self) -> int:
        while not (started := [pid for pid, used in self.flink.workers().items() if used > WORKED]):
            time.sleep(1)
        return self._random.choice(started)

    def kill_java_worker(self) -> None:
        workers = [process.pid for process in processes() if process.kind == "java" and process.seconds > WORKED]
        os.kill(self._random.choice(workers), signal.SIGKILL)

    def flood(self) -> None:
        self.traffic.flood(50_000)

    def flood_and_kill(self) -> None:
        self.flood()
        time.sleep(1)
        self.kill_python_worker()

    def jump_clocks(self) -> None:
        """The clocks of half of the clients: an hour ahead, an hour behind, a minute ahead."""
        for off in CLOCKS:
            self.traffic.clocks = off
            time.sleep(7)
        self.traffic.clocks = 0

    def fall_silent(self) -> None:
        self.traffic.idle.set()
        time.sleep(40)
        self.traffic.idle.clear()


FAULTS: Mapping[str, Callable[[Run], None]] = {
    "Python worker killed": Run.kill_python_worker,
    "duplicate storm": lambda run: run.traffic.send_recent_again(),
    "broker killed, restarted": Run.restart_broker,
    "flood of 50,000": Run.flood,
    "worker stopped for 20 s": Run.stop_python_worker,
    "clocks jump": Run.jump_clocks,
    "Java worker killed": Run.kill_java_worker,
    "garbage storm": lambda run: run.traffic.garbage(2000),
    "silence for 40 s": Run.fall_silent,
    "flood, worker killed": Run.flood_and_kill,
}
"""What happens, one a minute, ten seconds after the minute has begun."""


def campaign(folder: Path, minutes: int, rate: int, seed: int) -> list[str]:
    """Run, print a line a minute and the sums, and return what is not as it should be."""
    with ExitStack() as stack:
        run, meter, stop = Run(folder, stack, rate, seed), Meter(), threading.Event()
        pool = stack.enter_context(ThreadPoolExecutor(1))
        stack.callback(stop.set)
        sending = pool.submit(run.traffic.run, stop)
        for name, each in run.jobs.items():
            each.wait(partial(run.has_rows, name))
        print(line(list(COLUMNS), "fault"), flush=True)
        begin = time.monotonic()
        for minute, (name, fault) in zip(range(minutes), itertools.cycle(FAULTS.items())):
            time.sleep(10)
            fault(run)
            time.sleep(max(0.0, begin + 60 * (minute + 1) - time.monotonic()))
            meter.look()
            print(line(minute_of(run, meter, minute + 1), name), flush=True)
            if sending.done():
                sending.result()
        stop.set()
        sending.result()
        settle(run)
        seconds = time.monotonic() - begin + 60
        meter.look()
        print(line(minute_of(run, meter, minutes), "all counted"), flush=True)
        wrong = wrong_numbers(run) + wrong_files(run, seconds) + wrong_memory(meter, minutes)
        print(sums(run))
    return wrong


COLUMNS = {
    "min": 3,
    "sent": 11,
    "restarts": 9,
    "behind, s": 10,
    "state": 6,
    "heap": 5,
    "flink": 6,
    "kafka": 6,
    "java": 5,
    "python": 7,
    "cores": 6,
    "files": 10,
}
"""What the table of minutes has, and how wide; pairs are of `corrected` and `final`.

In MiB the checkpoints on disk, Flink's live heap, and the largest process of each kind. Cores are of all processes.
"""


def line(cells: Sequence[object], fault: str) -> str:
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, COLUMNS.values())) + f"  {fault}"


def minute_of(run: Run, meter: Meter, minute: int) -> list[object]:
    """What a minute has left, by column."""
    behind = (f"{seconds_behind(list(each.latest()), WINDOW):.0f}" for each in run.jobs.values())
    return [
        minute,
        f"{run.traffic.received:,}",
        "/".join(str(run.restarts(name)) for name in run.jobs),
        "/".join(behind),
        f"{stored(run.checkpoints):.1f}",
        f"{meter.heap[-1]:.0f}",
        *(f"{found[-1]:.0f}" for found in meter.resident.values()),
        f"{meter.cores[-1]:.2f}",
        "/".join(str(files(run.output(name)).total()) for name in run.jobs),
    ]


def settle(run: Run) -> None:
    """Wait until both jobs have counted everything, or nothing has changed for a long time."""
    last: object = None
    since = time.monotonic()
    while time.monotonic() < since + LAST:
        found = [(each.panes(), each.ledger()) for each in run.jobs.values()]
        if all(each.latest() == run.traffic.counts for each in run.jobs.values()) and not any(
            missing(run, each) for each in run.jobs.values()
        ):
            time.sleep(FLUSH + 10)  # what is too much comes as late as that
            return
        if found != last:
            last, since = found, time.monotonic()
        time.sleep(5)


def missing(run: Run, each: Job) -> dict[str | None, Counter[str]]:
    """What was sent and is in no row of the ledger, by start of the base period."""
    found = each.ledger()
    absent = {period: entries - found.get(period, Counter()) for period, entries in run.traffic.ledger.items()}
    return {period: entries for period, entries in absent.items() if entries}


def too_many(run: Run, each: Job) -> Counter[str]:
    """What the ledger has and was not sent."""
    more: Counter[str] = Counter()
    for period, entries in each.ledger().items():
        more.update(entries - run.traffic.ledger.get(period, Counter()))
    return more


def wrong_numbers(run: Run) -> list[str]:
    wrong = [f"{run.traffic.undelivered} messages never reached the broker"] if run.traffic.undelivered else []
    for name, each in run.jobs.items():
        latest, counts = each.latest(), run.traffic.counts
        differing = {key: (latest.get(key), counts.get(key)) for key in latest.keys() | counts.keys()}
        differing = {key: pair for key, pair in differing.items() if pair[0] != pair[1]}
        if differing:
            wrong.append(f"{name}: windows whose rows are not what was sent: {differing}")
        if absent := missing(run, each):
            wrong.append(f"{name}: missing in the ledger: {absent}")
        if more := too_many(run, each):
            wrong.append(f"{name}: too many in the ledger: {dict(more)}")
        several = {window: rows for window, rows in each.panes().items() if name == "final" and len(rows) > 1}
        if several:
            wrong.append(f"{name}: windows of several rows: {several}")
    return wrong


def wrong_files(run: Run, seconds: float) -> list[str]:
    """Kinds with more files than one in ``FLUSH``, and one more for each time that the job was started."""
    wrong = []
    for name in run.jobs:
        most = seconds / FLUSH + 1 + run.restarts(name)
        found = files(run.output(name))
        wrong += [f"{name}: {n} files of {kind}, at most {most:.0f}" for kind, n in found.items() if n > most]
    return wrong


def wrong_memory(meter: Meter, minutes: int) -> list[str]:
    """What has grown from the second quarter of the run to the last one; what a short run uses says nothing.

    The largest live heap, and the middle of the resident sizes: Java holds garbage now and then until it collects it.
    """
    if minutes < 40:
        return []
    quarter = minutes // 4
    second, last = slice(quarter, 2 * quarter), slice(3 * quarter, minutes)
    sizes = {"live heap of flink, at most": (max(meter.heap[second]), max(meter.heap[last]))}
    for kind, found in meter.resident.items():
        sizes[f"{kind}, resident, in the middle"] = (statistics.median(found[second]), statistics.median(found[last]))
    for name, (before, after) in sizes.items():
        print(f"{name}: {before:.0f} MiB in the second quarter, {after:.0f} in the last")
    grown = {name: pair for name, pair in sizes.items() if not pair[1] <= GROWTH * pair[0] + SPREAD}
    return [f"{name}: has grown from {before:.0f} to {after:.0f} MiB" for name, (before, after) in grown.items()]


def sums(run: Run) -> str:
    ends: Counter[str] = Counter()
    for entries in run.traffic.ledger.values():
        ends.update(entries)
    received = ends.pop("received")
    parts = ", ".join(f"{n:,} {end}" for end, n in ends.most_common())
    lines = [f"{run.traffic.messages:,} messages, {received:,} reports = {parts}"]
    for name, each in run.jobs.items():
        rows = [len(panes) for panes in each.panes().values()]
        lines.append(
            f"{name}: {run.restarts(name)} restarts, {len(rows)} windows in {sum(rows)} rows, too many in the ledger: "
            f"{dict(too_many(run, each)) or 'none'}, files: {dict(files(run.output(name)))}"
        )
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--rate", type=int, default=100, help="messages of one report a second, and of packed ones")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for logs and rows, which stays")
    args = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # or what it has started would go on
    fetch()
    folder = args.keep or Path(tempfile.mkdtemp(prefix="soak-"))
    folder.mkdir(exist_ok=True)
    wrong = campaign(folder, args.minutes, args.rate, args.seed)
    if not args.keep:
        shutil.rmtree(folder)
    print("\n".join(wrong) or "every number is right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
