"""Files of JSON lines, one for each day and process; a line is there when it is on disk."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from uldp_transforms.jobs.gateway.outlets.outlet import Undelivered, reason_of


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
        self._pending: list[tuple[bytes, asyncio.Future[None]]] = []

    async def start(self) -> None:
        self._came = asyncio.Event()
        self._writer = asyncio.create_task(self._write_all())

    async def write(self, lines: bytes) -> None:
        """Return when the lines are on disk; raises Undelivered."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending.append((lines, future))
        self._came.set()
        await future

    async def close(self) -> None:
        """Called once, when all requests are answered."""
        self._writer.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._writer
        self._end()

    async def _write_all(self) -> None:
        while True:
            await self._came.wait()
            self._came.clear()
            pending, self._pending = self._pending, []
            try:
                error = await asyncio.to_thread(self._append, [lines for lines, _ in pending])
            except Exception as fault:  # no thread can be started
                error = fault
            for _, future in pending:
                if future.done():  # its request was cancelled
                    continue
                if error is None:
                    future.set_result(None)
                else:
                    future.set_exception(Undelivered(f"navigations cannot be written: {reason_of(error)}"))

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
