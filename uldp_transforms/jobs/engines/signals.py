"""SIGINT (Ctrl-C) and SIGTERM: the first signal drains a stream, the second cancels it; other jobs are cancelled.

Cancelling raises ``KeyboardInterrupt`` in the main thread. Beam's engines turn it into errors of their own, print
tracebacks of their threads, and may wait for them. So Beam's log is silenced from then on, as are tracebacks of threads
and of a ``KeyboardInterrupt`` that hits a destructor, and the process ends without waiting for threads (``leave``)
after the final messages and files.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, NoReturn


class Stop:
    """Like ``threading.Event``, but ``set`` may be called by a signal handler of a thread that waits.

    A handler interrupts the code of the main thread anywhere, also where ``threading.Event.wait`` holds the lock that
    ``threading.Event.set`` needs: then neither goes on. ``queue.SimpleQueue.put`` needs no lock of this thread.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()

    def set(self) -> None:
        """Request to stop; wakes all that wait."""
        self._is_set = True
        self._wakes.put(None)

    def is_set(self) -> bool:
        """Whether ``set`` was called."""
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for ``set``, at most a number of seconds (negative: not at all); returns whether it was called."""
        if not self._is_set:
            with contextlib.suppress(queue.Empty):
                self._wakes.get(timeout=None if timeout is None else max(0.0, timeout))
                self._wakes.put(None)  # for the next one that waits
        return self._is_set


CUT_OFF = 130
"""Exit code after a second signal, which cuts the run off."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Signals:
    """Signals to this process while the block lasts.

    Outside the main thread, where Python does not receive signals, it handles none. A signal that is ignored when the
    block begins (``nohup``, a shell's background job) remains ignored.

    Args:
        program: name of the program, for the message that it is stopping.

    Attributes:
        stop: set by the first signal, if ``can_drain``.
        can_drain: whether ``stop`` is observed.
        cancelled: whether a signal requested cancellation.
    """

    def __init__(self, program: str) -> None:
        self._program = program
        self.stop = Stop()
        self.can_drain = False
        self.cancelled = False
        self._before: dict[signal.Signals, Any] = {}
        self._hooks = sys.unraisablehook, threading.excepthook

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
        if self.cancelled:
            sys.unraisablehook, threading.excepthook = self._hooks

    def _heed(self, number: int, frame: FrameType | None) -> None:
        if self.can_drain and not self.stop.is_set():
            self.stop.set()
            _say(f"{self._program}: stopping; a second signal discards what is not yet written\n")
            return
        if self.cancelled:
            os._exit(CUT_OFF)  # third signal: exit immediately
        self.cancelled = True
        logging.disable()
        sys.unraisablehook = threading.excepthook = _say_nothing
        raise KeyboardInterrupt

    def leave(self, code: int) -> int:
        """The exit code; after cancellation, end the process here without waiting for threads."""
        if self.cancelled:
            end_now(code)
        return code


def _say_nothing(_: object) -> None:
    """A hook for errors of threads and destructors, once the run is cancelled."""


def end_now(code: int) -> NoReturn:
    """End the process without waiting for threads of other libraries, which may never end."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@contextlib.contextmanager
def stopped_by_signals(line: str = "") -> Iterator[Stop]:
    """A stop that Ctrl-C or SIGTERM requests while the block lasts; further signals have no effect.

    A signal that is ignored when the block begins remains ignored.

    Args:
        line: what to write to stderr at the first signal.
    """
    stop = Stop()

    def heed(*_: object) -> None:
        if line and not stop.is_set():
            _say(line)
        stop.set()

    heeded = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, heed) for number in heeded}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _say(line: str) -> None:
    """Write to stderr without buffers, to which the interrupted code may be writing."""
    os.write(2, line.encode())
