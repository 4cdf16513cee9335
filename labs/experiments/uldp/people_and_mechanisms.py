"""Common parts of the experiments of Murakami and Kawamoto 2019: people, mechanisms, simulated estimates."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from labs.experiments.frame import read_table, sample_people, simulate_counts, simulate_reports
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.ldp.reports import ReportBatch

MECHANISMS: dict[str, dict[str, Any]] = {
    "RR": {"id": "krr"},
    "RAPPOR": {"id": "rappor"},
    "uRR": {"id": "urr"},
    "uRAP": {"id": "urap", "inversion": "marginal"},
    "uRAP aware": {"id": "urap"},
}
"""The paper's mechanisms, and uRAP with an inversion that uses what clear reports say."""

NO_PRIVACY = "no privacy"

LIKELIHOOD = "maximum likelihood"
"""As a decoder: ``ml`` where the library has it, else ``em``."""

COLOURS = {
    "RR": "#d55e00",
    "RAPPOR": "#e69f00",
    "uRR": "#0072b2",
    "uRAP": "#009e73",
    "uRAP aware": "#56b4e9",
    NO_PRIVACY: "#555555",
}


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Population:
    """Everybody's values.

    Attributes:
        name: of the data.
        values: K texts.
        sensitive: some of them.
        people: (K,) int64, how many hold each value.
    """

    name: str
    values: tuple[str, ...]
    sensitive: tuple[str, ...]
    people: np.ndarray

    @property
    def size(self) -> int:
        """N."""
        return int(self.people.sum())

    @property
    def frequencies(self) -> np.ndarray:
        return self.people / self.size

    def collection(self, mechanism: str, epsilon: float) -> Collection:
        """The collection: the value, perturbed by one of ``MECHANISMS``."""
        alphabet = {"id": "closed", "values": list(self.values), "sensitive": list(self.sensitive)}
        spec = {"id": "experiment", "version": 1, "alphabet": alphabet}
        return Collection.from_json(spec | {"mechanism": MECHANISMS[mechanism] | {"epsilon": epsilon}})


def acs() -> Population:
    """American Community Survey 2023: 277 values, 35 of them sensitive, 1,732,343 people."""
    return _population("ACS", read_table("acs_2023.csv"))


def adult() -> Population:
    """Adult: 480 values, 128 of them sensitive, 48,842 people."""
    return _population("Adult", read_table("adult_480.csv"))


def _population(name: str, table: dict[str, list[str]]) -> Population:
    sensitive = tuple(code for code, flag in zip(table["code"], table["sensitive"]) if flag == "1")
    people = np.array(table["count"], dtype=np.int64)
    return Population(name=name, values=tuple(table["code"]), sensitive=sensitive, people=people)


def simulated_estimates(
    population: Population,
    collection: Collection,
    estimators: Sequence[str],
    *,
    asked: int,
    runs: int,
    rng: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Estimates by each estimator, (R, K); every run asks ``asked`` other people, drawn without replacement.

    ``LIKELIHOOD`` among the estimators keeps every report of a run in memory.
    """
    found: dict[str, list[np.ndarray]] = {estimator: [] for estimator in estimators}
    for _ in range(runs):
        people = sample_people(population.people, asked, rng)
        if LIKELIHOOD in estimators:
            batch = simulate_reports(collection, population.values, people, rng)
            counts = collection.count(batch)
            found[LIKELIHOOD].append(most_likely(collection, batch))
        else:
            counts = simulate_counts(collection, population.values, people, rng)
        for estimator in estimators:
            if estimator != LIKELIHOOD:
                found[estimator].append(collection.estimate(counts, estimator).frequencies)
    return {estimator: np.stack(estimates) for estimator, estimates in found.items()}


def most_likely(collection: Collection, batch: ReportBatch) -> np.ndarray:
    """(K,): maximum likelihood, in closed form where there is one, else by EM over single reports."""
    if ESTIMATORS["ml"]().supports(collection):
        return collection.estimate(collection.count(batch), "ml").frequencies
    return collection.estimate_reports(batch, "em").frequencies


def mean_and_error(losses: Sequence[float] | np.ndarray) -> dict[str, float]:
    """Mean over runs and its standard error, as columns."""
    losses = np.asarray(losses)
    spread = losses.std(ddof=1) / np.sqrt(len(losses)) if len(losses) > 1 else 0.0
    return {"loss": float(losses.mean()), "standard_error": float(spread)}


def epsilons(population: Population, reduced: bool) -> tuple[float, ...]:
    """Epsilons from 0.1 to 10, including ln w, at which the paper compares with no privacy."""
    boundary = math.log(len(population.values))
    return (0.1, 1.0, boundary) if reduced else (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, boundary, 7.0, 8.5, 10.0)
