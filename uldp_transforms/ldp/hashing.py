"""The public hash family of open alphabets: SHAKE-128, one 64-bit word per (cohort, hash index).

One call of the extendable-output function gives the words of all cohorts of a value, so a table for thousands of
candidates and cohorts costs one call per candidate. ``docs/hashing.md`` specifies it byte for byte, with test vectors.
Privacy does not depend on the hash function, which is fixed and public; its quality affects utility only.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence

import numpy as np

from uldp_transforms.ldp.errors import SpecError

_DOMAIN = b"uldp-hash-1\x00"


def canonical(value: str) -> str:
    """Convert a value to the form in which values are compared and hashed: Unicode NFC.

    Raises:
        TypeError: if the value is not text.
        SpecError: if it has no UTF-8 form. The message does not show the value, which may be sensitive.
    """
    if not isinstance(value, str):
        raise TypeError(f"values must be text (str), got {type(value).__name__}")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise SpecError("values must be Unicode text, got a text with a surrogate, which UTF-8 cannot encode")
    return unicodedata.normalize("NFC", value)


def hash_words(values: Sequence[str], seed: int, num_words: int) -> np.ndarray:
    """Words 0..num_words-1 of each value under a seed.

    Args:
        values: canonical values.
        seed: in [0, 2**64).
        num_words: words per value.

    Returns:
        (len(values), num_words) uint64.
    """
    prefix = _DOMAIN + seed.to_bytes(8, "little")
    size = 8 * num_words
    out = np.empty((len(values), num_words), dtype="<u8")
    for row, value in enumerate(values):
        out[row] = np.frombuffer(hashlib.shake_128(prefix + value.encode("utf-8")).digest(size), dtype="<u8")
    return out.astype(np.uint64, copy=False)
