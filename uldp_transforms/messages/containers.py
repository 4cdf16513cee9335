"""Robust reader of Avro object container files of reports. No Beam.

The reader checks what a file claims: its writer's schema must be one of this package, decompressed blocks have a
bounded size, and an unreadable block is skipped, up to the next sync marker.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import fastavro.schema
import numpy as np

from uldp_transforms.ldp.collection import PREFIX_BYTES
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages import wire
from uldp_transforms.messages.compiled import report_ends
from uldp_transforms.messages.files.codecs import MAX_BLOCK_BYTES, Codec, codec_of
from uldp_transforms.messages.files.file_account import Account
from uldp_transforms.messages.joined_messages import JoinedMessages
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.messages.wire import FIXED_BYTES, read_long, split_batch

MAGIC = b"Obj\x01"
SYNC_BYTES = 16

RANDOMNESS, SEEDED = "uldp.randomness", "seeded"
"""Header key for the source of the reports' randomness, and prefix of its value for reproducible randomness."""

_MAX_HEADER_BYTES = 1 << 20
_READ_BYTES = 1 << 20

_FORMS = {
    fastavro.schema.to_parsing_canonical_form(wire.REPORT_SCHEMA): wire.REPORT_FORM,
    fastavro.schema.to_parsing_canonical_form(wire.BATCH_SCHEMA): wire.BATCH_FORM,
}


class Readable(Protocol):
    """Protocol of a readable binary file."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, up to a limit; empty at the end."""


def read_messages(file: Readable, source: str, account: Account | None = None) -> Iterator[bytes | Rejection]:
    """``read_blocks``, with each message alone."""
    for item in read_blocks(file, source, account):
        if isinstance(item, Rejection):
            yield item
        else:
            yield from item


def read_blocks(file: Readable, source: str, account: Account | None = None) -> Iterator[Sequence[bytes] | Rejection]:
    """Yield the datums of each block of a container file as plain messages, and a rejection for each unreadable part.

    Single reports are ``JoinedMessages``; packed ones, which are long, a list.

    Args:
        file: file opened for reading bytes.
        source: name of the file, for the rejections.
        account: updated while reading.
    """
    account = account or Account()
    stream = _Stream(file)
    header = _read_header(stream)
    if isinstance(header, Reason):
        yield account.refuse(header, len(stream.peek(_MAX_HEADER_BYTES)), source)
        return
    form, codec, sync, account.randomness = header
    account.num_bytes = stream.position
    while stream.peek(1):
        begin = stream.position
        block = _read_block(stream, codec, sync)
        if isinstance(block, Reason):
            yield account.unread(block, stream.skip_past(sync), source)
        elif isinstance(block.body, Reason):
            yield account.unread(block.body, stream.position - begin, source)
        else:
            messages = _split_block(block.num_datums, block.body, form)
            if isinstance(messages, Reason):
                yield account.unread(messages, len(block.body), source)
            else:
                yield messages
                if len(messages) != block.num_datums:
                    continue  # a lost message: the file stays in transit
        account.num_bytes += stream.position - begin


class _Stream:
    """Bytes of a file with lookahead."""

    def __init__(self, file: Readable):
        self._file = file
        self._data = b""
        self._at = 0
        self.position = 0  # number of bytes already dropped

    def view(self, size: int) -> memoryview:
        """The next ``size`` bytes without a copy; fewer at the end of the file."""
        while len(self._data) - self._at < size:
            more = self._file.read(max(size, _READ_BYTES))
            if not more:
                break
            self._data = self._data[self._at :] + more
            self._at = 0
        return memoryview(self._data)[self._at : self._at + size]

    def peek(self, size: int) -> bytes:
        """A copy of the next ``size`` bytes; fewer at the end of the file."""
        return bytes(self.view(size))

    def drop(self, size: int) -> None:
        self._at += size
        self.position += size

    def skip_past(self, marker: bytes) -> int:
        """Skip to the position after the next marker, or to the end of the file; returns the number of skipped
        bytes."""
        skipped = 0
        while (found := self._data.find(marker, self._at)) < 0:
            left = len(self._data) - self._at
            kept = min(left, len(marker) - 1)  # a marker may begin here and end in unread bytes
            self.drop(left - kept)
            skipped += left - kept
            if len(self.view(kept + 1)) == kept:
                self.drop(kept)
                return skipped + kept
        step = found + len(marker) - self._at
        self.drop(step)
        return skipped + step


def _read_header(stream: _Stream) -> tuple[int, Codec, bytes, str | None] | Reason:
    """Form of the datums, codec, sync marker, and the writer's statement about its randomness."""
    data = stream.peek(_MAX_HEADER_BYTES)
    found = _read_metadata(data) if data[: len(MAGIC)] == MAGIC else None
    if found is None:
        return Reason.BAD_MAGIC
    metadata, at = found
    sync = data[at : at + SYNC_BYTES]
    if len(sync) < SYNC_BYTES:
        return Reason.BAD_MAGIC
    form = _form_of(metadata.get(b"avro.schema", b""))
    codec = codec_of(metadata.get(b"avro.codec", b"null"))
    if form is None:
        return Reason.UNKNOWN_SCHEMA
    if codec is None:
        return Reason.UNKNOWN_CODEC
    stream.drop(at + SYNC_BYTES)
    randomness = metadata.get(RANDOMNESS.encode("ascii"))
    return form, codec, sync, None if randomness is None else randomness.decode("utf-8", "replace")


