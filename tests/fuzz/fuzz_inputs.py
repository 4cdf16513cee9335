"""Messages and container files to fuzz with: good ones, and every way that we know of spoiling them."""

from __future__ import annotations

import json
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from tests.fuzz.fuzz_reference import Payloads
from tests.support.messages_cases import (
    BATCH,
    BATCH_HEADER,
    GOOD,
    KNOWN,
    NEW,
    NOON,
    REPORT,
    REPORT_HEADER,
    STRANGER,
    Row,
    container,
    data,
    long,
    packed,
    padded,
    single,
)
from uldp_transforms.ldp import Collection

COLLECTIONS = (*KNOWN, *NEW)
NUM_COHORTS = 3

PAYLOADS = {  # of messages_cases, whose comments say the same
    "krr": Payloads(kind="symbol", size=1, symbols=3),
    "urr": Payloads(kind="symbol", size=2, symbols=300),
    "rappor": Payloads(kind="bits", size=2, symbols=10),
    "urap": Payloads(kind="split", size=2, symbols=3, clear=7),
    "ss": Payloads(kind="bits", size=2, symbols=10, ones=3),
    "uss": Payloads(kind="split", size=2, symbols=3, clear=7, ones=2),
    "marginal": Payloads(kind="split", size=2, symbols=3, clear=7, noisy=True),
    "agrr": Payloads(kind="symbol", size=1, symbols=3),
    "aoue": Payloads(kind="bits", size=1, symbols=3),
    "tsp": Payloads(kind="symbol", size=2, symbols=300),
    "up": Payloads(kind="symbol", size=1, symbols=3),
    "listed": Payloads(kind="symbol", size=1, symbols=5),
    "clear": Payloads(kind="split", size=2, symbols=3, clear=7),
    "twice": Payloads(kind="bits", size=2, symbols=10),
    "tagged": Payloads(kind="symbol", size=1, symbols=4),
}

EDGES = [
    sign * (1 << bits) + step
    for bits in (0, 1, 7, 8, 15, 16, 31, 32, 40, 62)
    for sign in (1, -1)
    for step in (-1, 0, 1)
]
EDGES += [(1 << 63) - 1, -(1 << 63)]
TIMES = [-2_208_988_800_001, -2_208_988_800_000, -1, 0, 253_370_764_799_999, 253_370_764_800_000, *EDGES]


