"""Logs of libraries without their content, because any message, argument or traceback may contain a request."""

from __future__ import annotations

import logging
import sys
import time

EVERY = 1.0
"""Seconds between two lines of the same place in a library."""


class QuietHandler(logging.Handler):
    """Log handler that prints only the library, the place, and the type of an exception.

    Each place logs at most one line per ``EVERY``; the next line gives the number of omitted ones.
    """

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, str, int], tuple[float, int]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        place, now = (record.name, record.module, record.lineno), time.monotonic()
        last, left_out = self._said.get(place, (-EVERY, 0))
        if now - last < EVERY:
            self._said[place] = last, left_out + 1
            return
        self._said[place] = now, 0
        kind = record.exc_info[0] if record.exc_info else None
        what = f": {kind.__name__}" if kind else ""
        more = f" ({left_out} more since the last line)" if left_out else ""
        print(
            f"gateway: {record.levelname} of {record.name} at {record.module}:{record.lineno}{what}{more}",
            file=sys.stderr,
        )


def log_quietly() -> None:
    """Send warnings of all libraries to stderr in this form, and disable all other logging."""
    logging.basicConfig(level=logging.WARNING, handlers=[QuietHandler()], force=True)
    logging.captureWarnings(True)
