"""The Pub/Sub server of Google's own Go tests (``pstest``) on this machine, as a process of its own."""

from __future__ import annotations

import contextlib
import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.rigs.cache import CACHE, require_program

FOLDER = Path(__file__).parent
SOURCES = ("go.mod", "go.sum", "main.go")


def binary() -> Path:
    """Where the server of these sources stands once it is built; other sources make another name."""
    content = b"".join((FOLDER / name).read_bytes() for name in SOURCES)
    return CACHE / f"pstest-{hashlib.sha256(content).hexdigest()[:12]}" / "pstest"


def fetch() -> Path:
    """The server; built unless it is in the cache (a minute). ``go.sum`` vouches for the modules."""
    path = binary()
    if not path.exists():
        require_program("go", f"build {path}")
        command = ["go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-o", str(path), "."]
        subprocess.run(command, cwd=FOLDER, check=True)
    return path


def missing() -> str | None:
    """Why the server cannot run here; None if it can."""
    path = binary()
    return None if path.exists() else f"{path} is not there: make pubsub builds it"


@contextlib.contextmanager
def running(lost_acks: int = 0) -> Iterator[str]:
    """The address of a server with nothing in it, on a free port of 127.0.0.1; it is gone after the block.

    Args:
        lost_acks: how many requests to acknowledge messages, from the first on, are answered and forgotten.

    Raises:
        RuntimeError: the server did not start.
    """
    command = [str(binary()), f"-lost_acks={lost_acks}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            if not address:  # clients that are given none would look for the real service
                raise RuntimeError(f"{command[0]} must print its address, got exit code {process.wait()}")
            yield address
        finally:
            process.stdin.close()