class Fuzzer:
    """Draws messages and files; equal seeds draw equal ones.

    Args:
        seed: any integer.
    """

    def __init__(self, seed: int):
        self._rng = random.Random(seed)
        self._below: Callable[[int], int] = self._rng.randrange
        self._seen: list[bytes] = [single(of) for of in COLLECTIONS] + [packed(of) for of in COLLECTIONS]
        self._number = 0

    # ------------------------------------------------------------------ messages

    def messages(self, count: int) -> list[bytes]:
        """So many messages, good and bad mixed; some occur several times, here and in earlier calls."""
        return [self._message() for _ in range(count)]

    def _message(self) -> bytes:
        rng = self._rng
        kind = rng.random()
        if kind < 0.15:
            message = self._good()
        elif kind < 0.55:
            message = self._by_grammar()
        elif kind < 0.95:
            message = self._damaged(rng.choice(self._seen) if rng.random() < 0.5 else self._good())
        elif kind < 0.9997:
            message = rng.randbytes(self._below(90))
            message = rng.choice((b"", b"\x02", b"\x04", REPORT_HEADER, BATCH_HEADER)) + message
        else:
            message = self.large()
        if len(message) < 2_000:
            self._seen[self._below(len(self._seen))] = message  # spoiled messages are spoiled again
            if self._below(50) == 0:
                self._seen[self._below(len(self._seen))] = self._good()
        return message

    def _good(self) -> bytes:
        of = self._rng.choice(COLLECTIONS)
        if self._rng.random() < 0.5:
            cohort, moment, report_id, payload = self._row(of, 0)
            fields = {
                "cohort": long(cohort),
                "event_time": long(moment),
                "report_id": report_id,
                "payload": data(payload),
            }
            return self._rng.choice((b"", REPORT_HEADER)) + single(of, **fields)
        return self._rng.choice((b"", BATCH_HEADER)) + packed(of, self._rows(of, 0))

    def _rows(self, of: Collection, faults: float) -> list[Row]:
        number = 1 + self._below(self._rng.choice((2, 2, 4, 4, 20, 300 if self._below(20) == 0 else 4)))
        rows = [self._row(of, faults) for _ in range(number)]
        without_ids = self._below(8) == 0
        return [(cohort, moment, b"" if without_ids else i, payload) for cohort, moment, i, payload in rows]

    def _row(self, of: Collection, faults: float) -> Row:
        """A report that has a fault of its own with this probability in each field."""
        rng = self._rng
        self._number += 1
        wrong = [rng.random() < faults for _ in range(3)]
        payload = GOOD[of.id]
        size = len(payload)
        if wrong[2]:
            flipped = int.from_bytes(payload, "little") ^ 1 << self._below(8 * size)
            payload = rng.choice((rng.randbytes(size), bytes(size), b"\xff" * size, flipped.to_bytes(size, "little")))
        moment = NOON + rng.choice((0, 1, -1, 3_600_000, 7_200_000, -86_400_000)) + self._below(1000)
        return (
            rng.choice((3, 4, 255, 256, 65_535)) if wrong[0] else self._below(NUM_COHORTS),
            rng.choice(TIMES) if wrong[1] else moment,
            self._number.to_bytes(16, "big") if rng.random() < 0.97 else bytes(16),
            payload,
        )

    def _by_grammar(self) -> bytes:
        """Whole fields of a good message, replaced by what the encoder would never write there."""
        rng = self._rng
        of = rng.choice((*COLLECTIONS, STRANGER))
        if rng.random() < 0.6:
            cohort, moment, report_id, payload = self._row(of, 0.3)
            fields = {
                "cohort": long(cohort),
                "event_time": long(moment),
                "report_id": report_id,
                "payload": data(payload),
            }
            for _ in range(self._below(3)):
                name = rng.choice(("form", "collection", "report_id", "event_time", "cohort", "payload"))
                fields[name] = self._field(name, len(payload))
            return rng.choice((b"", b"", REPORT_HEADER, BATCH_HEADER)) + single(of, **fields)
        rows = self._rows(of, 0.2)
        columns = {}
        for _ in range(self._below(3)):
            name = rng.choice(("form", "collection", "cohorts", "event_times", "report_ids", "payloads"))
            columns[name] = self._field(name, len(rows) * rng.choice((2, 8, 16, 1)))
        return rng.choice((b"", b"", REPORT_HEADER, BATCH_HEADER)) + packed(
            of, rows if self._below(30) else [], **columns
        )

    def _field(self, name: str, size: int) -> bytes:
        rng = self._rng
        if name in ("form", "collection", "report_id"):
            return rng.choice(
                (b"", rng.randbytes(self._below(20)), long(rng.choice(EDGES)), bytes(8), b"\x02", b"\x04")
            )
        number = long(rng.choice(TIMES))
        if name in ("event_time", "cohort"):
            return rng.choice((number, number, padded(number), b"\x80" * self._below(13), b"\xff" * 9 + b"\x02", b""))
        size = max(0, size + rng.choice((-8, -2, -1, 0, 0, 0, 1, 2, 8)))
        content = rng.choice((bytes(size), rng.randbytes(size)))
        return rng.choice((data(content), data(content), padded(long(size)) + content, number + content, content))

    def _damaged(self, message: bytes) -> bytes:
        """Bytes changed without an idea of what they mean, once or several times."""
        rng = self._rng
        for _ in range(1 + self._below(3) // 2):
            at = self._below(len(message) + 1)
            other = rng.choice(self._seen)
            where = self._below(len(other) + 1)
            part = message[at : at + 1]
            message = rng.choice(
                (
                    lambda at=at, part=part, m=message: (
                        m[:at] + bytes(b ^ 1 << self._below(8) for b in part) + m[at + 1 :]
                    ),
                    lambda at=at, m=message: m[:at] + bytes([self._below(256)]) + m[at + 1 :],
                    lambda at=at, m=message: m[:at],
                    lambda at=at, m=message, o=other, w=where: m[:at] + o[w:],
                    lambda at=at, m=message, o=other, w=where: m[:at] + o[w : w + 9] + m[at:],
                    lambda at=at, m=message: m[:at] + m[at + 1 + self._below(9) :],
                    lambda m=message: m + rng.randbytes(1 + self._below(3)),
                    lambda at=at, part=part, m=message: m[:at] + padded(part or b"\0") + m[at + 1 :],
                    lambda at=at, m=message: m[:at] + long(rng.choice(EDGES)) + m[at + 1 :],
                )
            )()
        return message

    def large(self) -> bytes:
        """Messages of many bytes, around the cap and below, which mean little, much or something false."""
        rng = self._rng
        of = rng.choice(KNOWN)
        size = rng.choice((70_000, 70_000, 1_000_000, 1_000_000, 10_000_000 - 60, 9_999_999, 10_000_000, 10_000_001))
        number = rng.choice((1_000, 60_000))
        return rng.choice(
            (
                lambda: single(of, payload=data(bytes(size))),
                lambda: packed(of, payloads=data(bytes(size))),
                lambda: b"\x04" * size,
                lambda: b"\x02" + b"\x80" * (size - 1),
                lambda: b"\x04" + bytes(8) + b"\xff" * (size - 9),
                lambda: packed(
                    of,
                    cohorts=data(bytes(2 * number)),
                    event_times=data(struct.pack("<q", NOON) * number),
                    report_ids=data(b""),
                    payloads=data(GOOD[of.id] * number),
                ),
                lambda: packed(  # every report refused for a time of its own
                    of,
                    cohorts=data(bytes(2 * number)),
                    event_times=data(struct.pack(f"<{number}q", *(NOON - i * 86_400_000 for i in range(number)))),
                    report_ids=data(bytes(16 * number)),
                    payloads=data(GOOD[of.id] * number),
                ),
            )
        )()

    # ------------------------------------------------------------------ files

    def file(self) -> bytes:
        """A container file with a fault in its header, its blocks or its bytes, or with none."""
        rng = self._rng
        codec = rng.choice((b"null", b"deflate", None))
        form = rng.choice((2, 4))
        marker = rng.choice((b"sixteen  bytes !", rng.randbytes(16), bytes(16)))
        blocks = [self._block(form, codec == b"deflate") for _ in range(self._below(5))]
        schema: Any = REPORT if form == 2 else BATCH
        if self._below(10) == 0:
            schema = self._schema(schema)
        if self._below(20) == 0:
            codec = rng.choice((b"brotli", b"DEFLATE", b"", b"deflat", rng.randbytes(4)))
        content = container(
            blocks, schema, codec, marker, **({"more": rng.randbytes(9)} if self._below(3) == 0 else {})
        )
        if self._below(3) == 0:
            start = 0 if self._below(4) == 0 else len(container([], schema, codec, marker)) - 20
            head, tail = content[:start], content[start:]
            content = head + self._damaged(tail)
        if self._below(10) == 0:
            at = self._below(len(content) + 1)
            content = content[:at] + rng.choice((marker, rng.randbytes(self._below(60)), b"")) + content[at:]
        return content

    def _block(self, form: int, deflated: bool) -> tuple[int, bytes]:
        rng = self._rng
        plain = [message for message in (self._good() for _ in range(self._below(8))) if message[0] == form]
        count = len(plain)
        if plain and self._below(4) == 0:
            spoiled = self._below(len(plain))
            plain[spoiled] = self._by_grammar() if self._below(2) else self._damaged(plain[spoiled])
        body = b"".join(plain)
        if self._below(12) == 0:
            count = rng.choice((count + 1, count - 1, 0, -1, *EDGES))
        if not deflated:
            return count, body
        level = rng.choice((1, 9))
        if self._below(500) == 0:
            body = bytes([rng.choice((0, 2, 255))]) * ((16 << 20) + rng.choice((-1, 0, 1, 1 << 24)))
        deflater = zlib.compressobj(level, zlib.DEFLATED, -15)
        packed_body = deflater.compress(body) + deflater.flush()
        if self._below(10) == 0:
            packed_body = self._damaged(packed_body)
        return count, packed_body

    def _schema(self, schema: dict[str, Any]) -> bytes:
        """The text of a schema with one token changed."""
        rng = self._rng
        text = json.dumps(schema, indent=rng.choice((None, 1)))
        letters = text.encode()
        at = self._below(len(letters))
        tokens = (
            '"int"',
            '"long"',
            '"bytes"',
            '"fixed"',
            "null",
            "[]",
            "{}",
            "16",
            "8",
            "1e999",
            '"uldp.Report"',
            "NaN",
        )
        return rng.choice(
            (
                text.replace(rng.choice(tokens), rng.choice(tokens)).encode(),
                letters[:at] + bytes([letters[at] ^ 1 << self._below(8)]) + letters[at + 1 :],
                letters[:at],
                letters,
                b"[" * self._below(2_000) + letters,
                json.dumps(schema | {"doc": "other"}).encode(),
            )
        )


def chunks(total: int, size: int) -> Iterator[int]:
    """``total`` in parts of at most ``size``."""
    for done in range(0, total, size):
        yield min(size, total - done)
