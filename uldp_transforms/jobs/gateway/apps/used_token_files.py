"""Files of used tokens, which outlive the process: after a restart a token sends no other message.

A record has the second in which a token expires, a hash of its id, and a hash of the id and the message. Neither says
which message a token has sent to somebody who does not know the token.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from uldp_transforms.files.synced import sync_file, sync_folder
from uldp_transforms.jobs.gateway.batched_writer import BatchedWriter

FOLDER = "tokens"
"""Name of the folder beside the reports."""

_PERIOD = 3_600  # seconds; a file has the tokens that expire in one period
_LONGER = 24  # periods for which a file stays after its own, because the clock may be set ahead and back
_RECORD = struct.Struct(">q16s16s")


class Used(NamedTuple):
    """A used token: when it expires (seconds since 1970), and hashes of its id and of its id and message."""

    expires: int
    name: bytes
    message: bytes


class UsedTokenFiles:
    """A folder of files ``PERIOD-NAME`` of records; all pending records are written together.

    A kill can leave an incomplete last record, whose request was not answered; each process has files of its own.

    Args:
        folder: is made if it is not there; raises OSError.
        clock: seconds since 1970.
    """

    def __init__(self, folder: Path, clock: Callable[[], float]):
        self._folder = folder
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        sync_folder(self._folder.parent)
        self._clock = clock
        self._name = secrets.token_hex(6)
        self._writer = BatchedWriter(self._append, "used tokens cannot be stored:")
        self._removed = -1
        self.start, self.close = self._writer.start, self._writer.close

    def read(self) -> Iterator[Used]:
        """All records; raises OSError."""
        self._remove_expired()
        for path in sorted(self._folder.iterdir()):
            content = path.read_bytes()
            yield from map(Used._make, _RECORD.iter_unpack(content[: len(content) // _RECORD.size * _RECORD.size]))

    async def write(self, used: Used) -> None:
        """Return when a record is on disk; raises Undelivered."""
        await self._writer.write(_RECORD.pack(*used))

    def _append(self, records: Sequence[bytes]) -> Exception | None:
        try:
            self._remove_expired()
            periods = defaultdict(list)
            for record in sorted(records, key=_hashes):  # not in the order of arrival
                periods[_RECORD.unpack(record)[0] // _PERIOD].append(record)
            for period, own in periods.items():
                self._append_to(self._folder / f"{period}-{self._name}", b"".join(own))
        except Exception as error:  # of any kind: whoever waits must not wait for ever
            self._name = secrets.token_hex(6)  # a file may have an incomplete record now
            return error
        return None

    def _append_to(self, path: Path, data: bytes) -> None:
        is_new = not path.exists()
        with path.open("ab") as file:
            file.write(data)
            sync_file(file)
        if is_new:
            sync_folder(self._folder)

    def _remove_expired(self) -> None:
        """Delete the files of periods that ended a day ago; at most once a period."""
        now = int(self._clock()) // _PERIOD
        if now == self._removed:
            return
        self._removed = now
        for path in self._folder.iterdir():
            period = path.name.partition("-")[0]
            if period.isascii() and period.isdigit() and int(period) < now - _LONGER:
                with contextlib.suppress(OSError):  # the next period tries again
                    os.unlink(path)


def _hashes(record: bytes) -> bytes:
    return record[8:]
