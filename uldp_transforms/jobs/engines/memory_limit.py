"""Stops a stream before the memory of this machine is full.

The local engine for streams keeps a few kilobytes for each bundle until it ends, some 200 bytes for each report of a
busy stream. A process that is killed for its memory loses acknowledged reports; one that stops loses nothing.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

SHARE = 0.8
"""Share of the memory at which the stream stops."""

EVERY = 5.0
"""Seconds between two looks."""

_LIMITS = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)  # of containers, versions 2 and 1


def memory_limit() -> int | None:
    """Bytes that this process may use: of its container or this machine, whichever is less; None: unknown."""
    limits = []
    for path in _LIMITS:
        with contextlib.suppress(OSError, ValueError):  # "max" says that there is none
            limits.append(int(Path(path).read_text(encoding="ascii")))
    with contextlib.suppress(OSError, ValueError, IndexError):
        limits.append(1024 * int(Path("/proc/meminfo").read_text(encoding="ascii").split()[1]))
    return min(limits, default=None)


def memory_in_use() -> int:
    """Resident bytes of this process; 0 if unknown."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


class MemoryWatch:
    """Watches the memory of this process while its block lasts.

    Attributes:
        full: whether ``stop`` was called.

    Args:
        stop: called once, in another thread, with a sentence, when the process uses most of its memory.
    """

    def __init__(self, stop: Callable[[str], None]):
        self._stop = stop
        self.full = False

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """The block."""
        ended, limit = threading.Event(), memory_limit()

        def look() -> None:
            if limit is None:
                return
            while not ended.wait(EVERY):
                if (used := memory_in_use()) > SHARE * limit:
                    self.full = True
                    self._stop(
                        f"stopping, because this process uses {_gib(used)} of {_gib(limit)} of memory: the local "
                        "engine keeps some 200 bytes for each report until it ends. Start it again, or use "
                        "uldp estimate --input SPOOL --follow, which keeps counts on disk"
                    )
                    return

        looking = threading.Thread(target=look, name="memory", daemon=True)
        looking.start()
        try:
            yield
        finally:
            ended.set()
            looking.join()


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"
