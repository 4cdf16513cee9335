"""Tang et al., missing values: the two-stage perturbation TSP against uniform perturbation UP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from labs.experiments.frame import Experiment, Result, Verdict
from labs.experiments.tang.priors import SOURCE, simulated
from uldp_transforms.ldp import Collection

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUM_ANSWERS = 5
RATES = ((0.4, 0.2), (0.4, 0.05), (0.1, 0.05), (0.9, 0.1))
"""Pr(missing | state) of two states."""

COLORS = ("tab:blue", "tab:orange", "tab:green", "tab:red")


class MissingAnswers(Experiment):
    id = "tang-missing-answers"
    title = "TSP against UP where answers may be missing"
    source = f"{SOURCE}, missing data"
    abstract = (
        "Five answers, Zipf shares, and two equally common states with different rates of missing answers; the answer "
        "itself does not depend on the state. Exact mean squared error per value and report, times the number of "
        "reports, of the frequencies of the answers and of the missing one, and simulations of 10,000 (reduced: "
        "5,000) people beside it. The guarantee is enumerated twice: for answers that do not depend on the state, and "
        "for states that determine the answer. The report's own data are not at hand."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        number, runs = 5_000 if reduced else 10_000, runs or (100 if reduced else 1000)
        epsilons = (1.0, 3.0) if reduced else (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
        rows = [
            missing_row(mechanism, rates, epsilon, number=number, runs=runs, rng=rng)
            for rates in RATES
            for epsilon in epsilons
            for mechanism in ("up", "tsp")
        ]
        return Result(rows=rows, verdicts=[never_worse(rows), independent_guarantee(rows), joint_guarantee(rows)])

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        errors, ratios = figure.subplots(1, 2)
        for rates, color in zip(RATES, COLORS):
            label = f"missing {rates[0]:g} / {rates[1]:g}"
            here = [row for row in rows if (row["high_rate"], row["low_rate"]) == rates]
            for mechanism, line in (("up", "--"), ("tsp", "-")):
                chosen = [row for row in here if row["mechanism"] == mechanism]
                epsilons = [row["epsilon"] for row in chosen]
                shown = label if mechanism == "tsp" else None
                errors.plot(epsilons, [row["error"] for row in chosen], line, color=color, label=shown)
                errors.plot(epsilons, [row["simulated"] for row in chosen], "o", color=color, ms=3)
            excess = [row["log_ratio_value_is_state"] - row["epsilon"] for row in chosen]
            ratios.plot(epsilons, excess, marker=".", color=color, label=label)
        errors.set(
            xlabel="epsilon", ylabel="n times mean squared error", yscale="log", title="UP - -, TSP —, dots simulated"
        )
        ratios.axhline(0, color="k", linestyle=":")
        ratios.set(xlabel="epsilon", ylabel="log ratio minus epsilon", title="TSP, states that determine the answer")
        errors.legend()


def collection(mechanism: str, rates: tuple[float, float], epsilon: float) -> Collection:
    """Answers and, last, the missing one."""
    values = [*(f"answer {i}" for i in range(NUM_ANSWERS)), "missing"]
    fields = {"id": mechanism, "epsilon": epsilon} | ({"missing_rates": rates} if mechanism == "tsp" else {})
    return Collection.from_json(
        {"id": "experiment", "version": 1, "alphabet": {"id": "closed", "values": values}, "mechanism": fields}
    )


def answer_shares() -> np.ndarray:
    """Shares (5,) among the given answers."""
    weights = 1 / np.arange(1, NUM_ANSWERS + 1)
    return weights / weights.sum()


def missing_row(
    mechanism: str, rates: tuple[float, float], epsilon: float, *, number: int, runs: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Errors and log ratios of one mechanism in one setting."""
    spec = collection(mechanism, rates, epsilon)
    missing = float(np.mean(rates))
    frequencies = np.append((1 - missing) * answer_shares(), missing)
    errors = spec.mechanism.variances(frequencies)
    return {
        "high_rate": rates[0],
        "low_rate": rates[1],
        "epsilon": epsilon,
        "mechanism": mechanism,
        "error": float(errors.mean()),
        "error_of_missing": float(errors[-1]),
        "log_ratio_independent": largest_log_ratio(spec, independent_states(rates)),
        "log_ratio_value_is_state": largest_log_ratio(spec, telling_states(rates)),
        **simulated(spec, frequencies, number, runs, rng),
    }


