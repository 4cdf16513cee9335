"""The squared l2 loss of the unbiased estimate, beside its closed form."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from labs.experiments.frame import Experiment, Result, Verdict, squared_error
from labs.experiments.uldp.expected_losses import covariance, expected_squared_error, symbol_frequencies
from labs.experiments.uldp.people_and_mechanisms import (
    MECHANISMS,
    NO_PRIVACY,
    Population,
    acs,
    adult,
    epsilons,
    mean_and_error,
    simulated_estimates,
)
from labs.experiments.uldp.pictures import draw_losses

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_DEVIATIONS = 6.0
"""Between a mean over runs and its expected value; a sum of squares of near-normal errors hardly ever gets there."""

SMALL_EPSILON = 0.1
TOLERANCE = 0.35
"""Of the ratios at ``SMALL_EPSILON`` to the limits at 0: epsilon itself takes 10 %, the rest is for chance."""


class SquaredError(Experiment):
    id = "uldp-figure-10"
    title = "Squared l2 loss against epsilon, simulated and expected"
    source = "Murakami and Kawamoto 2019, Figure 10 and appendix E"
    abstract = (
        "Half of all people, drawn anew without replacement in every run, report once. The loss of the unbiased "
        "estimate against the distribution of all people is averaged over runs and laid beside its closed form. "
        "Data: American Community Survey 2023 and Adult, in place of the paper's US census and Foursquare data."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        populations = [acs()] if reduced else [acs(), adult()]
        runs = runs or (40 if reduced else 20)
        rows = [row for people in populations for row in loss_rows(people, reduced, runs, rng)]
        return Result(rows=rows, verdicts=[_on_curve(rows), *(_limits(rows, people) for people in populations)])

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        names = list(dict.fromkeys(row["data"] for row in rows))
        for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names):
            draw_losses(axes, [row for row in rows if row["data"] == name])
            axes.set_title(name)
        figure.axes[0].set_ylabel("squared l2 distance to the truth")
        figure.axes[0].legend(fontsize=8)


def loss_rows(population: Population, reduced: bool, runs: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """A row for each epsilon and mechanism."""
    asked = 10_000 if reduced else population.size // 2
    base = {"data": population.name, "values": len(population.values), "asked": asked}
    alone = expected_squared_error(covariance(None, population.frequencies, asked, population.size))
    rows: list[dict[str, Any]] = [base | {"mechanism": NO_PRIVACY, "expected": alone.mean}]
    for epsilon in epsilons(population, reduced):
        for mechanism in MECHANISMS:
            collection = population.collection(mechanism, epsilon)
            frequencies = symbol_frequencies(collection, population.values, population.frequencies)
            expected = expected_squared_error(covariance(collection.mechanism, frequencies, asked, population.size))
            estimates = simulated_estimates(population, collection, ["empirical"], asked=asked, runs=runs, rng=rng)[
                "empirical"
            ]
            losses = [squared_error(estimate, population.frequencies) for estimate in estimates]
            deviations = (np.mean(losses) - expected.mean) / (expected.deviation / math.sqrt(runs))
            found = mean_and_error(losses) | {"expected": expected.mean, "deviations": float(deviations)}
            rows.append(base | {"epsilon": epsilon, "mechanism": mechanism, "runs": runs} | found)
    return rows


def _on_curve(rows: list[dict[str, Any]]) -> Verdict:
    deviations = [abs(row["deviations"]) for row in rows if "deviations" in row]
    worst = max(deviations)
    return Verdict(
        claim="The closed forms of the expected squared l2 loss hold.",
        holds=worst < MAX_DEVIATIONS,
        evidence=f"Largest distance of {len(deviations)} points from the curve: {worst:.1f} standard deviations.",
    )


def _limits(rows: list[dict[str, Any]], population: Population) -> Verdict:
    w, v = len(population.values), len(population.sensitive)
    limits = {"RR": w * (w - 1), "RAPPOR": 4 * w, "uRR": v * (v - 1), "uRAP": 4 * v}
    found = {
        row["mechanism"]: row["loss"] * row["asked"] * row["epsilon"] ** 2
        for row in rows
        if row["data"] == population.name and row.get("epsilon") == SMALL_EPSILON
    }
    ratios = {mechanism: found[mechanism] / limit for mechanism, limit in limits.items()}
    return Verdict(
        claim=f"{population.name}: as epsilon falls, n epsilon^2 times the loss of RR, RAPPOR, uRR and uRAP tends to "
        "w(w-1), 4w, v(v-1) and 4v.",
        holds=all(abs(ratio - 1) < TOLERANCE for ratio in ratios.values()),
        evidence=f"Ratios at epsilon {SMALL_EPSILON}: "
        + ", ".join(f"{mechanism} {ratio:.2f}" for mechanism, ratio in ratios.items())
        + ".",
    )
