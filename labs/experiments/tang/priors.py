"""Tang et al., declared priors: AGRR against k-RR (GRR) and AOUE against OUE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from labs.experiments.frame import Experiment, Result, Verdict, draw_people, simulate_counts, squared_error
from labs.experiments.tang.printed_aoue import printed_noise_suffices, rows_of_counterexamples
from uldp_transforms.ldp import Collection

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCE = "Tang, Shao, Chen, Wang and Guo"
PAIRS = {"GRR": "AGRR", "OUE": "AOUE"}
STYLES = {"GRR": "tab:red", "AGRR": "tab:orange", "OUE": "tab:blue", "AOUE": "tab:cyan"}
ROUNDING = 1e-6
"""Relative difference that comes from integer weights of the clients."""

Priors = tuple[tuple[float, ...], ...]
OVERLAPPING: Priors = ((0.6, 0.3, 0.1), (0.2, 0.3, 0.5))
TELLING: Priors = ((1.0, 0.0, 0.0), (0.0, 0.5, 0.5))
"""The first value is certain in one state and impossible in the other: nothing is uncertain, omega = 1."""


class DeclaredPriors(Experiment):
    id = "tang-priors"
    title = "AGRR and AOUE against GRR and OUE under declared priors"
    source = f"{SOURCE}, error against epsilon"
    abstract = (
        "Exact mean squared error per value and report, times the number of reports, of estimated value "
        "frequencies, and simulations of 10,000 (reduced: 5,000) people beside it, whose states are equally common. "
        "Priors: two states and three values that overlap; two states that a value gives away (omega = 1); and priors "
        "drawn at random, with 2 to 5 states, 2 to 16 values and epsilon 0.1 to 4. Two "
        "counterexamples to the printed noise of AOUE are enumerated. The data of the report are not at hand."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        number, runs = 5_000 if reduced else 10_000, runs or (100 if reduced else 1000)
        epsilons = (0.5, 2.0) if reduced else (0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
        settings: list[tuple[str, Priors, float, int]] = [
            (name, priors, epsilon, runs)
            for name, priors in (("overlapping", OVERLAPPING), ("telling", TELLING))
            for epsilon in epsilons
        ]
        settings += [
            ("random", random_priors(rng), float(rng.uniform(0.1, 4)), 0) for _ in range(40 if reduced else 150)
        ]
        rows = [
            row
            for name, priors, epsilon, simulations in settings
            for row in prior_rows(name, priors, epsilon, number=number, runs=simulations, rng=rng)
            if name != "random" or row["mechanism"] in PAIRS.values()
        ]
        verdicts = [never_worse(rows), equal_if_telling(rows), guarantee_kept(rows)]
        rows += rows_of_counterexamples()
        return Result(rows=rows, verdicts=[*verdicts, printed_noise_suffices(rows)])

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        panels = figure.subplots(1, 3)
        for axes, name in zip(panels, ("overlapping", "telling")):
            for mechanism, color in STYLES.items():
                chosen = [row for row in rows if (row["priors"], row["mechanism"]) == (name, mechanism)]
                epsilons = [row["epsilon"] for row in chosen]
                line = "-" if name == "overlapping" or mechanism in PAIRS else ":"
                axes.plot(epsilons, [row["error"] for row in chosen], line, color=color, label=mechanism)
                axes.plot(epsilons, [row["simulated"] for row in chosen], "o", color=color, ms=4)
            axes.set(xlabel="epsilon", yscale="log", title=f"{name} priors")
        panels[0].set_ylabel("n times mean squared error (dots: simulated)")
        panels[0].legend()
        for baseline, mechanism in PAIRS.items():
            chosen = [row for row in rows if (row["priors"], row["mechanism"]) == ("random", mechanism)]
            points = [row["omega"] for row in chosen], [row["ratio"] for row in chosen]
            panels[2].plot(*points, ".", color=STYLES[mechanism], ms=3, label=f"{mechanism} / {baseline}")
        panels[2].set(xlabel="omega", ylabel="ratio of errors", title="random priors")
        panels[2].legend()


def random_priors(rng: np.random.Generator) -> Priors:
    """Rows drawn from a Dirichlet distribution of random concentration."""
    shape = (int(rng.integers(2, 6)), int(rng.integers(2, 17)))
    drawn = rng.dirichlet(np.full(shape[1], rng.choice([0.1, 0.5, 1.0, 5.0])), size=shape[0])
    return tuple(tuple(map(float, row)) for row in drawn)


def collection(mechanism: str, priors: Priors, epsilon: float) -> Collection:
    """One of the four mechanisms, over the values of the priors."""
    fields: dict[str, dict[str, Any]] = {
        "GRR": {"id": "krr"},
        "OUE": {"id": "rappor", "theta": 0.5},
        "AGRR": {"id": "agrr", "priors": priors},
        "AOUE": {"id": "aoue", "priors": priors},
    }
    return Collection.from_json(
        {
            "id": "experiment",
            "version": 1,
            "alphabet": {"id": "closed", "values": [f"value {i}" for i in range(len(priors[0]))]},
            "mechanism": fields[mechanism] | {"epsilon": epsilon},
        }
    )


def omega(mechanism: str, priors: Priors, epsilon: float) -> float:
    """Excess of the difference between states over e**epsilon, for one value (AGRR, GRR) or a set of values (AOUE,
    OUE)."""
    table = np.array(priors)
    excess = np.maximum(table[:, np.newaxis] - np.exp(epsilon) * table, 0)
    return float((excess.max(axis=-1) if mechanism.endswith("GRR") else excess.sum(axis=-1)).max())


def prior_rows(
    name: str, priors: Priors, epsilon: float, *, number: int, runs: int, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """One row for each mechanism; ``ratio`` is the error over that of the mechanism without priors."""
    frequencies = np.mean(priors, axis=0)
    rows: dict[str, dict[str, Any]] = {}
    for baseline, informed in PAIRS.items():
        for mechanism in (baseline, informed):
            spec = collection(mechanism, priors, epsilon)
            error = float(spec.mechanism.variances(frequencies).mean())
            row = {
                "priors": name,
                "states": len(priors),
                "values": len(frequencies),
                "epsilon": epsilon,
                "mechanism": mechanism,
                "omega": omega(mechanism, priors, epsilon),
                "error": error,
                "ratio": error / rows[baseline]["error"] if mechanism != baseline else 1.0,
                "effective_epsilon": spec.mechanism.effective_epsilon,
            }
            rows[mechanism] = row | (simulated(spec, frequencies, number, runs, rng) if runs else {})
    return list(rows.values())


def simulated(
    spec: Collection, frequencies: np.ndarray, number: int, runs: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Number of reports times the mean squared error per value, as simulated."""
    sample = np.empty(runs)
    for run in range(runs):
        people = draw_people(frequencies, number, rng)
        counts = simulate_counts(spec, spec.alphabet.known_values or (), people, rng)
        estimated = spec.estimate(counts, "empirical").frequencies
        sample[run] = number * squared_error(estimated, frequencies) / len(frequencies)
    error = float(sample.std(ddof=1) / np.sqrt(runs)) if runs > 1 else 0.0
    return {"people": number, "runs": runs, "simulated": float(sample.mean()), "simulated_error": error}


