"""Hadamard response: the report is a column of a Hadamard matrix. HR protects all symbols, uHR the sensitive ones.

The matrix has 2 H rows and columns (Sylvester), H being the smallest power of two that is at least v; an entry is + if
row & column has an even number of ones. Symbol u has the row H + u. Noise is a uniform column y, which supports the
symbols with a + in it: phi = eta = 1/2, eta3 = 1/4.

Rows 1..v of a matrix of half the size would give the same phi and eta, but not eta3: the product of rows 1, 2 and 3 is
constant, that of other triples is not. Row numbers H + u have the same leading bit, so no product of three is constant;
triples are as frequent as if symbols were independent, as the formulas of the family require. (Products of four rows
can be constant, so symbols are not independent.) This costs at most one bit per report.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.mechanisms.integer_reports import IntegerReportMechanism
from uldp_transforms.ldp.mechanisms.mechanism import About, Kind
from uldp_transforms.ldp.mechanisms.set_report import SetReportMechanism
from uldp_transforms.ldp.sampling import WordSource

_PAYLOAD = (
    "an integer y, little-endian, in 1, 2 or 4 bytes, as few as the largest y needs. Let H be the smallest power of "
    "two that is at least v. A y < 2 H supports the symbols u < v for which (H + u) & y has an even number of ones; "
    "y = 2 H + z - v is the symbol z in clear"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class UtilityOptimizedHadamardResponse(IntegerReportMechanism, SetReportMechanism):
    """uHR: a column that supports the own symbol with probability E / (E + 1), E = e**epsilon; or the clear symbol.

    Short reports for many symbols, with nearly the precision of subset selection for small e**epsilon.

    Payload: column y in [0, 2 H); 2 H + z - v in a clear report of z.

    Source: Acharya, Sun and Zhang 2019 (Hadamard response, here with one block); with non-sensitive symbols: Acharya,
    Bonawitz, Kairouz, Ramage and Sun 2020.
    """

    id: ClassVar[str] = "uhr"
    about: ClassVar[About] = About(
        sends="a column of a Hadamard matrix, which supports half of the sensitive symbols, or a non-sensitive one in "
        "clear; for small epsilon",
        protects="sensitive values",
        source="Acharya et al. 2020",
        payload=_PAYLOAD,
    )

    @property
    def half(self) -> int:
        """H."""
        return 1 << (self.num_sensitive - 1).bit_length()

    @property
    def num_columns(self) -> int:
        """2 H."""
        return 2 * self.half

    @property
    def num_outputs(self) -> int:
        return self.num_columns + self.num_symbols - self.num_sensitive

    @property
    def noise_rate(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def pair_rate(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def triple_rate(self) -> Fraction:
        return Fraction(1, 4)

    @property
    def rarest(self) -> list[tuple[Fraction, Fraction]]:
        return [(Fraction(1, self.num_columns), 1 / self.noise_rate)]

    @property
    def memo_sampler(self) -> dict[str, Any]:
        return {"sampler": "column", "keep_weight": str(self.keep_weight), "half": self.half}

    def kinds(self) -> Iterator[Kind]:
        """A report of one column, drawn as noise and as one of the H columns that support the symbol."""
        keep = self.informative
        noise, own = (1 - keep) / self.num_columns, keep / self.half
        yield Kind("a column", ("a symbol that it supports", "a symbol that it does not"), (noise + own, noise))

    def draw_protected(self, symbols: np.ndarray, given: np.ndarray, source: WordSource) -> np.ndarray:
        """Draw a uniform column each. If it has a - for the given symbol, replace it by the column H further, which has
        a +."""
        columns = (source.words(len(symbols)) & np.uint64(self.num_columns - 1)).astype(np.int64)
        columns[given & self._is_minus(symbols, columns)] ^= self.half
        return self.as_payloads(columns)

    def reveal(self, payloads: np.ndarray, rows: np.ndarray, symbols: np.ndarray) -> None:
        payloads[rows] = self.as_payloads(self.num_columns + symbols - self.num_sensitive)

    def _is_minus(self, symbols: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Bool, of the common shape: whether the matrix has a -."""
        minus: np.ndarray = (np.bitwise_count((self.half + symbols) & columns) & 1).astype(bool)
        return minus

    def count(self, payloads: np.ndarray, groups: np.ndarray, num_groups: int) -> np.ndarray:
        """Count columns; the support of each symbol is a Walsh-Hadamard transform of these counts."""
        cells = np.zeros((num_groups, self.num_symbols), dtype=np.int64)
        places, present = self.integers(payloads), np.zeros(1, dtype=np.int64)
        if num_groups > 1:
            sizes = np.bincount(groups, minlength=num_groups)
            present = np.flatnonzero(sizes)
            places = (np.cumsum(sizes > 0) - 1)[groups] * self.num_outputs + places
        seen = np.bincount(places, minlength=len(present) * self.num_outputs).reshape(len(present), self.num_outputs)
        v, half = self.num_sensitive, self.half
        protected = seen[:, : self.num_columns].sum(axis=1, keepdims=True)
        transformed = walsh_hadamard(seen[:, :half] - seen[:, half : self.num_columns])
        cells[present, :v] = (protected + transformed[:, :v]) // 2
        cells[present, v:] = seen[:, self.num_columns :]
        return cells

    def count_violations(self, counts: CohortCounts) -> Iterator[tuple[str, np.ndarray]]:
        """Supports determine the column counts up to signs that cancel: integers that sum to at most n.

        Each block of symbols, as large as the binary digits of v, is a separate transform. All impossible counts are
        detected if v is a power of two, or one more.
        """
        yield from super().count_violations(counts)
        protected = self.num_protected(counts)
        balance = 2 * counts.cells[:, : self.num_sensitive] - np.maximum(protected, 0).astype(np.int64)[:, np.newaxis]
        impossible, start = np.zeros(len(balance), dtype=bool), 0
        for size in (1 << bit for bit in reversed(range(self.num_sensitive.bit_length()))):
            if self.num_sensitive & size:
                is_whole, needed = columns_needed(balance[:, start : start + size])
                impossible |= ~is_whole | (needed > protected)
                start += size
        yield "sensitive cells that columns of the matrix make", impossible

    def supports(self, payloads: np.ndarray) -> np.ndarray:
        v, symbols = self.num_sensitive, np.arange(self.num_symbols)
        columns = self.integers(payloads).astype(np.int64)[:, np.newaxis]
        plus = (columns < self.num_columns) & ~self._is_minus(symbols[:v], columns)
        return np.concatenate([plus, columns == self.num_columns + symbols[v:] - v], axis=1)

    def log_noise(self, payloads: np.ndarray) -> np.ndarray:
        return np.where(self.integers(payloads) < self.num_columns, -math.log(self.num_columns), 0.0)

    def noise_law(self) -> Iterator[tuple[bytes, Fraction, frozenset[int]]]:
        for column in range(self.num_columns):
            signs = (((self.half + symbol) & column).bit_count() % 2 for symbol in range(self.num_sensitive))
            support = frozenset(symbol for symbol, minus in enumerate(signs) if not minus)
            yield self.as_bytes(column), Fraction(1, self.num_columns), support

    def clear_law(self, symbol: int) -> Iterator[tuple[bytes, Fraction]]:
        yield self.as_bytes(self.num_columns + symbol - self.num_sensitive), Fraction(1)


