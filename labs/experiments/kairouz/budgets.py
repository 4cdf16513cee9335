"""The epsilon that a given squared l2 loss requires, by numbers of people and of values."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import optimize

from labs.experiments.frame import Experiment, Result, Verdict, squared_error
from labs.experiments.kairouz import hashing_error as hashing
from labs.experiments.kairouz import inputs
from labs.experiments.kairouz.alphabets import COLORS, IDS, K_RAPPOR, K_RR, O_RAPPOR, O_RR
from uldp_transforms.ldp import Collection

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TARGET = 1e-3
"""Expected squared l2 loss of the empirical estimate."""

LOWEST, HIGHEST = 0.05, 16.0
ROUNDING = 1e-6
"""Relative precision of the epsilon found."""

SIMULATED_PEOPLE = 1_000_000
"""Up to so many people, what the epsilon found really gives is simulated."""


class _Budget(Experiment):
    """The epsilon needed over (values, people) pairs, closed and open alphabets."""

    against: ClassVar[str]
    """Column that changes."""

    @abc.abstractmethod
    def points(self, reduced: bool) -> list[tuple[int, int]]:
        """(values, people)."""

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        counters, runs = 1 << 12 if reduced else hashing.COUNTERS, runs or (10 if reduced else 5)
        points = self.points(reduced)
        rows = []
        for size in dict.fromkeys(size for size, _ in points):
            numbers = [number for of_size, number in points if of_size == size]
            for closed in (True, False):
                plans = Plans.over(inputs.geometric(size), counters, closed=closed)
                for number in numbers:
                    people = inputs.population(plans.frequencies, number)
                    for mechanism in plans.mechanisms:
                        row = {"alphabet": "closed" if closed else "open", "mechanism": mechanism}
                        rows.append(row | budget_row(plans, mechanism, people, runs, rng))
        verdicts = [
            response_needs_least(rows, alphabet, lowest) for alphabet in ("closed", "open") for lowest in (0.0, 1.0)
        ]
        return Result(rows=rows, verdicts=verdicts)

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        panels = figure.subplots(1, 2, sharey=True)
        for axes, alphabet in zip(panels, ("closed", "open")):
            for mechanism in (K_RR, K_RAPPOR, O_RAPPOR, O_RR):
                found = [
                    (row[self.against], row["epsilon"])
                    for row in rows
                    if (row["alphabet"], row["mechanism"]) == (alphabet, mechanism) and row["epsilon"] is not None
                ]
                if found:
                    style = "--" if mechanism == K_RR else "-"
                    axes.plot(*zip(*found), style, marker=".", color=COLORS[mechanism], label=mechanism)
            axes.set_xscale("log", base=2 if self.against == "values" else 10)
            axes.tick_params(axis="x", which="minor", labelbottom=False)
            axes.set(xlabel=self.against, yscale="log", title=f"{alphabet} alphabet")
            axes.legend()
        panels[0].set_ylabel(f"epsilon for a squared l2 loss of {TARGET:g}")


class EpsilonByPeople(_Budget):
    id = "kairouz-epsilon-people"
    title = "The epsilon that a precision costs, against the number of people"
    source = f"{inputs.SOURCE}, section 5; for a squared l2 loss"
    abstract = (
        "The least epsilon with which the expected squared l2 loss of the empirical estimate is 0.001, for 256 values "
        "(reduced: 64) with geometric shares, found by bisection on the exact expected loss; O-RR and O-RAPPOR with "
        "the best buckets for it and 16,384 (4,096) counters. Up to 1,000,000 people the loss at that epsilon is "
        "simulated too (column l2_squared)."
    )
    against = "people"

    def points(self, reduced: bool) -> list[tuple[int, int]]:
        if reduced:
            return [(64, 10_000), (64, 100_000), (64, 2_500_000)]
        return [(256, number) for number in (3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 10_000_000)]


class EpsilonByValues(_Budget):
    id = "kairouz-epsilon-values"
    title = "The epsilon that a precision costs, against the number of values"
    source = f"{inputs.SOURCE}, section 5; for a squared l2 loss"
    abstract = (
        "As kairouz-epsilon-people for 100,000 people and 16 to 512 (reduced: 16 and 64) values with geometric shares."
    )
    against = "values"

    def points(self, reduced: bool) -> list[tuple[int, int]]:
        return [(size, 100_000) for size in (16, 64)] if reduced else [(1 << power, 100_000) for power in range(4, 10)]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Plans:
    """The mechanisms that can be used for these values.

    Attributes:
        frequencies: (S,) of people.
        closed: whether all values are known.
        choices: buckets and cohorts of O-RR and O-RAPPOR.
    """

    frequencies: np.ndarray
    closed: bool
    choices: list[hashing.Design]

    @classmethod
    def over(cls, frequencies: np.ndarray, counters: int, *, closed: bool) -> Plans:
        """All that the counters allow."""
        choices = hashing.designs(frequencies, closed=closed, counters=counters)
        return cls(frequencies=frequencies, closed=closed, choices=choices)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Names; without cohorts only closed alphabets can be asked for."""
        return (K_RR, K_RAPPOR, O_RR, O_RAPPOR) if self.closed else (O_RR, O_RAPPOR)

    def best(self, mechanism: str, epsilon: float) -> tuple[Collection, float]:
        """The collection with the least expected squared l2 loss, and that loss times the number of people.

        O-RR of a closed alphabet may have as many buckets as values, and is k-RR then.
        """
        size = len(self.frequencies)
        if mechanism in (K_RR, K_RAPPOR):
            spec = inputs.closed(IDS[mechanism], size, epsilon)
            return spec, float(spec.mechanism.variances(self.frequencies).sum())
        chosen = hashing.best(self.choices, IDS[mechanism], epsilon)
        loss = chosen.expected(IDS[mechanism], epsilon)
        if self.closed and mechanism == O_RR:
            plain = self.best(K_RR, epsilon)
            if plain[1] <= loss:
                return plain
        plan = (chosen.num_buckets, chosen.num_cohorts)
        return hashing.collection(IDS[mechanism], epsilon, inputs.names(size), plan, closed=self.closed), loss

    def needed(self, mechanism: str, number: int) -> float | None:
        """The epsilon at which the expected loss for so many people meets the target; None if none up to 16 does."""

        def excess(epsilon: float) -> float:
            return float(np.log(self.best(mechanism, epsilon)[1] / number / TARGET))

        if excess(HIGHEST) > 0:
            return None
        return LOWEST if excess(LOWEST) < 0 else float(optimize.brentq(excess, LOWEST, HIGHEST, xtol=1e-6))


