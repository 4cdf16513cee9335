"""Exact client randomness: integer thresholds out of 2**64 and a secure source of words.

A client compares 64-bit words with integers and computes nothing in floating point, so its probabilities are exact
rational numbers, and the collector inverts the same numbers. Rounding is always in favour of privacy (for a single coin
with probability ``keep / 2**64``, downwards).
"""

from __future__ import annotations

import decimal
import functools
import os
from fractions import Fraction
from typing import Protocol

import numpy as np

WORD = 1 << 64
"""Number of possible values of one random word."""

BIT_PLANES = 32
"""Precision, in bits, of the noise rate of unary reports (any rate is private, because the keep probability follows
from it).
"""

_CHUNK_WORDS = 32_768  # 256 KiB of words, which fit into the cache


class WordSource(Protocol):
    """Source of a client's random words."""

    def words(self, *shape: int) -> np.ndarray:
        """Uniform, independent uint64 words of the given shape."""


class SystemSource:
    """The operating system's secure source; the only one for real reports."""

    name = "system"

    def words(self, *shape: int) -> np.ndarray:
        size = int(np.prod(shape, dtype=np.int64))
        return np.frombuffer(os.urandom(8 * size), dtype=np.uint64).reshape(shape)


class SeededSource:
    """Random words from a numpy generator: reproducible, and therefore for simulation only, as its reports state."""

    name = "seeded"

    def __init__(self, generator: np.random.Generator):
        self._generator = generator

    def words(self, *shape: int) -> np.ndarray:
        return self._generator.integers(0, WORD, size=shape, dtype=np.uint64)


def word_source(rng: np.random.Generator | WordSource | None) -> WordSource:
    """The word source for an ``rng``; None means the operating system's.

    Raises:
        TypeError: if ``rng`` is neither None, a numpy Generator nor a word source.
    """
    if rng is None:
        return SystemSource()
    if isinstance(rng, np.random.Generator):
        return SeededSource(rng)
    if hasattr(rng, "words"):
        return rng
    raise TypeError(f"rng must be None, a numpy.random.Generator or a word source, got {type(rng).__name__}")


def is_reproducible(source: WordSource) -> bool:
    """Whether words of this source can be reproduced: true for every source except the operating system's."""
    return type(source) is not SystemSource


@functools.lru_cache(maxsize=1024)
def exp_bounds(epsilon: float) -> tuple[Fraction, Fraction]:
    """Rational bounds ``(low, high)`` with ``low < e**epsilon < high``, which agree to 70 significant digits.

    The float is used with its exact binary value, so that two programs that read the same number agree.
    """
    context = decimal.Context(prec=80)
    value = context.exp(decimal.Decimal(epsilon))
    slack = Fraction(1, 10**70)
    return Fraction(value) * (1 - slack), Fraction(value) * (1 + slack)


def floor_weight(probability: Fraction) -> int:
    """Largest threshold K such that ``word < K`` has at most this probability."""
    return (probability.numerator * WORD) // probability.denominator


def below(words: np.ndarray, threshold: int) -> np.ndarray:
    """``words < threshold`` as bool, for thresholds from 0 to 2**64 inclusive."""
    if threshold >= WORD:
        return np.ones(words.shape, dtype=bool)
    is_below: np.ndarray = words < np.uint64(threshold)
    return is_below


def uniform_integers(words: np.ndarray, bound: int) -> np.ndarray:
    """Map words to int64 in ``[0, bound)`` by multiply-and-shift; ``bound`` up to 2**32.

    Each integer gets floor or ceiling of ``2**64 / bound`` words: a relative deviation below ``bound / 2**64``. It is
    used for buckets and cohorts, which do not affect privacy; mechanisms use exact thresholds.
    """
    high, low = words >> np.uint64(32), words & np.uint64(0xFFFFFFFF)
    factor = np.uint64(bound)
    integers: np.ndarray = ((high * factor + ((low * factor) >> np.uint64(32))) >> np.uint64(32)).astype(np.int64)
    return integers


def small_integers(words: np.ndarray, bound: int) -> np.ndarray:
    """``uniform_integers`` for a ``bound`` up to 2**16, as uint16, from the upper 16 bits of most words.

    The lower bits change the product by less than ``bound``; where they could carry, the full word is used.

    Args:
        words: uint64, contiguous.
        bound: in [1, 2**16].
    """
    upper = (words >> np.uint64(48)).astype(np.uint32)
    upper *= np.uint32(bound)
    integers: np.ndarray = (upper >> np.uint32(16)).astype(np.uint16)
    unsure = np.nonzero((upper & np.uint32(0xFFFF)) > np.uint32((1 << 16) - bound))
    integers[unsure] = uniform_integers(words[unsure], bound)
    return integers


def bernoulli_planes(source: WordSource, num_rows: int, num_bits: int, numerator: int) -> np.ndarray:
    """Independent bits, each 1 with probability exactly ``numerator / 2**BIT_PLANES``, packed.

    Each bit compares a random binary fraction with the rate, for 64 bits at a time: from the least significant digit of
    the rate to the most significant, ``result = word | result`` where the digit is 1 and ``word & result`` where it is
    0. Every bit has its own random digits; the number of words drawn depends on the sizes alone.

    Args:
        source: source of random words.
        num_rows: n, number of reports.
        num_bits: bits per report.
        numerator: the rate times 2**BIT_PLANES, in [1, 2**BIT_PLANES).

    Returns:
        (n, ceil(num_bits / 8)) uint8; bit j of a row is bit ``j % 8`` (least significant first) of byte ``j // 8``;
        spare bits are 0.
    """
    num_words, num_bytes = -(-num_bits // 64), -(-num_bits // 8)
    out = np.empty((num_rows, num_bytes), dtype=np.uint8)
    rows_at_once = max(1, _CHUNK_WORDS // num_words)
    digits = [(numerator >> plane) & 1 for plane in range(BIT_PLANES)]
    for start in range(0, num_rows, rows_at_once):
        rows = min(rows_at_once, num_rows - start)
        bits = np.zeros((rows, num_words), dtype=np.uint64)
        for digit in digits:
            combine = np.bitwise_or if digit else np.bitwise_and
            combine(bits, source.words(rows, num_words), out=bits)
        out[start : start + rows] = bits.astype("<u8", copy=False).view(np.uint8)[:, :num_bytes]
    if num_bits % 8:
        out[:, -1] &= np.uint8((1 << (num_bits % 8)) - 1)
    return out
