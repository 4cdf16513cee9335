"""Files of JSON lines, one for each day and process; a line is there when it is on disk."""

from __future__ import annotations

import contextlib
import datetime
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from uldp_transforms.jobs.gateway.batched_writer import BatchedWriter


class NavigationLog:
    """A folder of files ``navigations-DAY-NAME.jsonl``. All pending lines are written together.

    Files can be read at any time. A process that is killed can leave an incomplete last line, whose request was not
    answered; the next process begins a new file.

    Args:
        folder: is made if it is not there; raises OSError.
    """

    def __init__(self, folder: str):
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._name = secrets.token_hex(6)
        self._file: BinaryIO | None = None
        self._path = Path()
        self._writer = BatchedWriter(self._append, "navigations cannot be written:")

    async def start(self) -> None:
        await self._writer.start()

    async def write(self, lines: bytes) -> None:
        """Return when the lines are on disk; raises Undelivered."""
        await self._writer.write(lines)

    async def close(self) -> None:
        """Called once, when all requests are answered."""
        await self._writer.close()
        self._end()

    def _append(self, parts: Sequence[bytes]) -> Exception | None:
        try:
            self._write(b"".join(parts))
        except Exception as error:  # of any kind: whoever waits must not wait for ever
            self._end()  # it may have an incomplete line now; what follows goes into another file
            self._name = secrets.token_hex(6)
            return error
        return None

    def _write(self, data: bytes) -> None:
        today = f"{datetime.datetime.now(tz=datetime.timezone.utc):%Y%m%d}"
        path = self._folder / f"navigations-{today}-{self._name}.jsonl"
        if path != self._path:
            self._end()
        if self._file is None:
            self._file, self._path = path.open("ab", buffering=0), path
            folder = os.open(self._folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        left = memoryview(data)
        while left:  # a disk that fills up takes a part
            left = left[self._file.write(left) :]
        os.fsync(self._file.fileno())

    def _end(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(Exception):  # of lines that are on disk, or whose requests were told the error
                file.close()
