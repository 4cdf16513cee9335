"""Files of JSON lines, one for each day and process; a line is there when it is on disk."""

from __future__ import annotations

import contextlib
import datetime
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from uldp_transforms.files.whole_file import sync_file
from uldp_transforms_gateway.apps.used_token_files import UsedTokenFiles
from uldp_transforms_gateway.apps.uses import Place, Use, file_id
from uldp_transforms_gateway.batched_writer import BatchedWriter


class NavigationLog:
    """A folder of files ``navigations-DAY-NAME.jsonl``. All pending lines are written together.

    Files can be read at any time. A process that is killed can leave an incomplete last line, whose request was not
    answered; the next process begins a new file.

    Args:
        folder: is made if it is not there; raises OSError.
        tokens: record which tokens send the lines; None: no request needs a token.
    """

    def __init__(self, folder: str, tokens: UsedTokenFiles | None = None):
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._name = secrets.token_hex(6)
        self._file: BinaryIO | None = None
        self._path = Path()
        self._size = 0
        self._used = tokens
        self._writer = BatchedWriter(self._append, f"navigations cannot be written to {folder}:")
        if tokens is not None:
            for path in sorted(self._folder.glob("navigations-*.jsonl")):
                _finish(path, tokens)

    async def start(self) -> None:
        await self._writer.start()

    async def write(self, lines: bytes, use: Use | None = None) -> None:
        """Return when the lines are on disk, and before them that this token sends them; raises Undelivered."""
        await self._writer.write((lines, use))

    async def close(self) -> None:
        """Called once, when all requests are answered."""
        await self._writer.close()
        self._end()

    def _append(self, parts: Sequence[tuple[bytes, Use | None]]) -> Exception | None:
        try:
            self._write(b"".join(lines for lines, _ in parts), [use for _, use in parts if use is not None])
        except Exception as error:  # of any kind: whoever waits must not wait for ever
            self._end()  # it may have an incomplete line now; what follows goes into another file
            self._name = secrets.token_hex(6)
            return error
        return None

    def _write(self, data: bytes, uses: Sequence[Use] = ()) -> None:
        today = f"{datetime.datetime.now(tz=datetime.timezone.utc):%Y%m%d}"
        path = self._folder / f"navigations-{today}-{self._name}.jsonl"
        if path != self._path:
            self._end()
        if self._file is None:
            self._file, self._path, self._size = path.open("ab", buffering=0), path, path.stat().st_size
            folder = os.open(self._folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        if self._used is not None:
            self._used.record(uses, Place(file_id(path.name), self._size + len(data)))
        left = memoryview(data)
        while left:  # a disk that fills up takes a part
            left = left[self._file.write(left) :]
        os.fsync(self._file.fileno())
        self._size += len(data)

    def _end(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(Exception):  # of lines that are on disk, or whose requests were told the error
                file.close()
                if self._used is not None:
                    _cut(self._path, self._size)
                    self._used.seal(file_id(self._path.name), self._size)


def _finish(path: Path, used: UsedTokenFiles) -> None:
    """Remove what a kill has left of lines that were written together, and seal the file; only the last can be cut."""
    whole = ends = used.is_there(file_id(path.name))
    if not ends:
        return
    with path.open("rb") as file:
        while whole and not _has_lines(file, whole[-2] if len(whole) > 1 else 0, whole[-1]):
            whole = whole[:-1]
    length = whole[-1] if whole else 0
    _cut(path, length)
    used.seal(file_id(path.name), length)


def _has_lines(file: BinaryIO, begin: int, end: int) -> bool:
    """Whether whole lines are between two places of a file; after a loss of power there may be zeros."""
    file.seek(begin)
    content = file.read(end - begin)
    return len(content) == end - begin and content.endswith(b"\n") and b"\0" not in content


def _cut(path: Path, length: int) -> None:
    """Cut a file to its whole lines; they are on disk then."""
    with path.open("r+b") as file:
        if file.seek(0, os.SEEK_END) > length:
            file.truncate(length)
        sync_file(file)
