"""Why an engine in a process of its own ended: Prism, for example, ends itself if a worker does not start."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from typing import Any

import grpc

_LOGGERS = ("PrismJobServer",)
"""Loggers through which Beam passes on what such an engine prints."""

_CAUSES = ("panic: ", "fatal error: ")
"""How Go begins the line that says why a program ends itself."""


_SPOKEN = 2.0
"""Seconds within which the last lines of a dead process are read."""


class LastWords(logging.Handler):
    """Remembers the first cause that an engine prints."""

    def __init__(self) -> None:
        super().__init__()
        self._cause = ""
        self._said = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if not self._cause and text.startswith(_CAUSES):
            self._cause = text.strip()
            self._said.set()

    def of_the_dead(self) -> str:
        """The line; empty if there is none."""
        self._said.wait(_SPOKEN)
        return self._cause


@contextlib.contextmanager
def last_words() -> Iterator[LastWords]:
    """Listen to engines while the block lasts."""
    words = LastWords()
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addHandler(words)
    try:
        yield words
    finally:
        for logger in loggers:
            logger.removeHandler(words)


def state_of(result: Any, words: LastWords) -> str:
    """The state of a job whose end its engine reported as an error.

    Raises:
        RuntimeError: if the engine does not answer, with the cause that it printed.
    """
    try:
        return str(result.state)
    except grpc.RpcError as gone:
        cause = words.of_the_dead() or f"{gone.code().name}, see its log"
        raise RuntimeError(f"the engine does not answer: {cause}") from None  # the cause is the sentence
