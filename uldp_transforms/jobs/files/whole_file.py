"""Files that readers never see half."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems


@contextlib.contextmanager
def whole_file(path: str) -> Iterator[Any]:
    """A binary file to write to, local or of a store such as gs://, which gets its name when it is complete.

    After an error there is no file of that name, or the old one. Raises what the file system raises.
    """
    unfinished = f"{path}.part"
    if os.path.islink(unfinished):  # what it is to is not ours
        os.remove(unfinished)
    try:
        with FileSystems.create(unfinished, "application/octet-stream", CompressionTypes.UNCOMPRESSED) as file:
            yield file
    except BaseException:
        with contextlib.suppress(Exception):  # what went wrong first is what counts
            FileSystems.delete([unfinished])
        raise
    if FileSystems.exists(path) and "://" in path:  # a local rename replaces
        FileSystems.delete([path])
    FileSystems.rename([unfinished], [path])
