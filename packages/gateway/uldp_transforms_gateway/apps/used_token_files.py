"""Files of used tokens, which outlive the process: after a restart a token sends no other message, and none twice.

Before a message is written or published, a record says which token sends it and where it will be (its *place*). When
the file that has the place is finished, or the queue has the message, another record *seals* the place: it says how
many bytes are there. So the files tell after a kill at any moment whether a message was delivered.

A record has the second in which a token expires, a hash of its id, a hash of the id and the message, and the place.
None of it says which message a token has sent to somebody who does not know the token.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import struct
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from uldp_transforms.files.folder_lock import lock_folder
from uldp_transforms.files.whole_file import sync_file, sync_folder
from uldp_transforms_gateway.apps.uses import IN_QUEUE, Place, Use
from uldp_transforms_gateway.batched_writer import BatchedWriter

FOLDER = "tokens"
"""Name of the folder beside the reports."""

_PERIOD = 3_600  # seconds; a file has the tokens that expire in one period
_LONGER = 24  # periods for which a file stays after its own, because the clock may be set ahead and back
_RECORD = struct.Struct(">q16s16s8sq")  # a seal expires at 0, and has no hashes
_WITHOUT_PLACE = struct.Struct(">q16s16s")  # the records of earlier versions
_FORM = ".2"  # ends the names of files with places

_Record = tuple[int, bytes]
"""A period and a packed record."""


class _Unsealed:
    """What is known of a file that is not sealed.

    Attributes:
        periods: in which the tokens of its messages expire.
        ends: of the places in it.
        is_there: whether its end can still be learned.
    """

    def __init__(self) -> None:
        self.periods: set[int] = set()
        self.ends: set[int] = set()
        self.is_there = False


class UsedTokenFiles:
    """A folder of files ``PERIOD-NAME.2`` of records; all pending records are written together.

    A kill can leave an incomplete last record, whose request was not answered; each process has files of its own.

    Args:
        folder: is made if it is not there; raises OSError.
        clock: seconds since 1970.
        named: the option that named the folder or its parent, and its value, for errors.

    Attributes:
        removed_until: no file has tokens that expire before this second; seconds since 1970.

    Raises:
        SpecError: another process uses the folder.
    """

    def __init__(self, folder: Path, clock: Callable[[], float], named: tuple[str, str] | None = None):
        self._folder = folder
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        sync_folder(self._folder.parent)
        self._lock = os.fdopen(lock_folder(folder, *(named or ("--used_tokens", str(folder)))))
        self._clock = clock
        self._name = secrets.token_hex(6)
        self._writer = BatchedWriter(self._append, f"used tokens cannot be stored in {folder}:")
        self._disk, self._state = threading.Lock(), threading.Lock()
        self._removed = -1
        self.removed_until = 0
        self._unsealed: defaultdict[bytes, _Unsealed] = defaultdict(_Unsealed)
        self._ended: dict[bytes, int] = {}
        self._shorter: dict[bytes, int] = {}
        self.start = self._writer.start
        self._remove_expired()
        self._learn()

    async def close(self) -> None:
        """Called once, when nothing is delivered any more."""
        await self._writer.close()
        self._lock.close()

    # ---------------------------------------------------------------- what earlier processes stored

    def read(self, since: float = 0) -> Iterator[tuple[Use, bool | None]]:
        """The uses of tokens that expire later, and whether their messages were delivered; None: it is not known yet.

        Call this when everything that writes messages has sealed what earlier processes have left. Raises OSError.
        """
        with self._state:
            for file in [file for file, found in self._unsealed.items() if not found.is_there]:
                del self._unsealed[file]
        uses, seals = [], dict[bytes, int]()
        for use in _records(self._folder, since):
            if use.expires > since:
                uses.append(use)
            elif use.place is not None and not use.expires:
                seals[use.place.file] = use.place.end
        for use in uses:
            if use.place is None:
                yield use, True
            elif use.place.file in seals:
                yield use, use.place.end <= seals[use.place.file]
            elif use.place.file in self._unsealed:
                yield use, None
            else:  # a queue may not have got it; somebody has moved a file that was begun before the record
                yield use, use.place.end != IN_QUEUE

    def _learn(self) -> None:
        """What is not sealed."""
        sealed = {use.place.file for use in _records(self._folder) if use.place is not None and not use.expires}
        for use in _records(self._folder):
            if use.place is not None and use.expires and use.place.file not in sealed:
                self._register([use], use.place, is_there=False)

    # ---------------------------------------------------------------- places

    def is_there(self, file: bytes) -> list[int]:
        """A file that an earlier process has begun was found; its end can be learned. Returns the ends of places in it.

        There are none if it is sealed, or has no message of a token.
        """
        with self._state:
            found = self._unsealed.get(file, _Unsealed())
            found.is_there = True
            return sorted(found.ends)

    def record(self, uses: Sequence[Use], place: Place) -> None:
        """Return when it is on disk that messages will be at a place; raises OSError. For any thread."""
        if uses:
            self._write(self._of_uses(uses, place))

    def seal(self, file: bytes, length: int) -> None:
        """Return when it is on disk that a file has ended with this length; raises OSError. For any thread."""
        self._ended[file] = length
        self._write(self._of_seal(file, length))
        self._forget(file, self._ended.pop(file, length))

    async def recorded(self, uses: Sequence[Use], place: Place) -> None:
        """As ``record``, together with others; raises Undelivered."""
        await self._writer.write(self._of_uses(uses, place))

    async def published(self, place: Place) -> None:
        """As ``seal``, of a message that a queue has; raises Undelivered, and can be called again."""
        self._ended[place.file] = place.end
        await self.settle(place)

    def lost(self, uses: Sequence[Use], place: Place) -> None:
        """A queue has not taken the message of a place."""
        with self._state:
            self._unsealed.pop(place.file, None)
        for use in uses:
            use.place = None

    async def settle(self, place: Place) -> bool | None:
        """Whether a message was delivered that should be at a place; None if that is not known yet.

        Raises:
            Undelivered: it was, but that cannot be stored.
        """
        if place.file in self._ended:
            await self._writer.write(self._of_seal(place.file, self._ended[place.file]))
            self._forget(place.file, self._ended.pop(place.file, place.end))
        return self.holds(place)

    def holds(self, place: Place) -> bool | None:
        """Whether a file has ended with the bytes of a place; None if it has not ended."""
        if place.file in self._unsealed:
            return None
        return place.end <= self._shorter.get(place.file, place.end)

    def _register(self, uses: Sequence[Use], place: Place, is_there: bool) -> None:
        with self._state:
            found = self._unsealed[place.file]
            found.is_there |= is_there
            found.ends = {max({place.end} | found.ends)} if is_there else found.ends | {place.end}
            found.periods.update(use.expires // _PERIOD for use in uses)

    def _forget(self, file: bytes, length: int) -> None:
        with self._state:
            found = self._unsealed.pop(file, None)
            if found is not None and length < max(found.ends, default=0):
                self._shorter[file] = length

    # ---------------------------------------------------------------- writing

    def _of_uses(self, uses: Sequence[Use], place: Place) -> list[_Record]:
        self._register(uses, place, is_there=True)
        for use in uses:
            use.place = place
        return [(use.expires // _PERIOD, _RECORD.pack(use.expires, use.name, use.message, *place)) for use in uses]

    def _of_seal(self, file: bytes, length: int) -> list[_Record]:
        record = _RECORD.pack(0, b"", b"", file, length)
        with self._state:
            found = self._unsealed.get(file)
            return [] if found is None else [(period, record) for period in found.periods]

    def _append(self, parts: Sequence[list[_Record]]) -> Exception | None:
        try:
            self._write([record for part in parts for record in part])
        except Exception as error:  # of any kind: whoever waits must not wait for ever
            return error
        return None

    def _write(self, records: Sequence[_Record]) -> None:
        with self._disk:
            try:
                self._remove_expired()
                periods = defaultdict(list)
                for period, record in sorted(records, key=_hashes):  # not in the order of arrival
                    periods[period].append(record)
                for period, own in periods.items():
                    self._append_to(self._folder / f"{period}-{self._name}{_FORM}", b"".join(own))
            except Exception:
                self._name = secrets.token_hex(6)  # a file may have an incomplete record now
                raise

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
            period = _period_of(path)
            if period is not None and period < now - _LONGER:
                self.removed_until = max(self.removed_until, (period + 1) * _PERIOD)
                with contextlib.suppress(OSError):  # the next period tries again
                    os.unlink(path)


def _period_of(path: Path) -> int | None:
    period = path.name.partition("-")[0]
    return int(period) if period.isascii() and period.isdigit() else None


def _hashes(record: _Record) -> bytes:
    return record[1][8:]


def has_valid_tokens(folder: Path, now: float) -> bool:
    """Whether a folder, which need not be there, has used tokens that have not expired by now; raises OSError."""
    return folder.is_dir() and any(use.expires > now for use in _records(folder, now))


def _records(folder: Path, since: float = 0) -> Iterator[Use]:
    """The records of files whose tokens expire later; a seal is where the uses are that it is about."""
    for path in sorted(folder.iterdir()):
        period = _period_of(path)
        if period is None or (period + 1) * _PERIOD <= since:
            continue
        form = _RECORD if path.suffix == _FORM else _WITHOUT_PLACE
        content = path.read_bytes()
        for values in form.iter_unpack(content[: len(content) // form.size * form.size]):
            yield Use(values[0], values[1], values[2], Place(values[3], values[4]) if values[3:] else None)
