"""The epsilon of the client that is shipped, measured from outside: reports of the system's secure source are drawn
by ``Collection.perturb``, and two values are told apart by what the reports support.

Whoever sees an event with probability p under one value and q under another knows that epsilon is at least ln(p / q).
With a lower confidence limit for p and an upper one for q (Clopper and Pearson 1934) this is a lower bound on epsilon
that is wrong at the suite's rate of false alarms, far below 1e-6. It must not exceed the epsilon of the collection,
and must come near it, or the event would prove nothing; how many reports that takes follows from the exact
probabilities, before anything is drawn.

Source: Jagielski, Ullman and Oprea 2020 (lower bounds from an audit); here with events that attain epsilon.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from scipy import stats

from tests.support import cases, tolerance
from tests.support.ldp.made_collections import made
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.hashing import canonical
from uldp_transforms.ldp.mechanisms import (
    MECHANISMS,
    KaryRR,
    Rappor,
    SubsetSelection,
    UtilityOptimizedRappor,
    UtilityOptimizedRR,
    UtilityOptimizedSubsetSelection,
)
from uldp_transforms.ldp.sampling import WORD

CHUNK = 1 << 16  # reports drawn at a time
QUICK, SLOW = 0.8, 0.95  # the share of epsilon that the bound must reach

# ---------------------------------------------------------------------- the bound


def lower_bound(first: int, second: int, trials: int) -> float:
    """A lower bound on epsilon from how often the event happened under either value; wrong at the suite's rate."""
    tolerance._spend(2)
    least = stats.beta.ppf(tolerance.RATE / 2, first, trials - first + 1) if first else 0.0
    most = stats.beta.isf(tolerance.RATE / 2, second + 1, trials - second) if second < trials else 1.0
    return math.log(least / most) if least else -math.inf


def trials_needed(p: float, q: float, goal: float) -> int:
    """Reports of each value with which the bound reaches the goal, but for the suite's rate of false alarms."""
    trials = 1 << 12
    while True:
        low, high = tolerance.binomial_limits(trials, np.array([p, q]))
        if low[0] and lower_bound(int(low[0]), int(high[1]), trials) >= goal:
            return trials
        trials += trials // 4


# ---------------------------------------------------------------------- the event


def symbols_of(collection: Collection, values: tuple[str, str]) -> np.ndarray:
    """(C, 2, h) symbols of both values."""
    table = collection.alphabet.symbol_table(tuple(map(canonical, values)), collection.num_cohorts)
    return np.broadcast_to(
        table.reshape(len(table), 2, -1), (collection.num_cohorts, 2, collection.alphabet.num_hashes)
    )


def happens(supports: np.ndarray, own: np.ndarray) -> np.ndarray:
    """(n,) bool: of (n, K) supported symbols all of the first value's are among them, and none of the second's."""
    seen = np.take_along_axis(supports, own.reshape(len(own), -1), axis=1).reshape(own.shape)
    return seen[:, 0].all(axis=1) & ~seen[:, 1].any(axis=1)


def rates(collection: Collection, values: tuple[str, str]) -> tuple[float, float]:
    """Exact probabilities of the event under both values, by enumeration; for h > 1 from those of a bit."""
    mechanism = collection.mechanism
    if mechanism.num_hashes > 1:
        own, noise = mechanism.miss + mechanism.delta, mechanism.miss
        return (own * (1 - noise)) ** mechanism.num_hashes, (noise * (1 - own)) ** mechanism.num_hashes
    table = symbols_of(collection, values)
    pair = table[(table[:, 0] != table[:, 1]).all(axis=1)][:1]
    codes, probabilities, _, _ = cases.enumerated(mechanism)
    event = happens(mechanism.supports(codes), np.repeat(pair, len(codes), axis=0))
    p, q = probabilities[event][:, pair[0, :, 0]].sum(axis=0)
    return float(p), float(q)


def draw(collection: Collection, values: tuple[str, str], held: str) -> Iterator[np.ndarray]:
    """Whether the event happened, for reports of one value in cohorts that tell the two apart; without end."""
    table = symbols_of(collection, values)
    tells = np.array([len(set(own.ravel().tolist())) == own.size for own in table])  # 2 h different symbols
    assert tells.any()
    while True:
        batch = collection.perturb([held] * CHUNK)
        assert not batch.seeded
        usable = np.flatnonzero(tells[batch.cohorts])
        supports = collection.mechanism.supports(batch.payloads[usable])
        yield happens(supports, table[batch.cohorts[usable]])


def measured(collection: Collection, values: tuple[str, str], trials: int) -> float:
    """The bound from this many reports of either value."""
    counts = []
    for held in values:
        count, left = 0, trials
        for events in draw(collection, values, held):
            count += int(events[:left].sum())
            left -= len(events[:left])
            if not left:
                break
        counts.append(count)
    return lower_bound(*counts, trials)


# ---------------------------------------------------------------------- the shipped client

