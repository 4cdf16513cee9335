"""What does a message cost on Flink? One report a message comes from Kafka, and the main job counts them.

Counted are the seconds of CPU of Flink itself (Java), of Beam's Java worker, which takes part in reading Kafka, and of
the Python worker. The start, with the first messages, is not counted. Needs what ``deploy.flink`` needs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import apache_beam as beam
import numpy as np

from deploy.flink.cached import JARS, client, fetch
from deploy.flink.cluster import JOB_SERVER, Cluster, cluster
from deploy.flink.java_worker import HARNESS
from deploy.flink.kafka import broker, create_topic, expansion_service
from deploy.flink.stream import TOPIC, Job, job
from deploy.job import collection
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire
from uldp_transforms.pipelines.sources.kafka_topic import CREATE_TIME

FIRST = 20_000
"""Messages that are counted before the measurement begins: all processes run then, and have loaded their code."""

AT_ONCE = 10_000
"""Messages that get one event time, that of their sending."""

Seconds = dict[str, float]
"""Of CPU time, by the column of the table."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m deploy.flink.cost", description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000, help="of one report each")
    args = parser.parse_args()
    fetch()
    print(f"{JARS.folder.name}, Python's Beam {beam.__version__}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        try:
            print(table(args.messages, run(Path(name), args.messages)))
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


def run(folder: Path, messages: int) -> Seconds:
    """Start everything, have the first messages counted, then so many more.

    Returns:
        What the latter took, until the rows that count them were written.

    Raises:
        RuntimeError: a report is missing in the rows, or the job has ended or was started again.
    """
    with ExitStack() as stack:
        server = stack.enter_context(broker(folder))
        service = stack.enter_context(expansion_service(folder))
        flink = stack.enter_context(cluster(folder))
        create_topic(server, TOPIC, 1, CREATE_TIME)
        source = [f"--kafka_topic={TOPIC}", f"--bootstrap_servers={server}", f"--kafka_timestamps={CREATE_TIME}"]
        source += [f"--expansion_service={service}"]
        send(server, collection(folder), FIRST)
        started = stack.enter_context(job(folder, "cost", source, flink))
        wait_until_counted(started, FIRST)
        before = spent(flink)
        send(server, collection(folder), messages)
        wait_until_counted(started, FIRST + messages)
        after = spent(flink)
        if flink.restarts():
            raise RuntimeError(f"no job must have been started again, got {flink.restarts()} restarts")
        return {name: seconds - before[name] for name, seconds in after.items()}


def send(server: str, spec: Path, messages: int) -> None:
    """Send single reports of now, as fast as it goes, and wait until the broker has them.

    Args:
        server: HOST:PORT of the broker.
        spec: file of the collection.
        messages: their number.
    """
    reports_of, rng = Collection.from_json(spec), np.random.default_rng(1)
    producer = client().KafkaProducer(bootstrap_servers=server, linger_ms=50, batch_size=1 << 20)
    for begin in range(0, messages, AT_ONCE):
        number, now = min(AT_ONCE, messages - begin), time.time_ns() // 1_000_000
        for message in wire.encode_reports(reports_of.perturb(["flu"] * number, rng, np.full(number, now))):
            producer.send(TOPIC, message, timestamp_ms=now)
    producer.flush()
    producer.close()


def wait_until_counted(started: Job, reports: int) -> None:
    """Wait until the rows of all windows together have so many reports."""
    started.wait(lambda: sum(started.latest().values()) == reports)


def spent(flink: Cluster) -> Seconds:
    """CPU time of the processes of the engine until now."""
    servers = java_children({os.getpid()}, JOB_SERVER)
    workers = java_children(set(servers), HARNESS)
    python = sum(flink.workers().values())
    return {"Flink": sum(servers.values()), "Java's worker": sum(workers.values()), "Python": python}


def java_children(parents: set[int], main_class: str) -> dict[int, float]:
    """Children of some processes that run a main class: their process ids, and seconds of CPU time used by each."""
    seconds = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # processes end while we look
            _, parent, *rest = (folder / "stat").read_text().rpartition(") ")[2].split()
            if int(parent) in parents and main_class.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                seconds[int(folder.name)] = (int(rest[9]) + int(rest[10])) / os.sysconf("SC_CLK_TCK")
    return seconds


def table(messages: int, seconds: Seconds) -> str:
    """Seconds of CPU that a million messages take in each process, and microseconds that one takes in all."""
    head = f"{'messages':>10}" + "".join(f"{name:>15}" for name in seconds) + f"{'us a message':>15}"
    million = {name: used / messages * 1e6 for name, used in seconds.items()}
    row = f"{messages:>10,}" + "".join(f"{used:>15.1f}" for used in million.values())
    return f"seconds of CPU a million messages:\n{head}\n{row}{sum(million.values()):>15.1f}"


if __name__ == "__main__":
    sys.exit(main())
