"""Bytes of a table of counts, with as many bits for each number as the largest one in its row needs.

A cell of a cohort with n reports is at most n, so it needs at most n bits; n reports of one bit per cell have n bits
for it, too. So such a table never takes more than the payloads that it counts, beside 2 bytes for each row.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

_WIDEST = 32


def row_widths(table: np.ndarray) -> np.ndarray | None:
    """(C,) uint8, number of bits of the largest number in each row of (C, M) int64; None if a number is negative, or
    needs more than 32 bits."""
    largest = table.max(axis=1, initial=0)
    if table.min(initial=0) < 0 or largest.max(initial=0) >= 1 << _WIDEST:
        return None
    widths: np.ndarray = np.frexp(largest.astype(np.float64))[1].astype(np.uint8)  # exact below 2**53
    return widths


def packed_size(widths: np.ndarray, num_columns: int) -> int:
    """Number of bytes of ``pack_rows`` without the widths."""
    sizes = np.bincount(widths, minlength=1)
    return int((np.arange(len(sizes)) * -(-sizes * num_columns // 8)).sum())


def pack_rows(table: np.ndarray, widths: np.ndarray) -> bytes:
    """The rows of each width together, narrow ones first; of each width first the lowest bits of all numbers, then the
    next ones. Each of these parts begins with a new byte, whose lowest bit is the first one.

    Args:
        table: (C, M) int64.
        widths: (C,) uint8, see ``row_widths``.
    """
    parts = []
    for width, rows in _rows_of(widths):
        numbers = table[rows].ravel()
        parts += [np.packbits((numbers >> bit) & 1, bitorder="little").tobytes() for bit in range(width)]
    return b"".join(parts)


def unpack_rows(packed: bytes | memoryview, widths: np.ndarray, num_columns: int) -> np.ndarray:
    """Reverse ``pack_rows``; (C, M) int64."""
    table = np.zeros((len(widths), num_columns), dtype=np.int64)
    data, at = np.frombuffer(packed, dtype=np.uint8), 0
    for width, rows in _rows_of(widths):
        count = len(rows) * num_columns
        size, numbers = -(-count // 8), np.zeros(count, dtype=np.int64)
        for bit in range(width):
            bits = np.unpackbits(data[at : at + size], count=count, bitorder="little")
            numbers |= bits.astype(np.int64) << bit
            at += size
        table[rows] = numbers.reshape(len(rows), num_columns)
    return table


def _rows_of(widths: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Each width, and the rows that have it; rows without a bit are left out."""
    for width in np.unique(widths[widths > 0]).tolist():
        yield width, np.flatnonzero(widths == width)
