"""Locks a folder for one process: its files must not have a second writer."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from uldp_transforms.ldp.errors import SpecError


def lock_folder(folder: Path, option: str, given: str) -> int:
    """Lock an existing folder until the returned descriptor is closed, or the process ends.

    Args:
        folder: gets a file ``lock``; raises OSError.
        option: that named it.
        given: its value.

    Raises:
        SpecError: another process, or another part of this one, has locked it.
    """
    file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise SpecError(
            f"{option} must be a folder that no other gateway uses, got {given!r}, which another one has locked"
        ) from None
    return file
