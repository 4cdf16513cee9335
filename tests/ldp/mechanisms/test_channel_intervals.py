"""Intervals through declared channels: enumerated for few reports, simulated for many; see docs/channels.md."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats

from tests.support.ldp.made_collections import made
from tests.support.tolerance import binomial_limits, generator
from uldp_transforms.ldp import CohortCounts, Collection

LEAST = 0.94
"""Minimum coverage of a 95 % interval, for every value of every population."""

CHANNELS: dict[str, tuple[tuple[str, ...], ...]] = {
    "columns nearly alike": ((".4", ".39", ".2"), (".3", ".31", ".3"), (".3", ".3", ".5")),
    "3 outputs, 2 values": ((".5", ".45"), (".3", ".25"), (".2", ".3")),
    "3 outputs, 2 values, clear": ((".8", ".1"), (".1", ".1"), (".1", ".8")),
    "3 outputs, 2 values, one rules out": ((".05", "0"), (".9", ".2"), (".05", ".8")),
    "4 outputs, 3 values": ((".5", ".2", ".1"), (".2", ".4", ".2"), (".2", ".2", ".3"), (".1", ".2", ".4")),
    "3 outputs, 3 values": ((".7", ".1", ".2"), (".2", ".8", ".1"), (".1", ".1", ".7")),
}
POPULATIONS = {
    2: [(0, 1), (0.02, 0.98), (0.1, 0.9), (0.3, 0.7), (0.5, 0.5), (0.8, 0.2), (1, 0)],
    3: [(0, 0.5, 0.5), (0.5, 0, 0.5), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1 / 3, 1 / 3, 1 / 3), (0.9, 0.05, 0.05),
        (0.05, 0.9, 0.05), (0.05, 0.05, 0.9), (0.2, 0.7, 0.1)],
}  # fmt: skip


def asked(name: str) -> Collection:
    matrix = [[text if text == "0" else f"0{text}" for text in row] for row in CHANNELS[name]]
    values = list("abc"[: len(matrix[0])])
    alphabet, mechanism = {"id": "closed", "values": values}, {"id": "channel", "matrix": matrix}
    return made(alphabet, mechanism, id="asked")


def possible(reports: int, outputs: int) -> Iterator[tuple[int, ...]]:
    """All counts of so many reports."""
    for bars in itertools.combinations(range(reports + outputs - 1), outputs - 1):
        yield tuple(b - a - 1 for a, b in itertools.pairwise((-1, *bars, reports + outputs - 1)))


def intervals(question: Collection, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Published intervals, (outcomes, values) each, of counts (outcomes, outputs)."""
    found = [question.estimate(CohortCounts(each.sum(keepdims=True), each[np.newaxis])) for each in cells]
    return np.array([each.ci_low for each in found]), np.array([each.ci_high for each in found])


def coverage(name: str, reports: int) -> np.ndarray:
    """Exact probability (populations, values) that the interval contains the truth."""
    question = asked(name)
    cells = np.array(list(possible(reports, len(CHANNELS[name]))))
    low, high = intervals(question, cells)
    covered = []
    for truth in np.array(POPULATIONS[low.shape[1]]):
        law = stats.multinomial(reports, question.mechanism.response(truth)).pmf(cells)
        covered.append(law @ ((low <= truth + 1e-12) & (truth - 1e-12 <= high)))
    return np.array(covered)


@pytest.mark.parametrize(
    ("name", "reports"),
    [(name, reports) for name in CHANNELS for reports in (20, 30) if len(CHANNELS[name]) == 3]
    + [("4 outputs, 3 values", 20)],
)
def test_few_reports_are_covered_in_every_population(name, reports):
    assert (coverage(name, reports) >= LEAST).all()


def simulated(name: str, reports: int, windows: int) -> np.ndarray:
    """Number of windows (populations, values) whose interval contains the truth."""
    question, rng = asked(name), generator("channel intervals", name, reports)
    held = []
    for truth in np.array(POPULATIONS[len(CHANNELS[name][0])]):
        law = question.mechanism.response(truth)
        low, high = intervals(question, rng.multinomial(reports, law / math.fsum(law), size=windows))
        held.append(((low <= truth) & (truth <= high)).sum(axis=0))
    return np.array(held)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANNELS)
@pytest.mark.parametrize("reports", [50, 100, 300, 5000])
def test_more_reports_are_covered_in_every_population(name, reports):
    windows = 1000
    held = simulated(name, reports, windows)
    low, _ = binomial_limits(np.full(held.shape, windows), np.full(held.shape, LEAST))
    assert (held >= low).all()


def main() -> None:
    """Print the smallest coverage by channel and number of reports."""
    print("| channel | 20 reports | 50 | 300 | 5,000 |\n|---|---|---|---|---|")
    for name in CHANNELS:
        least = [coverage(name, 20).min()] + [simulated(name, n, 1000).min() / 1000 for n in (50, 300, 5000)]
        print(f"| {name} | " + " | ".join(f"{share:.3f}" for share in least) + " |", flush=True)


if __name__ == "__main__":
    main()
