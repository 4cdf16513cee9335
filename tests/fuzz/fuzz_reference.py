"""What the collector should say of any bytes, one message after the other in plain Python, from docs/wire.md.

It shares no code with the library and is a hundred times slower: the fuzzer compares the two, reason by reason.
"""

from __future__ import annotations

import dataclasses
import json
import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping

from tests.support.messages_cases import BATCH, BATCH_HEADER, REPORT, REPORT_HEADER, Row

MAX_MESSAGE_BYTES = 10_000_000
MAX_BLOCK_BYTES = 16 << 20
MAX_HEADER_BYTES = 1 << 20
FIRST_TIME, END_OF_TIME = -2_208_988_800_000, 253_370_764_800_000  # the years 1900 to 9998


@dataclasses.dataclass(frozen=True, kw_only=True)
class Payloads:
    """What the payloads of a collection may look like.

    Attributes:
        kind: "symbol" (one number), "bits" (one bit a symbol) or "split" (bits, then the number of a clear symbol).
        size: in bytes.
        symbols: how many numbers or bits there are.
        clear: of a "split", how many clear symbols there are.
        ones: how many bits a protected report has set; None: any.
        noisy: whether a report of a clear symbol may have bits set.
    """

    kind: str
    size: int
    symbols: int
    clear: int = 0
    ones: int | None = None
    noisy: bool = False

    def fault(self, payload: bytes) -> str | None:
        if self.kind == "symbol":
            return "value_domain" if int.from_bytes(payload, "little") >= self.symbols else None
        bit_bytes = (self.symbols + 7) // 8
        bits, clear = (int.from_bytes(part, "little") for part in (payload[:bit_bytes], payload[bit_bytes:]))
        if bits >> self.symbols:
            return "padding_bits"
        if clear > self.clear:
            return "value_domain"
        if clear and bits and not self.noisy:
            return "impossible_report"
        wrong = not clear and self.ones is not None and bits.bit_count() != self.ones
        return "impossible_report" if wrong else None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gate:
    """Milliseconds of a base period, of the allowed lateness, and by which a client's clock may be ahead."""

    base: int
    lateness: int
    ahead: int = 300_000

    def fault(self, moment: int, arrival: int) -> str | None:
        if moment > arrival + self.ahead:
            return "too_early"
        return "too_old" if arrival >= (moment // self.base + 1) * self.base + self.lateness else None


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Of one message: the accepted reports; the refused ones by reason, collection and start of the base period."""

    accepted: tuple[Row, ...]
    refused: Mapping[tuple[str, bytes | None, int | None], int]
    collection: bytes | None = None
    is_unread: bool = False
    """Whether the message could not be read: then its reason is in ``refused``, and no report is."""


class _Fault(Exception):
    """Carries a reason."""


def read_long(data: bytes, at: int) -> tuple[int, int, bool]:
    """An integer, the position behind it (beyond the end if it is cut) and whether no shorter encoding exists."""
    value = 0
    for place in range(10):
        if at + place >= len(data):
            return 0, len(data) + 1, True
        byte = data[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            good = (byte > 0 or place == 0) and value < 1 << 64
            return (value >> 1) ^ -(value & 1), at + place + 1, good
    return 0, at + 10, False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reference:
    """Judges messages.

    Attributes:
        collections: the beginnings of the fingerprints that the job knows, and what payloads look like.
        num_cohorts: of all of them.
        gate: None: there are no arrival times.
        require_ids: whether batches must have report ids.
    """

    collections: Mapping[bytes, Payloads]
    num_cohorts: int
    gate: Gate | None = None
    require_ids: bool = False

    def judge(self, message: bytes, arrival: int = 0) -> Verdict:
        try:
            collection, rows = self._read(message)
        except _Fault as fault:
            return Verdict((), {fault.args: 1}, is_unread=True)
        payloads = self.collections.get(collection)
        if payloads is None:
            return Verdict((), {("unknown_collection", None, None): len(rows)})
        if len(rows[0][3]) != payloads.size:
            return Verdict((), {("payload_length", collection, None): len(rows)})
        accepted, refused = [], Counter[tuple[str, bytes | None, int | None]]()
        for row in rows:
            reason = self._fault(payloads, row, arrival)
            if reason is None:
                accepted.append(row)
            else:
                timed = reason in ("too_early", "too_old") and self.gate is not None
                refused[reason, collection, row[1] // self.gate.base * self.gate.base if timed else None] += 1
        return Verdict(tuple(accepted), refused, collection)

    def _fault(self, payloads: Payloads, row: Row, arrival: int) -> str | None:
        cohort, moment, report_id, payload = row
        if not 0 <= cohort < self.num_cohorts:
            return "cohort_range"
        if reason := payloads.fault(payload):
            return reason
        if self.require_ids and not report_id:
            return "no_report_id"
        if not FIRST_TIME <= moment < END_OF_TIME:
            return "time_range"
        return None if self.gate is None else self.gate.fault(moment, arrival)

    def _read(self, message: bytes) -> tuple[bytes, list[Row]]:
        if len(message) > MAX_MESSAGE_BYTES:
            raise _Fault("too_large", None, None)
        if not message:
            raise _Fault("malformed", None, None)
        for head, form in ((b"", 2), (b"", 4), (REPORT_HEADER, 2), (BATCH_HEADER, 4)):
            if message.startswith(head) and message[len(head) : len(head) + 1] == bytes([form]):
                return (_read_report if form == 2 else _read_batch)(message[len(head) :])
        raise _Fault("unknown_schema", None, None)


def _read_report(datum: bytes) -> tuple[bytes, list[Row]]:
    moment, at, good = read_long(datum, 25)
    cohort, at, good_too = read_long(datum, at)
    size, at, good_three = read_long(datum, at)
    if at > len(datum):
        raise _Fault("malformed", None, None)
    if not (good and good_too and good_three):
        raise _Fault("non_canonical", None, None)
    if not 0 <= size <= len(datum) - at:
        raise _Fault("malformed", None, None)
    if at + size < len(datum):
        raise _Fault("trailing_bytes", None, None)
    if not -(1 << 31) <= cohort < 1 << 31:
        raise _Fault("out_of_range", None, None)
    return datum[1:9], [(cohort, moment, datum[9:25], datum[at:])]


def _read_batch(datum: bytes) -> tuple[bytes, list[Row]]:
    columns, at = [], 9
    for _ in range(4):
        size, at, good = read_long(datum, at)
        if at > len(datum):
            raise _Fault("malformed", None, None)
        if not good:
            raise _Fault("non_canonical", None, None)
        if not 0 <= size <= len(datum) - at:
            raise _Fault("malformed", None, None)
        columns.append(datum[at : at + size])
        at += size
    if at < len(datum):
        raise _Fault("trailing_bytes", None, None)
    cohorts, moments, ids, payloads = columns
    n = len(cohorts) // 2
    if n == 0 or (len(cohorts), len(moments)) != (2 * n, 8 * n) or len(ids) not in (0, 16 * n):
        raise _Fault("malformed", None, None)
    width = len(payloads) // n if len(payloads) % n == 0 else 0
    return datum[1:9], [
        (
            int.from_bytes(cohorts[2 * i : 2 * i + 2], "little"),
            int.from_bytes(moments[8 * i : 8 * i + 8], "little", signed=True),
            ids[16 * i : 16 * i + 16],
            payloads[width * i : width * i + width],  # empty, hence of a wrong length, if they have no common one
        )
        for i in range(n)
    ]


# ---------------------------------------------------------------------- files


def read_file(content: bytes) -> Iterator[bytes | str]:
    """The messages of a container file in order, and a reason for each part that is lost."""
    try:
        form, deflated, marker, at = _read_header(content)
    except _Fault as fault:
        yield fault.args[0]
        return
    while at < len(content):
        try:
            count, body, behind = _read_block(content, at, marker)
        except _Fault as fault:
            yield fault.args[0]
            found = content.find(marker, at)
            at = len(content) if found < 0 else found + len(marker)
            continue
        at = behind
        try:
            yield from list(_split(count, _inflated(body) if deflated else body, form))
        except _Fault as fault:
            yield fault.args[0]


def _read_header(content: bytes) -> tuple[int, bool, bytes, int]:
    head, entries, at = content[:MAX_HEADER_BYTES], {}, 4
    if not head.startswith(b"Obj\x01"):
        raise _Fault("bad_magic")

    def take_long() -> int:
        nonlocal at
        value, at, good = read_long(head, at)
        if not good or at > len(head):
            raise _Fault("bad_magic")
        return value

    def take_bytes() -> bytes:
        nonlocal at
        size = take_long()
        if not 0 <= size <= len(head) - at:
            raise _Fault("bad_magic")
        at += size
        return head[at - size : at]

    while count := take_long():
        if count < 0:
            take_long()  # the size of the entries in bytes
        for _ in range(abs(count)):
            key = take_bytes()
            entries[key] = take_bytes()
    marker = head[at : at + 16]
    if len(marker) < 16:
        raise _Fault("bad_magic")
    form = _form(entries.get(b"avro.schema", b""))
    codec = entries.get(b"avro.codec", b"null")
    if form is None:
        raise _Fault("unknown_schema")
    if codec not in (b"null", b"deflate"):
        raise _Fault("unknown_codec")
    return form, codec == b"deflate", marker, at + 16


def _form(text: bytes) -> int | None:
    """First byte of the datums of a schema that is one of ours, but for documentation and layout."""
    try:
        schema = _bare(json.loads(text))
    except (ValueError, RecursionError):
        return None
    return 2 if schema == _bare(REPORT) else 4 if schema == _bare(BATCH) else None


def _bare(schema: object, space: str = "") -> object:
    """A schema with what its parsing canonical form keeps: full names, types, fields in order, and sizes.

    Raises:
        ValueError: if it is none.
    """
    if isinstance(schema, list):
        return [_bare(one, space) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    if kind not in ("record", "fixed"):
        return _bare(kind, space)
    name, own = schema.get("name"), schema.get("namespace", space)
    if not isinstance(name, str) or not isinstance(own, str):
        raise ValueError("a name must be text")
    full = name if "." in name or not own else f"{own}.{name}"
    if kind == "fixed":
        return {"type": kind, "name": full, "size": schema.get("size")}
    inside, fields = full.rpartition(".")[0], schema.get("fields")
    if not isinstance(fields, list) or not all(isinstance(field, dict) for field in fields):
        raise ValueError("fields must be a list")
    bare = [{"name": field.get("name"), "type": _bare(field.get("type"), inside)} for field in fields]
    return {"type": kind, "name": full, "fields": bare}


def _read_block(content: bytes, start: int, marker: bytes) -> tuple[int, bytes, int]:
    """Number of datums, their bytes in the file, and the position behind the block."""
    count, at, good = read_long(content, start)
    size, at, good_too = read_long(content, at)
    if not (good and good_too) or at > len(content) or count < 0 or size < 0:
        raise _Fault("corrupt_block")
    if size > MAX_BLOCK_BYTES:
        raise _Fault("block_too_large")
    if content[at + size : at + size + 16] != marker:
        raise _Fault("corrupt_block")
    return count, content[at : at + size], at + size + 16


def _inflated(body: bytes) -> bytes:
    inflater = zlib.decompressobj(-15)
    try:
        inflated = inflater.decompress(body, MAX_BLOCK_BYTES + 1)
    except zlib.error:
        raise _Fault("corrupt_block") from None
    if len(inflated) > MAX_BLOCK_BYTES:
        raise _Fault("block_too_large")
    behind = inflater.unused_data  # nothing, or the first three of the four bytes of zlib's checksum
    if not inflater.eof or behind not in (b"", struct.pack(">I", zlib.adler32(inflated))[:3]):
        raise _Fault("corrupt_block")
    return inflated


def _split(count: int, body: bytes, form: int) -> Iterator[bytes]:
    """The datums of a block; a datum takes at least ten bytes, so a false count ends soon."""
    at = 0
    for _ in range(count):
        start, at = at, at + (25 if form == 2 else 9)
        columns = (False, False, True) if form == 2 else (True, True, True, True)  # whether the length of something
        for is_length in columns:
            number, at, good = read_long(body, at)
            if not good or at > len(body) or (is_length and not 0 <= number <= len(body) - at):
                raise _Fault("corrupt_block")
            at += number if is_length else 0
        if body[start] != form:
            raise _Fault("corrupt_block")
        yield body[start:at]
    if at != len(body):
        raise _Fault("corrupt_block")