def informed_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of mechanisms that use priors."""
    return [row for row in rows if row["mechanism"] in PAIRS.values()]


def never_worse(rows: list[dict[str, Any]]) -> Verdict:
    """Ratios of errors in all settings."""
    listed = {
        mechanism: [row["ratio"] for row in rows if row["mechanism"] == mechanism] for mechanism in PAIRS.values()
    }
    return Verdict(
        claim="AGRR is never worse than GRR, and AOUE never worse than OUE.",
        holds=all(max(ratios) <= 1 + ROUNDING for ratios in listed.values()),
        evidence="; ".join(
            f"{mechanism} has {min(ratios):.3f} to {max(ratios):.3f} times the error (median {np.median(ratios):.3f}) "
            f"in {len(ratios)} settings"
            for mechanism, ratios in listed.items()
        )
        + ".",
    )


def equal_if_telling(rows: list[dict[str, Any]]) -> Verdict:
    """Ratios of errors where omega is 1."""
    ratios = [row["ratio"] for row in informed_rows(rows) if row["priors"] == "telling"]
    return Verdict(
        claim="Where a value gives a state away (omega = 1) the priors change nothing.",
        holds=all(abs(ratio - 1) <= ROUNDING for ratio in ratios),
        evidence=f"Ratios of errors differ from 1 by {max(abs(ratio - 1) for ratio in ratios):.1e} at most.",
    )


def guarantee_kept(rows: list[dict[str, Any]]) -> Verdict:
    """Largest log ratio between states, over all reports."""
    excess = max(row["effective_epsilon"] - row["epsilon"] for row in informed_rows(rows))
    return Verdict(
        claim="No report tells two states apart by more than e**epsilon under the declared priors.",
        holds=excess <= 1e-12,
        evidence=f"The largest log ratio minus epsilon is {excess:.1e}, over {len(informed_rows(rows))} settings.",
    )