def budget_row(
    plans: Plans, mechanism: str, people: inputs.Population, runs: int, rng: np.random.Generator
) -> dict[str, Any]:
    """The epsilon needed, and the simulated loss with it."""
    row: dict[str, Any] = {"values": len(people.values), "people": people.number}
    row["epsilon"] = epsilon = plans.needed(mechanism, people.number)
    if epsilon is None:
        return row
    spec, _ = plans.best(mechanism, epsilon)
    row |= {"buckets": spec.alphabet.num_symbols, "cohorts": spec.num_cohorts}
    if people.number > SIMULATED_PEOPLE:
        return row
    estimates = (inputs.simulated_estimates(spec, people, ("empirical",), rng)["empirical"] for _ in range(runs))
    sample = np.array([squared_error(estimated, people.frequencies) for estimated in estimates])
    mean, error = inputs.mean_and_error(sample)
    return row | {"runs": runs, "l2_squared": mean, "l2_squared_error": error}


def response_needs_least(rows: Sequence[dict[str, Any]], alphabet: str, lowest: float) -> Verdict:
    """Ratio of O-RR's epsilon to the smallest other one, where O-RR's is large enough."""
    found: dict[tuple[int, int], dict[str, float]] = {}
    for row in rows:
        if row["alphabet"] == alphabet and row["epsilon"] is not None:
            found.setdefault((row["values"], row["people"]), {})[row["mechanism"]] = row["epsilon"]
    ratios = {
        point: epsilons[O_RR] / min((epsilon for name, epsilon in epsilons.items() if name != O_RR), default=np.inf)
        for point, epsilons in found.items()
        if epsilons.get(O_RR, 0) >= lowest
    }
    listed = "; ".join(
        f"{found[size, number][O_RR]:.2f} ({ratio:.3f}) for {size} values and {number:,} people"
        for (size, number), ratio in ratios.items()
    )
    where = f", where it needs {lowest:g} or more" if lowest else ""
    return Verdict(
        claim=f"Over {alphabet} alphabets O-RR needs the least epsilon{where}.",
        holds=max(ratios.values()) <= 1 + ROUNDING,
        evidence=f"Needed, and in parts of the least of the others: {listed}.",
    )
