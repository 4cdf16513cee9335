"""Levels of sensitive values, each with its own epsilon: how many fewer people are needed than with one epsilon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from labs.experiments.frame import Experiment, Result, Verdict
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.mechanisms import Mechanism, NestedLevels, UtilityOptimizedSubsetSelection
from uldp_transforms.ldp.sampling import SeededSource

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SETTINGS = ((5, 0.5, 45, 2.0), (5, 1.0, 45, 3.0), (10, 1.0, 90, 4.0), (3, 1.0, 20, 2.0), (2, 0.5, 98, 1.0))
"""Number of values and epsilon of the first level, then of the second one."""

CLEAR = 10
"""Number of values that are not sensitive; half of the people hold one of them."""

PEOPLE = 10_000
ONE, LEVELS = "one epsilon", "levels"
COLORS = {ONE: "#555555", LEVELS: "#0072b2"}
MAX_DEVIATIONS = 6.0
"""Between a simulated squared error and the exact one, in standard errors."""


class ValueLevels(Experiment):
    id = "levels"
    title = "Levels of sensitive values against one epsilon for all of them"
    source = "left open by Murakami & Kawamoto 2019, section 3.1"
    abstract = (
        "Few values need a small epsilon, many a larger one, ten none. `uss` with the small epsilon for all sensitive "
        "values, with its best set size, and `levels` of `uss`. The sums are of n times the variances of all values, "
        "each rare and everybody in its own level. Squared errors are simulated where half of the people hold a "
        "sensitive value, the i-th with a share proportional to 1/i."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        number = runs or (30 if reduced else 300)
        rows = [row for setting in SETTINGS[: 2 if reduced else None] for row in compared(setting, number, rng)]
        return Result(rows=rows, verdicts=[fewer_people(rows), as_forecast(rows)])

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        axes = figure.subplots()
        names = list(dict.fromkeys(row["setting"].replace(", ", ",\n") for row in rows))
        for place, (way, color) in enumerate(COLORS.items()):
            own = [row["sum"] for row in rows if row["way"] == way]
            axes.bar(np.arange(len(own)) + 0.4 * place, own, 0.4, color=color, label=way)
        axes.set(yscale="log", ylabel="sum of n Var", xticks=np.arange(len(names)) + 0.2, xticklabels=names)
        axes.tick_params(axis="x", labelsize=8)
        axes.legend()


def mechanisms(setting: tuple[int, float, int, float]) -> dict[str, Mechanism]:
    """One epsilon for all sensitive values, and levels."""
    first, low, second, high = setting
    v = first + second
    texts = tuple(f"value {i}" for i in range(v))
    levels = ({"epsilon": low, "values": texts[:first]}, {"epsilon": high, "values": texts[first:]})
    sizes = {"num_symbols": v + CLEAR, "num_sensitive": v}
    of_size = [UtilityOptimizedSubsetSelection(**sizes, epsilon=low, subset_size=size) for size in range(1, v)]
    return {ONE: min(of_size, key=sum_of_variances), LEVELS: NestedLevels(**sizes, levels=levels)}


def sum_of_variances(mechanism: Mechanism) -> float:
    """Of n times the variances of all values, each rare if everybody is in its own level; in clear once, at share 1."""
    total = 1 / mechanism.reveal_rate
    for guarantee in mechanism.guarantees:
        rare, *others = guarantee.symbols
        people = np.zeros(mechanism.num_symbols)
        people[others] = 1 / len(others)
        total += len(guarantee.symbols) * float(mechanism.variances(people)[rare])
    return total


def compared(setting: tuple[int, float, int, float], runs: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """The rows of one epsilon and of levels."""
    first, low, second, high = setting
    name = f"{first} at {low:g}, {second} at {high:g}"
    found = mechanisms(setting)
    sums = {way: sum_of_variances(mechanism) for way, mechanism in found.items()}
    rows = []
    for way, mechanism in found.items():
        errors = squared_errors(mechanism, runs, rng)
        rows.append({
            "setting": name, "way": way, "sum": sums[way], "times": sums[ONE] / sums[way],
            "expected": float(mechanism.variances(population(mechanism)).sum()) / PEOPLE,
            "simulated": float(errors.mean()), "error": float(errors.std(ddof=1)) / math.sqrt(runs), "runs": runs,
        })  # fmt: skip
    return rows


def population(mechanism: Mechanism) -> np.ndarray:
    """(K,): shares of the values."""
    ranks = 1 / np.arange(1, mechanism.num_sensitive + 1)
    return np.append(ranks / ranks.sum(), np.full(CLEAR, 1 / CLEAR)) / 2


def squared_errors(mechanism: Mechanism, runs: int, rng: np.random.Generator) -> np.ndarray:
    """(runs,): squared errors of the unbiased shares of PEOPLE people."""
    shares, source = population(mechanism), SeededSource(rng)
    errors = []
    for _ in range(runs):
        payloads = mechanism.perturb(rng.choice(len(shares), PEOPLE, p=shares), source)
        cells = mechanism.count(payloads, np.zeros(PEOPLE, dtype=np.int64), 1)
        errors.append(((mechanism.invert(CohortCounts(np.array([PEOPLE]), cells))[0] - shares) ** 2).sum())
    return np.array(errors)


def fewer_people(rows: Sequence[dict[str, Any]]) -> Verdict:
    times = [row["times"] for row in rows if row["way"] == LEVELS]
    return Verdict(
        claim="Levels need fewer people than one epsilon for all.",
        holds=min(times) > 1,
        evidence=f"{min(times):.1f} to {max(times):.1f} times fewer, for the same sum of variances.",
    )


def as_forecast(rows: Sequence[dict[str, Any]]) -> Verdict:
    apart = max(abs(row["simulated"] - row["expected"]) / row["error"] for row in rows)
    return Verdict(
        claim="Simulated squared errors are the exact ones.",
        holds=apart <= MAX_DEVIATIONS,
        evidence=f"They differ by at most {apart:.1f} standard errors.",
    )
