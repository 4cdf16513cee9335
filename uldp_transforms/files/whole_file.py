"""Files that readers never see half."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import IO

from uldp_transforms.files import stores


@contextlib.contextmanager
def whole_file(path: str) -> Iterator[IO[bytes]]:
    """A binary file to write to, local or of a store such as gs://, which gets its name when it is complete.

    After an error there is no file of that name, or the old one. Raises what the file system raises.
    """
    unfinished = f"{path}.part"
    if os.path.islink(unfinished):  # what it is to is not ours
        os.remove(unfinished)
    try:
        with stores.created(unfinished) as file:
            yield file
    except BaseException:
        with contextlib.suppress(Exception):  # what went wrong first is what counts
            stores.delete(unfinished)
        raise
    stores.replace(unfinished, path)
