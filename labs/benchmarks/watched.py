"""What a program takes while it runs: its CPU time and its memory each second (Linux)."""

from __future__ import annotations

import contextlib
import os
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
        used: seconds of CPU time that they have used so far, each second.
        cpu: seconds of CPU time, once it has ended; no other child of this process ends meanwhile.
        wall: seconds from its start to its end.
    """

    def __init__(self, process: subprocess.Popen[bytes]):
        self.process = process
        self.memory: list[float] = []
        self.used: list[float] = []
        self.wall = 0.0
        self._begin, self._before = time.monotonic(), _cpu_of_children()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while self.process.poll() is None:
            processes = [*_processes(self.process.pid)]
            self.memory.append(sum(map(_resident, processes)) / 1e6)
            self.used.append(sum(map(_used, processes)))
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
        """CPU time, wall-clock time, CPU time and memory over time, and how memory grows: per window if their number is
        known, else per minute.

        Over time: cores in use during each tenth of the time, the most memory, and memory at the end of each tenth.
        """
        at = np.linspace(0, len(self.memory) - 1, 11).astype(int)
        cores = np.diff(np.array(self.used)[at]) / np.maximum(np.diff(at), 1)
        drawn = " ".join(f"{self.memory[place]:.0f}" for place in at[1:])
        each, unit = (60.0, "minute") if windows is None else (self.wall / windows, "window")
        return (
            f"{self.cpu:.0f} s of CPU, {self.wall:.0f} s (cores: {' '.join(f'{one:.1f}' for one in cores)}), at most "
            f"{max(self.memory):.0f} MB ({drawn}; {1e3 * each * self._slope():+.1f} kB a {unit} in the second half)"
        )

    def _slope(self) -> float:
        """MB per second in the second half of the time, by least squares."""
        half = self.memory[len(self.memory) // 2 :]
        return float(np.polyfit(np.arange(len(half)), half, 1)[0]) if len(half) > 1 else 0.0


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _processes(pid: int) -> Iterator[int]:
    """A process and the living ones that it has started."""
    with contextlib.suppress(OSError):  # processes end while we look
        yield pid
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _processes(int(child))


def _resident(pid: int) -> int:
    """Resident bytes of a process; 0 if it has ended."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    return 0


def _used(pid: int) -> float:
    """Seconds of CPU time of a process and of those that it has waited for; 0 if it has ended."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return 0.0


@contextlib.contextmanager
def watched(words: Sequence[str], log: IO[bytes] | int = subprocess.DEVNULL) -> Iterator[Watched]:
    """Run a program of ``uldp`` in a process of its own, which does not outlive the block."""
    command = [sys.executable, "-m", "uldp_transforms.jobs", *words]
    with subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            yield Watched(process)
        finally:
            process.kill()
