"""What a disk still has if the power is cut now, on the strictest reading of fsync.

A file has the bytes of its last sync; a folder has the names of its last sync. Nothing else is on disk. Real disks
usually have more, so that tests without this helper pass whatever is synced.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest


class Disk:
    """Records syncs from now on.

    Args:
        patch: undoes it at the end of a test.
    """

    def __init__(self, patch: pytest.MonkeyPatch):
        self._files: dict[int, bytes] = {}
        self._folders: dict[Path, dict[str, int]] = {}
        self._sync = os.fsync
        patch.setattr(os, "fsync", self._record)

    def _record(self, descriptor: int) -> None:
        self._sync(descriptor)
        found, path = os.fstat(descriptor), Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if stat.S_ISDIR(found.st_mode):
            self._folders[path] = {entry.name: entry.inode() for entry in os.scandir(path)}
        else:
            self._files[found.st_ino] = path.read_bytes()

    def after_power_loss(self, folder: Path) -> dict[str, bytes]:
        """Names and bytes of the files of a folder; a file that was never synced is empty."""
        names = self._folders.get(folder.resolve(), {})
        return {name: self._files.get(inode, b"") for name, inode in names.items()}
