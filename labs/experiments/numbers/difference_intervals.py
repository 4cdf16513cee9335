"""Print what intervals of differences cover, for docs/numbers.md: a line for each epsilon and number of people, on
average over populations, and a line for each population.

``python -m labs.experiments.numbers.difference_intervals 100``

The argument is the number of runs of each setting. The first group has a population of ``uldp reproduce numbers`` in 32
bins; in the second one a fifth of these people have numbers that are spread evenly instead. Both have the same number
of people. Cells are of means, of quantiles, and of shares above limits: guaranteed / smooth.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence

import numpy as np

from labs.experiments.frame import progress
from labs.experiments.numbers.populations import coarse, populations
from labs.experiments.numbers.smooth_intervals import BINS, collection
from uldp_transforms.ldp import CohortCounts
from uldp_transforms.ldp.estimators.number_sums import NumberReports, NumberSums
from uldp_transforms_compare.comparisons.compare_numbers import compare_numbers
from uldp_transforms_compare.comparisons.difference_columns import Difference

EPSILONS, PEOPLE = (0.5, 1.0, 2.0, 4.0), (500, 5_000, 50_000)
QUANTILES, LIMITS = (0.1, 0.5, 0.9), (0.25, 0.5)
SEED = 2
_OTHERS = 0.2


def of_setting(epsilon: float, people: int, name: str, runs: int, rng: np.random.Generator) -> np.ndarray:
    """(6, 2): for the mean, each quantile and each share, how often the guaranteed and the smooth interval hold."""
    item, first = collection(epsilon), coarse(populations()[name], BINS)
    laws = [first, (1 - _OTHERS) * first + _OTHERS / BINS]
    truth = np.subtract(*(_figures(law) for law in laws))
    held = np.zeros((runs, len(truth), 2))
    for run in range(runs):
        sides = []
        for law in laws:
            cells = rng.multinomial(people, item.mechanism.response(law))[np.newaxis]
            sides.append(NumberSums([NumberReports(item, CohortCounts(np.array([people]), cells))]))
        held[run] = _held(compare_numbers(*sides, limits=LIMITS, quantiles=QUANTILES), truth)
    average: np.ndarray = held.mean(axis=0)
    return average


def _figures(law: np.ndarray) -> np.ndarray:
    below, edges = np.append(0, np.cumsum(law)), np.arange(BINS + 1) / BINS
    mean = law @ (edges[1:] + edges[:-1]) / 2
    return np.array([mean, *np.interp(QUANTILES, below, edges), *(1 - np.interp(LIMITS, edges, below))])


def _held(found: Sequence[Difference], truth: np.ndarray) -> np.ndarray:
    """(6, 2) whether intervals hold; an end that is None is open."""
    ends = np.array(
        [[[one.low, one.display_low], [one.high, one.display_high]] for one in found], dtype=np.float64
    )  # None: NaN
    held: np.ndarray = ~(ends[:, 0] > truth[:, np.newaxis]) & ~(ends[:, 1] < truth[:, np.newaxis])
    return held


def lines(runs: int) -> list[list[str]]:
    rng, settings = np.random.default_rng(SEED), list(itertools.product(EPSILONS, PEOPLE))
    names = [*populations()]
    held = np.array([[of_setting(*setting, name, runs, rng) for name in names] for setting in progress(settings, "")])
    table = [[f"{epsilon:g}", f"{people:,}", *_cells(of)] for (epsilon, people), of in zip(settings, held)]
    return table + [[name, "", *_cells(held[:, at])] for at, name in enumerate(names)]


def _cells(held: np.ndarray) -> list[str]:
    """Averages of (..., 6, 2): of the mean, of quantiles, of shares."""
    return [
        " / ".join(f"{held[..., kind, way].mean():.3f}" for way in (0, 1))
        for kind in (slice(0, 1), slice(1, 4), slice(4, 6))
    ]


if __name__ == "__main__":
    for line in lines(int(sys.argv[1])):
        print(f"| {' | '.join(line)} |")
