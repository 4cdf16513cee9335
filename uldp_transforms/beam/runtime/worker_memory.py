"""What a worker holds in memory of the state that it wrote: it need not read that again.

State has a version, random bytes that are written with each change. What is held is found by that version, and is taken
out while it is in use. So it is what state says, or it is not found: after a bundle that failed, a restart from a
checkpoint, or a change by another worker state has a version that is not held here, and must be read.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

SECONDS = 600.0
"""Seconds of the clock without use after which something is let go. If it is needed again, it is read again."""

MOST = 1 << 16
"""Values beyond which the one that was used longest ago is let go: whoever chooses event times can open many."""

VERSION_BYTES = 16

Value = TypeVar("Value")


class Held(Generic[Value]):
    """Values by the version of the state that they stand for; for all threads of a process.

    Args:
        seconds: after which a value that nobody asked for is let go, when another one is held.
        clock: of these seconds.
        most: values that are held at a time.
    """

    def __init__(self, seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic, most: int = MOST):
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._values: OrderedDict[bytes, tuple[float, Value]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._values)

    def take(self, version: bytes) -> Value | None:
        """The value of a version, which is not held any more; None: it must be read."""
        with self._lock:
            return self._values.pop(version, (0.0, None))[1]

    def hold(self, version: bytes, value: Value) -> None:
        """Hold a value until somebody takes it, nobody does for long, or there are too many."""
        now = self._clock()
        with self._lock:
            self._values[version] = now, value
            self._values.move_to_end(version)
            while self._values and self._must_let_go(now):
                self._values.popitem(last=False)

    def _must_let_go(self, now: float) -> bool:
        """Whether the value that was held first is not to be held any longer."""
        return len(self._values) > self._most or now - next(iter(self._values.values()))[0] > self._seconds


def new_version() -> bytes:
    """A version that no state has."""
    return secrets.token_bytes(VERSION_BYTES)
