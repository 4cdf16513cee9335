"""Writes to disk together what came while the disk was busy."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from uldp_transforms_gateway.outlets.outlet import Undelivered, reason_of

Part = TypeVar("Part")


class BatchedWriter(Generic[Part]):
    """Parts that come at the same time are written by one call, in a thread.

    Attributes:
        disk: held while parts are written; hold it to do something else with the file.

    Args:
        append: writes parts, and returns when they are on disk; returns what went wrong.
        what: beginning of the sentence of a failure, before its reason.
    """

    disk: asyncio.Lock

    def __init__(self, append: Callable[[Sequence[Part]], Exception | None], what: str):
        self._append = append
        self._what = what
        self._pending: list[tuple[Part, asyncio.Future[None]]] = []

    async def start(self) -> None:
        self.disk, self._came = asyncio.Lock(), asyncio.Event()
        self._writer = asyncio.create_task(self._write_all())

    async def write(self, part: Part) -> None:
        """Return when a part is on disk; raises Undelivered."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending.append((part, future))
        self._came.set()
        await future

    async def close(self) -> None:
        """Called once, when nothing is written any more."""
        self._writer.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._writer

    async def _write_all(self) -> None:
        while True:
            await self._came.wait()
            self._came.clear()
            pending, self._pending = self._pending, []
            async with self.disk:
                try:
                    error = await asyncio.to_thread(self._append, [part for part, _ in pending])
                except Exception as fault:  # no thread can be started
                    error = fault
            for _, future in pending:
                if future.done():  # its request was cancelled
                    continue
                if error is None:
                    future.set_result(None)
                else:
                    future.set_exception(Undelivered(f"{self._what} {reason_of(error)}"))
