"""What the processes of a running campaign use, and what a job has written: looked at from outside."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import os
import re
import subprocess
import time
from collections import Counter, defaultdict
from pathlib import Path

KINDS = {
    "org.apache.beam.runners.flink.FlinkJobServerDriver": "flink",
    "kafka.Kafka": "kafka",
    "org.apache.beam.fn.harness.FnHarness": "java",
    "SdkHarness(": "python",
}
"""What stands in a command line, and what such a process is called here; the other ones do not matter."""

_TICKS, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Process:
    """A process of this campaign: what it is, seconds of processor time that it has used, and its resident MiB."""

    pid: int
    kind: str
    seconds: float
    resident: float


def processes() -> list[Process]:
    """All processes that this one has started, and those which they have started."""
    parents: dict[int, int] = {}
    found: dict[int, Process] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # processes end while we look
            state, parent, *rest = (folder / "stat").read_text().rpartition(") ")[2].split()
            command = (folder / "cmdline").read_text()
            pid = int(folder.name)
            parents[pid] = int(parent)
            kind = next((kind for mark, kind in KINDS.items() if mark in command), "other")
            used = (int(rest[9]) + int(rest[10])) / _TICKS
            if state != "Z":
                found[pid] = Process(pid=pid, kind=kind, seconds=used, resident=int(rest[19]) * _PAGE / (1 << 20))
    return [process for pid, process in found.items() if _is_below(pid, os.getpid(), parents)]


def _is_below(pid: int, ancestor: int, parents: dict[int, int]) -> bool:
    while pid in parents and pid != ancestor:
        pid = parents[pid]
    return pid == ancestor


def live_heap(pid: int) -> float:
    """MiB of a Java process's heap that are in use right after a full collection of garbage."""
    said = ""
    for command in ("GC.run", "GC.heap_info"):
        said = subprocess.run(["jcmd", str(pid), command], capture_output=True, text=True, check=False).stdout
    used = re.search(r"heap\s+total \d+K, used (\d+)K", said)
    return int(used[1]) / 1024 if used else float("nan")


@dataclasses.dataclass
class Meter:
    """Memory and processor time, minute by minute."""

    heap: list[float] = dataclasses.field(default_factory=list)
    resident: dict[str, list[float]] = dataclasses.field(default_factory=lambda: defaultdict(list))
    cores: list[float] = dataclasses.field(default_factory=list)
    _seconds: dict[int, float] = dataclasses.field(default_factory=dict)
    _at: float = dataclasses.field(default_factory=time.monotonic)

    def look(self) -> None:
        """Take down what is used now; cores since the last look, without those of processes that have ended."""
        found = processes()
        for kind in KINDS.values():
            sizes = [process.resident for process in found if process.kind == kind]
            self.resident[kind].append(max(sizes, default=float("nan")))
        flink = next((process.pid for process in found if process.kind == "flink"), None)
        self.heap.append(float("nan") if flink is None else live_heap(flink))
        seconds = {process.pid: process.seconds for process in found}
        now, used = time.monotonic(), sum(after - self._seconds.get(pid, 0.0) for pid, after in seconds.items())
        self.cores.append(used / (now - self._at))
        self._seconds, self._at = seconds, now


def stored(folder: Path) -> float:
    """MiB of all files below a folder."""
    sizes = []
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # files are deleted while we look
            sizes.append(path.stat().st_size)
    return sum(sizes) / (1 << 20)


def files(output: Path) -> Counter[str]:
    """How many files of each kind and form a job has written; ``.part`` is what a killed worker has left."""
    names = (path.name for path in output.glob("*-*-*") if path.suffix in (".jsonl", ".avro", ".part"))
    return Counter(f"{name.partition('-')[0]}.{name.rpartition('.')[2]}" for name in names)


def seconds_behind(windows: list[str], length: int) -> float:
    """From the end of the newest of these windows, named by their starts, until now; ``length`` in milliseconds."""
    if not windows:
        return float("nan")
    start = datetime.datetime.fromisoformat(max(windows).removesuffix("Z") + "+00:00")
    return time.time() - start.timestamp() - length / 1000
