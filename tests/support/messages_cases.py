"""Messages and files made by hand: a small encoder written from the Avro specification, and collections to use it on.

Nothing here calls ``uldp_transforms.messages.wire``: what the library writes and reads is compared with this.
"""

from __future__ import annotations

import io
import json
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import fastavro

from uldp_transforms.ldp import Collection, ReportBatch
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages.catalog import CollectionCatalog
from uldp_transforms.messages.decoder import MessageDecoder
from uldp_transforms.messages.rejection import Rejection

SCHEMAS = Path(__file__).parents[2] / "schemas"
REPORT, BATCH = (json.loads((SCHEMAS / name).read_text()) for name in ("report.avsc", "report_batch.avsc"))

NOON = 1_000_000_000_000  # 2001-09-09T01:46:40Z
ID = bytes(range(16))


# ---------------------------------------------------------------------- the encoder


def long(value: int) -> bytes:
    """Avro's variable-length integer: zigzag, then 7 bits a byte, lowest first, the top bit set on all but the last."""
    zigzag, out = value << 1 ^ value >> 63, []
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes([*out, zigzag])


def data(content: bytes) -> bytes:
    """Avro's bytes (and text): the length, then the content."""
    return long(len(content)) + content


def padded(encoded: bytes) -> bytes:
    """The same integer in one byte more than it needs."""
    return encoded[:-1] + bytes([encoded[-1] | 0x80, 0])


def crc_64_avro(content: bytes) -> int:
    """The Rabin fingerprint of the Avro specification, bit by bit."""
    empty = 0xC15D213AA4D7A795
    crc = empty
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (empty if crc & 1 else 0)
    return crc


def header(schema: Any) -> bytes:
    """Single-object encoding: the marker and the fingerprint of the schema."""
    canonical = fastavro.schema.to_parsing_canonical_form(schema)
    return b"\xc3\x01" + struct.pack("<Q", crc_64_avro(canonical.encode()))


REPORT_HEADER, BATCH_HEADER = header(REPORT), header(BATCH)


def container(
    blocks: Iterable[tuple[int, bytes]],
    schema: Any = REPORT,
    codec: bytes | None = b"null",
    sync: bytes = b"sixteen  bytes !",
    **metadata: bytes,
) -> bytes:
    """An object container file of blocks (number of datums, bytes as they stand in the file)."""
    schema = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    entries = {"avro.schema": schema} | ({} if codec is None else {"avro.codec": codec}) | metadata
    head = long(len(entries)) + b"".join(data(key.encode()) + data(value) for key, value in entries.items())
    body = [long(count) + data(content) + sync for count, content in blocks]
    return b"".join([b"Obj\x01", head, long(0), sync, *body])


# ---------------------------------------------------------------------- collections and their messages


def collection(name: str, alphabet: dict[str, Any], mechanism: str, num_cohorts: int = 3, **fields: Any) -> Collection:
    """A collection with epsilon 1 and these fields of the mechanism."""
    spec = {"id": name, "version": 1, "alphabet": alphabet, "num_cohorts": num_cohorts}
    return Collection.from_json(spec | {"mechanism": {"id": mechanism, "epsilon": 1.0} | fields})


def numbered(count: int, sensitive: int | None = None) -> dict[str, Any]:
    """A closed alphabet of the texts 0, 1, 2 and so on, the first of which may be sensitive."""
    values = [str(i) for i in range(count)]
    return {"id": "closed", "values": values, "sensitive": None if sensitive is None else values[:sensitive]}


