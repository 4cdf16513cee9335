"""Groups that borrow on real flights: the table of docs/groups.md, smaller."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

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


@pytest.mark.slow
def test_borrowing_costs_at_most_a_twentieth_of_the_better_error() -> None:
    for dimension, _, _, epsilon, (alone, pooled, borrowed) in borrow_flights.rows(6):
        assert borrowed <= 1.05 * min(alone, pooled), (dimension, epsilon)
