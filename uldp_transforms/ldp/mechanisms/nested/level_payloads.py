"""Payloads of reports with levels: the report of the level's own mechanism, and which level it is.

Payload of integer reports: the symbol. Payload of bit reports: bits of the level's values, in as many bytes as the
largest level needs; then a number, little-endian: the level, counted from 0, or, for the clear report of a symbol z,
z - v plus the number of levels.

Notation: n reports, L levels, K symbols, v of them protected, W payload bytes.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from uldp_transforms.ldp.mechanisms.bit_reports import BitReportMechanism
from uldp_transforms.ldp.mechanisms.integer_reports import IntegerReportMechanism
from uldp_transforms.ldp.mechanisms.set_report import SetReportMechanism
from uldp_transforms.ldp.reasons import Reason

LEVEL_PAYLOAD = (
    "of `urr`: the symbol, as for `urr`. Of `uss` and `urap`: bits as for `rappor`, for the values of one level, in as "
    "many bytes as the largest level needs; then the level, or a symbol in clear (below)"
)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class LevelPayloads(abc.ABC):
    """Between the payloads of levels and those of each level's own mechanism.

    Attributes:
        members: the mechanism of each level, L of them; its symbols are the values of its level, then all later ones.
        symbols: for each level the symbols of its values, in the order of the member's symbols.
        num_symbols: K.
    """

    members: Sequence[SetReportMechanism]
    symbols: Sequence[Sequence[int]]
    num_symbols: int

    @property
    def num_levels(self) -> int:
        """L."""
        return len(self.members)

    @functools.cached_property
    def num_protected(self) -> int:
        """v, the number of symbols that have a level."""
        return sum(map(len, self.symbols))

    @property
    @abc.abstractmethod
    def payload_size(self) -> int:
        """W."""

    @property
    @abc.abstractmethod
    def client_payload(self) -> dict[str, Any]:
        """See ``Mechanism.client_payload``."""

    @property
    @abc.abstractmethod
    def num_outputs(self) -> int:
        """Number of different payloads."""

    @abc.abstractmethod
    def passes(self, level: int, drawn: np.ndarray) -> np.ndarray:
        """(n,) bool: payloads (n, W') of a member that reveal that the value has a later level, or none."""

    @abc.abstractmethod
    def sealed(self, level: int, drawn: np.ndarray) -> np.ndarray:
        """Payloads (n, W) of the protected payloads (n, W') of a member."""

    @abc.abstractmethod
    def opened(self, level: int, payloads: np.ndarray) -> np.ndarray:
        """The inverse of ``sealed``; (n, W) to (n, W')."""

    @abc.abstractmethod
    def clear(self, symbols: np.ndarray) -> np.ndarray:
        """Payloads (n, W) that reveal the symbols (n,), which have no level."""

    @abc.abstractmethod
    def levels(self, payloads: np.ndarray) -> np.ndarray:
        """(n,) int64: the level of each payload, L for clear ones."""

    @abc.abstractmethod
    def revealed(self, payloads: np.ndarray) -> np.ndarray:
        """(n,) int64: the symbols that clear payloads reveal."""

    @abc.abstractmethod
    def violations(self, payloads: np.ndarray) -> Iterator[tuple[Reason, np.ndarray]]:
        """See ``Mechanism.violations``."""


class SymbolPayloads(LevelPayloads):
    """Members send one symbol: the payload is that symbol, whose level is known."""

    @property
    def _whole(self) -> IntegerReportMechanism:
        """A mechanism whose payload is one of all symbols."""
        assert isinstance(self.members[0], IntegerReportMechanism)
        return self.members[0]

    @functools.cached_property
    def _place(self) -> tuple[np.ndarray, np.ndarray]:
        """(K,) each: the level of a symbol, and its place in the level; in the order of symbols."""
        levels, places = np.full((2, self.num_symbols), self.num_levels)
        for level, symbols in enumerate(self.symbols):
            levels[list(symbols)], places[list(symbols)] = level, np.arange(len(symbols))
        return levels, places

    def _integers(self, payloads: np.ndarray) -> np.ndarray:
        return self._whole.integers(payloads)

    @property
    def payload_size(self) -> int:
        return self._whole.payload_size

    @property
    def client_payload(self) -> dict[str, Any]:
        return self._whole.client_payload

    @property
    def num_outputs(self) -> int:
        return self.num_symbols

    def _member(self, level: int) -> IntegerReportMechanism:
        member = self.members[level]
        assert isinstance(member, IntegerReportMechanism)
        return member

    def passes(self, level: int, drawn: np.ndarray) -> np.ndarray:
        passing: np.ndarray = self._member(level).integers(drawn) >= len(self.symbols[level])
        return passing

    def sealed(self, level: int, drawn: np.ndarray) -> np.ndarray:
        return self._whole.as_payloads(np.array(self.symbols[level])[self._member(level).integers(drawn)])

    def opened(self, level: int, payloads: np.ndarray) -> np.ndarray:
        return self._member(level).as_payloads(self._place[1][self._integers(payloads)])

    def clear(self, symbols: np.ndarray) -> np.ndarray:
        return self._whole.as_payloads(symbols)

    def levels(self, payloads: np.ndarray) -> np.ndarray:
        levels: np.ndarray = self._place[0][self._integers(payloads)]
        return levels

    def revealed(self, payloads: np.ndarray) -> np.ndarray:
        return self._integers(payloads).astype(np.int64)

    def violations(self, payloads: np.ndarray) -> Iterator[tuple[Reason, np.ndarray]]:
        yield Reason.VALUE_DOMAIN, self._integers(payloads) >= self.num_symbols


class BitPayloads(LevelPayloads):
    """Members send bits: the payload is the bits of a level and its number, or the number of a clear symbol."""

    def _member(self, level: int) -> BitReportMechanism:
        member = self.members[level]
        assert isinstance(member, BitReportMechanism)
        return member

    @functools.cached_property
    def bit_bytes(self) -> int:
        """Number of bytes of the bits of the largest level."""
        return max(self._member(level).bit_bytes for level in range(self.num_levels))

    @property
    def _largest(self) -> int:
        """The largest number behind the bits."""
        return self.num_levels - 1 + self.num_symbols - self.num_protected

    @property
    def _number_bytes(self) -> int:
        return -(-self._largest.bit_length() // 8)

    @property
    def payload_size(self) -> int:
        return self.bit_bytes + self._number_bytes

    @property
    def client_payload(self) -> dict[str, Any]:
        sizes = {"bit_bytes": self.bit_bytes, "clear_bytes": self._number_bytes}
        return {"layout": "bits", "bytes": self.payload_size, **sizes}

    @property
    def num_outputs(self) -> int:
        of_levels = sum(self._member(level).num_protected_outputs for level in range(self.num_levels))
        return of_levels + self.num_symbols - self.num_protected

    def passes(self, level: int, drawn: np.ndarray) -> np.ndarray:
        return np.asarray(drawn[:, self._member(level).bit_bytes :].any(axis=1))

    def sealed(self, level: int, drawn: np.ndarray) -> np.ndarray:
        payloads = self._numbered(np.full(len(drawn), level))
        payloads[:, : self._member(level).bit_bytes] = drawn[:, : self._member(level).bit_bytes]
        return payloads

    def opened(self, level: int, payloads: np.ndarray) -> np.ndarray:
        member = self._member(level)
        return member.protected(np.ascontiguousarray(payloads[:, : member.bit_bytes]))

    def clear(self, symbols: np.ndarray) -> np.ndarray:
        return self._numbered(symbols - self.num_protected + self.num_levels)

    def _numbered(self, numbers: np.ndarray) -> np.ndarray:
        """Payloads (n, W) without bits and with these numbers (n,)."""
        payloads = np.zeros((len(numbers), self.payload_size), dtype=np.uint8)
        field = numbers.astype("<u4").view(np.uint8).reshape(-1, 4)
        payloads[:, self.bit_bytes :] = field[:, : self._number_bytes]
        return payloads

    def _numbers(self, payloads: np.ndarray) -> np.ndarray:
        weights = 256 ** np.arange(self._number_bytes, dtype=np.int64)
        numbers: np.ndarray = payloads[:, self.bit_bytes :] @ weights
        return numbers

    def levels(self, payloads: np.ndarray) -> np.ndarray:
        return np.asarray(np.minimum(self._numbers(payloads), self.num_levels))

    def revealed(self, payloads: np.ndarray) -> np.ndarray:
        symbols: np.ndarray = self._numbers(payloads) - self.num_levels + self.num_protected
        return symbols

    def violations(self, payloads: np.ndarray) -> Iterator[tuple[Reason, np.ndarray]]:
        numbers = self._numbers(payloads)
        yield Reason.VALUE_DOMAIN, numbers > self._largest
        yield Reason.IMPOSSIBLE_REPORT, (numbers >= self.num_levels) & payloads[:, : self.bit_bytes].any(axis=1)
        for level in range(self.num_levels):
            rows, size = np.flatnonzero(numbers == level), self._member(level).bit_bytes
            for reason, wrong in (
                (Reason.PADDING_BITS, payloads[rows, size : self.bit_bytes].any(axis=1)),
                *self._member(level).violations(self.opened(level, payloads[rows])),
            ):
                mask = np.zeros(len(payloads), dtype=bool)
                mask[rows[wrong]] = True
                yield reason, mask


def payloads_of(
    members: Sequence[SetReportMechanism], symbols: Sequence[Sequence[int]], num_symbols: int
) -> LevelPayloads:
    """The payloads of levels with these members."""
    kind = SymbolPayloads if isinstance(members[0], IntegerReportMechanism) else BitPayloads
    return kind(members=members, symbols=symbols, num_symbols=num_symbols)
