"""Messages that tokens send, and the places where they are written."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import NamedTuple

SLOT = 60
"""Seconds; tokens that expire in the same slot are forgotten together."""


IN_QUEUE = 1
"""End of the place of a message in a queue, which has a file of its own."""


class Place(NamedTuple):
    """Where a message is: among the bytes of a file before an end, or in a queue."""

    file: bytes
    end: int


@dataclasses.dataclass(slots=True)
class Use:
    """A message that a token sends.

    Attributes:
        expires: when the token expires, seconds since 1970.
        name: a hash of the id of the token, 16 bytes.
        message: a hash of the id and the message, 16 bytes.
        place: where the message is, if it is written; None before it is.
    """

    expires: int
    name: bytes
    message: bytes
    place: Place | None = None

    @property
    def slot(self) -> int:
        """Number of the minute in which the token expires; its name is unique in it."""
        return self.expires // SLOT


def file_id(name: str) -> bytes:
    """The identity of a file in a place, 8 bytes, from its name."""
    return hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=8, person=b"uldp place").digest()
