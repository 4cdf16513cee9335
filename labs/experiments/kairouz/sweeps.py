"""One parameter at a time, the others at their best: Figures 11, 12, 15 and 16."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from labs.experiments.frame import Experiment, Result, Verdict, progress
from labs.experiments.kairouz import inputs, losses
from labs.experiments.kairouz.accuracy import COHORTS
from labs.experiments.kairouz.ours import OURS
from labs.experiments.kairouz.plans import O_RAPPOR, O_RR, Plan, best, grid, powers_of_two

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HASHES = (1, 2, 4, 8, 16)
PANELS = {
    "O-RR by k": (O_RR, "num_buckets"),
    "O-RAPPOR by k": (O_RAPPOR, "num_buckets"),
    "O-RR by C": (O_RR, "num_cohorts"),
    "O-RAPPOR by C": (O_RAPPOR, "num_cohorts"),
    "O-RAPPOR by h": (O_RAPPOR, "num_hashes"),
}
"""Mechanism and the parameter that has a curve for each of its values."""

FORECAST_EPSILONS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)


class _Sweeps(Experiment):
    """l1 against epsilon: forecasts as lines, simulations as dots."""

    closed: ClassVar[bool] = False
    number: ClassVar[int] = 1_000_000
    size: ClassVar[int] = 4096
    simulated_at: ClassVar[tuple[float, ...]] = (1.0, 3.0, 5.0, 7.0)

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        size, runs = (32 if reduced else self.size), runs or (1 if reduced or self.closed else 3)
        people = inputs.population(inputs.geometric(size), self.number // 10 if reduced else self.number)
        at = (1.0, 5.0) if reduced else self.simulated_at
        lines = (1.0, 3.0, 5.0) if reduced else FORECAST_EPSILONS
        cohorts, buckets = (COHORTS[:8] if reduced else COHORTS), powers_of_two(64 if reduced else 4096)
        rows: list[dict[str, Any]] = []
        for panel, (mechanism, parameter) in progress(list(PANELS.items()), "panel"):
            hashes = HASHES if mechanism == O_RAPPOR else (1,)
            plans = grid(mechanism, size, closed=self.closed, buckets=buckets, cohorts=cohorts, hashes=hashes)
            for value in sorted({getattr(plan, parameter) for plan in plans}):
                some = [plan for plan in plans if getattr(plan, parameter) == value]
                about = {"panel": panel, "parameter": value, "values": size, "people": people.number}
                rows += [about | row for row in swept(some, people, lines, at, runs, rng)]
        rows += self._ours(people, at, runs, rng)
        return Result(rows=rows, verdicts=[few_buckets_suffice(rows), cohorts_help(rows), *hashes_cost(rows)])

    def _ours(
        self, people: inputs.Population, at: tuple[float, ...], runs: int, rng: np.random.Generator
    ) -> list[dict[str, Any]]:
        """The planner's collection with eb; over long closed lists its reports are large, so at the last one only."""
        about = {"panel": OURS, "values": len(people.values), "people": people.number}
        if self.closed and len(people.values) > 1024:
            at = at[-1:]
        return [
            about | {"epsilon": epsilon} | losses.of_ours(people, epsilon, runs, rng, closed=self.closed)
            for epsilon in at
        ]

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        from matplotlib import colormaps  # noqa: PLC0415  # slow to import

        panels = [panel for panel in PANELS if len({row["parameter"] for row in rows if row["panel"] == panel}) > 1]
        figure.set_size_inches(3.1 * len(panels), 5.2)
        grid_of = figure.subplots(1, len(panels), sharey=True)
        ours = [row for row in rows if row["panel"] == OURS]
        for axes, panel in zip(grid_of, panels):
            here = [row for row in rows if row["panel"] == panel]
            values = sorted({row["parameter"] for row in here})
            for place, value in enumerate(values):
                color = colormaps["viridis"](place / max(len(values) - 1, 1) * 0.92)
                own = [row for row in here if row["parameter"] == value]
                axes.plot([r["epsilon"] for r in own], [r["forecast_l1"] for r in own], "-", color=color, lw=1)
                dots = [row for row in own if "l1" in row]
                points = [row["epsilon"] for row in dots], [row["l1"] for row in dots]
                axes.plot(*points, "o", color=color, ms=3.5, label=f"{panel[-1]} = {value:,}")
            points = [row["epsilon"] for row in ours], [row["l1"] for row in ours]
            axes.plot(*points, "D-", color="black", ms=3.5, lw=1, label=OURS)
            axes.set(xlabel="epsilon", yscale="log", title=panel)
            axes.grid(color="#e6e6e6")
            axes.legend(fontsize=7, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2)
        grid_of[0].set_ylabel("l1 distance (line: forecast, dots: simulated)")


ABOUT = (
    "Each line is one value of one parameter, the remaining ones (k up to 4,096, C up to 1,024, h up to 16) being the "
    "best by the forecast; dots are simulations of the same plans (median). Geometric shares, projected estimate."
)


