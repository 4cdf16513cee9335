"""Reproducible random words: everything that a client derives from its secret instead of storing it.

The words of a purpose are the output of SHAKE256, in pieces of 8 bytes, each little-endian, for the input

    "uldp-client-1" and a zero byte, the secret (32 bytes), the fingerprint of the collection (32 bytes),
    the purpose (1 byte), a number (8 bytes, little-endian).

All parts have a fixed length, so no two purposes share an input. Without the secret these words are indistinguishable
from random ones.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np

SECRET_BYTES = 32

_DOMAIN = b"uldp-client-1\0"

COHORT, MEMO, TURN, NAME = range(4)
"""Purposes of keyed words. Their numbers are, in this order: 0, the symbol, the number of windows of a round, the
symbol.
"""


class KeyedSource:
    """A source of words for one purpose; equal arguments always give equal words."""

    name = "keyed"

    def __init__(self, secret: bytes, fingerprint: bytes, purpose: int, number: int = 0):
        self._output = hashlib.shake_256(
            _DOMAIN + secret + fingerprint + purpose.to_bytes(1, "little") + number.to_bytes(8, "little")
        )
        self._drawn = 0

    def words(self, *shape: int) -> np.ndarray:
        end = self._drawn + 8 * math.prod(shape)
        words = np.frombuffer(self._output.digest(end)[self._drawn :], dtype="<u8").astype(np.uint64)
        self._drawn = end
        return words.reshape(shape)

    def integer(self, bound: int) -> int:
        """An integer below the bound, from the next word."""
        return int(self.words(1)[0]) * bound >> 64
