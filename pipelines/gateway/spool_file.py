"""Files of a spool: Avro containers of packed messages that are safe on disk block by block, and have manifests.

A file ends in ``.part`` while it is written to. What was appended is on disk when ``append`` returns; a block that was
cut off by a kill stands at the end of such a file and is cut away when the file is finished.
"""

from __future__ import annotations

import datetime
import io
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

import fastavro

from uldp_transforms.messages import wire
from uldp_transforms.messages.containers import Account, read_messages
from uldp_transforms.messages.manifest import HashedFile, ListedFile, manifest_of
from uldp_transforms.messages.rejection import Rejection

PART, WHOLE, MANIFEST = ".avro.part", ".avro", ".manifest.json"


class SpoolFile:
    """A file that is written to.

    Args:
        folder: where it is made; raises OSError.
    """

    def __init__(self, folder: Path):
        now = datetime.datetime.now(tz=datetime.timezone.utc)
        self.path = folder / f"reports-{now:%Y%m%dT%H%M%S}-{secrets.token_hex(6)}{PART}"
        self._sync = secrets.token_bytes(16)
        self._file = self.path.open("xb", buffering=0)
        header = io.BytesIO()
        fastavro.writer(header, wire.BATCH_SCHEMA, [], sync_marker=self._sync)
        self.size = 0
        try:
            self._write(header.getvalue())
            _sync_folder(folder)
        except OSError:
            self._file.close()
            self.path.unlink()
            raise

    def append(self, messages: Sequence[bytes]) -> None:
        """Write packed messages, and return when they are on disk; after an OSError nothing may be appended."""
        body = b"".join(messages)
        self._write(_long(len(messages)) + _long(len(body)) + body + self._sync)

    def _write(self, data: bytes) -> None:
        at = 0
        while at < len(data):  # a disk that fills up takes a part
            at += self._file.write(data[at:]) or 0
        os.fsync(self._file.fileno())
        self.size += len(data)

    def finish(self) -> Path | None:
        """Close it and give it its name; see ``finish``."""
        self._file.close()
        return finish(self.path)


def finish(part: Path) -> Path | None:
    """Cut away what is not whole, write the manifest, and name the file for readers; None if nothing was in it."""
    account, messages, reports = Account(), 0, 0
    with part.open("r+b") as file:
        for item in read_messages(file, part.name, account):
            if isinstance(item, Rejection):
                break
            messages += 1
            reports += wire.reports_in(item)
        else:
            account.num_bytes = part.stat().st_size
        if messages:
            file.truncate(account.num_bytes)
            os.fsync(file.fileno())
    if not messages:
        part.unlink()
        return None
    whole = part.with_name(part.name.removesuffix(PART) + WHOLE)
    with part.open("rb") as written:
        hashed = HashedFile(written)
        while hashed.read(1 << 20):
            pass
    listed = ListedFile(whole.name, part.stat().st_size, hashed.sha256, messages, reports)
    with manifest_path(whole).open("wb") as file:
        file.write(json.dumps(manifest_of([listed]), indent=2).encode() + b"\n")
        os.fsync(file.fileno())
    part.rename(whole)
    _sync_folder(whole.parent)
    return whole


def read(whole: Path) -> Iterator[bytes | Rejection]:
    """The packed messages of a finished file, and rejections for what cannot be read any more."""
    with whole.open("rb") as file:
        yield from read_messages(file, whole.name)


def manifest_path(whole: Path) -> Path:
    return whole.with_name(whole.name.removesuffix(WHOLE) + MANIFEST)


def _long(number: int) -> bytes:
    """A number from 0 as Avro's variable-length integer."""
    rest, out = number << 1, bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*out, rest])


def _sync_folder(folder: Path) -> None:
    """Let the names of its files be on disk too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