@dataclasses.dataclass(frozen=True, kw_only=True)
class HadamardResponse(UtilityOptimizedHadamardResponse):
    """HR: a column that supports the own symbol with probability E / (E + 1).

    Source: Acharya, Sun and Zhang 2019.
    """

    id: ClassVar[str] = "hr"
    about: ClassVar[About] = About(
        sends="a column of a Hadamard matrix, which supports half of all symbols; for small epsilon",
        protects="every value",
        source="Acharya, Sun & Zhang 2019",
        payload=_PAYLOAD,
    )
    protects_all: ClassVar[bool] = True


def walsh_hadamard(table: np.ndarray) -> np.ndarray:
    """Multiply each row by the Hadamard matrix of its size, in O(H log H).

    Example:
        >>> walsh_hadamard(np.array([[1, 2, 3, 4]])).tolist()
        [[10, -2, -4, 0]]

    Args:
        table: (..., H) int64, H a power of two.

    Returns:
        (..., H) int64.
    """
    result: np.ndarray = table.copy()
    size, step = table.shape[-1], 1
    while step < size:
        pairs = result.reshape(*table.shape[:-1], size // (2 * step), 2, step)
        first, second = pairs[..., 0, :], pairs[..., 1, :]
        first += second
        second *= -2
        second += first  # sum and difference, without a copy
        step *= 2
    return result


def columns_needed(balance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The smallest numbers of signed columns whose Walsh-Hadamard transforms are the rows.

    Example:
        >>> columns_needed(np.array([[10, -2, -4, 0], [1, 1, 1, -1]]))[1].tolist()
        [10.0, 1.0]

    Args:
        balance: (C, H) int64, H a power of two.

    Returns:
        (C,) bool, whether an integer number of columns gives the row; (C,) float64, their number, exact up to 2**53.
    """
    result, size, step = balance.copy(), balance.shape[-1], 1
    is_whole = np.ones(len(balance), dtype=bool)
    while step < size:
        pairs = result.reshape(len(balance), size // (2 * step), 2, step)
        first, second = pairs[:, :, 0].copy(), pairs[:, :, 1].copy()
        is_whole &= ~((first ^ second) & 1).any(axis=(1, 2))
        pairs[:, :, 0], pairs[:, :, 1] = (first + second) >> 1, (first - second) >> 1
        step *= 2
    return is_whole, np.abs(result).sum(axis=1, dtype=np.float64)
