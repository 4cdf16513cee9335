"""The Pub/Sub server of Google's own Go tests (``pstest``) on this machine, as a process of its own."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.rigs.cache import CACHE, GoProgram

PSTEST = GoProgram(source=Path(__file__).parent, folder=CACHE / "pstest", name="pstest", command="make pubsub")


@contextlib.contextmanager
def running(lost_acks: int = 0) -> Iterator[str]:
    """The address of a server with nothing in it, on a free port of 127.0.0.1; it is gone after the block.

    Args:
        lost_acks: how many requests to acknowledge messages, from the first on, are answered and forgotten.

    Raises:
        RuntimeError: the server did not start.
    """
    command = [str(PSTEST.binary), f"-lost_acks={lost_acks}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            if not address:  # clients that are given none would look for the real service
                raise RuntimeError(f"{command[0]} must print its address, got exit code {process.wait()}")
            yield address
        finally:
            process.stdin.close()