class Figure11(_Sweeps):
    id = "kairouz-figure-11"
    title = "Sweeps of k, C and h: open alphabet of 4,096 candidates, 10^6 people"
    source = f"{inputs.SOURCE}, Figure 11"
    abstract = ABOUT


class Figure12(_Sweeps):
    id = "kairouz-figure-12"
    title = "Sweeps of k and C: closed alphabet of 4,096 values, 10^6 people"
    source = f"{inputs.SOURCE}, Figure 12"
    abstract = (
        f"{ABOUT} Permutations have no h. Values of a permuted alphabet are solved for exactly, 10 seconds a window, "
        "so "
        "that the dots are single runs at two epsilons."
    )
    closed = True
    simulated_at = (3.0, 6.0)


class Figure15(_Sweeps):
    id = "kairouz-figure-15"
    title = "Sweeps of k, C and h: open alphabet of 4,096 candidates, 10^6 people, wide"
    source = f"{inputs.SOURCE}, Figure 15"
    abstract = f"{ABOUT} The setting is that of Figure 11, with twice as many simulated points."
    simulated_at = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)


class Figure16(_Sweeps):
    id = "kairouz-figure-16"
    title = "Sweeps of k, C and h: open alphabet of 4,096 candidates, 10^8 people"
    source = f"{inputs.SOURCE}, Figure 16"
    abstract = ABOUT
    number = 100_000_000


def swept(
    plans: list[Plan],
    people: inputs.Population,
    lines: tuple[float, ...],
    at: tuple[float, ...],
    runs: int,
    rng: np.random.Generator,
) -> list[dict[str, Any]]:
    """The best of these plans at each epsilon; at some of them simulated."""
    rows = []
    for epsilon in sorted({*lines, *at}):
        plan, forecast = best(plans, epsilon, people, 1)[0]
        row: dict[str, Any] = {"epsilon": epsilon, **plan.about, "forecast_l1": forecast}
        rows.append(row | (losses.of_plan(plan, people, epsilon, runs, rng) if epsilon in at else {}))
    return rows


# -------------------------------------------------------------------------------------------------------- verdicts


def simulated_by(rows: list[dict[str, Any]], panel: str) -> dict[float, dict[int, float]]:
    """Simulated l1 by epsilon and value of the parameter."""
    found: dict[float, dict[int, float]] = {}
    for row in rows:
        if row["panel"] == panel and "l1" in row:
            found.setdefault(row["epsilon"], {})[row["parameter"]] = row["l1"]
    return found


def few_buckets_suffice(rows: list[dict[str, Any]]) -> Verdict:
    """The number of buckets near e**epsilon + 1 against the best one."""
    ratios = {}
    for epsilon, losses_of in simulated_by(rows, "O-RR by k").items():
        near = min(losses_of, key=lambda k: abs(np.log(k / (np.exp(epsilon) + 1))))
        ratios[epsilon] = losses_of[near] / min(losses_of.values())
    return Verdict(
        claim="O-RR loses least with about e**epsilon + 1 buckets: the nearest power of two is within 5% of the best.",
        holds=max(ratios.values()) <= 1.05,
        evidence="Simulated l1 in parts of the least: "
        + ", ".join(f"{ratio:.3f} at epsilon {epsilon:g}" for epsilon, ratio in ratios.items())
        + ".",
    )


def cohorts_help(rows: list[dict[str, Any]]) -> Verdict:
    """The most cohorts against fewer, by the forecast."""
    lines: dict[tuple[str, float], list[float]] = {}
    for row in sorted(
        (row for row in rows if row["panel"].endswith("by C") and row["parameter"] > 1),
        key=lambda row: row["parameter"],
    ):
        lines.setdefault((row["panel"], row["epsilon"]), []).append(row["forecast_l1"])
    ratios = [min(line[:-1], default=line[-1]) / line[-1] for line in lines.values()]
    return Verdict(
        claim="Where values share buckets, more cohorts never hurt: the most are within 2% of the best everywhere.",
        holds=min(ratios) >= 0.98,
        evidence=f"Least forecast l1 with fewer cohorts, in parts of that with the most: {min(ratios):.3f} to "
        f"{max(ratios):.3f}.",
    )


def hashes_cost(rows: list[dict[str, Any]]) -> list[Verdict]:
    """Several hash functions against one; nothing where there are only permutations."""
    by_epsilon = simulated_by(rows, "O-RAPPOR by h")
    ratios = [loss / line[1] for line in by_epsilon.values() for h, loss in line.items() if h > 1]
    if not ratios:
        return []
    return [
        Verdict(
            claim="One hash function is best (within 2%).",
            holds=min(ratios) >= 0.98,
            evidence=f"With more the simulated l1 is {min(ratios):.2f} to {max(ratios):.2f} times that with one.",
        )
    ]
