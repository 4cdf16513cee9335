"""Spool files: Avro containers of packed messages, synced to disk block by block, each with a manifest.

A file ends in ``.part`` while it is written to. Appended messages are on disk when ``append`` returns. A kill may leave
a truncated block at the end of such a file, which is removed when the file is finished.
"""

from __future__ import annotations

import datetime
import io
import os
import secrets
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import fastavro

from uldp_transforms.files.whole_file import sync_file, sync_folder
from uldp_transforms.messages import wire
from uldp_transforms.messages.containers import read_messages
from uldp_transforms.messages.files.file_account import Account
from uldp_transforms.messages.files.spool_names import PART, WHOLE, manifest_path, part_name
from uldp_transforms.messages.manifest import listed_file, manifest_text
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms_gateway.apps.uses import file_id

SENT = ".sent"
"""Ending of the file that lists the messages of a spool file that were published."""

_POSITION = struct.Struct(">q")


class SpoolFile:
    """A spool file that is being written.

    Args:
        folder: where it is made; raises OSError.
    """

    def __init__(self, folder: Path):
        now = datetime.datetime.now(tz=datetime.timezone.utc)
        self.path = folder / part_name(now, secrets.token_hex(6))
        self.id = id_of(self.path)
        self._sync = secrets.token_bytes(16)
        self._file = self.path.open("xb", buffering=0)
        self.size = 0
        try:
            self._write(_header(self._sync))
            sync_folder(folder)
        except OSError:
            self._file.close()
            self.path.unlink()
            raise

    def append(self, messages: Sequence[bytes]) -> None:
        """Write packed messages and return when they are on disk; do not append after an OSError."""
        body = b"".join(messages)
        self._write(_long(len(messages)) + _long(len(body)) + body + self._sync)

    def end_after(self, messages: Sequence[bytes]) -> int:
        """The size that the file will have when these messages are appended."""
        body = sum(map(len, messages))
        return self.size + len(_long(len(messages))) + len(_long(body)) + body + len(self._sync)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:  # a disk that fills up takes a part
            left = left[self._file.write(left) :]
        os.fsync(self._file.fileno())
        self.size += len(data)

    def close(self) -> None:
        """Close the file, which stays unfinished; see ``finish``."""
        self._file.close()

    def finish(self) -> Path | None:
        """Close the file and rename it; see ``finish``."""
        self.close()
        return finish(self.path)


def id_of(part: Path) -> bytes:
    """The identity of an unfinished file, 8 bytes."""
    return file_id(part.name)


def finish(part: Path, seal: Callable[[int], None] = lambda length: None) -> Path | None:
    """Remove a truncated block, write the manifest, and rename the file for readers; None if it has no message.

    ``seal`` is called before readers can see the file, with the length of its whole blocks; it may raise OSError.
    Only the last block can be truncated. If any other block is unreadable, the disk is faulty, and all bytes are kept.
    """
    account, messages, reports = Account(), 0, 0
    whole_bytes, is_damaged = None, False
    with part.open("r+b") as file:
        for item in read_messages(file, part.name, account):
            if isinstance(item, Rejection):
                whole_bytes = account.num_bytes if whole_bytes is None else whole_bytes
                continue
            messages += 1
            reports += wire.reports_in(item)
            is_damaged = whole_bytes is not None
        if whole_bytes is not None and messages and not is_damaged:
            file.truncate(whole_bytes)
        os.fsync(file.fileno())  # a kill may have left blocks that are not on disk yet
    seal(part.stat().st_size if whole_bytes is None or is_damaged else whole_bytes)
    if not messages:
        _put_aside(part)
        return None
    whole = part.with_name(part.name.removesuffix(PART) + WHOLE)
    listed = listed_file(part, whole.name, messages, reports)
    with manifest_path(whole).open("wb") as file:
        file.write(manifest_text([listed]))
        sync_file(file)
    part.rename(whole)
    sync_folder(whole.parent)
    return whole


def _put_aside(part: Path) -> None:
    """A file that is not longer than its header was only created, and contains no message."""
    if part.stat().st_size <= len(_header(bytes(16))):
        part.unlink()
    else:
        part.rename(damaged_path(part))


def damaged_path(path: Path) -> Path:
    """The name of a file that is neither read again nor deleted."""
    return path.with_name(f"{path.name}.damaged")


def _header(sync: bytes) -> bytes:
    header = io.BytesIO()
    fastavro.writer(header, wire.BATCH_SCHEMA, [], sync_marker=sync)
    return header.getvalue()


def read(whole: Path) -> Iterator[bytes | Rejection]:
    """The packed messages of a finished file, and rejections for its unreadable parts."""
    with whole.open("rb") as file:
        yield from read_messages(file, whole.name)


def sent_before(whole: Path) -> set[int]:
    """Positions of the messages of a finished file that were published, also by a process that was killed."""
    try:
        content = sent_path(whole).read_bytes()
    except FileNotFoundError:
        return set()
    return {number for (number,) in _POSITION.iter_unpack(content[: len(content) // _POSITION.size * _POSITION.size])}


def note_sent(whole: Path, numbers: Sequence[int]) -> None:
    """Return when it is on disk that messages were published; raises OSError."""
    with sent_path(whole).open("ab") as file:
        file.truncate(file.tell() // _POSITION.size * _POSITION.size)  # a kill may have cut the last one
        file.write(b"".join(map(_POSITION.pack, numbers)))
        sync_file(file)


def sent_path(whole: Path) -> Path:
    return whole.with_name(whole.name.removesuffix(WHOLE) + SENT)


def _long(number: int) -> bytes:
    """Encode a non-negative number as Avro's variable-length integer."""
    rest, out = number << 1, bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])
