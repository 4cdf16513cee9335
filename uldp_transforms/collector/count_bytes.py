"""Bytes of counts: the narrowest sufficient integer type, stored sparsely if that is shorter.

Negative numbers, which subtract replaced reports, are stored in 8 bytes, two's complement.

Bytes: version (1; 2 if there are patterns), layout (width of a number, plus 16 if sparse), C, M and in version 2
the number P of patterns (all uint32), then the numbers of reports, the cells and the patterns as one list of C + C
M + P numbers; if sparse, positions (uint32) of the nonzero ones, then these. All little-endian. An empty byte
string means "no counts yet".

Version 3, for large tables without patterns if it is shorter: layout (width of a number of reports), C and M as
above, the numbers of reports, the number of bits of each row of cells (uint8), and the rows as ``pack_rows`` has
them.
"""

from __future__ import annotations

import struct

import numpy as np

from uldp_transforms.ldp.counts.bit_planes import pack_rows, packed_size, row_widths, unpack_rows
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.counts.sparse_table import SparseCounts

_COUNTS, _COUNTS_AND_PATTERNS, _COUNTS_IN_BITS = 1, 2, 3
_HEADER = struct.Struct("<BBII")  # version, layout, C, M
_NUM_PATTERNS = struct.Struct("<I")
_WIDTHS = (1, 2, 4, 8)
_SPARSE = 0x10
_LARGE = 1 << 12
"""Number of cells from which on a table may be stored in bits."""


def encode_counts(value: CohortCounts | None) -> bytes:
    """The bytes of counts; none for None."""
    if value is None:
        return b""
    places, numbers = _listed(value)
    length = value.shape[0] * (1 + value.shape[1]) + len(value.patterns)
    largest = int(numbers.max(initial=0)) if numbers.min(initial=0) >= 0 else (1 << 63) - 1  # negative numbers
    width = next(w for w in _WIDTHS if largest < 1 << (8 * w - (w == 8)))
    sparse = len(places) * (4 + width) < length * width and length <= 1 << 32
    in_bits = _in_bits(value, min(length * width, len(places) * (4 + width)))
    if in_bits is not None:
        return in_bits
    layout = width + _SPARSE * sparse
    num_patterns = len(value.patterns)
    head = _HEADER.pack(_COUNTS_AND_PATTERNS if num_patterns else _COUNTS, layout, *value.shape)
    if num_patterns:
        head += _NUM_PATTERNS.pack(num_patterns)
    whole = len(numbers) == length  # all numbers, or only those that are not 0
    if sparse:
        stored = numbers[places] if whole else numbers
        return head + places.astype("<u4").tobytes() + stored.astype(f"<u{width}").tobytes()
    if not whole:
        full = np.zeros(length, dtype=np.int64)
        full[places] = numbers
        numbers = full
    return head + numbers.astype(f"<u{width}").tobytes()


def decode_counts(encoded: bytes) -> CohortCounts | None:
    """Reverse ``encode_counts``.

    Raises:
        ValueError: for bytes of another version.
    """
    if not encoded:
        return None
    version, layout, *shape = _HEADER.unpack_from(encoded)
    if version == _COUNTS_IN_BITS:
        return _of_bits(memoryview(encoded)[_HEADER.size :], layout, *shape)
    if version not in (_COUNTS, _COUNTS_AND_PATTERNS):
        raise ValueError(f"CohortCountsCoder reads versions 1 to 3, got version {version}")
    body, num_patterns = memoryview(encoded)[_HEADER.size :], 0
    if version == _COUNTS_AND_PATTERNS:
        (num_patterns,), body = _NUM_PATTERNS.unpack_from(body), body[_NUM_PATTERNS.size :]
    num_cohorts, num_cells = shape
    width, of_cohorts = layout % _SPARSE, num_cohorts * (1 + num_cells)
    if layout >= _SPARSE:
        stored = len(body) // (4 + width)
        places = np.frombuffer(body[: 4 * stored], dtype="<u4").astype(np.int64)
        numbers = np.frombuffer(body[4 * stored :], f"<u{width}").astype(np.int64)
        own = int(np.searchsorted(places, of_cohorts))
        patterns = np.zeros(num_patterns, dtype=np.int64)
        patterns[places[own:] - of_cohorts] = numbers[own:]
        counts = SparseCounts((num_cohorts, num_cells), places[:own], numbers[:own], patterns)
        return counts if counts.pays else counts.in_full()
    numbers = np.frombuffer(body, dtype=f"<u{width}").astype(np.int64)
    num_reports, cells, patterns = np.split(numbers, [num_cohorts, of_cohorts])
    return CohortCounts(num_reports, cells.reshape(num_cohorts, num_cells), patterns)


def _in_bits(counts: CohortCounts, shortest: int) -> bytes | None:
    """Version 3 of large counts without patterns; None if it takes more than ``shortest`` bytes."""
    num_cohorts, num_cells = counts.shape
    if isinstance(counts, SparseCounts) or num_cohorts * num_cells < _LARGE or len(counts.patterns):
        return None
    widths, largest = row_widths(counts.cells), int(counts.num_reports.max(initial=0))
    if widths is None or counts.num_reports.min(initial=0) < 0 or largest >= 1 << 32:
        return None
    width = next(w for w in _WIDTHS if largest < 1 << (8 * w))
    if num_cohorts * (width + 1) + packed_size(widths, num_cells) > shortest:
        return None
    head = _HEADER.pack(_COUNTS_IN_BITS, width, num_cohorts, num_cells)
    of_cohorts = counts.num_reports.astype(f"<u{width}").tobytes()
    return head + of_cohorts + widths.tobytes() + pack_rows(counts.cells, widths)


def _of_bits(body: memoryview, width: int, num_cohorts: int, num_cells: int) -> CohortCounts:
    """Reverse ``_in_bits``."""
    num_reports = np.frombuffer(body[: num_cohorts * width], dtype=f"<u{width}").astype(np.int64)
    at = num_cohorts * (width + 1)
    widths = np.frombuffer(body[num_cohorts * width : at], dtype=np.uint8)
    return CohortCounts(num_reports, unpack_rows(body[at:], widths, num_cells))


def _listed(counts: CohortCounts) -> tuple[np.ndarray, np.ndarray]:
    """Positions and values of the non-zero numbers in coder order, or all values."""
    if isinstance(counts, SparseCounts):
        behind, more = counts.shape[0] * (1 + counts.shape[1]), np.flatnonzero(counts.patterns)
        return np.append(counts.places, behind + more), np.append(counts.numbers, counts.patterns[more])
    numbers = np.concatenate([counts.num_reports, counts.cells.ravel(), counts.patterns])
    return np.flatnonzero(numbers), numbers
