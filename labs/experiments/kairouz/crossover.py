"""Where k-RR overtakes k-RAPPOR: Proposition 5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import optimize

from labs.experiments.frame import Experiment, Result, Verdict
from labs.experiments.kairouz import inputs
from uldp_transforms.ldp.mechanisms import KaryRR, Rappor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONSTRAINED = ("normalized", "projected")


class Crossover(Experiment):
    id = "kairouz-crossover"
    title = "k-RR against k-RAPPOR over the number of values and epsilon"
    source = f"{inputs.SOURCE}, Proposition 5; the geometric panel of Figure 2"
    abstract = (
        "Expected squared l2 loss of the empirical estimates by the exact formula, whose difference between the two "
        "mechanisms is the same for every distribution; and simulated l1 loss of the better constrained decoder "
        "(normalized or projected) of each mechanism for 30,000 people with geometric shares."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        number, runs = (10_000, runs or 40) if reduced else (30_000, runs or 40)
        sizes = (8, 64) if reduced else (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
        epsilons = (0.5, 1.0, 2.0, 4.0, 6.0) if reduced else tuple(float(half / 2) for half in range(1, 17))
        rows = []
        for k in sizes:
            of_size = [point(k, epsilon, number, runs, rng) for epsilon in epsilons]
            exact = crossover(k)  # without one both mechanisms are nearly alike, and simulation finds chance only
            boundaries = {"l1_crossover": simulated_crossover(of_size) if exact else None, "l2_crossover": exact}
            rows += [row | boundaries for row in of_size]
        return Result(rows=rows, verdicts=[proposition_5(), rappor_wins_early(rows), boundary_is_logarithm(rows)])

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        sizes = sorted({row["values"] for row in rows})
        epsilons = sorted({row["epsilon"] for row in rows})
        by_point = {(row["values"], row["epsilon"]): row for row in rows}
        panels = figure.subplots(1, 2, sharey=True)
        for axes, loss, power in zip(panels, ("l1", "l2_squared"), (1, 0.5)):
            ratios = np.array([
                [power * np.log2(by_point[k, e][f"krr_{loss}"] / by_point[k, e][f"rappor_{loss}"]) for k in sizes]
                for e in epsilons
            ])  # fmt: skip
            image = axes.pcolormesh(np.log2(sizes), epsilons, ratios, cmap="RdBu_r", vmin=-2, vmax=2, shading="nearest")
            axes.plot(np.log2(sizes), np.log(sizes), "k--", label="epsilon = ln k")
            boundaries = [by_point[k, epsilons[0]][f"{loss[:2]}_crossover"] for k in sizes]
            found = [(k, boundary) for k, boundary in zip(sizes, boundaries) if boundary is not None]
            axes.plot([np.log2(k) for k, _ in found], [b for _, b in found], "k-", marker=".", label="boundary")
            axes.set(xlabel="log2 of the number of values", title="l1, simulated" if loss == "l1" else "l2, exact")
        panels[0].set(ylabel="epsilon", ylim=(epsilons[0], epsilons[-1]))
        panels[0].legend()
        figure.colorbar(image, ax=list(panels), label="log2 of loss of k-RR / loss of k-RAPPOR")


def point(k: int, epsilon: float, number: int, runs: int, rng: np.random.Generator) -> dict[str, Any]:
    """Both mechanisms at one point; of the constrained decoders the better one of each."""
    row: dict[str, Any] = {"values": k, "epsilon": epsilon, "people": number, "runs": runs}
    people = inputs.population(inputs.geometric(k), number)
    for mechanism in (KaryRR, Rappor):
        collection = inputs.closed(mechanism.id, k, epsilon)
        losses = inputs.simulated_losses(collection, people, CONSTRAINED, runs, rng)
        mean, error = min(map(inputs.mean_and_error, losses.values()))
        row[f"{mechanism.id}_l1"], row[f"{mechanism.id}_l1_error"] = mean, error
        row[f"{mechanism.id}_l2_squared"] = expected(mechanism, k, epsilon, people.frequencies) / number
    return row


def expected(mechanism: type[KaryRR] | type[Rappor], k: int, epsilon: float, frequencies: np.ndarray) -> float:
    """Number of people times the expected squared l2 loss of the empirical estimate."""
    return float(mechanism(num_symbols=k, num_sensitive=k, epsilon=epsilon).variances(frequencies).sum())


def excess(epsilon: float, k: int) -> float:
    """ln of the expected squared l2 loss of k-RR over that of k-RAPPOR, without the sampling of people."""
    krr, rappor = (expected(mechanism, k, epsilon, inputs.uniform(k)) - (1 - 1 / k) for mechanism in (KaryRR, Rappor))
    return float(np.log(krr / rappor))


def ratio_at_logarithm(k: int) -> float:
    """The function whose minimum over k the paper's proof needs: loss of k-RAPPOR over that of k-RR at ln k, both
    without the sampling of people."""
    return float(np.exp(-excess(np.log(k), k)))


def crossover(k: int) -> float | None:
    """The epsilon above which k-RR has the smaller expected l2 loss; None if it has it at every epsilon."""
    lowest = 1e-2
    return None if excess(lowest, k) <= 0 else float(optimize.brentq(excess, lowest, 2 * np.log(k), args=(k,)))


def simulated_crossover(rows: list[dict[str, Any]]) -> float | None:
    """The largest epsilon at which ln(loss of k-RR / loss of k-RAPPOR) changes its sign, linear between points."""
    rows = sorted(rows, key=lambda row: row["epsilon"])
    epsilons = [row["epsilon"] for row in rows]
    ratios = [float(np.log(row["krr_l1"] / row["rappor_l1"])) for row in rows]
    for i in reversed(range(len(rows) - 1)):
        if ratios[i] > 0 >= ratios[i + 1]:
            return epsilons[i] + (epsilons[i + 1] - epsilons[i]) * ratios[i] / (ratios[i] - ratios[i + 1])
    return None


def proposition_5() -> Verdict:
    """k-RR at epsilon = ln(k/2) and above, over many alphabet sizes."""
    sizes = [*range(3, 65), *(1 << power for power in range(7, 13))]
    worst = max(excess(np.log(k / 2) + above, k) for k in sizes for above in np.arange(0, 4, 0.25))
    least = min(sizes, key=ratio_at_logarithm)
    return Verdict(
        claim="From epsilon = ln(k/2) on, k-RR has a smaller l2 loss than k-RAPPOR.",
        holds=worst < 0,
        evidence=f"Over {len(sizes)} alphabet sizes from 3 to 4096 its squared loss is at most "
        f"{np.exp(worst):.3f} times that of k-RAPPOR. At epsilon = ln k, without the sampling of people, k-RAPPOR "
        f"loses at least {ratio_at_logarithm(least):.4f} times as much (k = {least}).",
    )


def rappor_wins_early(rows: list[dict[str, Any]]) -> Verdict:
    """Small epsilon, many values."""
    early = [row for row in rows if row["values"] >= 8 and row["epsilon"] <= np.log(row["values"]) / 4]
    margins = [row["rappor_l1"] / row["krr_l1"] for row in early]
    slack = [3 * np.hypot(row["rappor_l1_error"], row["krr_l1_error"]) / row["krr_l1"] for row in early]
    return Verdict(
        claim="Where epsilon is small against ln k (8 values or more, epsilon up to ln(k)/4), k-RAPPOR wins.",
        holds=all(margin <= 1 + noise for margin, noise in zip(margins, slack)),
        evidence=f"Its l1 loss is {min(margins):.2f} to {max(margins):.2f} times that of k-RR, {len(early)} settings.",
    )


def boundary_is_logarithm(rows: list[dict[str, Any]]) -> Verdict:
    """Where the winner changes, against ln k."""
    found = {row["values"]: row for row in rows if row["values"] >= 8}
    by_l2 = {k: row["l2_crossover"] - np.log(k) for k, row in found.items()}
    by_l1 = {k: row["l1_crossover"] - np.log(k) for k, row in found.items() if row["l1_crossover"] is not None}
    return Verdict(
        claim="The winner changes at epsilon = ln k, within 0.5.",
        holds=all(abs(distance) <= 0.5 for distance in (*by_l2.values(), *by_l1.values())),
        evidence=f"k-RR wins earlier. For k = {', '.join(map(str, by_l2))} the boundary in l2 is at ln k plus "
        f"{inputs.listed(list(by_l2.values()))}; for k = {', '.join(map(str, by_l1))} that in l1 at ln k plus "
        f"{inputs.listed(list(by_l1.values()))}.",
    )
