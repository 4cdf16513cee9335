"""Print what smooth intervals of few people cover, and whether a test of fit sees where they fail, for docs/numbers.md.

    python -m labs.experiments.numbers.few_reports 40

The argument is the number of runs of each population. They are those of ``uldp reproduce numbers`` in 32 bins, and one
with a third of all people in one bin; 1,000 people, epsilon 1. Cells are the share of intervals of shares above edges
that hold, on average and at the worst edge, and how often Pearson's test of the counts rejects the smooth distribution
at 5 %. It has one degree of freedom less than the outputs, and so many less as the posterior mean has on average.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy import special

from labs.experiments.numbers.populations import coarse, populations
from labs.experiments.numbers.smooth_intervals import BINS, collection
from uldp_transforms.ldp import CohortCounts
from uldp_transforms.ldp.estimators.log_smooth import fit_log_smooth
from uldp_transforms.ldp.estimators.number_estimates import estimate_numbers

PEOPLE, EPSILON = 1000, 1.0
_OF_POSTERIOR = 3  # degrees of freedom


def of_population(shares: np.ndarray, runs: int, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Share of runs (edges,) whose intervals hold, and share of runs whose fit is rejected."""
    item, above, edges = collection(EPSILON), 1 - np.cumsum(shares)[:-1], (np.arange(1, BINS) / BINS).tolist()
    held, rejected = np.zeros(len(edges)), 0
    for cells in rng.multinomial(PEOPLE, item.mechanism.response(shares), size=runs):
        counts = CohortCounts(np.array([PEOPLE]), cells[np.newaxis])
        found = estimate_numbers(item, counts, limits=edges).shares_above
        held += [one.display_low <= share <= one.display_high for one, share in zip(found, above)]
        smooth = fit_log_smooth(item, counts)
        assert smooth is not None, "reports are outputs of a channel"
        expected = PEOPLE * item.mechanism.response(smooth.frequencies)
        statistic = float(((cells - expected) ** 2 / expected).sum())
        rejected += special.chdtrc(len(cells) - 1 - _OF_POSTERIOR, statistic) < 0.05
    return held / runs, rejected / runs


def main() -> None:
    """Print the table."""
    runs, rng = int(sys.argv[1]), np.random.default_rng(1)
    asked = {name: coarse(shares, BINS) for name, shares in populations().items()}
    asked["a third in one bin"] = 2 / 3 * asked["log-normal"] + np.eye(BINS)[12] / 3
    print("| population | shares covered | at the worst edge | fit rejected |\n|---|---|---|---|")
    for name, shares in asked.items():
        held, rejected = of_population(shares, runs, rng)
        print(f"| {name} | {held.mean():.2f} | {held.min():.2f} | {rejected:.2f} |", flush=True)


if __name__ == "__main__":
    main()
