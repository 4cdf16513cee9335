"""Requests as clients, proxies and attackers frame them, and how each is answered."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from tests.support.messages_cases import single

GOOD = single()
H2C = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQBAAAAAAUAAEAA\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def head(*lines: bytes, length: int | None = len(GOOD), method: bytes = b"POST", version: bytes = b"1.1") -> bytes:
    """The head of a request to /reports."""
    sized = [] if length is None else [b"Content-Length: %d\r\n" % length]
    return b"".join([method, b" /reports HTTP/", version, b"\r\nHost: x\r\n", *lines, *sized, b"\r\n"])


def in_chunks(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


INNER = head() + GOOD
"""A body that is itself a request."""


WHOLE = head() + GOOD


class Case(NamedTuple):
    """Packets of one connection; the statuses of all answers, and how many reports are accepted."""

    packets: Sequence[bytes]
    statuses: list[int]
    accepted: int


CASES = {
    "one packet": Case([WHOLE], [202], 1),
    "a packet per byte": Case([bytes([byte]) for byte in WHOLE], [202], 1),
    "body in its own packet": Case([head(), GOOD], [202], 1),
    "body is a request": Case([head(length=len(INNER)), INNER], [400], 0),
    "offer of HTTP/2": Case([head(H2C) + GOOD], [202], 1),
    "offer, body in its own packet": Case([head(H2C), GOOD], [202], 1),
    "offer, a packet per byte": Case([bytes([byte]) for byte in head(H2C) + GOOD], [202], 1),
    "offer, body is a request": Case([head(H2C, length=len(INNER)) + INNER], [400], 0),
    "offer, body is a request in its own packet": Case([head(H2C, length=len(INNER)), INNER], [400], 0),
    "offer, chunked": Case([head(H2C, CHUNKED, length=None) + in_chunks(GOOD)], [202], 1),
    "offer, chunked, body is a request": Case([head(H2C, CHUNKED, length=None), in_chunks(INNER)], [400], 0),
    "offer, no body, then a request": Case([head(H2C, length=0) + WHOLE], [400, 202], 1),
    "offer after a request": Case([WHOLE + head(H2C) + GOOD + WHOLE], [202, 202, 202], 3),
    "offers in a row": Case([(head(H2C) + GOOD) * 5], [202] * 5, 5),
    "offer in two lines": Case([head(b"Connection: keep-alive\r\n", H2C) + GOOD + WHOLE], [202, 202], 2),
    "offer and close": Case([head(H2C.replace(b"Upgrade,", b"close, upgrade,")) + GOOD + WHOLE], [202], 1),
    "offer of WebSocket": Case([head(b"Connection: Upgrade\r\nUpgrade: websocket\r\n") + GOOD], [202], 1),
    "offer, two lengths": Case([head(H2C, b"Content-Length: 5\r\n") + GOOD], [400], 0),
    "offer and Expect": Case([head(H2C, b"Expect: 100-continue\r\n"), GOOD], [100, 202], 1),
    "HTTP/2 at once": Case([b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + WHOLE], [400], 0),
    "CONNECT": Case([b"CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n" + WHOLE], [400], 0),
    "two lengths": Case([head(b"Content-Length: 5\r\n") + GOOD], [400], 0),
    "the same length twice": Case([head(b"Content-Length: %d\r\n" % len(GOOD)) + GOOD], [400], 0),
    "a list of lengths": Case([head(b"Content-Length: 5, 5\r\n", length=None) + GOOD], [400], 0),
    "length with a sign": Case([head(b"Content-Length: +5\r\n", length=None) + GOOD], [400], 0),
    "length and chunked": Case([head(CHUNKED) + in_chunks(GOOD)], [400], 0),
    "chunked and length": Case([head(b"Content-Length: 5\r\n", CHUNKED, length=None) + in_chunks(GOOD)], [400], 0),
    "chunked": Case([head(CHUNKED, length=None) + in_chunks(GOOD[:5], GOOD[5:])], [202], 1),
    "chunked, a packet per byte": Case(
        [bytes([byte]) for byte in head(CHUNKED, length=None) + in_chunks(GOOD[:5], GOOD[5:])], [202], 1
    ),
    "chunked, then a request": Case([head(CHUNKED, length=None) + in_chunks(GOOD) + WHOLE], [202, 202], 2),
    "chunked twice": Case([head(CHUNKED, CHUNKED, length=None) + in_chunks(GOOD)], [400], 0),
    "chunked is not last": Case([head(b"Transfer-Encoding: chunked, gzip\r\n", length=None) + GOOD], [400], 0),
    "another encoding": Case([head(b"Transfer-Encoding: xchunked\r\n", length=None) + in_chunks(GOOD)], [400], 0),
    "space before the colon": Case([head(b"Transfer-Encoding : chunked\r\n") + GOOD], [400], 0),
    "a chunk size with a sign": Case([head(CHUNKED, length=None) + b"-1\r\n" + GOOD], [400], 0),
    "chunk size of 17 digits": Case([head(CHUNKED, length=None) + b"10000000000000000\r\n" + GOOD], [400], 0),
    "chunk longer than its size": Case([head(CHUNKED, length=None) + b"3\r\n" + GOOD + b"\r\n0\r\n\r\n"], [400], 0),
    "folded header": Case([head(b"X-A: b\r\n c\r\n") + GOOD], [400], 0),
    "folded length": Case([head(b"Content-Length:\r\n 5\r\n", length=None) + GOOD], [400], 0),
    "bare line feeds": Case([head().replace(b"\r\n", b"\n") + GOOD], [400], 0),
    "NUL in a header": Case([head(b"X-A: \0\r\n") + GOOD], [400], 0),
    "no colon": Case([head(b"X-A\r\n") + GOOD], [400], 0),
    "pipelining": Case([WHOLE * 10], [202] * 10, 10),
    "pipelining, cut inside a head": Case([WHOLE + WHOLE[:30], WHOLE[30:]], [202, 202], 2),
    "a fault behind a request": Case([WHOLE + b"\0\r\n\r\n"], [202], 1),
    "a fault behind two requests": Case([WHOLE * 2 + b"\0\r\n\r\n" + WHOLE], [202], 1),
    "Expect": Case([head(b"Expect: 100-continue\r\n"), GOOD], [100, 202], 1),
    "HTTP/1.0": Case([head(version=b"1.0") + GOOD + WHOLE], [202], 1),
    "close": Case([head(b"Connection: close\r\n") + GOOD + WHOLE], [202], 1),
    "no body": Case([head(length=0)], [400], 0),
    "body too short": Case([head(length=len(GOOD) + 1) + GOOD], [], 0),
    "header of 100 kB": Case([head(b"X-A: " + b"a" * 100_000 + b"\r\n", b"B: c\r\n") + GOOD], [202], 1),
    "101 headers": Case([head(b"A: b\r\n" * 101) + GOOD], [400], 0),
    "no HTTP": Case([b"\x16\x03\x01\x02\x00\x01\x00"], [400], 0),
    "HTTP/3.7": Case([head(version=b"3.7") + GOOD], [400], 0),
}


def statuses(came: bytes) -> list[int]:
    """Statuses of the answers that are complete."""
    found = []
    while match := re.match(rb"HTTP/1\.1 (\d{3}) .*?\r\n\r\n", came, re.S):
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", match[0])
        end = match.end() + (int(length[1]) if length else 0)
        if len(came) < end:
            break
        found.append(int(match[1]))
        came = came[end:]
    return found
