"""Files that appear only when they are complete."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import IO

from uldp_transforms.files import stores
from uldp_transforms.files.synced import sync_file, sync_folder


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
