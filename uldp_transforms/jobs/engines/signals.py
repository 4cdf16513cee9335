"""SIGINT (Ctrl-C) and SIGTERM: a stream drains at the first and is cut off at the second; anything else is cut off.

To cut off is a ``KeyboardInterrupt`` where the main thread stands. Beam's engines turn it into errors of their own,
print tracebacks of their threads, and may wait for them; so Beam's log is silent from then on, and the process ends
without waiting for threads (``leave``), when what had to be said and written is.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

CUT_OFF = 130
"""Exit code after a signal that cut off."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Signals:
    """What signals ask of this process, as long as the block lasts.

    Outside the main thread, where Python hears no signals, it heeds none. A signal that is ignored when the block
    begins (``nohup``, a shell's background job) stays ignored.

    Args:
        program: who speaks, for the line that says that it stops.

    Attributes:
        stop: set by the first signal, if ``can_drain``.
        can_drain: whether somebody heeds ``stop``.
        cancelled: whether a signal asked to cut off.
    """

    def __init__(self, program: str) -> None:
        self._program = program
        self.stop = threading.Event()
        self.can_drain = False
        self.cancelled = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                before = signal.getsignal(number)
                if before is not signal.SIG_IGN:
                    self._before[number] = before
                    signal.signal(number, self._heed)
        return self

    def __exit__(self, *exc: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _heed(self, number: int, frame: FrameType | None) -> None:
        if self.can_drain and not self.stop.is_set():
            self.stop.set()
            _say(f"{self._program}: stopping; a second signal cuts off what is not written yet\n")
            return
        if self.cancelled:
            os._exit(CUT_OFF)  # the third time: at once
        self.cancelled = True
        logging.disable()
        raise KeyboardInterrupt

    def leave(self, code: int) -> int:
        """The exit code; after a signal that cut off, the process ends here, whatever its threads do."""
        if self.cancelled:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        return code


def _say(line: str) -> None:
    """To stderr, past buffers that the interrupted code may be writing to."""
    os.write(2, line.encode())
