"""The tail of chance: against all draws of one cell from each row, and against a normal law where it is one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import special

from tests.support.tolerance import generator
from uldp_transforms.ldp.discovery.chance import tail
from uldp_transforms.ldp.estimators.hash_chance import Chance

Z = np.array([1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize("spike", [0.0, 3.0, 10.0])
def test_as_many_draws_are_beyond_as_of_a_normal_law(spike):
    """All draws of one of 12 cells from each of 5 rows; a heavy text makes one cell of each row larger."""
    cells = generator("chance", spike).normal(size=(5, 12))
    cells[:, 0] += spike
    cells -= cells.mean(axis=1, keepdims=True)
    sums = np.array([sum(draw) for draw in itertools.product(*cells)])
    for z, deviation in zip(Z[:3], Chance(cells).deviations(Z[:3])):
        assert (sums >= deviation).mean() == pytest.approx(special.ndtr(-z), rel=0.25)


@pytest.mark.parametrize("spike", [0.0, 8.0, 30.0])
def test_many_cells_are_put_together_without_harm(spike):
    """Of 400 cells of a row 64 are taken one by one, the others as normal, which makes the tail a little longer.

    The search for values judges with all of them.
    """
    cells = generator("many cells", spike).normal(size=(16, 400))
    cells[:, 7] += spike
    cells -= cells.mean(axis=1, keepdims=True)
    for z, deviation in zip(Z, Chance(cells).deviations(Z)):
        assert 0.5 < tail(cells, float(deviation)) / special.ndtr(-z) < 1.1


def test_where_many_cohorts_hash_the_tail_is_normal():
    cells = generator("normal").normal(size=(3000, 16))
    cells -= cells.mean(axis=1, keepdims=True)
    deviation = np.sqrt((cells**2).mean(axis=1).sum())
    np.testing.assert_allclose(Chance(cells).deviations(Z), Z * deviation, rtol=0.02)


def test_without_residuals_nothing_is_raised_by_chance():
    assert Chance(np.zeros((3, 4))).deviations(Z).tolist() == [0] * 4
