"""Randomized response: the report is one symbol. k-RR protects all symbols, uRR the sensitive ones.

Noise is one uniform sensitive symbol, which supports itself: phi = 1/v, eta = 0.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar

import numpy as np

from uldp_transforms.ldp.mechanisms.base import SetReportMechanism
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.ldp.sampling import WORD, WordSource, below, exp_bounds

_CHUNK = 1 << 15  # reports whose temporaries stay in the cache


@dataclasses.dataclass(frozen=True, kw_only=True)
class UtilityOptimizedRR(SetReportMechanism):
    """uRR: sends its symbol with probability (E-1)/(v+E-1), else a uniform *sensitive* symbol; E = e**epsilon.

    A sensitive symbol x is reported by x with probability E/(v+E-1) and by any other with 1/(v+E-1); a non-sensitive
    symbol is reported only by itself. With v = K it is k-RR, with v = 1 and K = 2 Mangat's randomized response.

    Payload: the symbol, little-endian, in 1, 2 or 4 bytes.

    Source: Murakami and Kawamoto 2019, Definition 4.
    """

    id: ClassVar[str] = "urr"

    @property
    def noise_weight(self) -> int:
        """How many of the 2**64 words send a given noise symbol; rounded up, towards privacy."""
        low, _ = exp_bounds(self.epsilon)
        share = WORD / (self.num_sensitive - 1 + low)
        return -(-share.numerator // share.denominator)

    @property
    def keep_weight(self) -> int:
        """What the noise weights leave over, so that one word decides everything."""
        return WORD - self.num_sensitive * self.noise_weight

    @property
    def noise_rate(self) -> Fraction:
        return Fraction(1, self.num_sensitive)

    @property
    def pair_rate(self) -> Fraction:
        return Fraction(0)

    @property
    def triple_rate(self) -> Fraction:
        return Fraction(0)

    @property
    def payload_size(self) -> int:
        return 1 if self.num_symbols <= 1 << 8 else 2 if self.num_symbols <= 1 << 16 else 4

    @property
    def _dtype(self) -> np.dtype:
        return np.dtype(f"<u{self.payload_size}")

    def perturb(self, symbols: np.ndarray, source: WordSource) -> np.ndarray:
        """One word a report: the first ``keep_weight`` words keep the symbol, equal slices of the rest are noise."""
        out = np.empty(len(symbols), dtype=self._dtype)
        keep, noise_weight = np.uint64(self.keep_weight), np.uint64(self.noise_weight)
        for start in range(0, len(symbols), _CHUNK):
            part = slice(start, start + _CHUNK)
            words = source.words(len(symbols[part]))
            noise = (words - keep) // noise_weight
            out[part] = np.where(below(words, self.keep_weight), symbols[part], noise.astype(np.int64))
        return out.view(np.uint8).reshape(len(symbols), self.payload_size)

    def _symbols(self, payloads: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(payloads).view(self._dtype)[:, 0]

    def violations(self, payloads: np.ndarray) -> Iterator[tuple[Reason, np.ndarray]]:
        yield Reason.VALUE_DOMAIN, self._symbols(payloads) >= self.num_symbols

    def count(self, payloads: np.ndarray, groups: np.ndarray, num_groups: int) -> np.ndarray:
        cells = np.zeros(num_groups * self.num_symbols, dtype=np.int64)
        symbols = self._symbols(payloads)
        for start in range(0, len(symbols), _CHUNK):
            part = slice(start, start + _CHUNK)
            index = groups[part].astype(np.int64) * self.num_symbols
            index += symbols[part]
            np.add.at(cells, index, 1)
        return cells.reshape(num_groups, self.num_symbols)

    def supports(self, payloads: np.ndarray) -> np.ndarray:
        return self._symbols(payloads)[:, np.newaxis] == np.arange(self.num_symbols)

    def log_noise(self, payloads: np.ndarray) -> np.ndarray:
        return np.where(self._symbols(payloads) < self.num_sensitive, -np.log(self.num_sensitive), np.nan)

    def noise_law(self) -> Iterator[tuple[bytes, Fraction, frozenset[int]]]:
        for symbol in range(self.num_sensitive):
            yield self.clear_payload(symbol), Fraction(1, self.num_sensitive), frozenset({symbol})

    def clear_payload(self, symbol: int) -> bytes:
        return symbol.to_bytes(self.payload_size, "little")


@dataclasses.dataclass(frozen=True, kw_only=True)
class KaryRR(UtilityOptimizedRR):
    """k-RR: sends its symbol with probability (E-1)/(K+E-1), else a uniform symbol. With K = 2 it is Warner's.

    Source: Kairouz, Bonawitz and Ramage 2016, section 4.1.
    """

    id: ClassVar[str] = "krr"
    protects_all: ClassVar[bool] = True
