"""The gateway: requests and reports per second of its CPU time, and what packing saves in the stream.

A gateway in a process of its own, on the loopback address, is sent a fixed number of messages over connections that are
kept open. What it publishes to is Pub/Sub's stand-in of the tests, or a folder.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import measure, pipeline
from tests.support import live
from tests.support.gateways import Running, gateway, posted_at_once
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire

CONNECTIONS = 1_000
REQUESTS = 20_000


class Load(NamedTuple):
    """What a number of requests took: seconds of the clock, and of the gateway's CPU."""

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
    """So many messages with so many reports of this moment each."""
    moment = time.time_ns() // 1_000_000
    batch = collection.perturb([f"value {i % 100}" for i in range(number * size)], event_times=[moment] * number * size)
    if size == 1:
        return wire.encode_reports(batch)
    return [wire.encode_batch(batch[i : i + size]) for i in range(0, len(batch), size)]


def main() -> None:
    collection = measure.collection("krr", 16, 64)
    print(f"the gateway, {CONNECTIONS} connections that stay open (per second of its CPU time; k-RR, K=16, C=64)")
    with live.broker():
        for target, options in (("Pub/Sub", ["--topic", live.TOPIC]), ("spool", ["--spool", "spool"])):
            for size in (1, 10, 100):
                _measure(collection, target, options, size)
    print("what packing saves: decode and count in the stream (local engine, CPU time a report)")
    _saving(collection)


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
    number = 50_000
    bytes_of, seconds = {}, {}
    for size in (1, 10, 100, 1000):
        messages = packed(collection, number // size, size)
        bytes_of[size] = sum(map(len, messages)) / number
        pipeline._MESSAGES[f"by {size}"] = messages
        repeats = 4 if size == 1 else 40
        seconds[size] = pipeline.seconds_of(collection, f"by {size}", repeats, None) / (repeats * number)
        print(
            f"  {size:5} report(s) a message {1e6 * seconds[size]:8.3f} us, {seconds[1] / seconds[size]:6.1f} times "
            f"less; {bytes_of[size]:5.1f} bytes",
            flush=True,
        )
