"""The operator of hashed alphabets against its dense 0/1 matrix.

Letters: C cohorts, k buckets, S unknowns, h hash functions.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.tolerance import generator
from uldp_transforms.ldp.solvers import buckets as module
from uldp_transforms.ldp.solvers.buckets import Buckets

# (C, S, k, h): few buckets and many (two ways to the Gram matrix), more unknowns than a thread takes at a time, several
# hash functions of which some coincide, buckets that nobody falls into
SHAPES = [
    (1, 1, 2, 1),
    (3, 5, 2, 1),
    (7, 20, 23, 1),
    (7, 20, 24, 1),
    (4, 3, 300, 1),
    (5, 150, 40, 1),
    (2, 129, 24, 1),
    (3, 4, 65_536, 1),
    (6, 30, 3, 2),
    (6, 30, 8, 3),
    (3, 12, 40, 8),
]
shapes = pytest.mark.parametrize(("num_cohorts", "size", "k", "h"), SHAPES)


def table_of(num_cohorts: int, size: int, k: int, h: int) -> np.ndarray:
    shape = (num_cohorts, size) if h == 1 else (num_cohorts, size, h)
    table = generator("buckets", *shape, k).integers(0, k, shape)
    table.ravel()[-1] = k - 1  # the last bucket is in use
    return table


def dense(table: np.ndarray, k: int) -> np.ndarray:
    """(C, k, S): 1 where the unknown falls into the bucket, by any of its hash functions."""
    several = table if table.ndim == 3 else table[:, :, np.newaxis]
    numbers = np.arange(k)[:, np.newaxis, np.newaxis]
    return np.stack([(numbers == row).any(axis=2) for row in several]).astype(np.float64)


def dense_gram(table: np.ndarray, k: int, weights: np.ndarray, centred: bool) -> np.ndarray:
    gram = 0
    for block, row in zip(dense(table, k), weights):
        kept = block - block.mean(axis=0) if centred else block
        gram = gram + kept.T @ (row[:, np.newaxis] * kept)
    return gram


@shapes
def test_forward_gather_and_matrix_are_the_dense_ones(num_cohorts, size, k, h):
    table = table_of(num_cohorts, size, k, h)
    buckets, blocks = Buckets(table, k), dense(table, k)
    rng = generator("vectors", num_cohorts, size, k, h)
    frequencies, cells = rng.normal(size=size), rng.normal(size=(num_cohorts, k))
    np.testing.assert_array_equal(buckets.matrix().toarray(), blocks.reshape(-1, size))
    np.testing.assert_allclose(buckets.forward(frequencies), blocks @ frequencies, atol=1e-12)
    expected = np.stack([block.T @ row for block, row in zip(blocks, cells)])
    np.testing.assert_allclose(buckets.gather(cells), expected, atol=1e-12)
    transposed = np.asfortranarray(cells)  # the layout in memory is nobody's business
    np.testing.assert_allclose(buckets.gather(transposed), expected, atol=1e-12)


@shapes
@pytest.mark.parametrize("centred", [False, True])
def test_the_gram_matrix_is_the_dense_one(num_cohorts, size, k, h, centred):
    table = table_of(num_cohorts, size, k, h)
    weights = generator("weights", num_cohorts, size, k, h).exponential(size=(num_cohorts, k))
    weights[0, ::2] = 0
    expected = dense_gram(table, k, weights, centred)
    for given_weights in (weights, np.asfortranarray(weights)):
        gram = Buckets(table, k).gram(given_weights, centred=centred)
        np.testing.assert_allclose(gram, expected, atol=1e-12 * max(1, expected.max()))


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("h", [1, 2])
def test_the_gram_matrix_is_the_same_in_pieces(monkeypatch, centred, h):
    """Many cohorts are not laid out at once; here one, two and five at a time out of eleven."""
    table, k = table_of(11, 9, 6, h), 6
    weights = generator("pieces").exponential(size=(11, k))
    expected = dense_gram(table, k, weights, centred)
    for at_once in (1, 2, 5):
        monkeypatch.setattr(module, "_CHUNK_CELLS", at_once * k * 9)
        np.testing.assert_allclose(Buckets(table, k).gram(weights, centred=centred), expected, atol=1e-12)
