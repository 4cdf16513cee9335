"""Persistent storage of a client: one text that one process and thread at a time can change."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from uldp_transforms.ldp.errors import SpecError

T = TypeVar("T")


class Storage(Protocol):
    """Protocol of a persistent text; an app may implement it, for instance as a row of its database.

    Examples:
        >>> from uldp_transforms.ldp import Budget, Client, Collection
        >>> class InMemory:  # for tests: it does not survive the process
        ...     text = None
        ...
        ...     def update(self, change):
        ...         self.text, result = change(self.text)
        ...         return result
        >>> collection = Collection.from_json("C.json")
        >>> client = Client(collection, InMemory(), Budget(epsilon=1.0))
        >>> len(client.report("flu", event_time=0))
        1
    """

    def update(self, change: Callable[[str | None], tuple[str, T]]) -> T:
        """Replace the text atomically.

        Args:
            change: function that takes the text (None: there is none yet) and returns the new text and a result. If it
                raises, the text is unchanged.

        Returns:
            The result, as soon as the new text would survive a loss of power. No other process or thread has read or
            replaced the text in between.
        """


class FileStorage:
    """A file that only its owner can read, with a lock file beside it; needs ``flock`` and a local disk.

    Examples:
        >>> from uldp_transforms.ldp import FileStorage
        >>> storage = FileStorage("text.json")
        >>> storage.update(lambda text: ("new text", text is None))
        True
        >>> storage.update(lambda text: (text, text))
        'new text'
    """

    def __init__(self, path: str | os.PathLike[str]):
        self._path = Path(path)

    def update(self, change: Callable[[str | None], tuple[str, T]]) -> T:
        """See ``Storage``; also raises OSError, and SpecError if the file is not text."""
        import fcntl  # noqa: PLC0415  # not on every system

        with open(self._beside(".lock"), "ab", opener=_for_the_owner) as lock:  # each thread has its own
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                before = self._read() if self._path.exists() else None
                after, result = change(before)
                if after != before:
                    self._write(after)
                return result
            finally:
                fcntl.flock(lock, fcntl.LOCK_UN)  # explicit, because a forked child may hold the file open

    def _read(self) -> str:
        try:
            return self._path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise SpecError(f"{self._path} must be a UTF-8 text file, got other bytes") from None

    def _write(self, text: str) -> None:
        self._beside(".new").unlink(missing_ok=True)  # of a client that was killed, or somebody else's file or link
        with open(self._beside(".new"), "x", encoding="utf-8", opener=_for_the_owner) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(self._beside(".new"), self._path)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _beside(self, ending: str) -> Path:
        return self._path.with_name(self._path.name + ending)


def _for_the_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
