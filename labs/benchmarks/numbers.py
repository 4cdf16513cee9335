"""Variance of a mean by the square wave, beside mechanisms for means and for unordered values, and of means and shares
where only the largest numbers are sensitive.

All figures are n times the variance, on [0, 1], of a log-normal population in 32 bins. The piecewise mechanism is that
of Wang et al. 2019 ("Collecting and Analyzing Multidimensional Data with Local Differential Privacy"), section III.
"""

from __future__ import annotations

import numpy as np

from uldp_transforms.ldp.mechanisms import KaryRR, Rappor, SquareWave, UtilityOptimizedRR, UtilityOptimizedSquareWave

BINS = 32
EPSILONS = (0.5, 1.0, 2.0, 4.0)
SENSITIVE = (16, 8, 4)
"""Numbers of bins at the upper end that are sensitive."""


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


def rows_of_ranges() -> list[list[str]]:
    """For each epsilon up to 2 and number of sensitive bins: their share of people; the mean and the share of people
    above the lower end of the range, by ``usw``, ``urr`` and ``sw``, which protects all bins."""
    centres, people = population()
    found = []
    for epsilon in EPSILONS[:3]:
        for number in SENSITIVE:
            order = np.r_[BINS - number : BINS, : BINS - number]  # sensitive bins have the first symbols
            weights, shares = np.stack([centres, np.arange(BINS) >= BINS - number])[:, order], people[order]
            sizes = {"num_symbols": BINS, "epsilon": epsilon}
            ours, urr = (cls(**sizes, num_sensitive=number) for cls in (UtilityOptimizedSquareWave, UtilityOptimizedRR))
            figures = [
                *(variance for one in (ours, urr) for variance in one.variance_of(weights, shares)),
                *SquareWave(**sizes, num_sensitive=BINS).variance_of(weights[:, np.argsort(order)], people),
            ]
            held = f"{number} of {BINS}, {people[-number:].sum():.1%}".replace("%", " %")
            means, above = (", ".join(f"{figure:.3g}" for figure in figures[at::2]).split(", ") for at in (0, 1))
            found.append([f"{epsilon:g}", held, *means, *above])
    return found


if __name__ == "__main__":
    for row in rows() + rows_of_ranges():
        print(f"| {' | '.join(row)} |")
