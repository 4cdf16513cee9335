"""Wire format: encoding and framing of reports as messages, without Beam.

A message is one Avro datum, either plain (as on a Pub/Sub topic with an Avro schema) or in Avro single-object encoding.
The first byte distinguishes them: 0x02 is a plain ``Report`` (its field ``form`` is 1), 0x04 a plain ``ReportBatch``
(``form`` is 2), 0xC3 the marker of single-object encoding. All other first bytes are invalid.
"""

from __future__ import annotations

import io
import struct
from typing import Any

import fastavro
import fastavro.schema
import numpy as np

from uldp_transforms.ldp.collection import PREFIX_BYTES
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.ldp.reports import ID_BYTES, ReportBatch
from uldp_transforms.schemas import load

REPORT_SCHEMA = load("report.avsc")
BATCH_SCHEMA = load("report_batch.avsc")

REPORT_FORM = 0x02
"""First byte of a plain single report."""

BATCH_FORM = 0x04
"""First byte of a plain batch."""

SINGLE_OBJECT_MARKER = b"\xc3\x01"

FIXED_BYTES = 1 + PREFIX_BYTES + ID_BYTES
"""Number of bytes of the fixed fields of a single report: form, collection, report_id."""

_LATE = 100 * 31_556_952_000  # milliseconds since 1970, a century later

MAX_MESSAGE_BYTES = 10_000_000
"""Maximum size of a message, which is the limit of Pub/Sub."""


def single_object_header(schema: Any) -> bytes:
    """Marker and little-endian CRC-64-AVRO fingerprint of the schema, 10 bytes."""
    canonical = fastavro.schema.to_parsing_canonical_form(schema)
    crc = fastavro.schema.fingerprint(canonical, "CRC-64-AVRO")
    return SINGLE_OBJECT_MARKER + bytes.fromhex(crc)


REPORT_HEADER = single_object_header(REPORT_SCHEMA)
BATCH_HEADER = single_object_header(BATCH_SCHEMA)

_PARSED = {form: fastavro.parse_schema(schema) for form, schema in ((1, REPORT_SCHEMA), (2, BATCH_SCHEMA))}


def report_records(batch: ReportBatch) -> list[dict[str, Any]]:
    """The Avro records of single reports."""
    prefix = batch.fingerprint[:PREFIX_BYTES]
    columns = zip(batch.report_ids, batch.event_times.tolist(), batch.cohorts.tolist(), batch.payloads)
    return [
        {
            "form": 1,
            "collection": prefix,
            "report_id": report_id.tobytes(),
            "event_time": event_time,
            "cohort": cohort,
            "payload": payload.tobytes(),
        }
        for report_id, event_time, cohort, payload in columns
    ]


def batch_record(batch: ReportBatch) -> dict[str, Any]:
    """The Avro record of a packed batch."""
    ids, payloads = batch.report_ids.tobytes(), batch.payloads.tobytes()
    return _packed_record(batch.fingerprint[:PREFIX_BYTES], batch.cohorts, batch.event_times, ids, payloads)


def _packed_record(
    prefix: bytes, cohorts: np.ndarray, event_times: np.ndarray, report_ids: bytes, payloads: bytes
) -> dict[str, Any]:
    return {
        "form": 2,
        "collection": prefix,
        "cohorts": cohorts.astype("<u2").tobytes(),
        "event_times": event_times.astype("<i8").tobytes(),
        "report_ids": report_ids,
        "payloads": payloads,
    }


def encode_columns(
    prefix: bytes, cohorts: np.ndarray, event_times: np.ndarray, report_ids: bytes, payloads: bytes
) -> bytes:
    """Encode n reports of one collection, unchecked, as one message.

    Args:
        prefix: first 8 bytes of the collection's fingerprint.
        cohorts: (n,) integers in [0, 65536).
        event_times: (n,) int64, milliseconds.
        report_ids: n ids of 16 bytes, joined; or empty.
        payloads: n payloads of one length, joined.
    """
    columns: tuple[Any, ...] = (cohorts.astype("<u2"), event_times.astype("<i8", copy=False), report_ids, payloads)
    parts: list[Any] = [bytes([BATCH_FORM]), prefix]
    for column in columns:
        data = memoryview(column)
        parts += [_long(data.nbytes), data]
    return b"".join(parts)


def _long(number: int) -> bytes:
    """Avro's variable-length integer of a number that is not negative."""
    rest, out = 2 * number, bytearray()
    while rest > 127:
        out.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*out, rest])


def packed_bytes(payload_size: int) -> int:
    """Size of one report in a packed message, in bytes."""
    return 2 + 8 + ID_BYTES + payload_size


def single_bytes(payload_size: int, num_strata: int) -> int:
    """Size of a message of one report of this century, in the cohort with the longest number.

    Args:
        payload_size: bytes of the payload.
        num_strata: groups times cohorts.
    """
    written = (_LATE, num_strata - 1, payload_size)
    return FIXED_BYTES + sum(len(written_long(number)) for number in written) + payload_size


