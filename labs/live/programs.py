"""Programs of this package as child processes that are started and stopped together."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence

STOP_SECONDS = 60.0


class NotReady(RuntimeError):
    """A program ended, or printed nothing, before it was ready."""


class Program:
    """A child process in its own process group, so that Ctrl-C does not reach it directly.

    Args:
        name: name of the program, such as ``gateway``.
        argv: its arguments.
        environment: additional environment variables.
        hidden: text of lines that are not printed.
    """

    def __init__(
        self, name: str, argv: Sequence[str], environment: Mapping[str, str] | None = None, hidden: str | None = None
    ):
        self.name = name
        self._hidden = hidden
        self._lines: list[str] = []
        self._is_asked = False
        self._process = subprocess.Popen(
            [sys.executable, "-m", "labs.live.leashed", name, *argv],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stderr or ():
            self._lines.append(line)
            if self._hidden is None or self._hidden not in line:
                print(line, end="", file=sys.stderr, flush=True)

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def says(self, pattern: str, seconds: float) -> str:
        """Wait for a line of output that matches; returns the first group.

        Raises:
            NotReady: if the program ends before, or takes longer than ``seconds``.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for line in tuple(self._lines):
                if found := re.search(pattern, line):
                    return found[1]
            if not self.runs:
                break
            time.sleep(0.05)
        raise NotReady(
            f"{self.name} must print its address within {seconds:g} s, got {len(self._lines)} line(s) without it"
        )

    def ask_to_stop(self) -> None:
        """Ask the process to end, once, and do not wait."""
        if self.runs and not self._is_asked:
            self._process.send_signal(signal.SIGTERM)
        self._is_asked = True

    def stop(self) -> int:
        """Ask the process to end, wait, and kill it if necessary; returns its exit code. May be called again."""
        self.ask_to_stop()
        try:
            code = self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        if self._process.stdin:
            self._process.stdin.close()
        self._reader.join(STOP_SECONDS)
        return code
