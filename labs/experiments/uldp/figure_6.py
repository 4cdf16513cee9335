"""Losses against the number of sensitive values: total variation (Figure 6), squared l2 distance (Figure 11)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from labs.experiments.frame import Experiment, Result, Verdict, squared_error, total_variation
from labs.experiments.uldp.expected_losses import (
    covariance,
    expected_squared_error,
    expected_total_variation,
    expected_with_bias,
    standard_deviations,
    symbol_frequencies,
)
from labs.experiments.uldp.people_and_mechanisms import NO_PRIVACY, Population, acs, mean_and_error, simulated_estimates
from labs.experiments.uldp.pictures import draw_losses

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMALL_EPSILON = 0.1
DECODERS = ("empirical", "threshold")
EVERYBODY = {"RR": "uRR", "RAPPOR": "uRAP"}
"""Mechanisms that protect every value, and what they are a special case of."""

MANY = 35
"""With fewer sensitive values the others count too, whose noise is of the order epsilon**-0.5 only."""

LABELS = {False: "total variation distance to the truth", True: "squared l2 distance to the truth"}

TOLERANCE = 0.25
"""Of ratios to their limits: epsilon itself takes 5 %, normal approximation and chance the rest."""


class SensitiveValues(Experiment):
    squared: ClassVar[bool] = False
    """Whether losses are squared l2 distances."""

    id = "uldp-figure-6"
    title = "Total variation against the number of sensitive values"
    source = "Murakami and Kawamoto 2019, figure 6"
    abstract = (
        "Half of the people of the American Community Survey 2023 (in place of the US census of the paper) report "
        "once, drawn without replacement. In every run another random set of the 277 values is sensitive. Loss against "
        "the distribution of all people, of the unbiased estimate and with the threshold; lines are the expected loss "
        "of the former, by the normal approximation, averaged over the same random sets."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        people = acs()
        asked = 20_000 if reduced else people.size // 2
        runs = runs or (12 if reduced else 40)
        numbers = (35, 140, 277) if reduced else (10, 35, 70, 105, 140, 175, 210, 245, 277)
        small, boundary = SMALL_EPSILON, math.log(len(people.values))
        rows = [
            row
            for epsilon in (small, boundary)
            for row in loss_rows(people, numbers, epsilon, asked=asked, runs=runs, rng=rng, squared=self.squared)
        ]
        return Result(
            rows=rows,
            verdicts=[_growth(rows, self.squared), _special_case(rows), _boundary(rows, self.squared), _better(rows)],
        )

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        figure.set_size_inches(9, 7)
        levels = sorted({row["epsilon"] for row in rows})
        panels = [(decoder, epsilon) for decoder in DECODERS for epsilon in levels]
        for axes, (decoder, epsilon) in zip(figure.subplots(len(DECODERS), len(levels), sharey="row").flat, panels):
            here = [row for row in rows if (row["epsilon"], row.get("decoder", decoder)) == (epsilon, decoder)]
            draw_losses(axes, here, against="sensitive values")
            axes.set_title(f"epsilon {epsilon:.3g}, {decoder}")
        figure.supylabel(LABELS[self.squared])
        figure.axes[0].legend(fontsize=8)


class SquaredSensitiveValues(SensitiveValues):
    squared = True
    id = "uldp-figure-11"
    title = "Squared l2 loss against the number of sensitive values"
    source = "Murakami and Kawamoto 2019, figure 11"
    abstract = (
        "As Figure 6, with squared l2 distances. Half of the people of the American Community Survey 2023 (in place of "
        "the US census of the paper) report once; in every run another random set of the 277 values is sensitive. "
        "Lines "
        "are the exact expected losses."
    )


def loss_rows(
    population: Population,
    numbers: tuple[int, ...],
    epsilon: float,
    *,
    asked: int,
    runs: int,
    rng: np.random.Generator,
    squared: bool = False,
) -> list[dict[str, Any]]:
    """A row for each mechanism, decoder and number of sensitive values; mechanisms that protect all values have no
    such number."""
    base = {"asked": asked, "epsilon": epsilon}
    told = covariance(None, population.frequencies, asked, population.size)
    alone = expected_squared_error(told) if squared else expected_total_variation(told)
    rows: list[dict[str, Any]] = [base | {"mechanism": NO_PRIVACY, "expected": alone.mean}]
    cases: list[tuple[str, int | None]] = [(mechanism, None) for mechanism in EVERYBODY]
    cases += [(mechanism, number) for mechanism in EVERYBODY.values() for number in numbers]
    for mechanism, number in cases:
        expected, losses = [], {decoder: list[float]() for decoder in DECODERS}
        for _ in range(runs):
            asking = population if number is None else _sensitive(population, number, rng)
            collection = asking.collection(mechanism, epsilon)
            frequencies = symbol_frequencies(collection, asking.values, asking.frequencies)
            deviations = standard_deviations(collection.mechanism, frequencies, asked, asking.size)
            estimates = simulated_estimates(asking, collection, DECODERS, asked=asked, runs=1, rng=rng)
            expected.append(float((deviations**2).sum()) if squared else expected_with_bias(np.zeros(1), deviations))
            distance = squared_error if squared else total_variation
            for decoder in DECODERS:
                losses[decoder].append(distance(estimates[decoder][0], asking.frequencies))
        about = base | {"mechanism": mechanism, "runs": runs} | ({"sensitive values": number} if number else {})
        for decoder in DECODERS:
            found = mean_and_error(losses[decoder])
            found |= {"expected": float(np.mean(expected))} if decoder == "empirical" else {}
            rows.append(about | {"decoder": decoder} | found)
    return rows


def _sensitive(population: Population, number: int, rng: np.random.Generator) -> Population:
    """The same people, with this many randomly chosen sensitive values."""
    chosen = rng.choice(len(population.values), number, replace=False)
    return dataclasses.replace(population, sensitive=tuple(population.values[index] for index in chosen))


def _series(rows: list[dict[str, Any]], mechanism: str, small: bool, column: str = "loss") -> dict[int, float]:
    """Loss of the unbiased estimate by number of sensitive values; 0 where the mechanism protects all."""
    return {
        row.get("sensitive values", 0): row[column]
        for row in rows
        if row["mechanism"] == mechanism and (row["epsilon"] == SMALL_EPSILON) == small
        if row.get("decoder", "empirical") == "empirical"
    }


def _growth(rows: list[dict[str, Any]], squared: bool) -> Verdict:
    asked = rows[0]["asked"]
    unit = 1 / (asked * SMALL_EPSILON**2) if squared else math.sqrt(2 / (math.pi * asked)) / (2 * SMALL_EPSILON)
    limits: dict[str, Callable[[int], float]] = {"uRR": lambda v: v * math.sqrt(v - 1), "uRAP": lambda v: 2 * v}
    if squared:
        limits = {"uRR": lambda v: v * (v - 1), "uRAP": lambda v: 4 * v}
    named = ("v (v - 1)", "4 v") if squared else ("v sqrt(v - 1)", "2 v")
    ratios = {
        (mechanism, v): loss / (unit * limit(v))
        for mechanism, limit in limits.items()
        for v, loss in _series(rows, mechanism, True).items()
    }
    many = [ratio for (_, v), ratio in ratios.items() if v >= MANY]
    few = [f"{mechanism} {ratio:.2f} at v = {v}" for (mechanism, v), ratio in ratios.items() if v < MANY]
    return Verdict(
        claim=f"At epsilon {SMALL_EPSILON} the loss grows with the number v of sensitive values, from v = {MANY} on as "
        f"{named[0]} for uRR and as {named[1]} for uRAP, whatever the number of all values.",
        holds=all(abs(ratio - 1) < TOLERANCE for ratio in many),
        evidence=f"Ratios to that: {min(many):.2f} to {max(many):.2f}" + "".join(f", {text}" for text in few) + ".",
    )


def _special_case(rows: list[dict[str, Any]]) -> Verdict:
    ratios = {
        every: [_series(rows, own, small)[277] / _series(rows, every, small)[0] for small in (True, False)]
        for every, own in EVERYBODY.items()
    }
    return Verdict(
        claim="With all values sensitive, uRR and uRAP are RR and RAPPOR.",
        holds=all(abs(ratio - 1) < TOLERANCE for pair in ratios.values() for ratio in pair),
        evidence="; ".join(
            f"{EVERYBODY[every]} / {every}: {pair[0]:.2f}, {pair[1]:.2f}" for every, pair in ratios.items()
        )
        + f" (epsilon {SMALL_EPSILON}, ln w).",
    )


def _boundary(rows: list[dict[str, Any]], squared: bool) -> Verdict:
    alone = _series(rows, NO_PRIVACY, False, "expected")[0]
    ratios = {v: loss / alone for v, loss in _series(rows, "uRR", False).items()}
    few = min(ratios)
    return Verdict(
        claim="At epsilon = ln w the loss of uRR is close to that without privacy while few values are sensitive.",
        holds=ratios[few] < (1.5**2 if squared else 1.5),
        evidence="Times the loss without privacy: "
        + ", ".join(f"{ratio:.2f} (v = {v})" for v, ratio in ratios.items())
        + ".",
    )


def _better(rows: list[dict[str, Any]]) -> Verdict:
    gains = {
        every: [
            _series(rows, every, small)[0] / loss
            for small in (True, False)
            for v, loss in _series(rows, own, small).items()
            if v < 277
        ]
        for every, own in EVERYBODY.items()
    }
    return Verdict(
        claim="uRR and uRAP lose less than RR and RAPPOR whatever the number of sensitive values.",
        holds=all(gain > 1 for several in gains.values() for gain in several),
        evidence="; ".join(
            f"{every} / {EVERYBODY[every]}: {min(several):.2f} to {max(several):.1f}"
            for every, several in gains.items()
        )
        + ".",
    )
