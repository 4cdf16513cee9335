"""O-RR by the paper's equation (22) and by the centred, weighted least squares of this library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from labs.experiments.drawn_counts import draw_counts
from labs.experiments.frame import Experiment, Result, Verdict, draw_people
from labs.experiments.kairouz import inputs
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.mechanisms import KaryRR
from uldp_transforms.ldp.solvers.simplex import project_onto_simplex

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRINTED, HERE = "equation (22)", "here"
BUCKETS, COHORTS, EPSILON = 8, 64, 2.0
NUM_UNLISTED = 1_000
"""Texts on no list, which are equally common."""


class Equation22(Experiment):
    id = "kairouz-equation-22"
    title = "O-RR by equation (22) and by centred, weighted least squares, with unlisted texts"
    source = f"{inputs.SOURCE}, equation (22)"
    abstract = (
        f"256 candidates with geometric shares, O-RR at epsilon {EPSILON:g} with {BUCKETS} buckets and {COHORTS} "
        "cohorts, 1,000,000 people, of whom none or a fifth hold one of 1,000 texts on no list. "
        "Equation (22): least squares over all cells, counts divided by n / C, shares that sum to 1. Here: cells are "
        "centred over the buckets of their cohort, divided by the reports of the cohort and weighted by them; the rest "
        "counts as unlisted. l1 distance over the candidates to their shares among all people."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        runs = runs or (4 if reduced else 20)
        rows = [row for share in (0.0, 0.2) for row in loss_rows(share, 1_000_000, runs, rng)]
        return Result(rows=rows, verdicts=[centring_allows_for_unlisted(rows)])

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        for axes, column in zip(figure.subplots(1, 2), ("l1_raw", "l1_projected")):
            names = [f"{row['decoder']},\n{row['unlisted']:.0%} unlisted" for row in rows]
            axes.bar(names, [row[column] for row in rows], color=["#0072b2", "#d55e00"] * 2)
            axes.set(ylabel="l1", title="unbiased" if column == "l1_raw" else "projected")
            axes.tick_params(axis="x", labelsize=7)


def loss_rows(unlisted: float, number: int, runs: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Mean l1 distances of both decoders over the candidates."""
    candidates, others = inputs.names(256), tuple(f"other {at}" for at in range(NUM_UNLISTED))
    listed = (1 - unlisted) * inputs.geometric(len(candidates))
    frequencies = np.append(listed, np.full(NUM_UNLISTED, unlisted / NUM_UNLISTED))
    of = inputs.hashed("krr", BUCKETS, COHORTS, EPSILON)
    found: dict[str, list[tuple[float, float]]] = {PRINTED: [], HERE: []}
    for _ in range(runs):
        counts = draw_counts(of, (*candidates, *others), draw_people(frequencies, number, rng), rng)
        raw = printed(of, counts, candidates)
        found[PRINTED].append((_l1(raw, listed), _l1(project_onto_simplex(raw), listed)))
        here = [of.estimate(counts, name, candidates).frequencies for name in ("empirical", "projected")]
        found[HERE].append((_l1(here[0], listed), _l1(here[1], listed)))
    return [
        {"unlisted": unlisted, "people": number, "runs": runs, "decoder": name}
        | dict(zip(("l1_raw", "l1_projected"), np.mean(losses, axis=0).tolist()))
        | dict(zip(("l1_raw_error", "l1_projected_error"), (np.std(losses, axis=0) / np.sqrt(runs)).tolist()))
        for name, losses in found.items()
    ]


def printed(of: Collection, counts: CohortCounts, candidates: tuple[str, ...]) -> np.ndarray:
    """(S,): the least-squares solution of equation (22) for all cells, with n / C reports in every cohort."""
    mechanism, num_cohorts = of.mechanism, of.num_cohorts
    assert isinstance(mechanism, KaryRR)
    k, rates = mechanism.num_symbols, counts.cells / (counts.total / num_cohorts)
    in_buckets = (rates - mechanism.miss) / mechanism.delta
    table = of.alphabet.symbol_table(candidates, num_cohorts)
    cells = (table[..., np.newaxis] == np.arange(k)).transpose(0, 2, 1).reshape(num_cohorts * k, len(candidates))
    solution: np.ndarray = np.linalg.lstsq(cells.astype(float), in_buckets.ravel(), rcond=None)[0]
    return solution


def _l1(estimated: np.ndarray, true: np.ndarray) -> float:
    return float(np.abs(estimated - true).sum())


def centring_allows_for_unlisted(rows: list[dict[str, Any]]) -> Verdict:
    """Projected losses with a fifth of the people unlisted."""
    loss = {(row["decoder"], row["unlisted"]): row for row in rows}
    texts = [
        f"{share:.0%} unlisted: {loss[HERE, share][column]:.3f} instead of {loss[PRINTED, share][column]:.3f} ({what})"
        for share in (0.0, 0.2)
        for column, what in (("l1_raw", "unbiased"), ("l1_projected", "projected"))
    ]
    return Verdict(
        claim="Where a fifth of the people hold unlisted texts, centred least squares loses less than equation (22).",
        holds=all(loss[HERE, 0.2][column] < loss[PRINTED, 0.2][column] for column in ("l1_raw", "l1_projected")),
        evidence=f"l1 here and by equation (22), {'; '.join(texts)}.",
    )
