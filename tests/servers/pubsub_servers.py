"""The Pub/Sub servers that tests can talk to, and where they differ.

* in-process: ``tests.servers.pubsub.pubsub_server``, always there.
* pstest: that of Google's own Go tests (``tests/rigs/pubsub``), built by ``make pubsub``.
* official emulator: Google's, where ``cloud-pubsub-emulator`` is on PATH (pubsub-emulator/bin of the Google Cloud CLI).

All of them take any loopback client, keep messages until they are acknowledged, lease what they hand out, hand it out
again when the lease ends or the message is nacked, know topics and subscriptions by name, and can order by key (one
message of a key at a time). What only some do is a feature, below. Other differences:

| | in-process | pstest | official emulator |
|---|---|---|---|
| answer to a Pull that finds nothing | after 0.2 s | after 0.5 s | after half a minute |
| messages without a key come | as they were published | in any order | not tried |
| default size of a Pull that names none | refused | 1000 | not tried |
| bad names, deadlines and empty messages | refused with INVALID_ARGUMENT | taken; a bad deadline: UNKNOWN | not tried |
| messages that nobody acknowledges are kept | for ever | ten minutes | not tried |
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import pytest

from tests.rigs.pubsub import server as pstest
from tests.servers.pubsub.pubsub_server import PubsubServer

IN_PROCESS, PSTEST, EMULATOR = "in-process", "pstest", "official emulator"

SHORT_LEASES = "ack deadlines can be 1 s; else 10 s and more"
LOST_ACKS = "acknowledgements can get lost"
NEW_ACK_IDS = "each delivery has an ack id of its own, so that an outdated one acknowledges nothing"
LARGE_BACKLOGS = "a response is never larger than clients accept, however much there is"
CHECKED_SCHEMAS = "a topic takes data of its schema only, and messages say which: pstest keeps schemas, nothing more"
STORED_SCHEMAS = "schemas can be created, read, and named by a topic"
FILTERS = "subscriptions can have a filter"
DEAD_LETTERS = "subscriptions can have a topic for what was delivered too often"

FEATURES = {
    IN_PROCESS: {SHORT_LEASES, LOST_ACKS, NEW_ACK_IDS, LARGE_BACKLOGS, CHECKED_SCHEMAS, STORED_SCHEMAS},
    PSTEST: {SHORT_LEASES, LOST_ACKS, STORED_SCHEMAS, FILTERS, DEAD_LETTERS},
    EMULATOR: set[str](),  # as far as is known: nobody has run it here
}


def params(*features: str) -> list[Any]:
    """The names of the servers that have these features, as parameters of a test; those that are not here skip it."""
    return [
        pytest.param(name, marks=pytest.mark.skipif(_missing(name) is not None, reason=str(_missing(name))))
        for name, has in FEATURES.items()
        if has.issuperset(features)
    ]


def preferred() -> str:
    """For tests that need a server, not a comparison: pstest where it is built, else the one that is always there."""
    return IN_PROCESS if _missing(PSTEST) else PSTEST


def _missing(name: str) -> str | None:
    """Why a server cannot run here; None if it can."""
    if name == PSTEST:
        return pstest.PSTEST.missing()
    if name == EMULATOR and shutil.which("cloud-pubsub-emulator") is None:
        return "cloud-pubsub-emulator is not on PATH (it comes with the Google Cloud CLI, pubsub-emulator/bin)"
    return None


@contextlib.contextmanager
def serving(name: str, lost_acks: int = 0) -> Iterator[str]:
    """The address of an empty server, at which Pub/Sub clients that are built inside the block look.

    Args:
        name: one of FEATURES.
        lost_acks: how many Acknowledge requests, from the first on, are answered and forgotten; needs LOST_ACKS.
    """
    with _running(name, lost_acks) as address, mock.patch.dict(os.environ, {"PUBSUB_EMULATOR_HOST": address}):
        yield address


def _running(name: str, lost_acks: int) -> AbstractContextManager[str]:
    if name == PSTEST:
        return pstest.running(lost_acks)
    return _in_process(lost_acks) if name == IN_PROCESS else _emulator()


_IN_THIS_PROCESS: dict[str, PubsubServer] = {}
"""By address, while they run."""


def backlog(address: str, subscription: str) -> int:
    """Number of messages that nobody has acknowledged at a server in this process."""
    return _IN_THIS_PROCESS[address].backlog(subscription)


@contextlib.contextmanager
def _in_process(lost_acks: int) -> Iterator[str]:
    with PubsubServer(lost_acks) as server:
        _IN_THIS_PROCESS[server.address] = server
        try:
            yield server.address
        finally:
            del _IN_THIS_PROCESS[server.address]


@contextlib.contextmanager
def _emulator() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["cloud-pubsub-emulator", "start", "--host=127.0.0.1", f"--port={port}"]
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True) as process,  # it starts another one
    ):
        try:
            yield f"127.0.0.1:{port}"
        finally:
            os.killpg(process.pid, signal.SIGTERM)
