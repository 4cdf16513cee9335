"""Files and folders of this machine that survive a loss of power from now on."""

from __future__ import annotations

import os
from typing import IO, Any


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
