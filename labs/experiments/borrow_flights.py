"""Groups that borrow, on real flights: the error of the shown shares for each group alone, all pooled, and borrowed.

    python -m labs.experiments.borrow_flights [--runs 10]

prints a table. One passenger of each flight from New York in 2013 reports the destination by k-RR;
the groups are the months, hours, airports or airlines of the flights.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from labs.experiments.drawn_counts import draw_counts
from labs.experiments.frame import read_table
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.borrowing import borrow
from uldp_transforms.ldp.estimators import ESTIMATORS

DIMENSIONS = ("month", "hour", "origin", "carrier")
EPSILONS = (1.0, 2.0, 4.0)
LEAST_FLIGHTS, LEAST_OF_PLACE = 500, 200
SEED = 29


def flights_by(dimension: str) -> np.ndarray:
    """(G, K) flights of each group with enough flights, by destination with enough flights."""
    table = read_table("flights_2013_destinations.csv")
    places = [name for name in table if name not in ("dimension", "group")]
    rows = np.array([table[place] for place in places], dtype=np.int64).T[np.array(table["dimension"]) == dimension]
    rows = rows[rows.sum(axis=1) > LEAST_FLIGHTS]
    return rows[:, rows.sum(axis=0) > LEAST_OF_PLACE]


def question(num_values: int, epsilon: float) -> Collection:
    values = [str(place) for place in range(num_values)]
    mechanism = {"id": "krr", "epsilon": epsilon}
    return Collection.from_json(
        {"id": "flights", "version": 1, "alphabet": {"id": "closed", "values": values}, "mechanism": mechanism}
    )


def errors(flights: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """(3, G) squared errors of one simulation: alone, pooled, borrowed; against the shares of the group's people."""
    collection, eb = question(flights.shape[1], epsilon), ESTIMATORS["eb"]()
    values = tuple(collection.alphabet.known_values or ())
    groups = [draw_counts(collection, values, people, rng) for people in flights]
    total = groups[0]
    for counts in groups[1:]:
        total = total + counts
    pooled = eb.estimate(collection, total).frequencies
    alone = [eb.estimate(collection, counts).frequencies for counts in groups]
    borrowed = [shares.frequencies for shares in borrow(collection, total, groups, eb)]
    truth = flights / flights.sum(axis=1, keepdims=True)
    shown = np.array([alone, [pooled] * len(groups), borrowed])
    squares: np.ndarray = ((shown - truth) ** 2).sum(axis=-1)
    return squares


def rows(runs: int) -> Iterator[tuple[str, int, int, float, np.ndarray]]:
    """Dimension, numbers of groups and values, epsilon, and mean errors (R, 3) of the groups in each simulation."""
    for dimension in DIMENSIONS:
        flights = flights_by(dimension)
        for epsilon in EPSILONS:
            rng = np.random.default_rng(SEED)
            found = np.array([errors(flights, epsilon, rng).mean(axis=1) for _ in range(runs)])
            yield dimension, *flights.shape, epsilon, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    print("| groups | epsilon | alone | pooled | borrowed | borrowed / better of both |")
    print("|---|---|---|---|---|---|")
    for dimension, groups, _, epsilon, found in rows(parser.parse_args().runs):
        alone, pooled, borrowed = found.mean(axis=0)
        numbers = " | ".join(f"{1e4 * error:.3g}" for error in (alone, pooled, borrowed))
        ratio = borrowed / min(alone, pooled)
        print(f"| {groups} by {dimension} | {epsilon:g} | {numbers} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
