"""Decoders compared on the geometric distribution and on others, over one alphabet size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from labs.experiments.frame import Experiment, Result, Verdict
from labs.experiments.kairouz import inputs
from uldp_transforms.ldp import Collection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

K_RR, K_RAPPOR = "krr", "rappor"
LABELS = {K_RR: "k-RR", K_RAPPOR: "k-RAPPOR"}
LINEAR = ("empirical", "normalized", "projected")
DECODERS = {K_RR: (*LINEAR, "ml"), K_RAPPOR: LINEAR}
WITH_LIKELIHOOD = {K_RR: (*LINEAR, "ml"), K_RAPPOR: (*LINEAR, "em")}
COLORS = {
    "empirical": "tab:gray",
    "normalized": "tab:blue",
    "projected": "tab:orange",
    "ml": "tab:green",
    "em": "tab:green",
}
CLEARLY = 3.0
"""Standard errors by which a difference must exceed zero to be called one."""

TO_MATTER = 0.01
"""Share of a loss that a difference must exceed to be called one."""


class DecoderCurves(Experiment):
    id = "kairouz-decoder-curves"
    title = "Decoders of k-RR and k-RAPPOR on the geometric distribution"
    source = f"{inputs.SOURCE}, section 4.3; for Figure 1 at one size"
    abstract = (
        "The l1 distance of the estimate to the distribution that people are drawn from, for 256 values (reduced: 64) "
        "with geometric shares of mean 256/5: against epsilon for 30,000 (4,000) people, and against the number of "
        "people at epsilon 1. Maximum likelihood is exact: for k-RR in closed form (ml), for k-RAPPOR by EM over whole "
        "reports (em, against epsilon only), where the paper multiplies the likelihoods of bits as if they were "
        "independent; em is therefore no part of the comparison with the projected decoder."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        k, number, runs = (64, 4_000, runs or 6) if reduced else (256, 30_000, runs or 40)
        epsilons = (0.5, 1.0, 5.0) if reduced else (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
        numbers = (3_000, 30_000) if reduced else (3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
        points = [("epsilon", epsilon, number) for epsilon in epsilons] + [("people", 1.0, many) for many in numbers]
        rows = [
            {"against": against, "shape": "geometric", **row}
            for against, epsilon, many in points
            for mechanism, decoders in (WITH_LIKELIHOOD if against == "epsilon" else DECODERS).items()
            for row in decoder_rows(
                inputs.closed(mechanism, k, epsilon),
                inputs.population(inputs.geometric(k), many),
                decoders,
                runs,
                rng,
            )
        ]
        return Result(rows=rows, verdicts=[constraints_help(rows), projection_is_best(rows), likelihood_is_near(rows)])

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        panels = figure.subplots(1, 3, sharey=True)
        by_epsilon, by_people = ([row for row in rows if row["against"] == what] for what in ("epsilon", "people"))
        for axes, mechanism in zip(panels, DECODERS):
            draw_decoders(axes, [row for row in by_epsilon if row["mechanism"] == mechanism], "epsilon")
            axes.set_title(f"{LABELS[mechanism]}, {by_epsilon[0]['people']:,} people")
        for mechanism, line in zip(DECODERS, ("-", "--")):
            draw_decoders(panels[2], [row for row in by_people if row["mechanism"] == mechanism], "people", line)
        panels[2].set(xscale="log", title="epsilon 1 (k-RR —, k-RAPPOR - -)")
        panels[2].tick_params(axis="x", which="minor", labelbottom=False)
        panels[0].set(yscale="log", ylabel="mean l1 loss")
        panels[0].legend()


class DecoderShapes(Experiment):
    id = "kairouz-decoder-shapes"
    title = "Decoders on uniform, Zipf, Dirichlet and step distributions"
    source = f"{inputs.SOURCE}, section 4.3; our distributions"
    abstract = (
        "As kairouz-decoder-curves on other distributions over 256 values (reduced: 64) at epsilon 1, 3 and 5 "
        "(reduced: 1 and 5): "
        "equal shares, shares proportional to 1/rank, one distribution drawn uniformly from all, and a step (a tenth "
        "of the values is held by nine tenths of the people)."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        k, number, runs = (64, 10_000, runs or 10) if reduced else (256, 30_000, runs or 40)
        shapes = {
            "uniform": inputs.uniform(k),
            "zipf": inputs.zipf(k),
            "dirichlet": inputs.dirichlet(k, rng),
            "step": inputs.step(k),
        }
        rows = [
            {"shape": shape, **row}
            for shape, frequencies in shapes.items()
            for epsilon in ((1.0, 5.0) if reduced else (1.0, 3.0, 5.0))
            for mechanism, decoders in DECODERS.items()
            for row in decoder_rows(
                inputs.closed(mechanism, k, epsilon), inputs.population(frequencies, number), decoders, runs, rng
            )
        ]
        flat = [row for row in rows if row["shape"] == "uniform"]
        return Result(
            rows=rows, verdicts=[constraints_help(rows), projection_is_best(rows), normalizing_suits_flat(flat)]
        )

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        shapes = list(dict.fromkeys(row["shape"] for row in rows))
        panels = figure.subplots(1, len(shapes), sharey=True)
        for axes, shape in zip(panels, shapes):
            for mechanism, line in zip(DECODERS, ("-", "--")):
                chosen = [row for row in rows if row["shape"] == shape and row["mechanism"] == mechanism]
                draw_decoders(axes, chosen, "epsilon", line)
            axes.set_title(shape)
        panels[0].set(yscale="log", ylabel="mean l1 loss (k-RR —, k-RAPPOR - -)")
        panels[0].legend()


def decoder_rows(
    collection: Collection,
    people: inputs.Population,
    decoders: Sequence[str],
    runs: int,
    rng: np.random.Generator,
) -> list[dict[str, Any]]:
    """One row for each decoder, all from the same reports; ``lead`` is the loss of the projected one minus its own.

    ``lead`` is averaged over runs as it is, so that its error is that of a paired comparison.
    """
    losses = inputs.simulated_losses(collection, people, decoders, runs, rng)
    rows = []
    for decoder, sample in losses.items():
        mean, error = inputs.mean_and_error(sample)
        lead, lead_error = inputs.mean_and_error(losses["projected"] - sample)
        rows.append(
            {
                "mechanism": collection.mechanism.id,
                "decoder": decoder,
                "values": len(people.values),
                "people": people.number,
                "epsilon": collection.mechanism.epsilon,
                "runs": runs,
                "l1": mean,
                "l1_error": error,
                "lead": lead,
                "lead_error": lead_error,
            }
        )
    return rows


def cell(row: dict[str, Any]) -> tuple[Any, ...]:
    """Settings within which decoders are compared."""
    return row["shape"], row["mechanism"], row["people"], row["epsilon"], row.get("against")


def by_cell(rows: Sequence[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, dict[str, Any]]]:
    """Rows by cell and decoder."""
    cells: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for row in rows:
        cells.setdefault(cell(row), {})[row["decoder"]] = row
    return cells


def constraints_help(rows: Sequence[dict[str, Any]]) -> Verdict:
    """Projected and normalized against the empirical estimate."""
    cells = by_cell(rows)
    ratios = [min(c["normalized"]["l1"], c["projected"]["l1"]) / c["empirical"]["l1"] for c in cells.values()]
    return Verdict(
        claim="The better one of the normalized and the projected estimate never loses more than the empirical one.",
        holds=max(ratios) <= 1 + TO_MATTER,
        evidence=f"Its l1 loss is {min(ratios):.2f} to {max(ratios):.2f} times the empirical one's, "
        f"over {len(cells)} settings.",
    )


def projection_is_best(rows: Sequence[dict[str, Any]]) -> Verdict:
    """The projected estimate against each other one of the paper, in every setting."""
    rows = [row for row in rows if row["decoder"] != "em"]
    worse = [row for row in rows if row["lead"] > max(CLEARLY * row["lead_error"], TO_MATTER * row["l1"])]
    better = len({cell(row) for row in worse})
    evidence = f"In {better} of {len(by_cell(rows))} settings another decoder is clearly better, by more than 1 %"
    if worse:
        worst = max(worse, key=lambda row: row["lead"] / row["l1"])
        beaten = worst["l1"] + worst["lead"]
        evidence += (
            f"; most so {worst['decoder']} for {LABELS[worst['mechanism']]}, {worst['shape']}, epsilon "
            f"{worst['epsilon']:g}, {worst['people']:,} people: l1 {worst['l1']:.2f} against {beaten:.2f}"
        )
    return Verdict(
        claim="The projected decoder has the least loss of all, at every epsilon.",
        holds=not worse,
        evidence=f"{evidence}.",
    )


def likelihood_is_near(rows: Sequence[dict[str, Any]]) -> Verdict:
    """Maximum likelihood against the empirical and the projected estimate."""
    cells = [(found, found.get("ml") or found.get("em")) for found in by_cell(rows).values()]
    pairs = [(found, most_likely) for found, most_likely in cells if most_likely]
    ratios = [most_likely["l1"] / found["empirical"]["l1"] for found, most_likely in pairs]
    near = {
        mechanism: [
            most_likely["l1"] / found["projected"]["l1"]
            for found, most_likely in pairs
            if most_likely["mechanism"] == mechanism
        ]
        for mechanism in DECODERS
    }
    listed = "; ".join(f"{LABELS[mechanism]} {min(found):.2f} to {max(found):.2f}" for mechanism, found in near.items())
    return Verdict(
        claim="Maximum likelihood loses no more than the empirical estimate.",
        holds=max(ratios) <= 1 + TO_MATTER,
        evidence=f"Its l1 loss is {min(ratios):.2f} to {max(ratios):.2f} times the empirical one's; in parts of the "
        f"projected one's: {listed}.",
    )


def normalizing_suits_flat(rows: Sequence[dict[str, Any]]) -> Verdict:
    """Normalized against projected where all shares are equal."""
    ratios = [c["normalized"]["l1"] / c["projected"]["l1"] for c in by_cell(rows).values()]
    return Verdict(
        claim="On the uniform distribution the normalized decoder loses no more than the projected one.",
        holds=max(ratios) <= 1 + TO_MATTER,
        evidence=f"Its l1 loss is {min(ratios):.2f} to {max(ratios):.2f} times the projected one's.",
    )


def draw_decoders(axes: Axes, rows: Sequence[dict[str, Any]], against: str, line: str = "-") -> None:
    """Loss of each decoder against one column."""
    for decoder in dict.fromkeys(row["decoder"] for row in rows):
        chosen = sorted((row for row in rows if row["decoder"] == decoder), key=lambda row: row[against])
        axes.plot(
            [row[against] for row in chosen],
            [row["l1"] for row in chosen],
            line,
            marker=".",
            color=COLORS[decoder],
            label=decoder if line == "-" else None,
        )
    axes.set_xlabel(against)
