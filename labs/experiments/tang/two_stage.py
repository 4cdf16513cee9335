"""Tang et al., Figures 1 and 2: the probability p_2 with which TSP keeps "missing", and its benefit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from labs.experiments.frame import Experiment, Result, Verdict, draw_people
from labs.experiments.tang.priors import SOURCE
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.mechanisms import MECHANISMS, Mechanism

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUM_ANSWERS = 4
"""d of the report."""

EPSILON = 1.0
SHADES = ("#d55e00", "#0072b2", "#009e73")
STYLES = {"UP": ("#555555", "--"), "TSP": ("#0072b2", "-")}
MAX_DEVIATIONS = 6.0
"""Between a simulated mean squared error and the exact one, in standard errors."""


def two_stage(alpha: float, beta: float, epsilon: float = EPSILON) -> Mechanism:
    """TSP over four answers and "missing", for states whose rates of missing answers are alpha and beta."""
    K = NUM_ANSWERS + 1
    return MECHANISMS["tsp"](num_symbols=K, num_sensitive=K, epsilon=epsilon, missing_rates=(alpha, beta))


def uniform(epsilon: float = EPSILON) -> Mechanism:
    """UP over the same symbols."""
    K = NUM_ANSWERS + 1
    return MECHANISMS["up"](num_symbols=K, num_sensitive=K, epsilon=epsilon)


def channel(mechanism: Mechanism) -> np.ndarray:
    """(K, K): probability of each report (row) given each symbol (column)."""
    return np.array(mechanism.channel()[1], dtype=np.float64)


def kept(mechanism: Mechanism) -> float:
    """p_2: the probability that "missing" is reported as it is."""
    return float(channel(mechanism)[-1, -1])


def rates_for(p2: float, missing: float, epsilon: float = EPSILON) -> tuple[float, float]:
    """Rates alpha >= missing >= beta for which TSP has this p_2.

    p_2 = (E - 1 + omega) / (E - 1 + (d + 1) omega) is solved for omega = alpha - E beta.
    """
    gain = math.expm1(epsilon)
    omega = gain * (1 - p2) / ((NUM_ANSWERS + 1) * p2 - 1)
    beta = max((missing - omega) / math.exp(epsilon), 1e-6)
    return omega + math.exp(epsilon) * beta, beta


# -------------------------------------------------------------------------------------------------------- figure 1


class TangFigure1(Experiment):
    id = "tang-figure-1"
    title = "The probability p_2 that TSP keeps a missing answer"
    source = f"{SOURCE}, Figure 1"
    abstract = (
        "Four answers. (a) against the larger rate alpha of missing answers, from beta to 0.2, at epsilon 1; (b) "
        "against "
        "the smaller rate beta, up to alpha, at epsilon 1; (c) against epsilon at alpha 0.1. The points are read off "
        "the "
        "exact channel of the mechanism; p_2 of UP, e^epsilon / (e^epsilon + 4), is drawn beside it. Nothing is "
        "simulated."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        rows = list(_figure_1_rows(9 if reduced else 41))
        return Result(rows=rows, verdicts=[more_than_up(rows), closed_form(rows), falls_and_rises(rows)])

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        panels = {"a": ("alpha", "beta"), "b": ("beta", "alpha"), "c": ("epsilon", "beta")}
        for axes, (panel, (against, series)) in zip(figure.subplots(1, 3, sharey=True), panels.items()):
            here = [row for row in rows if row["panel"] == panel]
            for value, color in zip(sorted({row[series] for row in here}), SHADES):
                own = [row for row in here if row[series] == value]
                axes.plot([r[against] for r in own], [r["p2"] for r in own], color=color, label=f"{series} = {value:g}")
            own = sorted(here, key=lambda row: row[against])
            axes.plot([r[against] for r in own], [r["p2_of_up"] for r in own], "--", color="#555555", lw=1, label="UP")
            fixed = {"a": "epsilon 1", "b": "epsilon 1", "c": "alpha 0.1"}[panel]
            axes.set(xlabel=against, title=f"({panel}) {fixed}")
            axes.grid(color="#e6e6e6")
            axes.legend(fontsize=8)
        figure.axes[0].set_ylabel("p_2")


def _figure_1_rows(points: int) -> Iterator[dict[str, Any]]:
    for beta in (0.01, 0.05, 0.1):
        for alpha in np.linspace(beta, 0.2, points):
            yield _row("a", float(alpha), beta, EPSILON)
    for alpha in (0.1, 0.15, 0.2):
        for beta in np.linspace(alpha / points, alpha, points):
            yield _row("b", alpha, float(beta), EPSILON)
    for beta in (0.01, 0.05, 0.1):
        for epsilon in np.linspace(0.1, 3, points):
            yield _row("c", 0.1, beta, float(epsilon))


def _row(panel: str, alpha: float, beta: float, epsilon: float) -> dict[str, Any]:
    gain = math.expm1(epsilon)
    omega = max(alpha - math.exp(epsilon) * beta, 0.0)
    return {
        "panel": panel,
        "alpha": alpha,
        "beta": beta,
        "epsilon": epsilon,
        "p2": kept(two_stage(alpha, beta, epsilon)),
        "p2_printed": (gain + omega) / (gain + (NUM_ANSWERS + 1) * omega),
        "p2_of_up": kept(uniform(epsilon)),
    }


def more_than_up(rows: list[dict[str, Any]]) -> Verdict:
    """p_2 against that of UP."""
    least = min(row["p2"] - row["p2_of_up"] for row in rows)
    return Verdict(
        claim="TSP keeps a missing answer with a larger probability than UP.",
        holds=least > 0,
        evidence=f"By {least:.3f} at least, in {len(rows)} settings.",
    )


def closed_form(rows: list[dict[str, Any]]) -> Verdict:
    """The printed formula against the channel."""
    worst = max(abs(row["p2"] - row["p2_printed"]) for row in rows)
    return Verdict(
        claim="p_2 is (e^epsilon - 1 + omega) / (e^epsilon - 1 + (d + 1) omega), omega = alpha - e^epsilon beta.",
        holds=worst < 1e-12,
        evidence=f"The channel differs from it by {worst:.1e} at most.",
    )


def falls_and_rises(rows: list[dict[str, Any]]) -> Verdict:
    """Each curve in its order."""
    series: dict[tuple[str, float], list[float]] = {}
    for row in rows:
        series.setdefault((row["panel"], row["alpha"] if row["panel"] == "b" else row["beta"]), []).append(row["p2"])
    steps = {key: np.diff(line) * (-1 if key[0] == "a" else 1) for key, line in series.items()}
    return Verdict(
        claim="p_2 falls with alpha, and rises with beta and with epsilon.",
        holds=all(step.min() >= -1e-12 for step in steps.values()),
        evidence=f"Along all {len(steps)} curves; p_2 lies between {min(row['p2'] for row in rows):.3f} and 1.",
    )


# -------------------------------------------------------------------------------------------------------- figure 2


class TangFigure2(Experiment):
    id = "tang-figure-2"
    title = "Mean squared error of TSP and UP against p_2 and against the rate of missing answers"
    source = f"{SOURCE}, Figure 2"
    abstract = (
        "Four answers with shares proportional to 1, 1/2, 1/3, 1/4 (ours: those of the report are not known to us), "
        "10,000 people, epsilon 1. (a) against p_2 at a rate of missing answers of 0.1, which does not change UP; (b) "
        "against that rate at p_2 = 0.85. Exact errors as lines, means over 1,000 (reduced: 200) simulations as dots "
        "with "
        "two standard errors."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        runs, people = runs or (200 if reduced else 1000), 10_000
        rows = []
        for p2 in np.linspace(0.45, 0.99, 4 if reduced else 13):
            mechanisms = {"TSP": two_stage(*rates_for(float(p2), 0.1)), "UP": uniform()}
            for name, mechanism in mechanisms.items():
                row = {"panel": "a", "mechanism": name, "p2": float(p2), "missing": 0.1}
                rows.append(row | errors(mechanism, 0.1, people, runs, rng))
        for missing in np.linspace(0.05, 0.6, 4 if reduced else 12):
            for name, mechanism in {"TSP": two_stage(*rates_for(0.85, 0.1)), "UP": uniform()}.items():
                row = {"panel": "b", "mechanism": name, "p2": 0.85, "missing": float(missing)}
                rows.append(row | errors(mechanism, float(missing), people, runs, rng))
        return Result(rows=rows, verdicts=[two_stage_is_better(rows), simulations_agree(rows)])

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        figure.set_size_inches(9, 6.6)
        titles = {"answers": "answers, mean", "rate": "rate of missing answers"}
        for line, (what, title) in zip(figure.subplots(2, 2), titles.items()):
            for axes, (panel, against, label) in zip(
                line, (("a", "p2", "p_2"), ("b", "missing", "rate of missing answers"))
            ):
                for name, (color, style) in STYLES.items():
                    own = [row for row in rows if (row["panel"], row["mechanism"]) == (panel, name)]
                    at = [row[against] for row in own]
                    axes.plot(at, [row[f"error_of_{what}"] for row in own], style, color=color, label=name)
                    bars = [2 * row[f"simulated_{what}_error"] for row in own]
                    points = [row[f"simulated_{what}"] for row in own]
                    axes.errorbar(at, points, bars, fmt="o", color=color, ms=3, capsize=2, lw=1)
                axes.set(xlabel=label, title=f"({panel}) {title}")
                axes.grid(color="#e6e6e6")
            line[0].set_ylabel("mean squared error")
        figure.axes[0].legend()


def answer_shares() -> np.ndarray:
    """Shares (4,) among the given answers."""
    weights = 1 / np.arange(1, NUM_ANSWERS + 1)
    return weights / weights.sum()


def errors(mechanism: Mechanism, missing: float, people: int, runs: int, rng: np.random.Generator) -> dict[str, Any]:
    """Exact and simulated mean squared errors of the answers (mean of four) and of the rate of missing ones."""
    frequencies = np.append((1 - missing) * answer_shares(), missing)
    exact = mechanism.variances(frequencies) / people
    law = channel(mechanism).T
    held = np.stack([draw_people(frequencies, people, rng) for _ in range(runs)])
    cells = sum(rng.multinomial(held[:, x], law[x]) for x in range(len(law)))
    estimates = mechanism.invert(CohortCounts(np.full(runs, people), np.asarray(cells, dtype=np.int64)))
    squares = (estimates - frequencies) ** 2
    found: dict[str, Any] = {"people": people, "runs": runs}
    for name, exactly, sample in (
        ("answers", exact[:-1].mean(), squares[:, :-1].mean(axis=1)),
        ("rate", exact[-1], squares[:, -1]),
    ):
        found[f"error_of_{name}"] = float(exactly)
        found[f"simulated_{name}"] = float(sample.mean())
        found[f"simulated_{name}_error"] = float(sample.std(ddof=1) / math.sqrt(runs)) if runs > 1 else 0.0
    return found


def two_stage_is_better(rows: list[dict[str, Any]]) -> Verdict:
    """Exact errors, where p_2 is larger than that of UP."""
    of_up = {(row["panel"], row["p2"], row["missing"]): row for row in rows if row["mechanism"] == "UP"}
    ratios = {
        what: [
            row[f"error_of_{what}"] / of_up[row["panel"], row["p2"], row["missing"]][f"error_of_{what}"]
            for row in rows
            if row["mechanism"] == "TSP"
        ]
        for what in ("answers", "rate")
    }
    return Verdict(
        claim="TSP has a smaller mean squared error than UP for answers and for the rate of missing ones.",
        holds=max(map(max, ratios.values())) < 1,
        evidence="; ".join(f"{what}: {min(r):.2f} to {max(r):.2f} times" for what, r in ratios.items())
        + f", in {len(of_up)} settings.",
    )


def simulations_agree(rows: list[dict[str, Any]]) -> Verdict:
    """Simulated errors against the exact ones."""
    distances = [
        abs(row[f"simulated_{what}"] - row[f"error_of_{what}"]) / row[f"simulated_{what}_error"]
        for row in rows
        for what in ("answers", "rate")
        if row[f"simulated_{what}_error"] > 0
    ]
    worst = max(distances, default=0.0)
    return Verdict(
        claim="The exact mean squared errors are those of simulations.",
        holds=worst < MAX_DEVIATIONS,
        evidence=f"Largest distance of {len(distances)} means: {worst:.1f} standard errors.",
    )
