"""The tail of chance: against all draws of one cell from each row, and against a normal law where it is one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import special

from tests.support.tolerance import generator
from uldp_transforms.ldp.solvers.hash_chance import Absorbed, Chance, ChanceOfMeans, tail

Z = np.array([1.0, 2.0, 3.0, 4.0])


def deviations(chance: Chance | ChanceOfMeans, z: np.ndarray) -> np.ndarray:
    """What chance alone exceeds as often as a normal number exceeds z."""
    return -chance.lower_ends(np.full(len(z), -1e-12), np.zeros(len(z)), z)


@pytest.mark.parametrize("spike", [0.0, 3.0, 10.0])
def test_as_many_draws_are_beyond_as_of_a_normal_law(spike):
    """All draws of one of 12 cells from each of 5 rows; a heavy text makes one cell of each row larger."""
    cells = generator("chance", spike).normal(size=(5, 12))
    cells[:, 0] += spike
    cells -= cells.mean(axis=1, keepdims=True)
    sums = np.array([sum(draw) for draw in itertools.product(*cells)])
    for z, deviation in zip(Z[:3], deviations(Chance(cells), Z[:3])):
        assert (sums >= deviation).mean() == pytest.approx(special.ndtr(-z), rel=0.25)


@pytest.mark.parametrize("spike", [0.0, 8.0, 30.0])
def test_many_cells_are_put_together_without_harm(spike):
    """Of 400 cells of a row 64 are taken one by one, the others as normal, which makes the tail a little longer.

    The search for values judges with all of them.
    """
    cells = generator("many cells", spike).normal(size=(16, 400))
    cells[:, 7] += spike
    cells -= cells.mean(axis=1, keepdims=True)
    for z, deviation in zip(Z, deviations(Chance(cells), Z)):
        assert 0.5 < tail(cells, float(deviation)) / special.ndtr(-z) < 1.1


def test_where_many_cohorts_hash_the_tail_is_normal():
    cells = generator("normal").normal(size=(3000, 16))
    cells -= cells.mean(axis=1, keepdims=True)
    deviation = np.sqrt((cells**2).mean(axis=1).sum())
    np.testing.assert_allclose(deviations(Chance(cells), Z), Z * deviation, rtol=0.02)


def test_without_residuals_nothing_is_raised_by_chance():
    assert Chance(np.zeros((3, 4))).lower_ends(np.zeros(4), np.zeros(4), Z).tolist() == [0] * 4


@pytest.mark.parametrize("spike", [0.0, 3.0])
def test_own_reports_come_on_top_of_chance(spike):
    """At the end p all draws of a cell of each row and Poisson(p / step) own reports exceed raw as often as said."""
    cells, step = generator("own", spike).normal(size=(4, 12)), 2.0
    cells[:, 0] += spike
    cells -= cells.mean(axis=1, keepdims=True)
    sums = np.array([sum(draw) for draw in itertools.product(*cells)])
    raw = np.array([8.0, 16.0, 40.0])
    for z in Z[:3]:
        ends = Chance(cells).lower_ends(raw, np.full(3, step), np.full(3, z))
        for observed, end in zip(raw[ends > 0], ends[ends > 0]):
            fewest = np.ceil((observed - sums) / step)
            exceeded = special.gammainc(np.maximum(fewest, 1), end / step)  # Pr(at least so many)
            assert np.where(fewest > 0, exceeded, 1).mean() == pytest.approx(special.ndtr(-z), rel=0.25)


def test_where_no_end_is_wanted_there_is_none():
    ends = Chance(np.eye(3)).lower_ends(np.full(2, 5.0), np.ones(2), np.array([np.nan, 2.0]))
    assert np.isnan(ends[0]) and ends[1] < 5


def test_cells_reach_the_deviation_that_is_known():
    chance = Chance(np.array([[1.0, -1.0], [2.0, -2.0]]), least=5.0)
    assert chance.cells.var(axis=1).sum() == pytest.approx(25)


def test_what_an_estimate_has_taken_out_of_its_cells_is_put_back():
    """The end is that of cells which have again what the estimate is above its end by; other cells stay as they are."""
    rng, z, raw = generator("absorbed"), np.full(3, 2.5), np.array([9.0, 6.0, 12.0])
    cells = rng.normal(size=(4, 12))
    cells -= cells.mean(axis=1, keepdims=True)
    table, gains = rng.integers(12, size=(4, 3)), np.array([0.3, 0.2, 0.1, 0.2])
    present = rng.normal(scale=0.1, size=(4, 12))
    ends = Chance(cells, absorbed=Absorbed(table, gains, present)).lower_ends(raw, np.zeros(3), z)
    assert abs(ends - Chance(cells).lower_ends(raw, np.zeros(3), z)).max() > 0.1
    for i, end in enumerate(ends):
        whole = cells.copy()
        rows = np.arange(4)
        whole[rows, table[:, i]] += gains * (raw[i] - end) - present[rows, table[:, i]]
        again = Chance(whole).lower_ends(raw[i : i + 1], np.zeros(1), z[:1])
        assert again[0] == pytest.approx(end, abs=0.02)


def test_a_mean_of_parts_has_the_chance_of_all_their_cohorts():
    """Values with other shares have another law."""
    first, second = generator("means").normal(size=(2, 6, 30))
    shares, z = np.array([[0.3, 0.0, 0.3], [0.7, 1.0, 0.7]]), np.full(3, 2.0)
    found = deviations(ChanceOfMeans([Chance(first), Chance(second)], shares), z)
    both = deviations(Chance(np.concatenate([0.3 * first, 0.7 * second])), z[:1])
    np.testing.assert_allclose(found, [*both, *deviations(Chance(second), z[:1]), *both])
