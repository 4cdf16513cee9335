"""Base class of mechanisms whose report is one bit per sensitive symbol, or a non-sensitive symbol in clear.

Payload: v bits, bit j in byte j // 8 at position j % 8 counted from the least significant; then, if there are
non-sensitive symbols, a little-endian field: 0 in a protected report, z - v + 1 in a clear report of z, whose bits are
then all 0 (or noise, in mechanisms whose ``clear_rate`` is not 0). A set bit supports its symbol.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from uldp_transforms.ldp.counts.bit_totals import count_bits
from uldp_transforms.ldp.mechanisms.set_report import SetReportMechanism
from uldp_transforms.ldp.reasons import Reason

ALL_BITS = "one bit per symbol: symbol j is bit j % 8, least significant first, of byte j // 8; spare bits are 0"
BITS_OR_CLEAR = (
    "bits as for `rappor`, for the v sensitive symbols, 0 to v - 1; then, if there are other symbols, a number (below)"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class BitReportMechanism(SetReportMechanism):
    """Payload, validity and counting of bit reports; subclasses define how the bits are drawn."""

    @property
    def bit_bytes(self) -> int:
        """Number of bytes of the v bits."""
        return -(-self.num_sensitive // 8)

    @property
    def clear_bytes(self) -> int:
        """Number of bytes of the field for a clear symbol; 0 if all symbols are sensitive."""
        return -(-(self.num_symbols - self.num_sensitive).bit_length() // 8)

    @property
    def payload_size(self) -> int:
        return self.bit_bytes + self.clear_bytes

    @property
    def num_outputs(self) -> int:
        clear = self.num_symbols - self.num_sensitive
        return self.num_protected_outputs * (1 + clear if self.clear_rate else 1) + (0 if self.clear_rate else clear)

    @property
    @abc.abstractmethod
    def num_protected_outputs(self) -> int:
        """Number of different bit sets that noise can produce."""

    @property
    def client_payload(self) -> dict[str, Any]:
        return {
            "layout": "bits",
            "bytes": self.payload_size,
            "bit_bytes": self.bit_bytes,
            "clear_bytes": self.clear_bytes,
        }

    def protected(self, bits: np.ndarray) -> np.ndarray:
        """Payloads (n, W) of protected reports with these bits, (n, ceil(v / 8)) uint8."""
        if not self.clear_bytes:
            return bits
        out = np.zeros((len(bits), self.payload_size), dtype=np.uint8)
        out[:, : self.bit_bytes] = bits
        return out

    def reveal(self, payloads: np.ndarray, rows: np.ndarray, symbols: np.ndarray) -> None:
        if not self.clear_rate:
            payloads[rows, : self.bit_bytes] = 0
        field = (symbols - self.num_sensitive + 1).astype("<u4").view(np.uint8).reshape(-1, 4)
        payloads[rows, self.bit_bytes :] = field[:, : self.clear_bytes]

    def _clear_index(self, payloads: np.ndarray) -> np.ndarray:
        """(n,) int64: 0 for protected reports, z - v + 1 for clear ones."""
        weights = 256 ** np.arange(self.clear_bytes, dtype=np.int64)
        return payloads[:, self.bit_bytes :] @ weights

    def violations(self, payloads: np.ndarray) -> Iterator[tuple[Reason, np.ndarray]]:
        if self.num_sensitive % 8:
            spare = payloads[:, self.bit_bytes - 1] >> np.uint8(self.num_sensitive % 8)
            yield Reason.PADDING_BITS, spare != 0
        if self.clear_bytes:
            clear = self._clear_index(payloads)
            yield Reason.VALUE_DOMAIN, clear > self.num_symbols - self.num_sensitive
            if not self.clear_rate:
                yield Reason.IMPOSSIBLE_REPORT, (clear > 0) & payloads[:, : self.bit_bytes].any(axis=1)

    @property
    def tail(self) -> tuple[int, int]:
        own = type(self).violations is not BitReportMechanism.violations
        return (0, 0) if own or self.clear_bytes else (1, 1 << (self.num_sensitive % 8 or 8))

    def count(self, payloads: np.ndarray, groups: np.ndarray, num_groups: int) -> np.ndarray:
        cells = np.zeros((num_groups, self.num_symbols), dtype=np.int64)
        bits = payloads[:, : self.bit_bytes]
        cells[:, : self.num_sensitive] = count_bits(bits, self.num_sensitive, groups, num_groups)
        if self.clear_bytes:
            clear = self._clear_index(payloads)
            rows = np.flatnonzero(clear)
            np.add.at(cells, (groups[rows].astype(np.int64), self.num_sensitive - 1 + clear[rows]), 1)
        return cells

    def supports(self, payloads: np.ndarray) -> np.ndarray:
        bits = np.unpackbits(payloads[:, : self.bit_bytes], axis=1, count=self.num_sensitive, bitorder="little")
        clear = self._clear_index(payloads)[:, np.newaxis]
        return np.concatenate([bits == 1, clear == 1 + np.arange(self.num_symbols - self.num_sensitive)], axis=1)

    def bits_payload(self, support: frozenset[int]) -> bytes:
        """The protected payload that supports exactly these symbols."""
        word = sum(1 << symbol for symbol in support)
        return word.to_bytes(self.bit_bytes, "little") + bytes(self.clear_bytes)

    def clear_law(self, symbol: int) -> Iterator[tuple[bytes, Fraction]]:
        field = (symbol - self.num_sensitive + 1).to_bytes(self.clear_bytes, "little")
        if self.clear_rate:
            for payload, share, _ in self.noise_law():
                yield payload[: self.bit_bytes] + field, share
        else:
            yield bytes(self.bit_bytes) + field, Fraction(1)
