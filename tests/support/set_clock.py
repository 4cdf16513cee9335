"""The clock of other processes, which is set ahead and back by libfaketime (Debian's package ``libfaketime``)."""

from __future__ import annotations

from pathlib import Path

LIBRARY = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")

NEEDED = f"the clock of a process is set by {LIBRARY}, of Debian's package libfaketime"


class Clock:
    """Wall clock of the processes that have its environment; ``time.monotonic`` goes on, as when a clock is set.

    Args:
        folder: folder of the file that says how late it is.
    """

    def __init__(self, folder: Path):
        self._path = folder / "clock"
        self.set(0)

    def set(self, seconds: int) -> None:
        """Set the clock ahead of the machine's by so many seconds."""
        partial = self._path.with_suffix(".part")
        partial.write_text(f"{seconds:+d}s\n", encoding="ascii")
        partial.replace(self._path)

    @property
    def environment(self) -> dict[str, str]:
        """Variables of a process with this clock."""
        return {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._path),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
