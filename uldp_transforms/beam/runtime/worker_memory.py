"""Cache of the state that a worker wrote, which avoids reading it again.

State contains a version: random bytes that change with each write. A cached value is found by this version, and is
removed while it is in use. So the cache never returns outdated state: after a failed bundle, a restart from a
checkpoint, or a change by another worker the state has a version that is not cached, and must be read.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

SECONDS = 600.0
"""Seconds without use after which a value is evicted; it is read again when it is needed."""

MOST = 1 << 16
"""Maximum number of values, above which the least recently used one is evicted: a sender who chooses event times can
open many windows.
"""

VERSION_BYTES = 16

Value = TypeVar("Value")


class Held(Generic[Value]):
    """Cached values by state version, shared by all threads of a process.

    Args:
        seconds: time without use after which a value is evicted, at the next insertion.
        clock: function that returns the time in seconds.
        most: maximum number of cached values.
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
        """Remove and return the value of a version; None if it must be read."""
        with self._lock:
            return self._values.pop(version, (0.0, None))[1]

    def hold(self, version: bytes, value: Value) -> None:
        """Cache a value until it is taken, expires, or is evicted."""
        now = self._clock()
        with self._lock:
            self._values[version] = now, value
            self._values.move_to_end(version)
            while self._values and self._must_let_go(now):
                self._values.popitem(last=False)

    def _must_let_go(self, now: float) -> bool:
        """Whether the oldest value must be evicted."""
        return len(self._values) > self._most or now - next(iter(self._values.values()))[0] > self._seconds


def new_version() -> bytes:
    """New random state version."""
    return secrets.token_bytes(VERSION_BYTES)
