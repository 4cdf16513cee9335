"""Bits, weights and pairs of bits against unpacking every bit and adding."""

from __future__ import annotations

import itertools
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from uldp_transforms.ldp.counts import bit_totals as bitcounts
from uldp_transforms.ldp.counts.bit_totals import count_bits, count_pairs, count_weights


def random_payloads(num_rows: int, num_bits: int, seed: int = 0) -> np.ndarray:
    """Rows of random bits, with spare bits 0."""
    bits = np.random.default_rng(seed).integers(0, 2, (num_rows, num_bits), dtype=np.uint8)
    return np.packbits(bits, axis=1, bitorder="little")


def count_one_by_one(payloads: np.ndarray, num_bits: int, groups: np.ndarray, num_groups: int) -> np.ndarray:
    counts = np.zeros((num_groups, num_bits), dtype=np.int64)
    np.add.at(counts, groups, np.unpackbits(payloads, axis=1, count=num_bits, bitorder="little"))
    return counts


def assert_counted(payloads: np.ndarray, num_bits: int, groups: np.ndarray, num_groups: int) -> None:
    before = payloads.copy(), groups.copy()
    expected = count_one_by_one(payloads, num_bits, groups, num_groups)
    for few_bits in (bitcounts._FEW_BITS, 0):  # bit by bit where they are few, and in lanes
        with mock.patch.object(bitcounts, "_FEW_BITS", few_bits):
            counts = count_bits(payloads, num_bits, groups, num_groups)
        assert counts.dtype == np.int64
        np.testing.assert_array_equal(counts, expected)
    np.testing.assert_array_equal(payloads, before[0])
    np.testing.assert_array_equal(groups, before[1])


@given(
    num_rows=st.integers(0, 400),
    num_bits=st.integers(1, 200),
    num_groups=st.integers(1, 40),
    seed=st.integers(0, 2**32),
    dtype=st.sampled_from([np.uint16, np.int64]),
)
def test_any_shape(num_rows, num_bits, num_groups, seed, dtype):
    groups = np.random.default_rng(seed).integers(0, num_groups, num_rows).astype(dtype)
    assert_counted(random_payloads(num_rows, num_bits, seed), num_bits, groups, num_groups)


@pytest.mark.parametrize("num_rows", [65_535, 65_536, 2 * 65_535 + 1, 200_000])
def test_one_large_group_of_ones_does_not_overflow_16_bits(num_rows):
    ones = np.full((num_rows, 1), 255, dtype=np.uint8)
    counts = count_bits(ones, 8, np.ones(num_rows, dtype=np.int64), 3)
    np.testing.assert_array_equal(counts, [[0] * 8, [num_rows] * 8, [0] * 8])


@pytest.mark.parametrize("num_bits", [64, 4096])
def test_groups_that_span_several_chunks(num_bits):
    """Chunks end inside groups, at their ends, and groups fill several chunks."""
    sizes = [1, 70_000, 2, 60_000, 3] if num_bits == 64 else [1, 8191, 4096, 1, 9000, 2]
    groups = np.repeat(np.arange(len(sizes)), sizes)
    np.random.default_rng(0).shuffle(groups)
    row = random_payloads(16, num_bits)
    payloads = np.resize(row, (len(groups), row.shape[1]))
    counts = count_bits(payloads, num_bits, groups, len(sizes))
    times = np.zeros((len(sizes), 16), dtype=np.int64)  # how often each of the 16 rows stands in each group
    np.add.at(times, (groups, np.arange(len(groups)) % 16), 1)
    np.testing.assert_array_equal(counts, times @ np.unpackbits(row, axis=1, bitorder="little").astype(np.int64))


# ---------------------------------------------------------------------- inside the rows


def assert_patterns_counted(payloads: np.ndarray, num_bits: int, groups: np.ndarray, num_groups: int) -> None:
    """Row by row and pair by pair."""
    before = payloads.copy(), groups.copy()
    bits = np.unpackbits(payloads, axis=1, count=num_bits, bitorder="little").astype(np.int64)
    weights = np.zeros((num_groups, num_bits + 1), dtype=np.int64)
    np.add.at(weights, (groups, bits.sum(axis=1)), 1)
    pairs = list(itertools.combinations(range(num_bits), 2))
    both = np.zeros((num_groups, len(pairs)), dtype=np.int64)
    for place, (i, j) in enumerate(pairs):
        np.add.at(both[:, place], groups, bits[:, i] * bits[:, j])
    for counted, expected in ((count_weights, weights), (count_pairs, both)):
        counts = counted(payloads, num_bits, groups, num_groups)
        assert counts.dtype == np.int64
        np.testing.assert_array_equal(counts, expected)
    np.testing.assert_array_equal(payloads, before[0])
    np.testing.assert_array_equal(groups, before[1])


@settings(max_examples=60)
@given(
    num_rows=st.integers(0, 300),
    num_bits=st.integers(1, 40),
    num_groups=st.integers(1, 40),
    seed=st.integers(0, 2**32),
    dtype=st.sampled_from([np.uint16, np.int64]),
)
def test_weights_and_pairs_of_any_shape(num_rows, num_bits, num_groups, seed, dtype):
    groups = np.random.default_rng(seed).integers(0, num_groups, num_rows).astype(dtype)
    assert_patterns_counted(random_payloads(num_rows, num_bits, seed), num_bits, groups, num_groups)


@pytest.mark.parametrize("num_bits", [1, 2, 8, 9, 64, 65])
def test_pairs_of_groups_that_span_several_blocks(num_bits, monkeypatch):
    """Blocks end inside groups and at their ends; with fewer bits at once than a row has, it is row by row."""
    sizes = [0, 1, 30, 15, 0, 2, 60, 0]
    groups = np.repeat(np.arange(len(sizes)), sizes)
    np.random.default_rng(num_bits).shuffle(groups)
    for at_once in (1, 15 * num_bits, 31 * num_bits + 1):
        monkeypatch.setattr(bitcounts, "_BLOCK_BITS", at_once)
        assert_patterns_counted(random_payloads(len(groups), num_bits), num_bits, groups, len(sizes))


def test_a_pair_of_millions_of_rows_is_exact():
    """More than single precision holds: 2**24 + 1 rows with both bits."""
    rows = np.full(((1 << 24) + 1, 1), 3, dtype=np.uint8)
    groups = np.zeros(len(rows), dtype=np.uint8)
    assert count_pairs(rows, 2, groups, 1).tolist() == [[(1 << 24) + 1]]
    assert count_weights(rows, 2, groups, 1).tolist() == [[0, 0, (1 << 24) + 1]]
