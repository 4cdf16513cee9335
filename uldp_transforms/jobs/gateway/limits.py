"""How much may wait in the gateway at once; what comes beyond is told to come again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from uldp_transforms.jobs.gateway.meters import Meters
from uldp_transforms.jobs.gateway.refusals import BAD_REQUEST, RETRY_AFTER, TOO_LARGE, TOO_MANY, Refused
from uldp_transforms.ldp.reasons import Reason

_DIGITS = 20
"""Of a length, behind zeros: more than any body has."""


class Limits:
    """Room for bodies.

    Args:
        body: bytes of one.
        waiting: requests that have no answer yet.
        waiting_bytes: bytes of their bodies.
        meters: show what is taken.
    """

    def __init__(self, body: int, waiting: int, waiting_bytes: int, meters: Meters):
        self._body = body
        self._waiting = waiting
        self._waiting_bytes = waiting_bytes
        self._meters = meters
        self._requests = 0
        self._bytes = 0

    @contextlib.contextmanager
    def room_for(self, length: str | None) -> Iterator[int]:
        """Room for a body of the length that its header says, or of any; yields how long it may be.

        Raises:
            Refused: it is too long, or too much waits already.
        """
        size = self._size(length)
        if self._requests >= self._waiting or self._bytes + size > self._waiting_bytes:
            raise Refused(TOO_MANY, "busy", RETRY_AFTER)
        self._take(1, size)
        try:
            yield size
        finally:
            self._take(-1, -size)

    def _size(self, length: str | None) -> int:
        if length is None:
            return self._body
        if not (length.isascii() and length.isdigit()):
            raise Refused(BAD_REQUEST, "content_length")
        size = int(length.lstrip("0")[:_DIGITS] or "0")
        if size > self._body:
            raise Refused(TOO_LARGE, Reason.TOO_LARGE.code)
        return size

    def _take(self, requests: int, size: int) -> None:
        self._requests += requests
        self._bytes += size
        self._meters.waiting.set(self._requests)
        self._meters.waiting_bytes.set(self._bytes)
