"""A request to stop that the handler of a signal may make at any moment."""

from __future__ import annotations

import contextlib
import queue


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
