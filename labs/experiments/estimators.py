"""All estimators, and published ways to make raw frequencies consistent, over many kinds of data."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from labs.experiments.frame import Experiment, Result, Verdict, draw_people, simulate_counts, squared_error
from labs.experiments.kairouz import inputs
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.solvers.simplex import project_onto_simplex

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEW = "eb"
FIXED = ("empirical", "normalized", "projected", "threshold", "ml", "em")
ALLOWED = 1.3  # times the loss of the best fixed estimator, in nine of ten settings
SIZE = 64
CLOSED, HASHED, MIXED = "closed", "hashed", "sensitive and clear"
SECOND = "hashed, sensitive and clear"

Reference = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Raw frequencies (S,), their null variances and the slopes of their variances (S,) to a consistent estimate (S,)."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """An estimation problem: ``frequencies`` (S,) of ``values``, and a number of people."""

    table: str
    name: str
    collection: Collection
    frequencies: np.ndarray
    people: int


class Estimators(Experiment):
    id = "estimators"
    title = "The estimator eb against all others, and against published consistent estimates"
    source = "estimators of this library; Wang et al. 2020, 'Locally differentially private frequency estimation'"
    abstract = (
        "64 values; uniform, Zipf 1 and 2, five values only, geometric, and one half on one value; 3,000, 30,000 and "
        "300,000 people (reduced: 3,000); epsilon 1 and 3. Closed: k-RR and OUE. Hashed: k-RR over 4 and 21 buckets, "
        "64 cohorts. Sensitive and clear: uRR, uRAP and uSS with half of the values sensitive, drawn at random, the "
        "rarest, the commonest. Squared l2 loss, averaged over runs, as a multiple of the least of the fixed "
        "estimators in the same setting; less than the people asked would lose without privacy counts as that. Hashed, "
        "sensitive and clear settings are also put together. Then the CPU seconds of one window of k-RR."
    )

    def run(self, rng: np.random.Generator, *, reduced: bool, runs: int | None) -> Result:
        losses: dict[str, list[dict[str, float]]] = {}
        for setting in settings((3_000,) if reduced else (3_000, 30_000, 300_000), rng):
            losses.setdefault(setting.table, []).append(mean_losses(setting, runs or (2 if reduced else 8), rng))
        losses[SECOND] = losses[HASHED] + losses[MIXED]
        rows = [row for table, settings_of in losses.items() for row in summary(table, settings_of)]
        rows += [timing(size, rng) for size in ((64,) if reduced else (64, 1_000, 100_000))]
        return Result(rows=rows, verdicts=[*map(never_far, losses.items()), ahead_of_references(losses[CLOSED])])

    def draw(self, rows: list[dict[str, Any]], figure: Figure) -> None:
        tables = list(dict.fromkeys(row["table"] for row in rows if "geometric_mean" in row))
        for axes, table in zip(figure.subplots(1, len(tables)), tables):
            here = [row for row in rows if row["table"] == table]
            names = [row["estimator"] for row in here]
            axes.barh(names, [row["90 %"] for row in here], color="tab:orange", label="90 %")
            axes.barh(names, [row["geometric_mean"] for row in here], color="tab:blue", height=0.4, label="mean")
            axes.set(xscale="log", title=table, xlabel="loss / least of the fixed ones")
            axes.axvline(1, color="black", linewidth=0.5)
            axes.legend()


# -------------------------------------------------------------------------------------------------------- settings


def shapes() -> dict[str, np.ndarray]:
    """Frequencies (64,) of each kind."""
    rank = np.arange(1, SIZE + 1)
    return {
        "uniform": inputs.uniform(SIZE),
        "zipf 1": inputs.zipf(SIZE),
        "zipf 2": inputs.normalized(1 / rank**2.0),
        "five": inputs.normalized((rank <= 5) * 1.0),
        "geometric": inputs.geometric(SIZE),
        "half": np.where(rank == 1, 0.5, 0.5 / (SIZE - 1)),
    }


def settings(people: tuple[int, ...], rng: np.random.Generator) -> Iterator[Setting]:
    """All tables, with randomly drawn sensitive values."""
    for number in people:
        for epsilon in (1.0, 3.0):
            for shape, frequencies in shapes().items():
                for table, name, collection in collections(epsilon, frequencies, rng):
                    yield Setting(
                        table=table,
                        name=f"{name}, epsilon {epsilon:g}, {number} people, {shape}",
                        collection=collection,
                        frequencies=frequencies,
                        people=number,
                    )


def collections(
    epsilon: float, frequencies: np.ndarray, rng: np.random.Generator
) -> Iterator[tuple[str, str, Collection]]:
    """Table, name and collection of every kind."""
    values = inputs.names(SIZE)
    yield CLOSED, "krr", inputs.closed("krr", SIZE, epsilon)
    yield CLOSED, "oue", _collection({"id": "closed", "values": values}, {"id": "rappor", "theta": 0.5}, epsilon)
    yield HASHED, "hashed", inputs.hashed("krr", round(np.exp(epsilon) + 1), SIZE, epsilon)
    ranks = np.argsort(-frequencies, kind="stable")
    groups = {"random": rng.permutation(SIZE), "rarest": ranks[::-1], "commonest": ranks}
    for where, order in groups.items():
        sensitive = [values[i] for i in order[: SIZE // 2]]
        for mechanism in ("urr", "urap", "uss"):
            alphabet = {"id": "closed", "values": values, "sensitive": sensitive}
            yield MIXED, f"{mechanism}, {where}", _collection(alphabet, {"id": mechanism}, epsilon)


def _collection(alphabet: dict[str, Any], mechanism: dict[str, Any], epsilon: float) -> Collection:
    return Collection.from_json(
        {"id": "experiment", "version": 1, "alphabet": alphabet, "mechanism": mechanism | {"epsilon": epsilon}}
    )


def mean_losses(setting: Setting, runs: int, rng: np.random.Generator) -> dict[str, float]:
    """Mean squared l2 loss of every estimator that the setting allows, all from the same reports.

    At least that of the people's true frequencies: on uniform shares ``threshold`` is often exactly right.
    """
    values, losses = inputs.names(SIZE), dict[str, list[float]]()
    census = float((setting.frequencies * (1 - setting.frequencies)).sum() / setting.people)
    for _ in range(runs):
        held = draw_people(setting.frequencies, setting.people, rng)
        counts = simulate_counts(setting.collection, values, held, rng)
        for name, estimate in estimates(setting, counts).items():
            losses.setdefault(name, []).append(squared_error(estimate, setting.frequencies))
    return {name: max(float(np.mean(sample)), census) for name, sample in losses.items()}


def estimates(setting: Setting, counts: CohortCounts) -> dict[str, np.ndarray]:
    """Frequencies (S,) by each estimator, and by the references if all values have the same noise."""
    collection, values = setting.collection, inputs.names(SIZE)
    able = [name for name in FIXED if ESTIMATORS[name]().supports(collection)]
    if "ml" in able and "em" in able:
        able.remove("em")  # which finds the same
    found = {name: collection.estimate(counts, name, values).frequencies for name in (NEW, *able)}
    if setting.table == CLOSED:
        mechanism, even = collection.mechanism, inputs.uniform(SIZE)
        null = mechanism.null_variances(even)
        slope = (mechanism.variances(even) - null) / even + even
        laws = found["empirical"], null / counts.total, slope / counts.total
        found |= {name: reference(*laws) for name, reference in REFERENCES.items()}
    return found


# ------------------------------------------------------------------------------------------------------ references


def norm_sub(raw: np.ndarray, null: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Add one number to all frequencies that remain above 0."""
    return project_onto_simplex(raw)


