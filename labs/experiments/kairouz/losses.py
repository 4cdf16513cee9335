"""Simulated l1 losses of hashed and permuted alphabets: median and 90 % range over runs, as in the paper."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from labs.experiments.drawn_counts import draw_counts
from labs.experiments.frame import draw_people, shares
from labs.experiments.kairouz import inputs, ours
from labs.experiments.kairouz.plans import Plan
from uldp_transforms.ldp import Collection

QUANTILES = (0.05, 0.95)
"""Ends of the range that the paper shades."""

PROJECTED = "projected"
ITSELF, GUESS = "no privacy", "uniform guess"


def simulated(
    collection: Collection, people: inputs.Population, decoder: str, runs: int, rng: np.random.Generator
) -> dict[str, Any]:
    """l1 distances of estimates to the distribution that people are drawn from."""
    known = collection.alphabet.known_values
    losses = np.empty(runs)
    for run in range(runs):
        held = draw_people(people.frequencies, people.number, rng)
        counts = draw_counts(collection, people.values, held, rng)
        estimate = collection.estimate(counts, decoder, None if known else people.values)
        losses[run] = np.abs(estimate.frequencies - people.frequencies).sum()
    return spread(losses)


def spread(losses: np.ndarray) -> dict[str, Any]:
    """Median, 90 % range and standard error of the median (that of normal losses), as columns."""
    low, high = np.quantile(losses, QUANTILES)
    error = math.sqrt(math.pi / 2 / len(losses)) * losses.std(ddof=1) if len(losses) > 1 else 0.0
    ends = {"l1_low": float(low), "l1_high": float(high), "l1_error": float(error)}
    return {"runs": len(losses), "l1": float(np.median(losses))} | ends


def of_plan(
    plan: Plan, people: inputs.Population, epsilon: float, runs: int, rng: np.random.Generator
) -> dict[str, Any]:
    """The projected decoder of O-RR or O-RAPPOR."""
    return simulated(plan.collection(people.values, epsilon), people, PROJECTED, runs, rng)


def of_ours(
    people: inputs.Population, epsilon: float, runs: int, rng: np.random.Generator, *, closed: bool
) -> dict[str, Any]:
    """The planner's recommendation with ``eb``, and its description."""
    collection = ours.planned(len(people.values), people.number, epsilon, closed=closed)
    found = {"mechanism": collection.mechanism.id, "buckets": collection.alphabet.num_symbols}
    if closed:
        found["bound_l2_squared"] = ours.bound(len(people.values), people.number, epsilon)
    return found | {"cohorts": collection.num_cohorts} | simulated(collection, people, ours.DECODER, runs, rng)


def baselines(people: inputs.Population, runs: int, rng: np.random.Generator) -> dict[str, dict[str, Any]]:
    """The frequencies of the people asked themselves; and the uniform distribution, whatever they say."""
    p = people.frequencies
    asked = [np.abs(shares(draw_people(p, people.number, rng)) - p).sum() for _ in range(max(runs, 50))]
    return {ITSELF: spread(np.array(asked)), GUESS: spread(np.abs(p - 1 / len(p)).sum()[np.newaxis])}