def _read_metadata(data: bytes) -> tuple[dict[bytes, bytes], int] | None:
    """The map after the magic bytes, and the position after the map; None if there is none."""
    metadata: dict[bytes, bytes] = {}
    at = len(MAGIC)
    while True:
        count, at, fault = read_long(data, at)
        if fault is Reason.ACCEPTED and count < 0:  # Avro allows a block size in bytes after a negative count
            count = -count
            _, at, fault = read_long(data, at)
        if fault is not Reason.ACCEPTED:
            return None
        if count == 0:
            return metadata, at
        for _ in range(count):
            entry = []
            for _ in ("key", "value"):
                size, at, fault = read_long(data, at)
                if fault is not Reason.ACCEPTED or not 0 <= size <= len(data) - at:
                    return None
                entry.append(data[at : at + size])
                at += size
            metadata[entry[0]] = entry[1]


def _form_of(schema: bytes) -> int | None:
    """First byte of the datums of a writer's schema; None if the schema is not one of this package."""
    try:
        return _FORMS.get(fastavro.schema.to_parsing_canonical_form(json.loads(schema)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, fastavro.schema.SchemaParseException):
        return None


class _Block(NamedTuple):
    """A block that ends at its declared size: number of datums, and their bytes or the decompression error."""

    num_datums: int
    body: bytes | Reason


def _read_block(stream: _Stream, codec: Codec, sync: bytes) -> _Block | Reason:
    """The next block; if no sync marker follows at its declared end, the stream stays at its beginning.

    So each byte is decompressed only once: nested blocks that end at the same marker count as one block.
    """
    head = stream.peek(20)
    count, at, fault = read_long(head, 0)
    size, at, size_fault = read_long(head, at)
    if fault is not Reason.ACCEPTED or size_fault is not Reason.ACCEPTED or count < 0 or size < 0:
        return Reason.CORRUPT_BLOCK
    if size > MAX_BLOCK_BYTES:
        return Reason.BLOCK_TOO_LARGE
    whole = stream.view(at + size + SYNC_BYTES)
    if whole[at + size :] != sync:
        return Reason.CORRUPT_BLOCK
    body = bytes(whole[at : at + size])
    stream.drop(len(whole))
    return _Block(count, codec(body))


def _split_block(count: int, body: bytes, form: int) -> Sequence[bytes] | Reason:
    """The datums of a block; a block whose bytes are not exactly ``count`` datums is corrupt."""
    if form == wire.REPORT_FORM:
        found = report_ends(count, body)
        if found is not None:
            return JoinedMessages(body, found)
        ends = _ends_at_once(count, body)
        if ends is not None:
            return JoinedMessages.of(body, ends)
    bounds = [0]
    for _ in range(count):
        end = _end_of_datum(body, bounds[-1], form)
        if end is None:
            return Reason.CORRUPT_BLOCK
        bounds.append(end)
    if bounds[-1] != len(body):
        return Reason.CORRUPT_BLOCK
    messages = JoinedMessages.of(body, bounds[1:])
    return messages if form == wire.REPORT_FORM else list(messages)


def _end_of_datum(body: bytes, start: int, form: int) -> int | None:
    """Position after the datum at ``start``; None if there is no datum."""
    if form == wire.BATCH_FORM:
        _, _, end, fault = split_batch(body, start)
        return end if fault is Reason.ACCEPTED and body[start] == form else None
    at = start + FIXED_BYTES
    for _ in ("event_time", "cohort", "payload size"):
        size, at, fault = read_long(body, at)
        if fault is not Reason.ACCEPTED:
            return None
    return at + size if 0 <= size <= len(body) - at and body[start] == form else None


def _ends_at_once(count: int, body: bytes) -> np.ndarray | None:
    """Ends of all single reports of a block, found by searching and checked together; None if they are uncertain.

    A report may begin wherever the first report's form and collection prefix occur again. If there are ``count`` such
    places and each report ends where the next begins, from the first byte to the last, these are the reports, because
    sequential reading is determined by its start.
    """
    head = body[: 1 + PREFIX_BYTES]
    if not 0 < count * (FIXED_BYTES + 3) <= len(body) or head[0] != wire.REPORT_FORM or body.count(head) != count:
        return None
    places = [0]
    while len(places) < count:
        places.append(body.find(head, places[-1] + 1))
    starts = np.array(places)
    data = np.frombuffer(body + bytes(FIXED_BYTES + 10), dtype=np.uint8)
    at = starts + FIXED_BYTES
    for _ in ("event_time", "cohort", "payload size"):
        size, at, canonical = wire.read_varints(data, np.minimum(at, len(body)))
        if not canonical.all():
            return None
    ends = at + size
    return ends if ends[-1] == len(body) and (ends[:-1] == starts[1:]).all() else None
