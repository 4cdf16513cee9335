"""Values in public blocks against the flat list: how many fewer people are needed, and what the blocks tell."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from labs.experiments.frame import (
    Experiment,
    Result,
    Verdict,
    draw_people,
    progress,
    read_table,
    simulate_counts,
    squared_error,
)
from uldp_transforms.ldp import Collection

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPSILONS = (0.5, 1.0, 2.0, 4.0)
PEOPLE = 10_000
FLAT, BLOCKS = "flat list", "blocks"
COLORS = {FLAT: "#555555", BLOCKS: "#0072b2"}
MAX_DEVIATIONS = 6.0
"""Between a simulated squared error and the exact one, in standard errors."""


class Population(NamedTuple):
    """Values with their shares, and the public block of each."""

    blocks: dict[str, list[str]]
    shares: dict[str, float]
    sensitive: tuple[str, ...] | None = None

    @property
    def values(self) -> tuple[str, ...]:
        return tuple(value for own in self.blocks.values() for value in own)

    @property
    def law(self) -> np.ndarray:
        """(S,), in the order of ``values``; sums to 1."""
        law = np.array([self.shares[value] for value in self.values])
        return law / law.sum()

    @property
    def law_of_blocks(self) -> np.ndarray:
        """(B,), in the order of ``blocks``."""
        sizes = np.array([len(own) for own in self.blocks.values()])
        return np.add.reduceat(self.law, np.cumsum(sizes) - sizes)


def population(values: Sequence[str], shares: Sequence[float], block_of: Sequence[str], *sensitive: str) -> Population:
    """The values by their blocks, in the order in which these occur."""
    blocks: dict[str, list[str]] = {}
    for value, block in zip(values, block_of):
        blocks.setdefault(block, []).append(value)
    return Population(blocks, dict(zip(values, shares)), sensitive or None)


def airports() -> Population:
    table = read_table("airport_regions.csv")
    return population(table["airport"], [float(number) for number in table["departures"]], table["region"])


def categories() -> Population:
    """The categories of Adult, 80 of each age band in the order of their codes, from 1 on."""
    table = read_table("adult_480.csv")
    sensitive = (code for code, kind in zip(table["code"], table["sensitive"]) if kind == "1")
    ages = [f"age {(int(code) - 1) // 80}" for code in table["code"]]
    return population(table["code"], [float(number) for number in table["count"]], ages, *sensitive)


def codes() -> Population:
    """Made-up codes of diagnoses, A00 to T19: letters are chapters, as in ICD-10; frequencies 1/rank, of both parts."""
    names = [f"{letter}{number:02}" for letter in "ABCDEFGHIJKLMNOPQRST" for number in range(20)]
    shares = [1 / ((1 + ord(name[0]) - ord("A")) * (1 + int(name[1:]))) for name in names]
    return population(names, shares, [name[0] for name in names])


def surnames() -> Population:
    """Without the only name with X, whose block would say it in clear."""
    table = read_table("surnames.csv")
    kept = [(name, float(share)) for name, share in zip(table["name"], table["percent"]) if name[0] != "X"]
    return population([name for name, _ in kept], [share for _, share in kept], [name[0] for name, _ in kept])


POPULATIONS: dict[str, Callable[[], Population]] = {
    "229 airports by region": airports,
    "480 categories by age": categories,
    "400 codes by chapter": codes,
    "4,095 surnames by first letter": surnames,
}


class PublicBlocks(Experiment):
    id = "blocks"
    title = "Values in public blocks against the flat list"
    source = "Acharya et al. 2020, section 3, on data of ours"
    abstract = (
        "Departures from 229 US airports by region, the 480 categories of Adult by age, 400 made-up codes of diagnoses "
        "by chapter, and US surnames by first letter; `ss` over the flat list and within blocks (of Adult, with 128 "
        "sensitive categories: `uss`). The sums are of n times the variances of all values at their true shares. "
        "`bits` is the entropy of values, `told` that of their blocks, which are sent in clear; `guess` is the chance "
        "to guess a value without a report, and from its block."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        names = list(POPULATIONS)[: 2 if reduced else None]
        number = runs or (20 if reduced else 30)
        rows = [row for name in progress(names, self.id) for row in compared(name, number, rng)]
        return Result(rows=rows, verdicts=[fewer_people(rows), as_noise(rows), as_forecast(rows)])

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        names = list(dict.fromkeys(row["values"] for row in rows))
        for name, axes in zip(names, figure.subplots(1, len(names), sharey=True, squeeze=False)[0]):
            for way, color in COLORS.items():
                own = [row for row in rows if (row["values"], row["way"]) == (name, way)]
                epsilons = [row["epsilon"] for row in own]
                axes.plot(epsilons, [row["sum"] / PEOPLE for row in own], color=color, label=way)
                axes.plot(epsilons, [row["simulated"] for row in own], "o", color=color)
            axes.set(
                xscale="log", yscale="log", xlabel="epsilon", xticks=EPSILONS, xticklabels=map("{:g}".format, EPSILONS)
            )
            axes.set_title(name, fontsize=9)
            axes.minorticks_off()
        figure.axes[0].set_ylabel(f"squared l2 error, {PEOPLE:,} people")
        figure.axes[0].legend()


def collection(people: Population, way: str, epsilon: float) -> Collection:
    list_of = {"id": "blocks", "blocks": people.blocks} if way == BLOCKS else {"id": "closed", "values": people.values}
    return Collection.from_json({
        "id": "blocks", "version": 1, "alphabet": list_of | {"sensitive": people.sensitive},
        "mechanism": {"id": "uss" if people.sensitive else "ss", "epsilon": epsilon},
    })  # fmt: skip


def compared(name: str, runs: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """The rows of one population: each epsilon, over the flat list and within blocks."""
    people, rows = POPULATIONS[name](), []
    told = what_blocks_tell(people)
    for epsilon in EPSILONS:
        found = {way: collection(people, way, epsilon) for way in COLORS}
        sums = {way: sum_of_variances(each, people) for way, each in found.items()}
        for way, each in found.items():
            errors = squared_errors(each, people, runs, rng)
            rows.append({
                "values": name, "epsilon": epsilon, "way": way, "sum": sums[way], "times": sums[FLAT] / sums[way],
                "simulated": float(errors.mean()), "error": float(errors.std(ddof=1)) / math.sqrt(runs), "runs": runs,
            } | told)  # fmt: skip
    return rows


def what_blocks_tell(people: Population) -> dict[str, float]:
    """Bits of values and of blocks, chances to guess a value, and how much less noise k of K values have, on average.

    The smallest noise of k values is proportional to (k - 1)^2 / k (Ye and Barg 2018).
    """
    sizes = np.array([len(own) for own in people.blocks.values()])
    starts, noise, total = np.cumsum(sizes) - sizes, (sizes - 1) ** 2 / sizes, sizes.sum()
    return {
        "bits": entropy(people.law),
        "told": entropy(people.law_of_blocks),
        "guess": float(people.law.max()),
        "guess_from_block": float(np.maximum.reduceat(people.law, starts).sum()),
        "noise": float((total - 1) ** 2 / total / (people.law_of_blocks @ noise)),
    }


def entropy(law: np.ndarray) -> float:
    """In bits."""
    positive = law[law > 0]
    return float(-(positive * np.log2(positive)).sum())


def sum_of_variances(asked: Collection, people: Population) -> float:
    """Of n times the variances of all values, at their shares."""
    symbols = asked.alphabet.symbol_table(people.values, 1)[0]
    law = np.zeros(asked.mechanism.num_symbols)
    law[symbols] = people.law
    return float(asked.mechanism.variances(law).sum())


def squared_errors(asked: Collection, people: Population, runs: int, rng: np.random.Generator) -> np.ndarray:
    """(runs,): squared errors of the unbiased shares of PEOPLE people."""
    estimate = functools.partial(asked.estimate, estimator="empirical", candidates=people.values)
    counted = (simulate_counts(asked, people.values, draw_people(people.law, PEOPLE, rng), rng) for _ in range(runs))
    return np.array([squared_error(estimate(counts).raw_frequencies, people.law) for counts in counted])


def fewer_people(rows: Sequence[dict[str, Any]]) -> Verdict:
    times = [row["times"] for row in rows if row["way"] == BLOCKS]
    return Verdict(
        claim="Blocks need fewer people than the flat list.",
        holds=min(times) > 1,
        evidence=f"{min(times):.1f} to {max(times):.1f} times fewer, for the same sum of variances.",
    )


def as_noise(rows: Sequence[dict[str, Any]]) -> Verdict:
    """Of lists in which every value is sensitive."""
    own = [row for row in rows if row["way"] == BLOCKS and "categories" not in row["values"]]
    parts = [row["times"] / row["noise"] for row in own if row["epsilon"] <= 1]
    return Verdict(
        claim="At epsilon 1 and below, if every value is sensitive, a block of k values has the noise of a list of k.",
        holds=0.97 <= min(parts) <= max(parts) <= 1.03,
        evidence=f"The gain is {min(parts):.3f} to {max(parts):.3f} times that which follows.",
    )


def as_forecast(rows: Sequence[dict[str, Any]]) -> Verdict:
    apart = max(abs(row["simulated"] - row["sum"] / PEOPLE) / row["error"] for row in rows)
    return Verdict(
        claim="Simulated squared errors are the exact ones.",
        holds=apart <= MAX_DEVIATIONS,
        evidence=f"They differ by at most {apart:.1f} standard errors.",
    )
