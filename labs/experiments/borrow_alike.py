"""The error of small groups that borrow among groups that are alike, beside that of the pooled shares.

    python -m labs.experiments.borrow_alike [--runs 40]

prints a table. People of all groups answer alike: ten values with shares like 1 / rank, k-RR.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from labs.experiments.borrow_flights import errors

SMALL, LARGE, VALUES = 200, 5000, 10
GROUPS = ((1, 4), (2, 1), (3, 2), (5, 5), (15, 5), (20, 0))
"""Numbers of groups of 200 and of 5,000 people."""
EPSILONS = (1.0, 4.0)
SEED = 31


def errors_of_small(small: int, large: int, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """(3,) mean squared errors of the small groups in one simulation: alone, pooled, borrowed."""
    shares = 1 / np.arange(1.0, VALUES + 1)
    people = np.outer([SMALL] * small + [LARGE] * large, shares / shares.sum())
    found: np.ndarray = errors(np.rint(people).astype(np.int64), epsilon, rng)[:, :small].mean(axis=1)
    return found


def rows(runs: int) -> Iterator[tuple[int, int, float, np.ndarray]]:
    """Numbers of small and large groups, epsilon, and the errors (R, 3) of each simulation."""
    for small, large in GROUPS:
        for epsilon in EPSILONS:
            rng = np.random.default_rng([SEED, small, large, int(epsilon)])
            yield small, large, epsilon, np.array([errors_of_small(small, large, epsilon, rng) for _ in range(runs)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40)
    print("| groups of 200 + of 5,000 | epsilon | alone | pooled | borrowed | borrowed / pooled | most |")
    print("|---|---|---|---|---|---|---|")
    for small, large, epsilon, found in rows(parser.parse_args().runs):
        alone, pooled, borrowed = found.mean(axis=0)
        numbers = " | ".join(f"{1e4 * error:.3g}" for error in (alone, pooled, borrowed))
        most = float((found[:, 2] / found[:, 0]).max())
        name = f"{small} + {large}"
        print(f"| {name} | {epsilon:g} | {numbers} | {borrowed / pooled:.2f} | {most:.2f} |", flush=True)


if __name__ == "__main__":
    main()
