"""Print what guaranteed intervals of quantiles cover, for docs/numbers.md: a line for each number of people and q.

``python -m labs.experiments.numbers.quantile_intervals 300``

The argument is the number of runs of each setting. Populations are those of ``uldp reproduce numbers`` in 32 bins;
numbers are spread evenly within bins. A cell has, for one epsilon, the coverage on average over populations with that
of the worst population in brackets, and the length as a part of the range; open ends count up to the range's ends.
"""

from __future__ import annotations

import itertools
import sys

import numpy as np

from labs.experiments.numbers.populations import coarse, populations
from labs.experiments.numbers.smooth_intervals import BINS, collection
from uldp_transforms.ldp import CohortCounts
from uldp_transforms.ldp.estimators.number_estimates import Quantile, estimate_numbers

EPSILONS, PEOPLE, QUANTILES = (0.5, 1.0, 2.0, 4.0), (500, 2_000, 10_000, 100_000), (0.1, 0.5, 0.9, 0.99)
SEED = 1


def of_setting(epsilon: float, people: int, name: str, runs: int, rng: np.random.Generator) -> np.ndarray:
    """(4, 2): for each quantile the share of intervals that hold, and their average length."""
    item, shares = collection(epsilon), coarse(populations()[name], BINS)
    truth = np.interp(QUANTILES, np.append(0, np.cumsum(shares)), np.arange(BINS + 1) / BINS).tolist()
    found = np.zeros((runs, len(QUANTILES), 2))
    for run, cells in enumerate(rng.multinomial(people, item.mechanism.response(shares), size=runs)):
        counts = CohortCounts(np.array([people]), cells[np.newaxis])
        each = estimate_numbers(item, counts, quantiles=QUANTILES, smooth=False).quantiles
        found[run] = [_judged(one, true) for one, true in zip(each, truth)]
    average: np.ndarray = found.mean(axis=0)
    return average


def _judged(found: Quantile, truth: float) -> tuple[bool, float]:
    low, high = (0.0 if found.low is None else found.low), (1.0 if found.high is None else found.high)
    return low <= truth <= high, high - low


def lines(runs: int) -> list[list[str]]:
    """A line for each number of people and quantile, with a cell for each epsilon."""
    rng, table = np.random.default_rng(SEED), dict[tuple[int, float], list[str]]()
    for people, epsilon in itertools.product(PEOPLE, EPSILONS):
        held, length = np.moveaxis([of_setting(epsilon, people, name, runs, rng) for name in populations()], 2, 0)
        for at, q in enumerate(QUANTILES):
            cell = f"{held[:, at].mean():.3f} ({held[:, at].min():.2f}), {length[:, at].mean():.2f}"
            table.setdefault((people, q), []).append(cell)
    return [[f"{people:,}", f"{q:g}", *cells] for (people, q), cells in table.items()]


if __name__ == "__main__":
    for line in lines(int(sys.argv[1])):
        print(f"| {' | '.join(line)} |")
