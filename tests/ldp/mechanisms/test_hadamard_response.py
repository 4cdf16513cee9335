"""Hadamard response: its client word by word, and its transform against the matrix.

Letters: H the least power of two that is at least v; 2 H columns.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import linalg

from tests.support.cases import (
    MECHANISM_CASES,
    each_mechanism,
)
from tests.support.tolerance import generator
from uldp_transforms.ldp.mechanisms.hadamard_response import (
    UtilityOptimizedHadamardResponse,
    walsh_hadamard,
)

cases = each_mechanism([*MECHANISM_CASES["hr"], *MECHANISM_CASES["uhr"]])


class Words:
    """Gives these words."""

    def __init__(self, words: np.ndarray):
        self._words = words

    def words(self, *shape: int) -> np.ndarray:
        return self._words.reshape(shape)


@cases
def test_supports_are_entries_of_the_matrix(mechanism):
    H, v = mechanism.half, mechanism.num_sensitive
    matrix = linalg.hadamard(2 * H)
    supported = mechanism.supports(mechanism.as_payloads(np.arange(2 * H)))
    np.testing.assert_array_equal(supported[:, :v].T, matrix[H : H + v] == 1)
    assert not supported[:, v:].any()
    assert v <= H < 2 * v


@cases
def test_every_column_is_as_likely_as_it_should_be(mechanism):
    """For all values of the bits of a word that matter: noise is uniform, and so is what supports a given symbol."""
    columns = mechanism.num_columns
    words = np.arange(4 * columns, dtype=np.uint64)
    for symbol, given in ((0, False), *((symbol, True) for symbol in range(mechanism.num_sensitive))):
        payloads = mechanism.draw_protected(np.full(len(words), symbol), np.full(len(words), given), Words(words))
        drawn = Counter(mechanism.integers(payloads).tolist())
        supported = mechanism.supports(mechanism.as_payloads(np.arange(columns)))
        allowed = np.flatnonzero(supported[:, symbol]) if given else range(columns)
        assert set(drawn) == set(allowed)
        assert len(set(drawn.values())) == 1


@pytest.mark.parametrize("size", [1, 2, 8, 256])
def test_the_fast_transform_is_the_matrix(size):
    table = generator("transform", size).integers(-1000, 1000, (3, 2, size))
    before = table.copy()
    np.testing.assert_array_equal(walsh_hadamard(table), table @ linalg.hadamard(size))
    np.testing.assert_array_equal(table, before)


@pytest.mark.parametrize(
    ("num_symbols", "v", "size"),
    [(128, 128, 1), (129, 129, 2), (256, 64, 2), (192, 64, 1), (32_768, 32_768, 2), (32_769, 32_769, 4)],
)
def test_payloads_are_as_short_as_they_can_be(num_symbols, v, size):
    mechanism = UtilityOptimizedHadamardResponse(num_symbols=num_symbols, num_sensitive=v, epsilon=1)
    assert mechanism.payload_size == size == (1 if mechanism.num_outputs <= 256 else 2 if size == 2 else 4)
