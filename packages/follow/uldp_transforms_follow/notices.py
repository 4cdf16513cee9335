"""Sentences of a job that follows a source, on stderr."""

from __future__ import annotations

import sys


def say(sentence: str) -> None:
    """Print a sentence."""
    print(f"estimate: {sentence}", file=sys.stderr)


class Notices:
    """Sentences that are printed once each."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def say_once(self, sentence: str) -> None:
        """Print a sentence, unless it was printed."""
        if sentence not in self._told:
            self._told.add(sentence)
            say(sentence)