KRR = collection("krr", numbered(3), "krr")  # payload: 1 byte, a symbol below 3
URR = collection("urr", numbered(300, 2), "urr")  # 2 bytes, a symbol below 300
RAPPOR = collection("rappor", numbered(10), "rappor")  # 10 bits in 2 bytes
URAP = collection("urap", numbered(10, 3), "urap")  # 3 bits in 1 byte, then 0 (protected) to 7 (clear)
SS = collection("ss", numbered(10), "ss", subset_size=3)  # as RAPPOR, 3 of the bits set
USS = collection("uss", numbered(10, 3), "uss", subset_size=2)  # as URAP, 2 of the bits set in a protected report
MARGINAL = collection("marginal", numbered(10, 3), "urap", inversion="marginal")  # as URAP, clear reports with any bits
AGRR = collection("agrr", numbered(3), "agrr", priors=[[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])  # as KRR
AOUE = collection("aoue", numbered(3), "aoue", priors=[[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])  # 3 bits
TSP = collection("tsp", numbered(300), "tsp", missing_rates=[0.4, 0.05])  # 2 bytes, a symbol below 300
UP = collection("up", numbered(3), "up")  # as KRR
LISTED = collection("listed", {"id": "hashed", "num_buckets": 3, "non_sensitive": ["a", "b"]}, "urr")  # below 5
CLEAR = collection(
    "clear", {"id": "hashed", "num_buckets": 3, "non_sensitive": ["a", "b"], "num_clear_buckets": 7}, "urap"
)  # as URAP
TWICE = collection("twice", {"id": "hashed", "num_buckets": 10, "num_hashes": 2}, "rappor")  # as RAPPOR
TAGGED = collection("tagged", {"id": "tagged", "values": ["0", "1", "2"], "tags": ["t"]}, "urr")  # below 4
STRANGER = collection("stranger", numbered(3), "krr")  # of another job

KNOWN = (KRR, URR, RAPPOR, URAP, SS, USS)
NEW = (MARGINAL, AGRR, AOUE, TSP, UP, LISTED, CLEAR, TWICE, TAGGED)
GOOD = {
    "krr": b"\x02",
    "urr": b"\x2b\x01",
    "rappor": b"\xff\x03",
    "urap": b"\x07\x00",
    "ss": b"\x81\x02",
    "uss": b"\x05\x00",
    "marginal": b"\x05\x07",
    "agrr": b"\x02",
    "aoue": b"\x07",
    "tsp": b"\x2b\x01",
    "up": b"\x02",
    "listed": b"\x04",
    "clear": b"\x07\x00",
    "twice": b"\xff\x03",
    "tagged": b"\x03",
    "stranger": b"\x02",
}

Row = tuple[int, int, bytes, bytes]
"""Cohort, event time, id and payload of a report."""


def single(of: Collection = KRR, **encoded: bytes) -> bytes:
    """A good report, with other bytes in some fields."""
    fields = {
        "form": b"\x02",
        "collection": of.fingerprint[:8],
        "report_id": ID,
        "event_time": long(NOON),
        "cohort": long(1),
        "payload": data(GOOD.get(of.id, b"")),
    }
    return b"".join((fields | encoded).values())


def packed(of: Collection = KRR, rows: Sequence[Row] | None = None, **encoded: bytes) -> bytes:
    """A batch of reports (two good ones if none are given), with other bytes in some fields."""
    rows = [(i, NOON + i, ID, GOOD.get(of.id, b"")) for i in (1, 2)] if rows is None else rows
    cohorts, times, ids, payloads = zip(*rows) if rows else ((), (), (), ())
    fields = {
        "form": b"\x04",
        "collection": of.fingerprint[:8],
        "cohorts": data(struct.pack(f"<{len(rows)}H", *cohorts)),
        "event_times": data(struct.pack(f"<{len(rows)}q", *times)),
        "report_ids": data(b"".join(ids)),
        "payloads": data(b"".join(payloads)),
    }
    return b"".join((fields | encoded).values())


def truncations(message: bytes) -> list[bytes]:
    """Every proper beginning but the empty one."""
    return [message[:end] for end in range(1, len(message))]


# ---------------------------------------------------------------------- decoding


def decoder(collections: Iterable[Collection] = KNOWN, **options: Any) -> MessageDecoder:
    return MessageDecoder(CollectionCatalog(collections), **options)


def rows_of(batches: Iterable[ReportBatch]) -> Counter[tuple[bytes, Row]]:
    """The reports of batches, in no order: the beginning of the fingerprint and the row."""
    rows: Counter[tuple[bytes, Row]] = Counter()
    for batch in batches:
        ids = [row.tobytes() for row in batch.report_ids] or [b""] * len(batch)
        payloads = [row.tobytes() for row in batch.payloads]
        columns = zip(batch.cohorts.tolist(), batch.event_times.tolist(), ids, payloads)
        rows.update((batch.fingerprint[:8], row) for row in columns)
    return rows


def num_reports(batches: Iterable[ReportBatch], rejections: Iterable[Rejection]) -> int:
    """Reports that have a verdict."""
    return sum(map(len, batches)) + sum(rejection.num_reports for rejection in rejections)


def refused(reason: str | Reason, size: int, of: Collection | None = None, number: int = 1, **fields: Any) -> Rejection:
    """A rejection: of a message that could not be read for the reasons of bytes, else of ``number`` reports."""
    reason = Reason[reason.upper()] if isinstance(reason, str) else reason
    is_unread = reason < Reason.UNKNOWN_COLLECTION
    numbers = {"num_messages": number} if is_unread else {}
    return Rejection(reason, 0 if is_unread else number, size, of, **fields, **numbers)


def read_datum(schema: Any, content: bytes) -> dict[str, Any] | None:
    """The record that fastavro reads; None unless it writes the very same bytes again."""
    out = io.BytesIO()
    try:
        record = fastavro.schemaless_reader(io.BytesIO(content), schema, None)
        fastavro.schemaless_writer(out, schema, record)
    except (EOFError, IndexError, ValueError, OverflowError, MemoryError):
        return None
    return record if out.getvalue() == content else None


# ---------------------------------------------------------------------- files for the command lines


def write_files(folder: Path, files: dict[str, Any]) -> None:
    """Write files of bytes, of text, or of anything that has a JSON form."""
    for name, content in files.items():
        spec = content.to_json() if isinstance(content, Collection) else content
        text = spec if isinstance(spec, (bytes, str)) else json.dumps(spec)
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