def _datum(record: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, _PARSED[record["form"]], record)
    return out.getvalue()


def encode_reports(batch: ReportBatch, single_object: bool = False) -> list[bytes]:
    """Encode each report as one message; run by the client."""
    header = REPORT_HEADER if single_object else b""
    return [header + _datum(record) for record in report_records(batch)]


def encode_batch(batch: ReportBatch, single_object: bool = False) -> bytes:
    """Encode all reports as one message; run by a gateway."""
    return (BATCH_HEADER if single_object else b"") + _datum(batch_record(batch))


def to_message(record: Any) -> bytes:
    """Encode a record of ``report.avsc`` or ``report_batch.avsc`` as a message.

    Beam's ``ReadFromAvro`` reads such records, and ``EstimateReports`` needs messages. Prefer ``ReadReportFiles``: it
    does not decode and encode each record, and accounts for what cannot be read.

    Examples:
        >>> import apache_beam as beam
        >>> from uldp_transforms import EstimateReports, to_message
        >>> with beam.Pipeline() as pipeline:
        ...     records = pipeline | beam.io.ReadFromAvro("reports.avro")
        ...     messages = records | beam.Map(to_message).with_output_types(bytes)
        ...     estimated = messages | EstimateReports(collections=["C.json"])
        ...     _ = estimated.ledger | beam.Map(lambda row: print(row.accepted))
        10000

    Args:
        record: mapping of the fields of a schema to their values.

    Returns:
        the message; an empty one, which counts as unread (malformed), for anything else than a record of these schemas.
    """
    try:
        return _datum(record)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, struct.error):
        return b""


def read_varints(data: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Decode Avro's variable-length integers at many positions at once.

    Args:
        data: uint8, with at least 10 bytes after the largest position.
        at: (n,) int64 positions.

    Returns:
        value (n,) int64, after zigzag decoding; after (n,) int64, the positions after the integers; canonical (n,)
        bool, False if the integer uses more bytes than necessary or exceeds 64 bits.
    """
    value = np.zeros(len(at), dtype=np.uint64)
    size = np.zeros(len(at), dtype=np.int64)
    canonical = np.ones(len(at), dtype=bool)
    going_on = np.ones(len(at), dtype=bool)
    for place in range(10):
        byte = data[at + place]
        value |= np.where(going_on, (byte & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * place), np.uint64(0))
        size += going_on
        ends = going_on & (byte < 0x80)
        if place > 0:
            canonical &= ~(ends & (byte == 0))
        if place == 9:
            canonical &= ~(going_on & (byte > 1))
        going_on &= byte >= 0x80
        if not going_on.any():
            break
    decoded = (value >> np.uint64(1)).astype(np.int64) ^ -(value & np.uint64(1)).astype(np.int64)
    return decoded, at + size, canonical


def split_batch(data: bytes, start: int) -> tuple[bytes, list[memoryview], int, Reason]:
    """The fields of a packed datum: collection prefix, four columns, the position after it, and the fault, if any."""
    at = start + 1 + PREFIX_BYTES
    prefix = data[start + 1 : at]
    view = memoryview(data)
    fields: list[memoryview] = []
    for _ in range(4):
        size, at, fault = read_long(data, at)
        if fault is Reason.ACCEPTED and not 0 <= size <= len(data) - at:
            fault = Reason.MALFORMED
        if fault is not Reason.ACCEPTED:
            return prefix, fields, at, fault
        fields.append(view[at : at + size])
        at += size
    return prefix, fields, at, Reason.ACCEPTED


def reports_in(message: bytes) -> int:
    """Number of reports that a plain message declares, before any check; at least 1."""
    if message[:1] != bytes([BATCH_FORM]):
        return 1
    _, fields, _, fault = split_batch(message, 0)
    return max(1, len(fields[0]) // 2) if fault is Reason.ACCEPTED else 1


def has_ids(message: bytes) -> bool:
    """Whether the reports of a plain message have ids; True if it is no message."""
    if message[:1] != bytes([BATCH_FORM]):
        return True
    _, fields, _, fault = split_batch(message, 0)
    return fault is not Reason.ACCEPTED or len(fields[2]) > 0


def read_long(data: bytes, at: int) -> tuple[int, int, Reason]:
    """One variable-length integer: its value, the position after it, and the fault, if any."""
    value = 0
    for place in range(10):
        if at >= len(data):
            return 0, at, Reason.MALFORMED
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            if (place > 0 and byte == 0) or value >= 1 << 64:
                return 0, at, Reason.NON_CANONICAL
            return (value >> 1) ^ -(value & 1), at, Reason.ACCEPTED
    return 0, at, Reason.NON_CANONICAL


def written_long(value: int) -> bytes:
    """One variable-length integer of 64 bits, as Avro writes it."""
    left, written = (value << 1) ^ (value >> 63), bytearray()
    while left >= 0x80:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)
