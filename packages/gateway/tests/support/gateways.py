"""The gateway in a process of its own, on a free port: to be sent to, watched and killed."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import importlib.util
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import pytest

from requirements.companions import search_path
from tests.support import forked
from tests.support.commands import command
from tests.support.live import PATIENCE
from tests.support.messages_cases import KRR
from uldp_transforms.ldp import Collection
from uldp_transforms.messages import wire

GATEWAY = command("gateway")

needs_gateway = pytest.mark.skipif(
    importlib.util.find_spec("uldp_transforms_gateway") is None, reason="the companion gateway is not installed"
)


Process = subprocess.Popen[bytes] | forked.Forked


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    content: Any


class Running(NamedTuple):
    """A gateway."""

    process: Process
    address: str
    log: Path

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(str(urlsplit(self.address).netloc), timeout=PATIENCE)

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """One request on a connection of its own; names of headers have _ for -."""
        with contextlib.closing(self.connection()) as connection:
            return asked(connection, method, path, body, **headers)

    def send(self, message: bytes, **headers: str) -> Answer:
        return self.ask("POST", "/reports", message, **headers)

    def counted(self, name: str) -> float:
        """A number of ``/metrics``, over all labels."""
        return metric(self.ask("GET", "/metrics").content, name)

    def process_cpu(self) -> float:
        """Seconds of CPU time that it took so far."""
        return float(re.findall(r"^process_cpu_seconds_total (\S+)$", self.ask("GET", "/metrics").content, re.M)[0])

    def quantile(self, name: str, share: float) -> float:
        """Upper end of the bucket below which this share of a histogram lies."""
        found = re.findall(
            rf'^uldp_gateway_{name}_bucket{{le="(\S+)"}} (\S+)$', self.ask("GET", "/metrics").content, re.M
        )
        return next(float(end) for end, number in found if float(number) >= share * float(found[-1][1]))

    def said(self) -> str:
        return self.log.read_text("utf-8")


def asked(
    connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None, **headers: str
) -> Answer:
    """One request and its answer."""
    connection.request(method, path, body, {name.replace("_", "-"): text for name, text in headers.items()})
    response = connection.getresponse()
    content = response.read()
    found = {name.lower(): text for name, text in response.getheaders()}
    is_json = found.get("content-type") == "application/json"
    return Answer(response.status, found, json.loads(content) if is_json else content.decode())


async def posted(address: str, messages: Sequence[bytes], tokens: Sequence[str] = ()) -> list[int]:
    """The statuses of these messages, one after the other over one connection; 0 where it was cut off.

    Args:
        address: of the gateway.
        messages: bodies.
        tokens: of the messages, if they need tokens.
    """
    place, statuses = urlsplit(address), []
    try:
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
    except ConnectionError:  # it has ended
        return [0]
    try:
        for number, message in enumerate(messages):
            head = f"POST /reports HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: {len(message)}\r\n"
            key = f"Authorization: Bearer {tokens[number]}\r\n" if tokens else ""
            writer.write(f"{head}{key}\r\n".encode("ascii") + message)
            answer = await reader.readuntil(b"\r\n\r\n")
            [length] = re.findall(rb"content-length: (\d+)", answer)
            await reader.readexactly(int(length))
            statuses.append(int(answer[9:12]))
    except (ConnectionError, asyncio.IncompleteReadError):
        statuses.append(0)
    finally:
        writer.close()
    return statuses


async def posted_at_once(address: str, messages: Sequence[bytes], connections: int) -> list[list[int]]:
    """The statuses of these messages, over so many connections that each take every so many-th."""
    parts = [messages[first::connections] for first in range(connections)]
    return await asyncio.gather(*(posted(address, part) for part in parts))


def metric(text: str, name: str) -> float:
    """The sum of a metric over its labels in Prometheus's text form."""
    found = re.findall(rf"^uldp_gateway_{name}(?:\{{.*\}})? (\S+)$", text, flags=re.MULTILINE)
    return sum(map(float, found))


class NotListening(AssertionError):
    """A gateway ended before it listened; the message is its log."""


@contextlib.contextmanager
def gateway(
    options: Sequence[str],
    folder: Path,
    collection: Collection | None = KRR,
    fork: bool = True,
    variables: Mapping[str, str] | None = None,
    first: str = "",
) -> Iterator[Running]:
    """``uldp gateway`` with these options; it does not outlive the block.

    Args:
        options: of the command line.
        folder: where it runs, and writes its log.
        collection: of the reports; None: it takes none.
        fork: from a process that has imported Beam (default: yes), not with a command line and memory of its own.
        variables: further environment variables.
        first: code that the process runs first.
    """
    path, log = folder / "C.json", folder / "gateway.log"
    if collection is not None:
        path.write_text(json.dumps(collection.to_json()), encoding="utf-8")
        options = ["--collection", str(path), *options]
    command = [*GATEWAY, "--port", "0", *options]
    command[2] = first + command[2]
    environment = os.environ | {"PYTHONPATH": search_path(), "OPENBLAS_NUM_THREADS": "1"} | dict(variables or {})
    process: Process
    with log.open("wb") as errors:
        if fork:
            process = forked.start(command[2], command[3:], errors, errors, folder=folder, environment=environment)
        else:
            process = subprocess.Popen(command, cwd=folder, stdout=errors, stderr=errors, env=environment)
    try:
        yield Running(process, _address(process, log), log)
    finally:
        process.kill()
        process.wait()


def _address(process: Process, log: Path) -> str:
    """What it prints when it listens."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        if found := re.search(r"POST (\S+)/(?:reports|navigations)\n", log.read_text("utf-8")):
            return found[1]
        time.sleep(0.05)
    raise NotListening(log.read_text("utf-8"))


def singles(number: int, seed: int, collection: Collection = KRR, event_time: int | None = None) -> list[bytes]:
    """Messages of single reports, of now or of another time."""
    moment = time.time_ns() // 1_000_000 if event_time is None else event_time
    values = ["0", "1", "2"] * (number // 3 + 1)
    return wire.encode_reports(collection.perturb(values[:number], np.random.default_rng(seed), [moment] * number))
