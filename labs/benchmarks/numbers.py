"""Variance of a mean by the square wave, beside mechanisms for means and for unordered values: docs/numbers.md.

All figures are n times the variance, on [0, 1], of a log-normal population in 32 bins. The piecewise mechanism is that
of Wang et al. 2019 ("Collecting and Analyzing Multidimensional Data with Local Differential Privacy"), section III.
"""

from __future__ import annotations

import numpy as np

from uldp_transforms.ldp.mechanisms import KaryRR, Rappor, SquareWave

BINS = 32
EPSILONS = (0.5, 1.0, 2.0, 4.0)


def population() -> tuple[np.ndarray, np.ndarray]:
    """(K,) centres of the bins, (K,) shares of people."""
    centres = (np.arange(BINS) + 0.5) / BINS
    people = np.exp(-0.5 * ((np.log(centres) + 1.2) / 0.5) ** 2) / centres
    return centres, people / people.sum()


def piecewise(epsilon: float, centres: np.ndarray, people: np.ndarray) -> float:
    """The piecewise mechanism on [-1, 1], scaled to [0, 1], with the variance of the people themselves."""
    h, x = np.exp(epsilon / 2), 2 * centres - 1
    noise = people @ (x**2 / (h - 1) + (h + 3) / (3 * (h - 1) ** 2)) / 4
    return float(noise + people @ centres**2 - (people @ centres) ** 2)


def rows() -> list[list[str]]:
    """A row of the table for each epsilon."""
    centres, people = population()
    found = []
    for epsilon in EPSILONS:
        sizes = {"num_symbols": BINS, "num_sensitive": BINS, "epsilon": epsilon}
        wave, oue, krr = (
            float(mechanism.variance_of(centres, people))
            for mechanism in (SquareWave(**sizes), Rappor(**sizes, theta=0.5), KaryRR(**sizes))
        )
        figures = (wave, piecewise(epsilon, centres, people), oue, krr)
        found.append([f"{epsilon:g}", *(f"{figure:.3g}" for figure in figures)])
    return found


if __name__ == "__main__":
    for row in rows():
        print(f"| {' | '.join(row)} |")
