"""Writes packed messages to files first, and publishes them from there."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from uldp_transforms.files.folder_lock import lock_folder
from uldp_transforms.messages.files import spool_names
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms_gateway import spool_file
from uldp_transforms_gateway.apps.used_token_files import UsedTokenFiles
from uldp_transforms_gateway.apps.uses import Place, Use
from uldp_transforms_gateway.batched_writer import BatchedWriter
from uldp_transforms_gateway.meters import Meters
from uldp_transforms_gateway.outlets.outlet import Outlet, Undelivered
from uldp_transforms_gateway.spool_file import SpoolFile

FULL = 64 << 20
"""Size of a file in bytes after which the next one is started."""

AT_ONCE = 16
"""Number of messages that are published at the same time."""

_AGAIN = 5.0  # seconds after a failure


class Spool:
    """A folder of files; a message is delivered when it is on disk. All pending messages are written together.

    Args:
        folder: is made if it is not there; raises OSError.
        every: seconds for which one file is written to.
        target: where finished files are published, after which they are deleted; None: they stay.
        meters: count what is published.
        say: prints a sentence for the operator.
        tokens: record which tokens send the messages; None: no request needs a token.

    Raises:
        SpecError: another process writes to the folder.
    """

    def __init__(
        self,
        folder: str,
        every: float,
        target: Outlet | None,
        meters: Meters,
        say: Callable[[str], None],
        tokens: UsedTokenFiles | None = None,
    ):
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._every = every
        self._target = target
        self._meters = meters
        self._say = say
        self._used = tokens
        self._file: SpoolFile | None = None
        self._begun = 0.0
        self._writer = BatchedWriter(self._append, f"the spool {folder} says")
        self._tasks: list[asyncio.Task[None]] = []
        self._published: dict[Path, int] = {}
        self._sent: dict[Path, set[int]] = {}
        self._lock = lock_folder(self._folder, "--spool", folder)
        try:
            self._finish()
        except OSError:
            raise
        except Exception as error:  # of a file, which must not keep others from coming
            meters.held_up(error)

    async def start(self) -> None:
        self._finished = asyncio.Event()
        await self._writer.start()
        self._tasks.append(asyncio.create_task(self._turn_over()))
        if self._target is not None:
            await self._target.start()
            self._tasks.append(asyncio.create_task(self._forward_all(self._target)))

    async def deliver(self, message: bytes, *uses: Use) -> None:
        """Return when the message is on disk, and before it that these tokens send it; raises Undelivered."""
        await self._writer.write((message, uses))

    async def close(self) -> None:
        """Finish the file that is open, and try once to publish what is there."""
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self._writer.close()
        try:
            await asyncio.to_thread(self._finish)
            if self._target is not None:
                await self._forward(self._target)
        except Exception as error:
            self._meters.held_up(error)
        if self._target is not None:
            await self._target.close()
        left = len(list(self._folder.glob(f"*{spool_names.WHOLE}")))
        if left:
            self._say(f"{left} file(s) of reports are in {self._folder}")
        os.close(self._lock)

    # ---------------------------------------------------------------- writing

    def _append(self, parts: Sequence[tuple[bytes, Sequence[Use]]]) -> Exception | None:
        try:
            if self._file is None:
                self._file, self._begun = SpoolFile(self._folder), time.monotonic()
            messages = [message for message, _ in parts]
            if self._used is not None:
                place = Place(self._file.id, self._file.end_after(messages))
                self._used.record([use for _, uses in parts for use in uses], place)
            self._file.append(messages)
        except Exception as error:  # of any kind: whoever waits must not wait for ever
            with contextlib.suppress(Exception):  # what is on disk stays there, for the next start
                self._finish()
            return error
        return None

    async def _turn_over(self) -> None:
        """Finish the file when its time is over or it is full."""
        while True:
            await asyncio.sleep(min(self._every, 1.0))
            try:
                if not self._is_over():
                    continue
                async with self._writer.disk:
                    await asyncio.to_thread(self._finish)
            except Exception as error:  # of any kind: later files must be finished
                self._meters.held_up(error)
            self._finished.set()

    def _is_over(self) -> bool:
        """Whether there is a file to finish, including one that could not be finished in time."""
        if self._file is None:
            return any(self._parts())
        return time.monotonic() - self._begun >= self._every or self._file.size >= FULL

    def _finish(self) -> None:
        """Finish the open file and all earlier unfinished ones.

        Raises:
            Exception: of a file that cannot be finished, such as an OSError; all others are.
        """
        file, self._file = self._file, None
        if file is not None:
            file.close()
        faults = []
        for part in sorted(self._parts()):
            try:
                self._finish_part(part)
            except Exception as error:
                faults.append(_with_path(error, part))
        if faults:
            raise faults[0]

    def _finish_part(self, part: Path) -> None:
        if self._used is None:
            spool_file.finish(part)
        else:
            file = spool_file.id_of(part)
            self._used.is_there(file)
            spool_file.finish(part, functools.partial(self._used.seal, file))

    def _parts(self) -> Iterator[Path]:
        return self._folder.glob(f"*{spool_names.PART}")

    # ---------------------------------------------------------------- publishing

    async def _forward_all(self, target: Outlet) -> None:
        while True:
            try:
                await self._forward(target)
            except Exception as error:  # of any kind: later files must be published
                self._meters.held_up(error)
                await asyncio.sleep(_AGAIN)
                continue
            await self._finished.wait()
            self._finished.clear()

    async def _forward(self, target: Outlet) -> None:
        """Publish and delete all finished files.

        Raises:
            Undelivered: the target takes nothing now.
            Exception: of a file that cannot be read, published or deleted, such as an OSError; all others were tried.
        """
        fault: Exception | None = None
        for path in sorted(self._folder.glob(f"*{spool_names.WHOLE}")):
            try:
                if path not in self._published:  # one that cannot be deleted is not published again
                    self._published[path] = await self._publish(path, target)
                self._put_away(path, self._published[path])
                del self._published[path], self._sent[path]
            except Undelivered:
                raise
            except Exception as error:
                fault = _with_path(error, path)
        if fault is not None:
            raise fault

    async def _publish(self, path: Path, target: Outlet) -> int:
        """How many blocks of a file cannot be read; all others are published, unless they were before a fault.

        Raises:
            Undelivered: the target takes nothing now.
            Exception: of a message that cannot be published; all others are.
        """
        items = await asyncio.to_thread(list, spool_file.read(path))
        messages = [item for item in items if not isinstance(item, Rejection)]
        if path not in self._sent:
            self._sent[path] = await asyncio.to_thread(spool_file.sent_before, path)
        left = [number for number in range(len(messages)) if number not in self._sent[path]]
        fault: BaseException | None = None
        for at in range(0, len(left), AT_ONCE):
            some = left[at : at + AT_ONCE]
            outcomes = await asyncio.gather(*(target.deliver(messages[n]) for n in some), return_exceptions=True)
            arrived = [number for number, outcome in zip(some, outcomes) if outcome is None]
            self._sent[path].update(arrived)
            self._meters.forwarded(len(arrived))
            with contextlib.suppress(OSError):  # of a disk that is full: only a kill would send them again
                await asyncio.to_thread(spool_file.note_sent, path, arrived)
            faults = [outcome for outcome in outcomes if outcome is not None]
            for outcome in faults:
                if isinstance(outcome, Undelivered):
                    raise outcome
            fault = fault or (faults[0] if faults else None)
        if fault is not None:
            raise fault
        return len(items) - len(messages)

    def _put_away(self, path: Path, unread: int) -> None:
        if unread:
            path.rename(spool_file.damaged_path(path))
            self._say(f"{path} has {unread} block(s) that cannot be read; kept as .damaged")
        else:
            path.unlink()
            spool_names.manifest_path(path).unlink(missing_ok=True)
        spool_file.sent_path(path).unlink(missing_ok=True)


def _with_path(error: Exception, path: Path) -> Exception:
    """An error of the system with the file that it is about, which it does not name if the file is open."""
    if isinstance(error, OSError) and error.errno is not None and error.filename is None:
        error.filename = str(path)
    return error
