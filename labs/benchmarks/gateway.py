"""The gateway: requests and reports per second of its CPU time, and how much packing saves in the stream.

A gateway in a process of its own, on the loopback address, is sent a fixed number of messages over connections that are
kept open. It publishes to the Pub/Sub server of the tests, or to a folder. A bare starlette application gets the same
requests.
"""

from __future__ import annotations

import asyncio
import json
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from packages.gateway.tests.support.gateways import Running, gateway, posted_at_once
from tests.support import live
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire

COLLECTION = {
    "id": "benchmark",
    "version": 1,
    "alphabet": {"id": "closed", "values": [str(i) for i in range(16)]},
    "mechanism": {"id": "krr", "epsilon": 1.0},
}
CONNECTIONS = 1_000
REQUESTS = 20_000
REPORTS = {1: 50_000, 10: 500_000, 100: 3_000_000, 1000: 3_000_000}
"""Of the stream, by the reports of a message: enough to be seen beside what a job takes to start."""


class Load(NamedTuple):
    """Wall-clock time and the gateway's CPU time for a number of requests, in seconds."""

    seconds: float
    cpu: float


def send_all(running: Running, messages: Sequence[bytes]) -> Load:
    """Send each message once; every answer must be good."""
    before, begin = running.process_cpu(), time.perf_counter()
    statuses = asyncio.run(posted_at_once(running.address, messages, CONNECTIONS))
    seconds = time.perf_counter() - begin
    assert {status for part in statuses for status in part} <= {200, 202}
    return Load(seconds, running.process_cpu() - before)


def packed(collection: Collection, number: int, size: int) -> list[bytes]:
    """Messages with a given number of current reports each."""
    moment = time.time_ns() // 1_000_000
    batch = collection.perturb([str(i % 16) for i in range(number * size)], event_times=[moment] * number * size)
    if size == 1:
        return wire.encode_reports(batch)
    return [wire.encode_batch(batch[i : i + size]) for i in range(0, len(batch), size)]


def main() -> None:
    collection = Collection.from_json(COLLECTION)
    print(f"the gateway, {CONNECTIONS} connections that stay open (per second of its CPU time; k-RR of 16 values)")
    _bare(packed(collection, REQUESTS, 1))
    with live.broker():
        for target, options in (("Pub/Sub", ["--topic", live.TOPIC]), ("spool", ["--spool", "spool"])):
            for size in (1, 10, 100):
                _measure(collection, target, options, size)
    print("what packing saves in the stream: the job on the local engine, from Pub/Sub's stand-in (CPU time a report)")
    _saving(collection)


def _bare(messages: Sequence[bytes]) -> None:
    """What the same requests cost without anything that the gateway does."""
    program = [sys.executable, "-m", "labs.benchmarks.bare_application"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = f"http://127.0.0.1:{int(process.stdout.readline())}"
        asyncio.run(posted_at_once(address, messages[:2_000], CONNECTIONS))
        before = _cpu_at(address)
        statuses = asyncio.run(posted_at_once(address, messages, CONNECTIONS))
        seconds = _cpu_at(address) - before
        process.terminate()
    assert {status for part in statuses for status in part} == {200}
    print(f"  bare starlette          {REQUESTS / seconds:9,.0f} requests/s", flush=True)


def _cpu_at(address: str) -> float:
    with urllib.request.urlopen(f"{address}/cpu") as response:
        return float(json.load(response)["seconds"])


def _measure(collection: Collection, target: str, options: list[str], size: int) -> None:
    messages = packed(collection, REQUESTS, size)
    with tempfile.TemporaryDirectory() as folder, gateway(options, Path(folder), collection) as running:
        send_all(running, messages[:2_000])
        load = send_all(running, messages)
        published = running.counted("messages_delivered_total")
        number = running.counted("reports_delivered_total")
        p99 = running.quantile("request_seconds", 0.99)
    print(
        f"  {target:8} {size:4} report(s) a request {REQUESTS / load.cpu:9,.0f} requests/s "
        f"{REQUESTS * size / load.cpu:11,.0f} reports/s; by the clock {REQUESTS / load.seconds:7,.0f} requests/s, "
        f"99 % within {p99:g} s; {number / published:,.0f} reports a message",
        flush=True,
    )


def _saving(collection: Collection) -> None:
    """CPU time of the job in a separate process, on a subscription that has all messages, without its start."""
    start = statistics.median(_job_seconds(collection, packed(collection, 1, 1)) for _ in range(3))
    alone = None
    for size, number in REPORTS.items():
        messages = packed(collection, number // size, size)
        seconds = (_job_seconds(collection, messages) - start) / number
        alone = alone or seconds
        print(
            f"  {size:5} report(s) a message {1e6 * seconds:8.2f} us, {alone / seconds:6.1f} times less; "
            f"{sum(map(len, messages)) / number:5.1f} bytes a report",
            flush=True,
        )


def _job_seconds(collection: Collection, messages: Sequence[bytes]) -> float:
    """CPU time of a job from its start until it has counted all messages and stopped."""
    number = sum(map(wire.reports_in, messages))
    with tempfile.TemporaryDirectory() as folder, live.broker(ack_deadline_seconds=600) as broker:
        path, output, log = (Path(folder, name) for name in ("C.json", "output", "log"))
        path.write_text(json.dumps(collection.to_json()), encoding="utf-8")
        broker.publish(messages)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        options = [f"--collection={path}", f"--subscription={live.SUBSCRIPTION}", f"--output={output}", "--window=1s"]
        with live.job([*options, "--allowed_lateness=1h"], log) as process:
            live.wait_until(lambda: live.books(output)["accepted"] == number, process, log)
            process.send_signal(signal.SIGTERM)
            process.wait(live.PATIENCE)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
