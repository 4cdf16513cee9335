"""What a program takes while it runs: its CPU time, and its memory each second (Linux)."""

from __future__ import annotations

import contextlib
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np


class Watched:
    """A running program, looked at once a second.

    Attributes:
        memory: resident MB of the program and of what it has started, each second.
        cpu: seconds of CPU time, once it has ended; no other child of this process ends meanwhile.
        wall: seconds from its start to its end.
    """

    def __init__(self, process: subprocess.Popen[bytes]):
        self.process = process
        self.memory: list[float] = []
        self.wall = 0.0
        self._begin, self._before = time.monotonic(), _cpu_of_children()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while self.process.poll() is None:
            self.memory.append(sum(_resident(self.process.pid)) / 1e6)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(1)
        self.wall = time.monotonic() - self._begin
        self.cpu = _cpu_of_children() - self._before

    def ended(self) -> int:
        """Wait for the end of the program; returns its exit code."""
        code = self.process.wait()
        self._thread.join()
        return code

    def line(self, windows: int | None = None) -> str:
        """CPU time, wall-clock time, the most memory, memory at each tenth of the time, and how it grows: per window
        if their number is known, else per minute."""
        tenths = [self.memory[at] for at in np.linspace(0, len(self.memory) - 1, 11).astype(int)[1:]]
        drawn = " ".join(f"{megabytes:.0f}" for megabytes in tenths)
        each, unit = (60.0, "minute") if windows is None else (self.wall / windows, "window")
        return (
            f"{self.cpu:.0f} s of CPU, {self.wall:.0f} s, at most {max(self.memory):.0f} MB ({drawn}; "
            f"{1e3 * each * self._slope():+.1f} kB a {unit} in the second half)"
        )

    def _slope(self) -> float:
        """MB per second in the second half of the time, by least squares."""
        half = self.memory[len(self.memory) // 2 :]
        return float(np.polyfit(np.arange(len(half)), half, 1)[0]) if len(half) > 1 else 0.0


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _resident(pid: int) -> Iterator[int]:
    """Resident bytes of a process and of the living ones that it has started."""
    with contextlib.suppress(OSError):  # processes end while we look
        yield int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _resident(int(child))


@contextlib.contextmanager
def watched(words: Sequence[str], log: IO[bytes] | int = subprocess.DEVNULL) -> Iterator[Watched]:
    """Run a program of ``uldp`` in a process of its own, which does not outlive the block."""
    command = [sys.executable, "-m", "uldp_transforms.jobs", *words]
    with subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            yield Watched(process)
        finally:
            process.kill()
