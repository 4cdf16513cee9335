"""The main job on Flink reads Kafka in Python: are all counts exact when workers die, and does every start succeed?

First two jobs read one topic, one of whose partitions stays empty; one corrects its rows, one releases each window
once, and two workers are killed. Then jobs are started one after another on what was sent. Needs what
``tests.rigs.flink`` needs, but no Java worker.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import threading
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.rigs.flink.cluster import Cluster, cluster
from tests.rigs.flink.kafka import broker, create_topic
from tests.rigs.flink.processes import process
from tests.rigs.flink.stream import JOBS, TOPIC, Job, command, job, rows_by_window
from tests.rigs.flink.traffic import PARTITIONS, Sent, send
from tests.rigs.flink.trial import try_out
from tests.rigs.job import collection
from uldp_transforms.jobs.sources.kafka_topic import CREATE_TIME, PYTHON

KILLS = 2
BETWEEN = 20.0
"""Seconds between two kills: a job starts again after ten."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.rigs.flink.polled", description=__doc__)
    parser.add_argument("--rate", type=int, default=1000, help="new reports a second")
    parser.add_argument("--seconds", type=int, default=60, help="for which reports are sent")
    parser.add_argument("--starts", type=int, default=10, help="of jobs, one after another")
    args = parser.parse_args()
    return try_out(lambda folder: run(folder, args.rate, args.seconds, args.starts))


def run(folder: Path, rate: int, seconds: int, starts: int) -> None:
    """Start everything, send, kill workers, wait for all rows; then start jobs again and again. Prints what came of it.

    Raises:
        RuntimeError: a row is missing or wrong, or a job has ended.
    """
    with ExitStack() as stack:
        server = stack.enter_context(broker(folder))
        flink = stack.enter_context(cluster(folder))
        create_topic(server, TOPIC, PARTITIONS + 1, CREATE_TIME)
        source = [f"--kafka_topic={TOPIC}", f"--bootstrap_servers={server}", f"--kafka_reader={PYTHON}"]
        with ExitStack() as jobs:
            own = [*source, "--deduplicate"]
            corrected = jobs.enter_context(job(folder, "corrected", [*own, "--late_every=5s"], flink))
            final = jobs.enter_context(job(folder, "final", [*own, "--release=final"], flink))
            sent = send_and_kill(server, folder, rate, seconds, corrected, flink)
            for each in (corrected, final):
                each.wait(partial(each.has, sent))
            if any(len(numbers) != 1 for numbers in final.panes().values()):
                raise RuntimeError(f"final must have one row a window, got {final.panes()}")
            if flink.restarts() != KILLS:
                raise RuntimeError(f"jobs must have been started again {KILLS} times, got {flink.restarts()}")
            print(f"{sent.messages:,} messages, {KILLS} workers killed, {KILLS} restarts:", flush=True)
            print(rows_by_window(sent, corrected, final), flush=True)
        took = [attempt(folder, number, source, flink, sent) for number in range(starts)]
        if took:
            middle = statistics.median(took)
            print(f"{starts} of {starts} starts: all rows after {min(took):.0f} to {max(took):.0f} s ({middle:.0f})")


def send_and_kill(server: str, folder: Path, rate: int, seconds: int, first: Job, flink: Cluster) -> Sent:
    """Send as ``traffic`` does, once both jobs run, and kill workers as soon as the first job has rows."""

    def kill() -> None:
        first.wait(lambda: bool(first.panes()))
        for number in range(KILLS):
            time.sleep(BETWEEN * min(number, 1))
            os.kill(sorted(flink.workers())[number], signal.SIGKILL)

    first.wait(lambda: len(flink.workers()) == JOBS)
    threading.Thread(target=kill, daemon=True).start()
    return send(server, TOPIC, collection(folder), rate, seconds)


def attempt(folder: Path, number: int, source: list[str], flink: Cluster, sent: Sent) -> float:
    """Start a job on what was sent, wait for all rows, stop it; returns the seconds until they were there.

    Raises:
        RuntimeError: a row is missing or wrong, or the job has ended.
    """
    output, log = folder / f"start-{number}", folder / f"start-{number}.log"
    options = ["--deduplicate", *source, *flink.options(parallelism=1)]
    begin = time.monotonic()
    with process(command(collection(folder), output, options), log) as started:
        running = Job(lambda: started.poll() is not None, output, log)
        running.wait(lambda: running.latest() == sent.counts)
        seconds = time.monotonic() - begin
        started.terminate()
        started.wait(60)
    return seconds


if __name__ == "__main__":
    sys.exit(main())
