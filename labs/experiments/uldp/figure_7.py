"""Losses against the size of the alphabet: total variation with the running time of EM (Figure 7), squared l2 (12)."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from labs.experiments.frame import (
    Experiment,
    Result,
    Verdict,
    draw_people,
    read_table,
    simulate_counts,
    simulate_reports,
    squared_error,
    total_variation,
)
from labs.experiments.uldp.expected_losses import expected_with_bias, standard_deviations, symbol_frequencies
from labs.experiments.uldp.people_and_mechanisms import LIKELIHOOD, Population, mean_and_error, simulated_estimates
from labs.experiments.uldp.pictures import draw_losses

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIZES = (8, 5, 5, 2, 2, 2, 2, 2, 2)
"""Categories of the attributes in ``adult_12800.csv``; the first four make 400 values, all nine 12,800."""

MARITAL, DIVORCED = 2, 2
"""Place of the attribute, and its sensitive category."""

SMALL_EPSILON = 0.1
MECHANISMS = ("RR", "RAPPOR", "uRR", "uRAP")
LEVELS = (SMALL_EPSILON, 1.0, 6.0)
DECODERS = ("empirical", "threshold", LIKELIHOOD)

TIMED = (
    ("RR", 1.0, 240_000),
    ("uRR", 1.0, 240_000),
    ("RAPPOR", 1.0, 2_000),
    ("uRAP", 1.0, 10_000),
    ("RR", None, 240_000),
    ("uRR", None, 240_000),
    ("RAPPOR", None, 240_000),
    ("uRAP", None, 240_000),
)
"""Mechanism, level and reports of which EM is timed; the reduced version has a fortieth of the reports."""


class AlphabetSize(Experiment):
    squared: ClassVar[bool] = False
    """Whether losses are squared l2 distances."""

    id = "uldp-figure-7"
    title = "Total variation against the size of the alphabet; running time of EM"
    source = "Murakami and Kawamoto 2019, figure 7 and section 6.2"
    abstract = (
        "Half of the people of Adult, drawn without replacement in every run, report once, with 4 to 9 attributes "
        "(400 to 12,800 values; in place of the paper's US census, which has the same sizes), at epsilon 0.1, 1 and 6. "
        "The divorced are sensitive, one value in five. Loss against the distribution of all, of the unbiased "
        "estimate, with the threshold, and by maximum likelihood (EM for RAPPOR and uRAP). EM is timed on one core: "
        "from counts for RR and uRR, from single reports for the bits of RAPPOR and uRAP. Seconds are CPU seconds of "
        "this machine; the paper reports 1,073 to 5,225 on its own, for 12,800 values and 240,000 reports."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        runs = runs or (4 if reduced else 5)
        attributes = (4, 5) if reduced else (4, 5, 6, 7, 8, 9)
        populations = [adult_attributes(number) for number in attributes]
        rows = [
            row
            for level in LEVELS
            for people in populations
            for row in loss_rows(people, level, runs, rng, squared=self.squared)
        ]
        verdicts = [_better(rows, "empirical"), _expected(rows)]
        if not reduced:  # with few runs it may go either way
            verdicts += [_better(rows, decoder) for decoder in DECODERS[1:]]
        for mechanism, level, asked in () if self.squared else TIMED:
            rows.append(seconds_of_em(populations[-1], mechanism, level, asked // 40 if reduced else asked, rng))
        return Result(rows=rows, verdicts=verdicts)

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        figure.set_size_inches(11, 9)
        panels = [(f"{epsilon:g}", decoder) for epsilon in LEVELS for decoder in DECODERS]
        for axes, (epsilon, decoder) in zip(figure.subplots(3, 3, sharey="row").flat, panels):
            draw_losses(axes, [r for r in rows if (r.get("at"), r.get("decoder")) == (epsilon, decoder)], "values")
            axes.set_title(f"epsilon {epsilon}, {decoder}")
        figure.axes[0].legend(fontsize=8)
        figure.supylabel(f"{'squared l2' if self.squared else 'total variation'} distance to the truth")


class SquaredAlphabetSize(AlphabetSize):
    squared = True
    id = "uldp-figure-12"
    title = "Squared l2 loss against the size of the alphabet"
    source = "Murakami and Kawamoto 2019, figure 12"
    abstract = (
        "As Figure 7, with squared l2 distances and without running times: half of the people of Adult, with 4 to 9 "
        "attributes (400 to 12,800 values; in place of the paper's US census), at epsilon 0.1, 1 and 6; the divorced "
        "are sensitive."
    )


def adult_attributes(number: int) -> Population:
    """Adult with the first attributes only: 48,842 people, 400 values with 4 attributes, 12,800 with all 9."""
    table = read_table("adult_12800.csv")
    size, left_out = math.prod(SIZES[:number]), math.prod(SIZES[number:])
    cells = np.array(table["cell"], dtype=np.int64) // left_out
    people = np.bincount(cells, np.array(table["people"], dtype=np.int64), minlength=size).astype(np.int64)
    marital = np.arange(size) // math.prod(SIZES[MARITAL + 1 : number]) % SIZES[MARITAL]
    values = tuple(map(str, range(size)))
    sensitive = tuple(values[cell] for cell in np.flatnonzero(marital == DIVORCED))
    return Population(name=f"Adult, {number} attributes", values=values, sensitive=sensitive, people=people)


def loss_rows(
    population: Population, level: float, runs: int, rng: np.random.Generator, *, squared: bool = False
) -> list[dict[str, Any]]:
    """A row for each mechanism and decoder."""
    asked = population.size // 2
    base, distance = _base(population, level, asked), squared_error if squared else total_variation
    rows: list[dict[str, Any]] = []
    for mechanism in MECHANISMS:
        collection = population.collection(mechanism, base["epsilon"])
        found = simulated_estimates(population, collection, DECODERS, asked=asked, runs=runs, rng=rng)
        for decoder, estimates in found.items():
            row = base | {"mechanism": mechanism, "decoder": decoder, "runs": runs}
            row |= mean_and_error([distance(estimate, population.frequencies) for estimate in estimates])
            if decoder == "empirical":
                frequencies = symbol_frequencies(collection, population.values, population.frequencies)
                deviations = standard_deviations(collection.mechanism, frequencies, asked, population.size)
                total = float((deviations**2).sum())
                row["expected"] = total if squared else expected_with_bias(np.zeros(1), deviations)
            rows.append(row)
    return rows


def seconds_of_em(
    population: Population, mechanism: str, level: float | None, asked: int, rng: np.random.Generator
) -> dict[str, Any]:
    """CPU seconds of EM, from the counts if they determine the likelihood, else from the reports."""
    base = _base(population, level, asked)
    collection = population.collection(mechanism, base["epsilon"])
    people = draw_people(population.frequencies, asked, rng)
    if mechanism in ("RR", "uRR"):
        counts = simulate_counts(collection, population.values, people, rng)
        began = time.process_time()
        estimate = collection.estimate(counts, "em")
    else:
        batch = simulate_reports(collection, population.values, people, rng)
        began = time.process_time()
        estimate = collection.estimate_reports(batch, "em")
    seconds = time.process_time() - began
    loss = total_variation(estimate.frequencies, population.frequencies)
    found = {"loss": loss, "seconds": seconds, "likelihood_gap": estimate.likelihood_gap}
    return base | {"mechanism": mechanism, "decoder": "em"} | found


def _base(population: Population, level: float | None, asked: int) -> dict[str, Any]:
    """The columns that identify a setting; the level is epsilon, or None for the logarithm of the number of values."""
    size = len(population.values)
    base: dict[str, Any] = {"values": size, "sensitive": len(population.sensitive), "asked": asked}
    return base | {"at": "ln w" if level is None else f"{level:g}", "epsilon": level or math.log(size)}


def _better(rows: list[dict[str, Any]], decoder: str) -> Verdict:
    found = {(row["at"], row["values"], row["mechanism"]): row["loss"] for row in rows if row["decoder"] == decoder}
    gains: dict[str, list[float]] = {}
    for (at, values, mechanism), loss in found.items():
        if own := {"RR": "uRR", "RAPPOR": "uRAP"}.get(mechanism):
            gains.setdefault(f"{mechanism} / {own} at epsilon {at}", []).append(loss / found[at, values, own])
    return Verdict(
        claim=f"uRR and uRAP lose less than RR and RAPPOR whatever the size of the alphabet ({decoder} decoder).",
        holds=all(gain > 1 for several in gains.values() for gain in several),
        evidence="; ".join(f"{name}: {min(several):.2f} to {max(several):.1f}" for name, several in gains.items())
        + ".",
    )


def _expected(rows: list[dict[str, Any]]) -> Verdict:
    ratios = [row["loss"] / row["expected"] for row in rows if "expected" in row]
    return Verdict(
        claim="The expected losses of the unbiased estimate are those of the closed forms.",
        holds=all(abs(ratio - 1) < 0.25 for ratio in ratios),
        evidence=f"Simulated / expected: {min(ratios):.3f} to {max(ratios):.3f} in {len(ratios)} points.",
    )
