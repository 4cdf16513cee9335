"""What libraries log, without what they log about: a request may stand in any message, argument or traceback."""

from __future__ import annotations

import logging
import sys


class QuietHandler(logging.Handler):
    """Says which library warned where, and the type of an exception; nothing else."""

    def emit(self, record: logging.LogRecord) -> None:
        kind = record.exc_info[0] if record.exc_info else None
        what = f": {kind.__name__}" if kind else ""
        print(f"gateway: {record.levelname} of {record.name} at {record.module}:{record.lineno}{what}", file=sys.stderr)


def log_quietly() -> None:
    """Let warnings of all libraries go to stderr like this, and nothing else anywhere."""
    logging.basicConfig(level=logging.WARNING, handlers=[QuietHandler()], force=True)
    logging.captureWarnings(True)
