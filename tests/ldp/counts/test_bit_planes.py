"""Tables of counts as bytes: the bytes of a small one, and all of them read back."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.tolerance import generator
from uldp_transforms.ldp.counts.bit_planes import pack_rows, packed_size, row_widths, unpack_rows

LARGEST = (1 << 32) - 1


def test_the_bytes_of_a_table() -> None:
    """Rows of one bit come first, together; then the lowest bits of the others, then their next ones."""
    table = np.array([[1, 2, 3], [0, 0, 0], [1, 0, 1], [0, 1, 1], [2, 1, 0]])
    widths = np.array([2, 0, 1, 1, 2], dtype=np.uint8)
    found = row_widths(table)
    assert found is not None and found.tolist() == widths.tolist()
    packed = bytes([0b110101, 0b010101, 0b001110])
    assert pack_rows(table, widths) == packed and packed_size(widths, 3) == 3
    assert unpack_rows(packed, widths, 3).tolist() == table.tolist()


@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (1, 1), (3, 5), (7, 9), (40, 16)])
def test_tables_are_read_back(rows: int, columns: int) -> None:
    rng = generator("bit planes", rows, columns)
    table = rng.integers(0, 1 << rng.integers(0, 33, (rows, 1)), (rows, columns))
    widths = row_widths(table)
    assert widths is not None
    packed = pack_rows(table, widths)
    assert packed_size(widths, columns) == len(packed)
    assert (unpack_rows(packed, widths, columns) == table).all()


@pytest.mark.parametrize(
    ("largest", "width"), [(0, 0), (1, 1), (255, 8), (256, 9), (LARGEST, 32), (LARGEST + 1, None), (-1, None)]
)
def test_widths(largest: int, width: int | None) -> None:
    found = row_widths(np.array([[0, largest]]))
    assert (None if found is None else found.tolist()) == (None if width is None else [width])