def norm_cut(raw: np.ndarray, null: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Keep the largest frequencies while their sum is at most 1."""
    order = np.argsort(-raw)
    kept = (np.cumsum(np.maximum(raw[order], 0)) <= 1) & (raw[order] > 0)
    cut: np.ndarray = np.zeros_like(raw)
    cut[order[kept]] = raw[order[kept]]
    return cut


def base_cut(raw: np.ndarray, null: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Set frequencies to 0 that noise alone would exceed in two of all values."""
    return np.where(raw >= special.ndtri(1 - 2 / len(raw)) * np.sqrt(null), raw, 0.0)


def mle_apx(raw: np.ndarray, null: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Least sum of (raw - f)^2 / (null + slope f) over distributions f: f = max((raw - null x) / (1 + slope x), 0).

    The derivatives are equal where (raw - f) / (null + slope f) is one x; the sum is 1 for one x.
    """
    low, high = -1 / slope.max() + 1e-9, 1e6 / slope.max()

    def estimate(x: float) -> np.ndarray:
        fitted: np.ndarray = np.maximum((raw - null * x) / (1 + slope * x), 0)
        return fitted

    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if estimate(middle).sum() > 1 else (low, middle)
    return estimate(high)


def power(raw: np.ndarray, null: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Posterior means under the most likely law of frequencies proportional to f^-a from a tenth of the noise on."""
    grid = np.geomspace(min(np.sqrt(null.min()) / 10, 0.1 / len(raw)), 1, 400)
    likelihood = np.exp(-((raw[:, np.newaxis] - grid) ** 2) / (2 * null[:, np.newaxis])) + 1e-300
    laws = [inputs.normalized(grid ** (1 - exponent)) for exponent in np.arange(0.0, 4.01, 0.05)]
    best = max(laws, key=lambda law: float(np.log(likelihood @ law).sum()))
    means: np.ndarray = likelihood @ (best * grid) / (likelihood @ best)
    return means


def power_ns(raw: np.ndarray, null: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """``power``, then ``norm_sub``."""
    return project_onto_simplex(power(raw, null, slope))


REFERENCES: dict[str, Reference] = {
    "Norm-Sub": norm_sub,
    "Norm-Cut": norm_cut,
    "Base-Cut": base_cut,
    "MLE-Apx": mle_apx,
    "Power": power,
    "PowerNS": power_ns,
}


# -------------------------------------------------------------------------------------------------------- findings


def ratios(losses: list[dict[str, float]]) -> dict[str, np.ndarray]:
    """Of each estimator, its loss over that of the best fixed one, in the settings that allow it."""
    relative: dict[str, list[float]] = {}
    for loss in losses:
        least = min(loss[name] for name in FIXED if name in loss)
        for name, number in loss.items():
            relative.setdefault(name, []).append(number / least)
    return {name: np.array(column) for name, column in relative.items()}


def summary(table: str, losses: list[dict[str, float]]) -> list[dict[str, Any]]:
    """One row for each estimator."""
    return [
        {
            "table": table,
            "estimator": name,
            "settings": len(column),
            "geometric_mean": geometric_mean(column),
            "median": float(np.median(column)),
            "90 %": float(np.quantile(column, 0.9)),
            "largest": float(column.max()),
        }
        for name, column in ratios(losses).items()
    ]


def geometric_mean(column: np.ndarray) -> float:
    """Geometric mean of positive numbers."""
    return float(np.exp(np.log(column).mean()))


def never_far(table: tuple[str, list[dict[str, float]]]) -> Verdict:
    """The 90 % quantile of the new estimator."""
    name, losses = table
    column = ratios(losses)[NEW]
    high = float(np.quantile(column, 0.9))
    return Verdict(
        claim=f"{name}: in nine of ten settings eb loses at most {ALLOWED} times what the best fixed estimator does.",
        holds=high <= ALLOWED,
        evidence=f"90 % of {len(column)} settings: at most {high:.2f}; geometric mean {geometric_mean(column):.2f}, "
        f"largest {column.max():.2f}.",
    )


def ahead_of_references(losses: list[dict[str, float]]) -> Verdict:
    """The geometric mean of the loss over that of each reference."""
    leads = {name: geometric_mean(np.array([loss[NEW] / loss[name] for loss in losses])) for name in REFERENCES}
    return Verdict(
        claim="eb loses less than each published consistent estimate, in the geometric mean over closed settings.",
        holds=max(leads.values()) < 1,
        evidence="Its loss in parts of theirs: "
        + ", ".join(f"{name} {lead:.2f}" for name, lead in leads.items())
        + ".",
    )


def timing(size: int, rng: np.random.Generator) -> dict[str, Any]:
    """CPU seconds of one window of k-RR with 1,000,000 people and Zipf-distributed values."""
    spec, people = inputs.closed("krr", size, 3.0), draw_people(inputs.zipf(size), 1_000_000, rng)
    counts = simulate_counts(spec, inputs.names(size), people, rng)
    start = time.process_time()
    spec.estimate(counts, NEW)
    return {"table": "time", "estimator": NEW, "values": size, "cpu_seconds": time.process_time() - start}
