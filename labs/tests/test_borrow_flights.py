"""Groups that borrow on real flights: the table of the experiment, smaller."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from scipy import stats

from labs.experiments import borrow_flights
from labs.experiments.frame import DATA


def test_every_dimension_has_all_flights() -> None:
    content = (DATA / "flights_2013_destinations.csv").read_bytes()
    assert hashlib.sha256(content).hexdigest() in (DATA / "README.md").read_text("utf-8")
    sizes = {name: borrow_flights.flights_by(name).shape for name in borrow_flights.DIMENSIONS}
    assert {name: groups for name, (groups, _) in sizes.items()} == {
        "month": 12,
        "hour": 19,
        "origin": 3,
        "carrier": 14,
    }
    assert all(borrow_flights.flights_by(name).sum() > 330_000 for name in sizes)


def test_few_groups_that_differ_keep_their_own_shares() -> None:
    alone, pooled, borrowed = borrow_flights.errors(borrow_flights.flights_by("origin"), 4.0, np.random.default_rng(1))
    assert borrowed.mean() < 1.05 * alone.mean() < pooled.mean()


RUNS = 10
CELLS = len(borrow_flights.DIMENSIONS) * len(borrow_flights.EPSILONS)


@pytest.mark.slow
def test_borrowing_costs_at_most_a_twentieth_of_the_better_error() -> None:
    """Over all simulations; the limit of each cell leaves out what chance does once in a thousand runs of this test.

    The errors of one simulation go together, so that what counts is the spread of the excess, not that of the errors.
    """
    limit = stats.t.isf(1e-3 / CELLS, RUNS - 1) / np.sqrt(RUNS)
    found = list(borrow_flights.rows(RUNS))
    assert len(found) == CELLS
    for dimension, _, _, epsilon, errors in found:
        better = errors[:, np.argmin(errors[:, :2].mean(axis=0))]
        excess = errors[:, 2] - 1.05 * better
        assert excess.mean() <= limit * excess.std(ddof=1), (dimension, epsilon)
    borrowed = np.array([errors.mean(axis=0) for *_, errors in found])
    ratios = borrowed[:, 2] / borrowed[:, :2].min(axis=1)
    assert np.exp(np.log(ratios).mean()) < 0.96, "in all, borrowing is better than the better of both"
