"""Total variation against epsilon, by mechanism and decoder."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from labs.experiments.frame import Experiment, Result, Verdict, total_variation
from labs.experiments.uldp.expected_losses import covariance, expected_total_variation, symbol_frequencies
from labs.experiments.uldp.people_and_mechanisms import (
    LIKELIHOOD,
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

DECODERS = ("empirical", "threshold")
FEW = 20_000
"""People asked where the likelihood needs every single report."""

SMALL_EPSILON = 0.1
CLOSE = 1.5
"""Times the loss without privacy that still count as close to it."""

MAX_DEVIATIONS, APPROXIMATION = 6.0, 0.02
"""Between means over runs and expected losses: standard deviations, and what the normal approximation adds."""


class TotalVariation(Experiment):
    id = "uldp-figure-5"
    title = "Total variation against epsilon, by mechanism and decoder"
    source = "Murakami and Kawamoto 2019, figure 5"
    abstract = (
        "Half of all people, drawn without replacement in every run, report once; loss against the distribution of "
        "all. Data: American Community Survey 2023 (277 values, 35 sensitive) and Adult (480, 128), in place of the "
        f"paper's US census and Foursquare data. Maximum likelihood from {FEW:,} people of the first: closed form for "
        "RR and uRR, EM over single reports for RAPPOR and uRAP. 'uRAP aware' is not in the paper: the same client, "
        "but clear reports carry no noise bits."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        runs = runs or (2 if reduced else 10)
        first, second = acs(), adult()
        full = [(first, 200_000 if reduced else first.size // 2)] + [(second, second.size // 2)] * (not reduced)
        rows = [
            row
            for people, asked in full
            for row in loss_rows(people, epsilons(people, reduced), DECODERS, asked=asked, runs=runs, rng=rng)
        ]
        some = epsilons(first, reduced=True) if reduced else (0.1, 0.5, 1.0, 2.0, math.log(len(first.values)))
        few, runs = (FEW // 100, 1) if reduced else (FEW, min(runs, 2))
        rows += loss_rows(first, some, (*DECODERS, LIKELIHOOD), asked=few, runs=runs, rng=rng)
        verdicts = [_far_better(rows, people, asked) for people, asked in full]
        verdicts += [_close(rows, people, asked) for people, asked in full]
        return Result(rows=rows, verdicts=[*verdicts, _likelihood(rows, few), _expected(rows)])

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        figure.set_size_inches(9, 9)
        panels = dict.fromkeys(
            (row["data"], row["asked"], row["decoder"])
            for row in rows
            if "decoder" in row and (row["decoder"] != "empirical" or row["asked"] > FEW)
        )
        for place, panel in enumerate(panels):
            axes = figure.add_subplot(math.ceil(len(panels) / 2), 2, place + 1)
            draw_losses(axes, [r for r in rows if (r["data"], r["asked"], r.get("decoder", panel[2])) == panel])
            axes.set_title(f"{panel[0]}, {panel[1]:,} people, {panel[2]}")
        figure.axes[0].legend(fontsize=8)
        figure.supylabel("total variation distance to the truth")


def loss_rows(
    population: Population,
    levels: tuple[float, ...],
    decoders: tuple[str, ...],
    *,
    asked: int,
    runs: int,
    rng: np.random.Generator,
) -> list[dict[str, Any]]:
    """A row for each epsilon, mechanism and decoder."""
    base = {"data": population.name, "values": len(population.values), "asked": asked}
    alone = expected_total_variation(covariance(None, population.frequencies, asked, population.size))
    rows: list[dict[str, Any]] = [base | {"mechanism": NO_PRIVACY, "expected": alone.mean}]
    for epsilon in levels:
        for mechanism in MECHANISMS:
            collection = population.collection(mechanism, epsilon)
            frequencies = symbol_frequencies(collection, population.values, population.frequencies)
            expected = expected_total_variation(covariance(collection.mechanism, frequencies, asked, population.size))
            found = simulated_estimates(population, collection, decoders, asked=asked, runs=runs, rng=rng)
            for decoder, estimates in found.items():
                row = base | {"epsilon": epsilon, "mechanism": mechanism, "decoder": decoder, "runs": runs}
                row |= mean_and_error([total_variation(estimate, population.frequencies) for estimate in estimates])
                if decoder == "empirical":
                    row |= {"expected": expected.mean, "deviation": expected.deviation}
                rows.append(row)
    return rows


def _losses(rows: list[dict[str, Any]], population: Population, asked: int, epsilon: float) -> dict[Any, float]:
    """By decoder and mechanism."""
    return {
        (row["decoder"], row["mechanism"]): row["loss"]
        for row in rows
        if (row["data"], row["asked"], row.get("epsilon")) == (population.name, asked, epsilon)
    }


def _far_better(rows: list[dict[str, Any]], population: Population, asked: int) -> Verdict:
    """Judges "by far": half of the small-epsilon limit for unbiased estimates, twice for the threshold.

    In the limit RR loses (w / v) sqrt((w - 1) / (v - 1)) times as much as uRR, RAPPOR w / v times as much as uRAP.
    Estimates that are distributions cannot lose more than 1, which puts these factors out of reach.
    """
    losses = _losses(rows, population, asked, SMALL_EPSILON)
    w, v = len(population.values), len(population.sensitive)
    limits = {("RR", "uRR"): w / v * math.sqrt((w - 1) / (v - 1)), ("RAPPOR", "uRAP"): w / v}
    factors = {
        (decoder, every, own): (losses[decoder, every] / losses[decoder, own], enough)
        for (every, own), limit in limits.items()
        for decoder, enough in (("empirical", limit / 2), ("threshold", 2))
    }
    return Verdict(
        claim=f"{population.name}, {asked:,} people: at epsilon {SMALL_EPSILON} uRR and uRAP lose far less than RR and "
        "RAPPOR, with every decoder.",
        holds=all(factor > enough for factor, enough in factors.values()),
        evidence="Ratios of losses: "
        + ", ".join(
            f"{every} / {own} {factor:.1f} ({decoder})" for (decoder, every, own), (factor, _) in factors.items()
        )
        + ".",
    )


def _close(rows: list[dict[str, Any]], population: Population, asked: int) -> Verdict:
    losses = _losses(rows, population, asked, math.log(len(population.values)))
    alone = next(row["expected"] for row in rows if (row["data"], row["asked"]) == (population.name, asked))
    ratios = {mechanism: losses["empirical", mechanism] / alone for mechanism in MECHANISMS}
    return Verdict(
        claim=f"{population.name}, {asked:,} people: at epsilon = ln w the loss of uRR is close to that without "
        "privacy.",
        holds=ratios["uRR"] < CLOSE,
        evidence="Times the loss without privacy: "
        + ", ".join(f"{mechanism} {ratio:.2f}" for mechanism, ratio in ratios.items())
        + ".",
    )


def _likelihood(rows: list[dict[str, Any]], few: int) -> Verdict:
    losses = _losses(rows, acs(), few, SMALL_EPSILON)
    return Verdict(
        claim=f"ACS, {few:,} people: at epsilon {SMALL_EPSILON} maximum likelihood loses less than the unbiased "
        "estimate.",
        holds=all(losses[LIKELIHOOD, mechanism] < losses["empirical", mechanism] for mechanism in MECHANISMS),
        evidence="Maximum likelihood, threshold, unbiased: "
        + "; ".join(
            f"{mechanism} "
            + ", ".join(f"{losses[decoder, mechanism]:.3g}" for decoder in (LIKELIHOOD, *DECODERS[::-1]))
            for mechanism in MECHANISMS
        )
        + ".",
    )


def _expected(rows: list[dict[str, Any]]) -> Verdict:
    points = [row for row in rows if "deviation" in row]
    excess = [
        (abs(row["loss"] - row["expected"]) - APPROXIMATION * row["expected"])
        / (row["deviation"] / math.sqrt(row["runs"]))
        for row in points
    ]
    relative = [row["loss"] / row["expected"] for row in points]
    return Verdict(
        claim="The expected losses of the unbiased estimate are those of the closed forms.",
        holds=max(excess) < MAX_DEVIATIONS,
        evidence=f"Simulated / expected: {min(relative):.3f} to {max(relative):.3f} in {len(points)} points; beyond "
        f"{APPROXIMATION:.0%} for the normal approximation at most {max(*excess, 0):.1f} standard deviations.",
    )
