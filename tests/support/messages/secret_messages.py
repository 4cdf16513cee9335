"""Messages with a text that no failure and no log may show."""

from __future__ import annotations

import base64
import struct

from tests.support.messages_cases import (
    BATCH,
    BATCH_HEADER,
    KNOWN,
    NOON,
    REPORT_HEADER,
    STRANGER,
    container,
    data,
    long,
    packed,
    single,
)

SECRET = b"MARKER-8d1f"  # not in any file of this project but this one
TEXT = SECRET.decode()
SHAPES = (SECRET, SECRET.hex().encode(), base64.b64encode(SECRET)[:12], repr(list(SECRET))[1:-1].encode(), SECRET[::-1])


def shown(content: bytes | str) -> bool:
    """Whether the marker stands in the content, as it is or in another writing."""
    content = content.encode() if isinstance(content, str) else content
    return any(shape.lower() in content.lower() for shape in SHAPES)


def messages() -> list[bytes]:
    """The marker in every field, in every reason."""
    padding = SECRET.ljust(16, b"!")
    bad = [
        SECRET,
        b"\x02" + SECRET,
        b"\x04" + SECRET,
        b"\xc3\x01" + SECRET,
        REPORT_HEADER + SECRET,
        BATCH_HEADER + SECRET,
        b'{"value": "%s"}' % SECRET,
        single() + SECRET,
        packed() + SECRET,
        single(collection=SECRET[:8]),
        single(payload=data(SECRET)),
        single(payload=long(-1) + SECRET),
        single(report_id=padding, cohort=long(9)),
        single(report_id=padding, payload=data(b"\xff")),
        single(report_id=padding, event_time=long(1 << 60)),
        single(STRANGER, payload=data(SECRET)),
        packed(payloads=data(SECRET)),
        packed(STRANGER, payloads=data(SECRET)),
        packed(rows=[(0, struct.unpack("<q", SECRET[:8])[0], padding, b"\0"), (9, NOON, padding, b"\0")]),
    ]
    return [*bad, *(single(of, payload=data(SECRET)) for of in KNOWN), single(report_id=padding), packed()]


FILES = {
    "marker.avro": SECRET,
    "schema.avro": container([(1, SECRET)], {"type": "record", "name": "R", "fields": [], "doc": TEXT}),
    "not-json.avro": container([(1, SECRET)], b'{"doc": "%s' % SECRET),
    "codec.avro": container([(1, SECRET)], codec=SECRET),
    "metadata.avro": container([(1, SECRET)], marker=SECRET),
    "sync.avro": container([(1, b"\0"), (2, SECRET)], sync=SECRET.ljust(16, b"!")),
    "deflate.avro": container([(1, SECRET)], codec=b"deflate"),
    "blocks.avro": container([(1, SECRET), (1, single() + SECRET), (1, single())]),
    "messages.avro": container([(1, m) for m in messages() if m[:1] == b"\x02"]),
    "batches.avro": container([(1, m) for m in messages() if m[:1] == b"\x04"], BATCH),
    "value.csv": f"value\n{TEXT}\n",
}
