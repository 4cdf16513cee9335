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

from labs.benchmarks.peers import environment
from labs.benchmarks.peers.server_steps import print_steps
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.discovery import discover

NUM_VALUES, EPSILON, HASHES = 64, 1.0, 1024
NUM_PEOPLE, RUNS = 50_000, 10
MANY_PEOPLE = 1_000_000
LONGEST, HELD, FOUND, SEARCHES, SEARCH_EPSILON = 10, 200, 20, 5, 3.0
OURS = "uldp_transforms"
VALUES = tuple(str(value) for value in range(NUM_VALUES))


def main() -> None:
    environment.install()
    for number, runs in ((NUM_PEOPLE, RUNS), (MANY_PEOPLE, 1)):
        _race(number, runs)
    _searches()


def _race(number: int, num_runs: int) -> None:
    """All mechanisms of all libraries on the same people."""
    people = np.random.default_rng(20).choice(NUM_VALUES, (num_runs, number), p=_zipf()).tolist()
    print(
        f"the same people asked by several libraries ({NUM_VALUES} values, Zipf frequencies, epsilon {EPSILON:g}, "
        f"{number:,} people, {num_runs} runs; thousand reports per CPU second; l2: mean sum of squared errors)"
    )
    task = {"num_values": NUM_VALUES, "epsilon": EPSILON, "hashes": HASHES, "people": people}
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for answer in (*_ours(people), *environment.ask("race", task)):
        found[answer["mechanism"], answer["library"]].append(answer)
    truth = np.array([np.bincount(run, minlength=NUM_VALUES) / number for run in people])
    rates = {}
    for (mechanism, library), runs in sorted(found.items()):
        seconds = np.median([run["seconds"] for run in runs], axis=0)
        rates[mechanism, library] = number / 1000 / np.maximum(seconds, 1e-6)
        errors = ((np.array([run["shares"] for run in runs]) - truth) ** 2).sum(axis=1)
        _line(f"  {mechanism:<16} {library}", rates[mechanism, library], errors.mean())
    fastest: dict[str, float] = {}
    for mechanism in sorted({mechanism for mechanism, _ in rates}):
        others = [rate for (name, library), rate in rates.items() if name == mechanism and OURS not in library]
        mine = rates.get((mechanism.partition(",")[0], f"{OURS}, raw"))
        if others and mine is not None:
            perturb, count = mine / np.max(others, axis=0)
            fastest[mechanism] = number / 1000 / np.max(others, axis=0)[1]
            print(
                f"  {mechanism:<16} raw / fastest other      perturb {perturb:10.1f}   count and estimate {count:10.1f}"
            )
    print("the server's steps, each alone, and the ratio of all steps up to it to the fastest other")
    print_steps(collections(), fastest, VALUES, people[0])


def _searches() -> None:
    """Heavy hitters among bit strings, the kind of text that the other search has by default."""
    rng = np.random.default_rng(21)
    held = [f"{number:0{LONGEST}b}" for number in rng.choice(1 << LONGEST, HELD, replace=False)]
    shares = 1 / np.arange(1.0, HELD + 1)
    people = rng.choice(held, (SEARCHES, NUM_PEOPLE), p=shares / shares.sum()).tolist()
    print(
        f"the {FOUND} most frequent of {HELD} strings of {LONGEST} bits, found without a list (epsilon "
        f"{SEARCH_EPSILON:g}, {NUM_PEOPLE:,} people, {SEARCHES} runs; right: share of what is found that is among them)"
    )
    task = {
        "epsilon": SEARCH_EPSILON,
        "hashes": HASHES // 4,
        "start": 4,
        "longest": LONGEST,
        "step": 2,
        "number": FOUND,
        "people": people,
    }
    answers: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for answer in (*_our_searches(people), *environment.ask("search", task)):
        answers[answer["library"]].append(answer)
    best = set(held[:FOUND])
    for library, runs in answers.items():
        perturb, count = np.median([run["seconds"] for run in runs], axis=0)
        right = [len(best & set(run["found"])) for run in runs]
        share = sum(right) / max(sum(len(run["found"]) for run in runs), 1)
        print(
            f"  {library:<38} perturb {NUM_PEOPLE / 1000 / perturb:10.1f}   count and search {count:8.2f} s   "
            f"found {np.mean(right) / FOUND:.3f}   right {share:.3f}"
        )


def _our_searches(people: list[list[str]]) -> Iterator[dict[str, Any]]:
    spec = Collection.from_json(
        {
            "id": "search",
            "version": 1,
            "alphabet": {
                "id": "prefixes",
                "num_buckets": round(math.exp(SEARCH_EPSILON)) + 1,
                "tokens": ["0", "1"],
                "lengths": [LONGEST - 1, None],
            },
            "mechanism": {"id": "krr", "epsilon": SEARCH_EPSILON},
            "num_cohorts": HASHES // 4,
        }
    )
    for run in people:
        begin = time.process_time()
        batch = spec.perturb(run)
        between = time.process_time()
        found = discover(spec, spec.count(batch)).values[:FOUND]
        seconds = between - begin, time.process_time() - between
        yield {"library": OURS, "seconds": seconds, "found": list(found)}


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
    """With the operating system's secure source, as clients do; raw shares, and those of the default estimator."""
    for mechanism, spec in collections().items():
        asked = VALUES if spec.alphabet.known_values is None else None
        for run in people:
            texts = [VALUES[value] for value in run]
            begin = time.process_time()
            batch = spec.perturb(texts)
            between = time.process_time()
            perturb, counts = between - begin, spec.count(batch)
            counting = time.process_time() - between
            for library, estimator in ((f"{OURS}, raw", "empirical"), (f"{OURS}, eb", "eb")):
                begin = time.process_time()
                shares = spec.estimate(counts, estimator, asked).frequencies
                seconds = perturb, counting + time.process_time() - begin
                yield {"library": library, "mechanism": mechanism, "seconds": seconds, "shares": shares}


def _line(name: str, rates: np.ndarray, error: float) -> None:
    print(f"{name:<40} perturb {rates[0]:10.1f}   count and estimate {rates[1]:10.1f}   l2 {error:.5f}", flush=True)
