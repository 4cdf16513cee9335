"""Common parts of the experiments of Kairouz, Bonawitz and Ramage 2016: distributions, collections, losses."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from labs.experiments.frame import draw_people, simulate_counts, simulate_reports
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.mechanisms import MECHANISMS, Mechanism

SOURCE = "Kairouz, Bonawitz and Ramage 2016"

FROM_REPORTS = "em"
"""Id of the estimator that is given the reports, which it needs where a report is several bits."""


def names(number: int) -> tuple[str, ...]:
    """Placeholder texts for the values."""
    return tuple(f"value {i}" for i in range(number))


def geometric(number: int) -> np.ndarray:
    """Shares that fall geometrically, with mean ``number / 5`` before they are cut to this many values."""
    return normalized((1 - 5 / max(number, 6)) ** np.arange(number))


def uniform(number: int) -> np.ndarray:
    """Equal shares."""
    return np.full(number, 1 / number)


def zipf(number: int) -> np.ndarray:
    """Shares proportional to 1, 1/2, 1/3, ..."""
    return normalized(1 / np.arange(1, number + 1))


def step(number: int) -> np.ndarray:
    """Nine tenths of the people hold a tenth of the values, the rest hold the others, both evenly."""
    high = np.arange(number) < max(1, number // 10)
    return normalized(np.where(high, 0.9 / high.sum(), 0.1 / max(1, (~high).sum())))


def dirichlet(number: int, rng: np.random.Generator) -> np.ndarray:
    """A distribution drawn uniformly from all of them."""
    return rng.dirichlet(np.ones(number))


def normalized(weights: np.ndarray) -> np.ndarray:
    """Weights divided by their sum."""
    return weights / weights.sum()


def closed(mechanism: str, number: int, epsilon: float) -> Collection:
    """A mechanism over the whole closed alphabet."""
    return _collection({"id": "closed", "values": names(number)}, 1, mechanism, epsilon)


def permuted(mechanism: str, number: int, num_buckets: int, num_cohorts: int, epsilon: float) -> Collection:
    """Closed-alphabet O-RR or O-RAPPOR: one permutation per cohort."""
    alphabet = {"id": "permuted", "values": names(number), "num_buckets": num_buckets, "seed": 1}
    return _collection(alphabet, num_cohorts, mechanism, epsilon)


def hashed(mechanism: str, num_buckets: int, num_cohorts: int, epsilon: float, num_hashes: int = 1) -> Collection:
    """O-RR or O-RAPPOR over any texts."""
    alphabet = {"id": "hashed", "num_buckets": num_buckets, "seed": 1}
    if num_hashes > 1:
        alphabet["num_hashes"] = num_hashes
    return _collection(alphabet, num_cohorts, mechanism, epsilon)


def over_symbols(mechanism: str, num_symbols: int, epsilon: float) -> Mechanism:
    """The mechanism alone, over symbols that are all sensitive."""
    return MECHANISMS[mechanism](num_symbols=num_symbols, num_sensitive=num_symbols, epsilon=epsilon)


def _collection(alphabet: dict[str, Any], num_cohorts: int, mechanism: str, epsilon: float) -> Collection:
    return Collection.from_json(
        {
            "id": "experiment",
            "version": 1,
            "alphabet": alphabet,
            "mechanism": {"id": mechanism, "epsilon": epsilon},
            "num_cohorts": num_cohorts,
        }
    )


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Population:
    """The population of an experiment.

    Attributes:
        values: S texts, candidates of an open alphabet.
        frequencies: (S,) from which people are drawn independently.
        number: people.
    """

    values: tuple[str, ...]
    frequencies: np.ndarray
    number: int


def population(frequencies: np.ndarray, number: int) -> Population:
    """People with values whose texts do not matter."""
    return Population(values=names(len(frequencies)), frequencies=frequencies, number=number)


def simulated_estimates(
    collection: Collection, people: Population, decoders: Sequence[str], rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Estimates of all decoders from the same reports.

    Args:
        collection: what people are asked.
        people: who they are.
        decoders: estimator ids.
        rng: of people and clients.

    Returns:
        estimated frequencies (S,) of each decoder.
    """
    held = draw_people(people.frequencies, people.number, rng)
    candidates = None if collection.alphabet.known_values is not None else people.values
    if FROM_REPORTS not in decoders:
        counts = simulate_counts(collection, people.values, held, rng)
        return {decoder: collection.estimate(counts, decoder, candidates).frequencies for decoder in decoders}
    reports = simulate_reports(collection, people.values, held, rng)
    counts = collection.count(reports)
    return {
        decoder: collection.estimate_reports(reports, decoder, candidates).frequencies
        if decoder == FROM_REPORTS
        else collection.estimate(counts, decoder, candidates).frequencies
        for decoder in decoders
    }


def simulated_losses(
    collection: Collection, people: Population, decoders: Sequence[str], runs: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """l1 distances between estimates and the distribution that people are drawn from; (runs,) of each decoder."""
    losses: dict[str, list[float]] = {decoder: [] for decoder in decoders}
    for _ in range(runs):
        for decoder, estimate in simulated_estimates(collection, people, decoders, rng).items():
            losses[decoder].append(float(np.abs(estimate - people.frequencies).sum()))
    return {decoder: np.array(column) for decoder, column in losses.items()}


def mean_and_error(sample: np.ndarray) -> tuple[float, float]:
    """Mean of independent runs and its standard error (0 if there is one run only)."""
    error = sample.std(ddof=1) / np.sqrt(len(sample)) if len(sample) > 1 else 0.0
    return float(sample.mean()), float(error)


def listed(numbers: Sequence[float], digits: int = 2) -> str:
    """Format numbers for a sentence."""
    return ", ".join(f"{number:.{digits}f}" for number in numbers)
