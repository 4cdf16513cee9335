"""The processes that an engine is made of: awaited by their logs, and ended with all that they have started."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.rigs.cache import ROOT

PATIENCE = 600.0
"""Seconds until a process that does not start is given up."""

_PACKAGES = ("lang", "lang.reflect", "io", "net", "text", "time", "util", "util.concurrent", "util.concurrent.atomic")
OPENED = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _PACKAGES]
"""Packages of Java 17 that Flink 1.19 serialises with reflection."""


def java(class_path: str, *arguments: str, memory: str = "512m") -> list[str]:
    """The command that runs a main class with its arguments."""
    return ["java", f"-Xmx{memory}", *OPENED, "-cp", class_path, *arguments]


@contextlib.contextmanager
def process(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own, which ends with all that it has started."""
    own_python = os.path.dirname(sys.executable)  # the pool of workers starts them as "python"
    environment = {**os.environ, "PATH": os.pathsep.join((own_python, os.environ["PATH"]))}
    with log.open("wb") as out:
        started = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=out, start_new_session=True)
        try:
            yield started
        finally:
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                os.killpg(started.pid, signal.SIGKILL)
            started.wait()


def wait_for(pattern: str, started: subprocess.Popen[bytes], log: Path) -> re.Match[str]:
    """Wait until the log of a process has what the pattern says.

    Raises:
        RuntimeError: the process has ended, or takes too long.
    """
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and started.poll() is None:
        found = re.search(pattern, log.read_text("utf-8", "replace"))
        if found:
            return found
        time.sleep(0.2)
    raise RuntimeError(f"{log.stem} did not start: {log.read_text('utf-8', 'replace')[-2000:]}")


def free_port() -> int:
    """A port of this machine that nobody listens on now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