def independent_states(rates: tuple[float, float]) -> Iterator[list[np.ndarray]]:
    """Laws of the value (K,) in the two states: the same answers, different missing rates; many sets of answers."""
    for answers in (answer_shares(), *np.eye(NUM_ANSWERS)):
        yield [np.append((1 - rate) * answers, rate) for rate in rates]


def telling_states(rates: tuple[float, float]) -> Iterator[list[np.ndarray]]:
    """Laws of the value in states that have one answer and one of the missing rates each."""
    yield [np.append((1 - rate) * answer, rate) for rate in rates for answer in np.eye(NUM_ANSWERS)]


def largest_log_ratio(spec: Collection, families: Iterator[list[np.ndarray]]) -> float:
    """Largest log ratio over all reports and pairs of states of one family, by enumeration of the channel."""
    channel = np.array(spec.mechanism.channel()[1], dtype=np.float64)
    laws = [np.log(channel @ np.array(states).T) for states in families]
    return max(float((law.max(axis=1) - law.min(axis=1)).max()) for law in laws)


def never_worse(rows: list[dict[str, Any]]) -> Verdict:
    """Ratios of TSP's errors to UP's."""
    found = {(row["high_rate"], row["low_rate"], row["epsilon"], row["mechanism"]): row for row in rows}
    pairs = [
        (row, found[high, low, epsilon, "up"]) for (high, low, epsilon, kind), row in found.items() if kind == "tsp"
    ]
    ratios = [[tsp[column] / up[column] for column in ("error", "error_of_missing")] for tsp, up in pairs]
    (least, least_missing), (most, most_missing) = np.min(ratios, axis=0), np.max(ratios, axis=0)
    return Verdict(
        claim="TSP has a smaller error than UP at every epsilon and pair of missing rates tried.",
        holds=max(most, most_missing) < 1,
        evidence=f"{least:.2f} to {most:.2f} times that of UP over all values, {least_missing:.2f} to "
        f"{most_missing:.2f} times for the share of missing answers, in {len(ratios)} settings.",
    )


def independent_guarantee(rows: list[dict[str, Any]]) -> Verdict:
    """Log ratios for answers that do not depend on the state."""
    excess = max(row["log_ratio_independent"] - row["epsilon"] for row in rows)
    return Verdict(
        claim="No report tells two states apart by more than e**epsilon if given answers do not depend on the state.",
        holds=excess <= 1e-12,
        evidence=f"The largest log ratio minus epsilon is {excess:.1e}.",
    )


def joint_guarantee(rows: list[dict[str, Any]]) -> Verdict:
    """Log ratios for states that determine the answer."""
    of_tsp = [row for row in rows if row["mechanism"] == "tsp"]
    worst = max(of_tsp, key=lambda row: row["log_ratio_value_is_state"] - row["epsilon"])
    listed = "; ".join(
        f"{row['log_ratio_value_is_state']:.5f} at rates {row['high_rate']:g} and {row['low_rate']:g}, epsilon "
        f"{row['epsilon']:g}"
        for row in (next(row for row in of_tsp if row["epsilon"] == 1.0), worst)
    )
    return Verdict(
        claim="The same holds if the answer itself is the state, or depends on it.",
        holds=worst["log_ratio_value_is_state"] <= worst["epsilon"] + 1e-12,
        evidence=f"The largest log ratio is {listed}.",
    )
