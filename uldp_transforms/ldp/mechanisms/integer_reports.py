"""Base class of mechanisms whose report is one integer below ``num_outputs``.

Payload: the integer, little-endian, in 1, 2 or 4 bytes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from uldp_transforms.ldp.mechanisms.mechanism import Mechanism
from uldp_transforms.ldp.reasons import Reason

ONE_SYMBOL = "the symbol, little-endian, in 1 byte (up to 256 symbols), 2 (up to 65,536) or 4"


@dataclasses.dataclass(frozen=True, kw_only=True)
class IntegerReportMechanism(Mechanism):
    """Payload and validity of integers; subclasses define their meaning."""

    @property
    def payload_size(self) -> int:
        return 1 if self.num_outputs <= 1 << 8 else 2 if self.num_outputs <= 1 << 16 else 4

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger]:
        """Dtype of the integers in payloads."""
        return np.dtype(f"<u{self.payload_size}")

    def integers(self, payloads: np.ndarray) -> np.ndarray:
        """The integers (n,), of ``dtype``, in payloads (n, W) uint8."""
        return np.ascontiguousarray(payloads).view(self.dtype)[:, 0]

    def as_payloads(self, integers: np.ndarray) -> np.ndarray:
        """Payloads (n, W) uint8 of integers (n,)."""
        return integers.astype(self.dtype, copy=False).view(np.uint8).reshape(len(integers), self.payload_size)

    def as_bytes(self, integer: int) -> bytes:
        """The payload of one integer."""
        return integer.to_bytes(self.payload_size, "little")

    @property
    def client_payload(self) -> dict[str, Any]:
        return {"layout": "integer", "bytes": self.payload_size, "num_outputs": self.num_outputs}

    def violations(self, payloads: np.ndarray) -> Iterator[tuple[Reason, np.ndarray]]:
        yield Reason.VALUE_DOMAIN, self.integers(payloads) >= self.num_outputs

    @property
    def tail(self) -> tuple[int, int]:
        return (0, 0) if self._has_own_violations else (self.payload_size, self.num_outputs)

    def is_valid(self, payloads: np.ndarray) -> np.ndarray:
        if self._has_own_violations:
            return super().is_valid(payloads)
        valid: np.ndarray = self.integers(payloads) < self.num_outputs
        return valid

    @property
    def _has_own_violations(self) -> bool:
        return type(self).violations is not IntegerReportMechanism.violations

    def count_places(self, payloads: np.ndarray, groups: np.ndarray, num_groups: int) -> tuple[np.ndarray, np.ndarray]:
        if not self.one_place:
            return super().count_places(payloads, groups, num_groups)
        places = groups.astype(np.int64) * self.num_cells + self.integers(payloads)
        return np.unique(places, return_counts=True)
