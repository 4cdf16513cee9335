"""Files that appear only when they are complete."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import IO, Any

from uldp_transforms.files import stores


def sync_file(file: IO[Any]) -> None:
    """Write what was written to a local file to the disk; raises OSError."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Write the names of the files in a local folder to the disk; raises OSError."""
    if os.name != "posix":  # Windows opens no folders, and keeps their names by itself
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def whole_file(path: str) -> Iterator[IO[bytes]]:
    """A binary file for writing, local or in a store such as gs://, which gets its name when it is complete.

    After an error the file does not exist, or keeps its old content. A local file survives a loss of power afterwards.
    Raises the errors of the file system.
    """
    unfinished = f"{path}.part"
    if os.path.islink(unfinished):  # its target does not belong to this program
        os.remove(unfinished)
    try:
        with stores.created(unfinished) as file:
            yield file
            if not stores.in_store(path):
                sync_file(file)
    except BaseException:
        with contextlib.suppress(Exception):  # the first error is the relevant one
            stores.delete(unfinished)
        raise
    stores.replace(unfinished, path)
    if not stores.in_store(path):
        sync_folder(os.path.dirname(path) or ".")
