"""Bytes of counts: a version, the same for the same content, whatever the numbers are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uldp_transforms.collector.count_bytes import decode_counts, encode_counts
from uldp_transforms.ldp import CohortCounts
from uldp_transforms.ldp.counts.sparse_table import SparseCounts

LARGEST = (1 << 63) - 1
SMALLEST = -(1 << 63)


def counts_of(num_reports: list[int], cells: list[list[int]], patterns: Sequence[int] = ()) -> CohortCounts:
    table = np.array(cells, np.int64).reshape(len(num_reports), -1)
    return CohortCounts(np.array(num_reports, np.int64), table, np.array(patterns, np.int64))


@st.composite
def some_counts(draw: st.DrawFn) -> CohortCounts:
    """Of any shape, width and density: a few numbers between 0 and a bound, the others 0 or the bound."""
    num_cohorts, num_cells, num_patterns = draw(st.integers(1, 6)), draw(st.integers(1, 60)), draw(st.integers(0, 40))
    bound = draw(st.sampled_from([0, 1, 255, 256, 65_535, 65_536, (1 << 32) - 1, 1 << 32, LARGEST, -1, -300, SMALLEST]))
    numbers = np.full(num_cohorts * (1 + num_cells) + num_patterns, draw(st.sampled_from([0, bound])), dtype=np.int64)
    places = st.integers(0, len(numbers) - 1)
    between = st.integers(min(0, bound), max(0, bound))
    for place, number in draw(st.dictionaries(places, between, max_size=20)).items():
        numbers[place] = number
    num_reports, cells, patterns = np.split(numbers, [num_cohorts, num_cohorts * (1 + num_cells)])
    return CohortCounts(num_reports, cells.reshape(num_cohorts, num_cells), patterns)


@settings(max_examples=100)
@given(some_counts())
def test_counts_come_back(counts):
    again = decode_counts(encode_counts(counts))
    assert again == counts
    assert again.shape == counts.shape


@settings(max_examples=100)
@given(some_counts())
def test_both_forms_of_counts_have_the_same_bytes(counts):
    numbers = np.append(counts.num_reports, counts.cells)
    places = np.flatnonzero(numbers)
    sparse = SparseCounts(counts.shape, places, numbers[places], counts.patterns)
    assert encode_counts(sparse) == encode_counts(counts)


def test_patterns_of_sparse_counts_follow_all_cells():
    sparse = SparseCounts((1, 40), np.array([0, 40]), np.array([3, 2]), np.array([0, 1], dtype=np.int64))
    full = counts_of([3], [[0] * 39 + [2]], [0, 1])
    assert encode_counts(sparse) == encode_counts(full)
    assert decode_counts(encode_counts(sparse)) == full


@settings(max_examples=100)
@given(some_counts())
def test_counts_take_no_more_than_their_numbers(counts):
    numbers = np.concatenate([counts.num_reports, counts.cells.ravel(), counts.patterns])
    largest = LARGEST if numbers.min() < 0 else int(numbers.max())  # reports that are taken back go in 8 bytes
    width = next(size for size in (1, 2, 4, 8) if largest < 1 << 8 * size)
    dense, sparse = len(numbers) * width, np.count_nonzero(numbers) * (4 + width)
    assert len(encode_counts(counts)) == (14 if len(counts.patterns) else 10) + min(dense, sparse)


@pytest.mark.parametrize("shape", [(1, 1), (1, 1 << 16), (1 << 16, 2), (64, 1 << 16)])
def test_large_and_sparse_counts_come_back(shape):
    counts = CohortCounts.empty(*shape)
    counts.num_reports[-1] = counts.cells[-1, -1] = LARGEST
    assert decode_counts(encode_counts(counts)) == counts


def test_no_counts_are_no_bytes():
    assert encode_counts(None) == b""
    assert decode_counts(b"") is None


GOLDEN_COUNTS = {
    "dense, 1 byte": ("0101 02000000 02000000 0506 01020304", [5, 6], [[1, 2], [3, 4]]),
    "dense, 2 bytes": ("0102 01000000 02000000 0001 ff00 0100", [256], [[255, 1]]),
    "dense, 4 bytes": ("0104 01000000 01000000 ffffffff 01000000", [(1 << 32) - 1], [[1]]),
    "dense, 8 bytes": ("0108 01000000 01000000 ffffffffffffff7f 0000000001000000", [LARGEST], [[1 << 32]]),
    "sparse, 1 byte": ("0111 01000000 0a000000 00000000 08000000 01 ff", [1], [[0] * 7 + [255, 0, 0]]),
    "sparse, 8 bytes": ("0118 01000000 03000000 02000000 ffffffffffffff7f", [0], [[0, LARGEST, 0]]),
    "dense, taken back": (
        "0108 01000000 02000000 0000000000000000 ffffffffffffffff 0100000000000000",
        [0],
        [[-1, 1]],
    ),
    "sparse, taken back": ("0118 01000000 03000000 02000000 0000000000000080", [0], [[0, SMALLEST, 0]]),
    "zeros": ("0111 01000000 02000000", [0], [[0, 0]]),
}


GOLDEN_PATTERNS = {
    "dense": ("0201 01000000 02000000 03000000 02 0102 010203", [2], [[1, 2]], [1, 2, 3]),
    "dense, 2 bytes": ("0202 01000000 01000000 01000000 0100 0200 0001", [1], [[2]], [256]),
    "sparse": ("0211 01000000 03000000 08000000 00000000 0b000000 02ff", [2], [[0] * 3], [0] * 7 + [255]),
    "taken back": (
        "0208 01000000 01000000 02000000 ffffffffffffffff 0000000000000000 0100000000000000 feffffffffffffff",
        [-1],
        [[0]],
        [1, -2],
    ),
    "zeros": ("0211 01000000 02000000 01000000", [0], [[0, 0]], [0]),
}


@pytest.mark.parametrize(
    ("text", "num_reports", "cells", "patterns"),
    [(*row, ()) for row in GOLDEN_COUNTS.values()] + list(GOLDEN_PATTERNS.values()),
    ids=[*GOLDEN_COUNTS, *(f"patterns, {name}" for name in GOLDEN_PATTERNS)],
)
def test_golden_counts(text, num_reports, cells, patterns):
    """A job that is updated reads what its former version wrote."""
    counts = counts_of(num_reports, cells, patterns)
    assert encode_counts(counts) == bytes.fromhex(text)
    assert decode_counts(bytes.fromhex(text)) == counts


def test_golden_counts_in_bits():
    """Two rows of 4,096 cells, of 0 or 1 and of 0 to 3."""
    cells = np.zeros((3, 4096), np.int64)
    cells[0, ::2] = 1
    cells[2, ::4] = 3
    cells[2, 1::4] = 2
    counts = CohortCounts(np.array([1, 0, 300]), cells)
    head = bytes.fromhex("0302 03000000 00100000 0100 0000 2c01 010002")
    assert encode_counts(counts) == head + b"\x55" * 512 + b"\x11" * 512 + b"\x33" * 512
    assert decode_counts(encode_counts(counts)) == counts


@pytest.mark.parametrize(
    ("most", "num_reports", "version"),
    [(300, 10_000, 3), (255, 10_000, 3), (255, 255, 1), (3, 3, 3), (70_000, 70_000, 3)],
)
def test_large_tables_are_in_bits_where_that_is_shorter(most, num_reports, version):
    """Of 9, 8, 2 or 17 bits instead of 2 or 4 bytes; but not of 8 bits instead of a byte."""
    cells = np.arange(64 * 128).reshape(64, 128) % (most + 1)
    cells[:, 0] = most
    counts = CohortCounts(np.full(64, num_reports), cells)
    encoded = encode_counts(counts)
    assert encoded[0] == version
    assert decode_counts(encoded) == counts


@pytest.mark.parametrize("num_symbols", [1024, 4096])
def test_sums_of_bits_are_never_larger_than_their_payloads(num_symbols):
    """However many reports a cohort has: 1.2 times at most with the numbers of reports and of bits."""
    rng = np.random.default_rng(5)
    payloads = rng.integers(0, 2, (600, num_symbols))
    cohorts = rng.integers(0, 512, 600)
    cells = np.zeros((512, num_symbols), np.int64)
    np.add.at(cells, cohorts, payloads)
    counts = CohortCounts(np.bincount(cohorts, minlength=512), cells)
    assert len(encode_counts(counts)) <= 1.2 * payloads.size // 8