BOTH, PUBLIC = ("fox", "bee"), ("fox", "dog")  # two sensitive values; a sensitive and a public one
TEXTS, LISTED = ("ant", "gnu"), ("ant", "dog")
CLIENTS = {
    "krr": ("closed", "krr", {}, BOTH),
    "urr": ("closed-sensitive", "urr", {}, BOTH),
    "urr, public": ("closed-sensitive", "urr", {}, PUBLIC),
    "rappor": ("closed", "rappor", {}, BOTH),
    "oue": ("closed", "rappor", {"theta": 0.5}, BOTH),
    "urap": ("closed-sensitive", "urap", {}, BOTH),
    "urap, public": ("closed-sensitive", "urap", {}, PUBLIC),
    "urap, marginal": ("closed-sensitive", "urap", {"inversion": "marginal"}, PUBLIC),
    "ss": ("closed", "ss", {"subset_size": 2}, BOTH),
    "uss": ("closed-sensitive", "uss", {}, BOTH),
    "uss, public": ("closed-sensitive", "uss", {"subset_size": 2}, PUBLIC),
    "permuted krr": ("permuted", "krr", {}, BOTH),
    "hashed krr": ("hashed", "krr", {}, TEXTS),
    "hashed rappor": ("hashed", "rappor", {}, TEXTS),
    "hashed ss": ("hashed", "ss", {}, TEXTS),
    "two hash functions": ("hashed-twice", "rappor", {}, TEXTS),
    "hashed urr, listed": ("hashed-clear", "urr", {}, LISTED),
    "hashed urap": ("hashed-clear", "urap", {}, TEXTS),
    "hashed uss, listed": ("hashed-clear", "uss", {}, LISTED),
    "tagged uss": ("tagged", "uss", {}, ("home", "fox")),
} | {  # and every mechanism whose promise is about values
    name: ("closed" if cls.protects_all else "closed-sensitive", name, {}, BOTH)
    for name, cls in ((name, MECHANISMS[name]) for name in MECHANISMS)
    if not cls.names_values
}


def client(name: str, epsilon: float) -> Collection:
    alphabet, mechanism, fields, _ = CLIENTS[name]
    return cases.collection(*cases.ALPHABETS[alphabet], mechanism, epsilon=epsilon, **fields)


def check(collection: Collection, values: tuple[str, str], share: float) -> None:
    epsilon = collection.mechanism.epsilon
    trials = trials_needed(*rates(collection, values), share * epsilon)
    assert share * epsilon <= measured(collection, values, trials) <= epsilon


@pytest.mark.parametrize("name", CLIENTS)
def test_no_report_tells_two_values_apart_by_more_than_epsilon(name):
    check(client(name, 1.0), CLIENTS[name][3], QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
@pytest.mark.parametrize("name", CLIENTS)
def test_the_bound_comes_within_five_percent_of_epsilon(name, epsilon):
    check(client(name, epsilon), CLIENTS[name][3], SLOW)


@pytest.mark.slow
def test_the_bound_of_fifty_sensitive_values():
    values = [str(i) for i in range(60)]
    spec = {"id": "closed", "values": values, "sensitive": values[:50]}
    check(made(spec, {"id": "urr", "epsilon": 1.0}, id="q"), ("0", "1"), SLOW)


# ---------------------------------------------------------------------- faults that must be found


def half_the_noise(cls: type) -> type:
    """A sampler whose coin sends pure noise half as often as it should."""

    class HalfTheNoise(cls):  # type: ignore[misc]  # the class is chosen at run time
        @functools.cached_property
        def noise_weight(self) -> int:
            return super().noise_weight // 2

        @functools.cached_property
        def keep_weight(self) -> int:
            return (
                super().keep_weight if issubclass(cls, UtilityOptimizedRR) else WORD - (WORD - super().keep_weight) // 2
            )

    return HalfTheNoise


def never_clears(cls: type) -> type:
    """A sampler that leaves the true bit as it is, as some published code does."""

    class NeverClears(cls):  # type: ignore[misc]  # the class is chosen at run time
        @functools.cached_property
        def keep_weight(self) -> int:
            return WORD

    return NeverClears


FAULTS: list[tuple[str, type, Callable[[type], type]]] = [
    ("krr", KaryRR, half_the_noise),
    ("urr", UtilityOptimizedRR, half_the_noise),
    ("rappor", Rappor, half_the_noise),
    ("urap", UtilityOptimizedRappor, half_the_noise),
    ("ss", SubsetSelection, half_the_noise),
    ("uss, public", UtilityOptimizedSubsetSelection, half_the_noise),
    ("hashed krr", KaryRR, half_the_noise),
    ("two hash functions", Rappor, half_the_noise),
    ("rappor", Rappor, never_clears),
    ("urap", UtilityOptimizedRappor, never_clears),
    ("ss", SubsetSelection, never_clears),
    ("hashed rappor", Rappor, never_clears),
    ("two hash functions", Rappor, never_clears),
]


@pytest.mark.parametrize(
    ("name", "cls", "fault"), FAULTS, ids=[f"{name}, {fault.__name__}" for name, _, fault in FAULTS]
)
def test_a_planted_fault_is_found(name, cls, fault):
    honest = client(name, 1.0)
    fields = {f.name: getattr(honest.mechanism, f.name) for f in dataclasses.fields(cls) if f.init}
    faulty = dataclasses.replace(honest, mechanism=fault(cls)(**fields))
    trials = trials_needed(*rates(honest, CLIENTS[name][3]), QUICK)
    assert measured(faulty, CLIENTS[name][3], trials) > 1.0


def test_the_bound_by_hand():
    """All of n trials against none: least = (rate / 2)^(1/n), most = 1 - (rate / 2)^(1/n)."""
    tail = (tolerance.RATE / 2) ** (1 / 50)
    assert lower_bound(50, 0, 50) == pytest.approx(math.log(tail / (1 - tail)), rel=1e-9)
    assert lower_bound(0, 50, 50) == -math.inf
