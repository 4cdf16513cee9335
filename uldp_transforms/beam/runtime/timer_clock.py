"""The clock of timers of processing time."""

from __future__ import annotations

import time


def processing_time() -> float:
    """Seconds since 1970 by the clock that fires timers of processing time."""
    return time.time()
