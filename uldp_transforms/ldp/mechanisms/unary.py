"""Unary bits: the report is one bit per sensitive symbol. RAPPOR protects all symbols, uRAP the sensitive ones.

Noise is v independent bits, each 1 with probability psi, which support the symbols whose bit is set: phi = eta = psi,
eta3 = psi**2. Given a supported symbol its own bit is 1 and the others are noise.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar

import numpy as np

from uldp_transforms.ldp.bitcounts import count_bits
from uldp_transforms.ldp.mechanisms.base import SetReportMechanism
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.ldp.sampling import (
    BIT_PLANES,
    WordSource,
    below,
    bernoulli_planes,
    exp_bounds,
    floor_weight,
)
from uldp_transforms.ldp.specs import is_number, require_number


@dataclasses.dataclass(frozen=True, kw_only=True)
class UtilityOptimizedRappor(SetReportMechanism):
    """uRAP(theta): own bit 1 with probability theta, other sensitive bits 1 with psi; or the symbol in clear.

    psi = theta / ((1 - theta) E + theta), E = e**epsilon; a non-sensitive symbol is revealed with probability
    (E - 1) theta / E, otherwise it sends v bits of pure noise. psi is rounded to 32 bits, and theta and the
    probability of revealing follow from the rounded psi.

    Payload: v bits, bit j in byte j // 8 at position j % 8 counted from the least significant; then, if there are
    non-sensitive symbols, a little-endian field: 0 in a protected report, z - v + 1 in a clear report of z, whose
    bits are then all 0. (The noise bits that Definition 5 keeps in clear reports carry nothing and are not sent.)

    Attributes:
        theta: Pr(own bit 1), in (0, 1); None: e**(epsilon/2) / (1 + e**(epsilon/2)), the symmetric choice.

    Source: Murakami and Kawamoto 2019, Definition 5; Wang et al. 2017 for theta (1/2 is OUE).
    """

    id: ClassVar[str] = "urap"

    theta: float | None = None

    def __post_init__(self) -> None:
        if self.theta is not None:
            require_number(
                f"{type(self).__name__}.theta",
                self.theta,
                "a number in (0, 1)",
                is_number(self.theta) and 0 < self.theta < 1,
            )
            object.__setattr__(self, "theta", float(self.theta))
        super().__post_init__()

    @property
    def noise_numerator(self) -> int:
        """psi * 2**32. Any value is private: the coin is computed from it."""
        if self.theta is None:
            psi = 1 / (1 + exp_bounds(self.epsilon / 2)[0])
        else:
            theta = Fraction(self.theta)
            psi = theta / ((1 - theta) * exp_bounds(self.epsilon)[0] + theta)
        return min(max(round(psi * (1 << BIT_PLANES)), 1), (1 << BIT_PLANES) - 1)

    @property
    def noise_rate(self) -> Fraction:
        return Fraction(self.noise_numerator, 1 << BIT_PLANES)

    @property
    def pair_rate(self) -> Fraction:
        return self.noise_rate

    @property
    def triple_rate(self) -> Fraction:
        return self.noise_rate**2

    @property
    def keep_weight(self) -> int:
        gain = (exp_bounds(self.epsilon)[0] - 1) * self.noise_rate
        return floor_weight(gain / (1 + gain))

    @property
    def _bit_bytes(self) -> int:
        return -(-self.num_sensitive // 8)

    @property
    def _clear_bytes(self) -> int:
        return -(-(self.num_symbols - self.num_sensitive).bit_length() // 8)

    @property
    def payload_size(self) -> int:
        return self._bit_bytes + self._clear_bytes

    def perturb(self, symbols: np.ndarray, source: WordSource) -> np.ndarray:
        n, v = len(symbols), self.num_sensitive
        out = np.zeros((n, self.payload_size), dtype=np.uint8)
        informative = below(source.words(n), self.keep_weight)
        bits = bernoulli_planes(source, n, v, self.noise_numerator)
        own = np.flatnonzero(informative & (symbols < v))
        bits[own, symbols[own] // 8] |= np.uint8(1) << (symbols[own] % 8).astype(np.uint8)
        clear = np.flatnonzero(informative & (symbols >= v))
        bits[clear] = 0
        out[:, : self._bit_bytes] = bits
        field = (symbols[clear] - v + 1).astype("<u4").view(np.uint8).reshape(-1, 4)
        out[clear, self._bit_bytes :] = field[:, : self._clear_bytes]
        return out

    def _clear_index(self, payloads: np.ndarray) -> np.ndarray:
        """(n,) int64: 0 for protected reports, z - v + 1 for clear ones."""
        weights = 256 ** np.arange(self._clear_bytes, dtype=np.int64)
        return payloads[:, self._bit_bytes :] @ weights

    def violations(self, payloads: np.ndarray) -> Iterator[tuple[Reason, np.ndarray]]:
        if self.num_sensitive % 8:
            spare = payloads[:, self._bit_bytes - 1] >> np.uint8(self.num_sensitive % 8)
            yield Reason.PADDING_BITS, spare != 0
        if self._clear_bytes:
            clear = self._clear_index(payloads)
            yield Reason.VALUE_DOMAIN, clear > self.num_symbols - self.num_sensitive
            yield Reason.IMPOSSIBLE_REPORT, (clear > 0) & payloads[:, : self._bit_bytes].any(axis=1)

    def count(self, payloads: np.ndarray, groups: np.ndarray, num_groups: int) -> np.ndarray:
        cells = np.zeros((num_groups, self.num_symbols), dtype=np.int64)
        cells[:, : self.num_sensitive] = count_bits(
            payloads[:, : self._bit_bytes], self.num_sensitive, groups, num_groups
        )
        if self._clear_bytes:
            clear = self._clear_index(payloads)
            rows = np.flatnonzero(clear)
            np.add.at(cells, (groups[rows].astype(np.int64), self.num_sensitive - 1 + clear[rows]), 1)
        return cells

    def supports(self, payloads: np.ndarray) -> np.ndarray:
        bits = np.unpackbits(payloads[:, : self._bit_bytes], axis=1, count=self.num_sensitive, bitorder="little")
        clear = self._clear_index(payloads)[:, np.newaxis]
        return np.concatenate([bits == 1, clear == 1 + np.arange(self.num_symbols - self.num_sensitive)], axis=1)

    def log_noise(self, payloads: np.ndarray) -> np.ndarray:
        psi = float(self.noise_rate)
        supported = self.supports(payloads)
        ones = supported[:, : self.num_sensitive].sum(axis=1)
        log_g = ones * np.log(psi) + (self.num_sensitive - ones) * np.log1p(-psi)
        return np.where(supported[:, self.num_sensitive :].any(axis=1), np.nan, log_g)

    def noise_law(self) -> Iterator[tuple[bytes, Fraction, frozenset[int]]]:
        psi, v = self.noise_rate, self.num_sensitive
        for bits in itertools.product((0, 1), repeat=v):
            support = frozenset(j for j, bit in enumerate(bits) if bit)
            word = sum(1 << j for j in support)
            probability = psi ** len(support) * (1 - psi) ** (v - len(support))
            yield word.to_bytes(self._bit_bytes, "little") + bytes(self._clear_bytes), probability, support

    def clear_payload(self, symbol: int) -> bytes:
        return bytes(self._bit_bytes) + (symbol - self.num_sensitive + 1).to_bytes(self._clear_bytes, "little")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rappor(UtilityOptimizedRappor):
    """Generalised RAPPOR(theta): one bit per symbol; symmetric by default, theta = 1/2 is OUE.

    Source: Kairouz, Bonawitz and Ramage 2016, section 4.2 (k-RAPPOR); Wang et al. 2017 (theta, OUE).
    """

    id: ClassVar[str] = "rappor"
    protects_all: ClassVar[bool] = True
