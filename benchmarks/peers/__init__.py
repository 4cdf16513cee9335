"""This library and others on the same people: reports per second, and squared error.

The others are pure-ldp (Maddock) and multi-freq-ldpy (Arcolezi et al.); they run in an environment of their own.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.peers import environment
from uldp_transforms.ldp import Collection

NUM_VALUES, EPSILON, NUM_PEOPLE, RUNS, HASHES = 64, 1.0, 50_000, 10, 1024
OURS = "uldp_transforms"
VALUES = tuple(str(value) for value in range(NUM_VALUES))


def main() -> None:
    environment.install()
    people = np.random.default_rng(20).choice(NUM_VALUES, (RUNS, NUM_PEOPLE), p=_zipf()).tolist()
    print(
        f"the same people asked by several libraries ({NUM_VALUES} values, Zipf frequencies, epsilon {EPSILON:g}, "
        f"{NUM_PEOPLE:,} people, {RUNS} runs; thousand reports per CPU second; l2: mean sum of squared errors)"
    )
    task = {"num_values": NUM_VALUES, "epsilon": EPSILON, "hashes": HASHES, "people": people}
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for answer in (*_ours(people), *environment.ask("race", task)):
        found[answer["mechanism"], answer["library"]].append(answer)
    truth = np.array([np.bincount(run, minlength=NUM_VALUES) / NUM_PEOPLE for run in people])
    for (mechanism, library), runs in sorted(found.items()):
        _line(f"  {mechanism:<16} {library}", runs, truth)


def _zipf() -> np.ndarray:
    shares = 1 / np.arange(1.0, NUM_VALUES + 1)
    return shares / shares.sum()


def collections() -> dict[str, Collection]:
    """What this library calls the mechanisms of the others."""
    closed = {"id": "closed", "values": list(VALUES)}
    hashed = {"id": "hashed", "num_buckets": round(math.exp(EPSILON)) + 1, "seed": 1}
    specs: dict[str, tuple[dict[str, Any], dict[str, Any], int]] = {
        "krr": (closed, {"id": "krr"}, 1),
        "oue": (closed, {"id": "rappor", "theta": 0.5}, 1),
        "rappor": (closed, {"id": "rappor"}, 1),
        "ss": (closed, {"id": "ss"}, 1),
        "hr": (closed, {"id": "hr"}, 1),
        "olh": (hashed, {"id": "krr"}, HASHES),
    }
    return {
        name: Collection.from_json(
            {
                "id": "peers",
                "version": 1,
                "alphabet": alphabet,
                "mechanism": mechanism | {"epsilon": EPSILON},
                "num_cohorts": num_cohorts,
            }
        )
        for name, (alphabet, mechanism, num_cohorts) in specs.items()
    }


def _ours(people: list[list[int]]) -> Iterator[dict[str, Any]]:
    """With the operating system's secure source, as clients do; the default estimator's shares beside the raw ones."""
    for mechanism, spec in collections().items():
        asked = VALUES if spec.alphabet.known_values is None else None
        for run in people:
            texts = [VALUES[value] for value in run]
            begin = time.process_time()
            batch = spec.perturb(texts)
            between = time.process_time()
            estimate = spec.estimate(spec.count(batch), "projected", asked)
            seconds = between - begin, time.process_time() - between
            shares = estimate.raw_frequencies, estimate.frequencies
            for library, shown in zip((f"{OURS}, raw", f"{OURS}, eb"), shares):
                yield {"library": library, "mechanism": mechanism, "seconds": seconds, "shares": shown}


def _line(name: str, runs: list[dict[str, Any]], truth: np.ndarray) -> None:
    perturb, count = np.median([run["seconds"] for run in runs], axis=0)
    errors = ((np.array([run["shares"] for run in runs]) - truth) ** 2).sum(axis=1)
    rates = NUM_PEOPLE / 1000 / np.maximum([perturb, count], 1e-6)
    print(f"{name:<40} perturb {rates[0]:10.1f}   count and estimate {rates[1]:10.1f}   l2 {errors.mean():.5f}")
