"""Rows of streams on Flink, in files and Kafka topics: how many are there, and is each there once when workers die?

Three jobs read one quiet topic: 100 reports a second, each sent up to 20 s after its event time, in windows of 20 s.
One writes as often as it can, one by the defaults, one releases each window once. The last two also write to topics,
and their workers are killed.

What must hold: the local engine over a file of the same reports gives the same estimates; of a window that is released
once there is one row in all files, and one value under its key in the topic; by the rule of docs/consume.md topics and
files of the other job say the same. Needs what ``tests.rigs.flink`` needs, and confluent-kafka.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import numpy as np

from tests.rigs.flink.cached import client
from tests.rigs.flink.cluster import Cluster, cluster
from tests.rigs.flink.kafka import broker, create_topic, expansion_service
from tests.rigs.flink.stream import TOPIC, Job, job
from tests.rigs.flink.traffic import PARTITIONS
from tests.rigs.flink.trial import try_out
from tests.rigs.job import collection
from tests.rigs.job import run as run_over_files
from uldp_transforms.jobs.check import latest_rows
from uldp_transforms.jobs.kafka.topic_options import CREATE_TIME
from uldp_transforms.ldp import Collection, ReportBatch
from uldp_transforms.messages import wire

WINDOW = 20
"""Seconds; also the longest delay of a report."""

JOBS: dict[str, tuple[str, ...]] = {
    "each bundle": ("--late_every=0s", "--flush_every=0s"),
    "defaults": ("--flush_every=60s",),
    "final": ("--flush_every=60s", "--release=final"),
}
"""Name -> options."""

KILLED = ("defaults", "final")
"""Jobs that write to topics too, and whose workers are killed."""

Row = dict[str, Any]


class Written(NamedTuple):
    """What a job wrote.

    Attributes:
        rows: of estimates, from all of its files.
        health: rows of health.
        records: (key, row) of its topic, in order; none if it has none.
        files: their number by kind.
    """

    rows: list[Row]
    health: list[Row]
    records: list[tuple[bytes, Row]]
    files: Counter[str]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.rigs.flink.kafka_rows", description=__doc__)
    parser.add_argument("--rate", type=int, default=100, help="reports a second")
    parser.add_argument("--seconds", type=int, default=60, help="for which reports are sent")
    args = parser.parse_args()

    def compare(folder: Path) -> str:
        written, expected = run(folder, args.rate, args.seconds)
        print(table(written))
        wrong = faults(written, expected)
        if wrong:
            raise RuntimeError("\n".join(wrong))
        return "estimates of the local engine; each row of final once, in files and topic"

    return try_out(compare)


def run(folder: Path, rate: int, seconds: int) -> tuple[dict[str, Written], list[Row]]:
    """Start everything, send, kill two workers in the middle, and wait for all rows.

    Returns:
        What each job wrote, and the rows of the local engine over the same reports.

    Raises:
        RuntimeError: a job has ended, does not come to its rows, or was not started again.
    """
    with ExitStack() as stack:
        server = stack.enter_context(broker(folder))
        service = stack.enter_context(expansion_service(folder))
        flink = stack.enter_context(cluster(folder))
        for topic in (TOPIC, *KILLED):
            create_topic(server, topic, PARTITIONS if topic == TOPIC else 1, CREATE_TIME)
        config = folder / "rows.properties"
        config.write_text(f"bootstrap.servers={server}\n", "utf-8")
        source = [f"--kafka_topic={TOPIC}", f"--bootstrap_servers={server}", f"--expansion_service={service}"]
        jobs: dict[str, Job] = {}
        workers: dict[str, int] = {}
        for name, options in JOBS.items():
            topic = [f"--output_kafka_topic={name}", f"--kafka_config={config}"] if name in KILLED else []
            before = set(flink.workers())
            every = [*source, f"--window={WINDOW}s", "--deduplicate", *topic, *options]
            jobs[name] = stack.enter_context(job(folder, name, every, flink))
            jobs[name].wait(partial(_has_one_more, flink, before))
            workers[name] = next(iter(set(flink.workers()) - before))
        killer = threading.Timer(seconds / 2, lambda: [os.kill(workers[name], signal.SIGKILL) for name in KILLED])
        killer.start()
        reports = send(server, collection(folder), rate, seconds)
        killer.join()
        _wait_for_restarts(flink, jobs["final"])
        expected = in_one_go(folder, reports)
        counts = {row["window_start"]: row["num_reports"] for row in expected}
        for each in jobs.values():
            each.wait(partial(_has_counted, each, counts))
        return {name: written(folder / name, name, server) for name in JOBS}, expected


def send(server: str, spec: Path, rate: int, seconds: int) -> ReportBatch:
    """Send single reports of the last 20 s ten times a second; returns them."""
    reports_of, rng, sent = Collection.from_json(spec), np.random.default_rng(1), list[ReportBatch]()
    producer = client().KafkaProducer(bootstrap_servers=server)
    begin = time.monotonic()
    for tick in range(10 * seconds):
        now = time.time_ns() // 1_000_000
        times = now - rng.integers(0, 1000 * WINDOW, rate // 10)
        values = rng.choice(reports_of.alphabet.to_json()["values"], rate // 10).tolist()
        sent.append(reports_of.perturb(values, rng, times))
        for number, message in enumerate(wire.encode_reports(sent[-1])):
            producer.send(TOPIC, message, partition=number % PARTITIONS, timestamp_ms=now)
        time.sleep(max(0.0, begin + (tick + 1) / 10 - time.monotonic()))
    producer.flush()
    producer.close()
    return ReportBatch.concatenate(sent)


def _has_one_more(flink: Cluster, before: set[int]) -> bool:
    return len(set(flink.workers()) - before) == 1


def _has_counted(some: Job, counts: dict[str, int]) -> bool:
    return some.latest() == counts


def _wait_for_restarts(flink: Cluster, some: Job) -> None:
    some.wait(lambda: flink.restarts() >= len(KILLED))


def in_one_go(folder: Path, reports: ReportBatch) -> list[Row]:
    """The rows of the local engine over a file of these reports."""
    path, output = folder / "reports.avro", folder / "local"
    with path.open("wb") as file:
        fastavro.writer(file, wire.REPORT_SCHEMA, wire.report_records(reports))
    run_over_files(folder, str(path), output, [f"--window={WINDOW}s", f"--slide={WINDOW}s", "--min_reports=1"])
    return list(_lines(output, "estimates.jsonl"))


def written(output: Path, topic: str, server: str) -> Written:
    files = Counter(path.name.partition("-")[0] for path in output.glob("*") if path.suffix in (".jsonl", ".avro"))
    records = consumed(server, topic) if topic in KILLED else []
    return Written(list(_lines(output, "estimates-*.jsonl")), list(_lines(output, "health-*.jsonl")), records, files)


def _lines(output: Path, pattern: str) -> Iterator[Row]:
    for path in output.glob(pattern):
        with suppress(FileNotFoundError):
            yield from map(json.loads, path.read_text("utf-8").splitlines())


def consumed(server: str, topic: str) -> list[tuple[bytes, Row]]:
    """All records of a topic that are committed, in order."""
    partition = client().TopicPartition(topic, 0)
    consumer = client().KafkaConsumer(bootstrap_servers=server, isolation_level="read_committed")
    consumer.assign([partition])
    end = consumer.end_offsets([partition])[partition]
    consumer.seek_to_beginning(partition)
    found: list[tuple[bytes, Row]] = []
    while consumer.position(partition) < end:
        for records in consumer.poll(1000).values():
            found += [(record.key, json.loads(record.value)) for record in records]
    consumer.close()
    return found


def faults(jobs: dict[str, Written], expected: Sequence[Row]) -> list[str]:
    """A sentence for each thing that does not hold."""
    wrong = []
    truth = {row["window_start"]: numbers_of(row) for row in expected}
    for name, found in jobs.items():
        latest = {row["window_start"]: numbers_of(row) for row in latest_rows(found.rows)}
        if latest != truth:
            wrong.append(f"{name}: estimates must be those of the local engine, got others")
        of_topic = {json.dumps(row) for row in latest_rows([row for _, row in found.records])}
        if name in KILLED and of_topic != {json.dumps(row) for row in latest_rows(found.rows)}:
            wrong.append(f"{name}: the rows that count must be the same in topic and files, got others")
    for kind in ("rows", "health"):
        per_window = Counter(row["window_start"] for row in getattr(jobs["final"], kind))
        if set(per_window.values()) != {1} or per_window.keys() != truth.keys():
            wrong.append(f"final: {kind} must be one a window, got {dict(per_window)}")
    for key, values in by_key(jobs["final"]).items():
        if len(values) != 1:
            wrong.append(f"final: {key!r} must have one value in the topic, got {len(values)}")
    return wrong


def numbers_of(row: Row) -> tuple[Any, ...]:
    """What two engines must agree on: reports, status, and the estimate of each value, bit for bit."""
    return row["num_reports"], row["status"], [(each["value"], each["raw_frequency"]) for each in row["estimates"]]


def by_key(found: Written) -> dict[bytes, set[str]]:
    """The different values under each key of a topic."""
    values: dict[bytes, set[str]] = defaultdict(set)
    for key, row in found.records:
        values[key].add(json.dumps(row))
    return values


def table(jobs: dict[str, Written]) -> str:
    """Rows of each window, files of each kind, and records of the topics."""
    lines = []
    for name, found in jobs.items():
        rows = Counter(row["window_start"] for row in found.rows)
        kinds = ", ".join(f"{kind} {number}" for kind, number in sorted(found.files.items()))
        killed = ", its worker killed" if name in KILLED else ""
        lines.append(f"{name}{killed}: rows of a window: {', '.join(str(rows[start]) for start in sorted(rows))}")
        lines.append(f"  files: {found.files.total()} ({kinds})")
        if name in KILLED:
            values = by_key(found)
            several = sum(len(each) > 1 for each in values.values())
            keys = f"{len(values)} keys, {several} of them with several values"
            lines.append(f"  topic: {len(found.records)} records, {keys}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
