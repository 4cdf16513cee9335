"""Versions of a question with liars: every attack on every version, and counts with the liars of one attack."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from labs.experiments.drawn_counts import draw_counts
from tests.support.cases import enumerated
from tests.support.ldp.question_versions import version
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.versions.version_weights import version_weights

VALUES = list("abcd")
TRUTH = np.array([0.4, 0.3, 0.2, 0.1])
QUESTIONS: dict[str, tuple[tuple[Collection, ...], tuple[int, ...]]] = {
    "alone": ((version(1, "krr", 1.0, VALUES),), (40,)),
    "alike": ((version(1, "krr", 1.0, VALUES), version(2, "krr", 1.0, VALUES)), (30, 10)),
    "small and noisy": ((version(1, "krr", 0.5, VALUES), version(2, "krr", 2.0, VALUES)), (6, 34)),
    "small and sharp": ((version(1, "krr", 4.0, VALUES), version(2, "rappor", 0.5, VALUES)), (5, 35)),
    "other order": ((version(1, "krr", 1.0, VALUES), version(2, "ss", 1.0, VALUES[::-1])), (20, 20)),
    "some sensitive": ((version(1, "uss", 1.0, VALUES), version(2, "krr", 2.0, VALUES)), (25, 15)),
    "three": (
        (version(1, "krr", 3.0, VALUES), version(2, "urr", 1.0, VALUES), version(3, "krr", 1.0, VALUES)),
        (4, 16, 20),
    ),
}


@functools.cache
def codes_of(model: Collection) -> np.ndarray:
    return enumerated(model.mechanism)[0]


@functools.cache
def effects_of(model: Collection) -> np.ndarray:
    """(R, S): what each report adds to the sum of estimates, by inverting it alone."""
    one = np.zeros(1, dtype=np.int64)
    reports = [model.mechanism.count(code[np.newaxis], one, 1) for code in codes_of(model)]
    added = [model.mechanism.invert(CohortCounts(np.ones(1, dtype=np.int64), each))[0] for each in reports]
    return np.array(added)[:, model.alphabet.symbol_table(tuple(VALUES), 1)[0]]


def allocations(sizes: Sequence[int], lies: int) -> list[tuple[int, ...]]:
    """All numbers of lies by version that are as many as declared."""
    whole = itertools.product(*(range(min(size, lies) + 1) for size in sizes))
    return [numbers for numbers in whole if sum(numbers) == lies]


def means(versions: Sequence[Collection], sizes: Sequence[int], lies: int) -> tuple[np.ndarray, np.ndarray]:
    """Weights (A, S), and the means (M, S) of the pooled estimate that each attack makes: all liars of a version send
    the report that adds most to a value, or least."""
    weights = version_weights(tuple(versions), tuple(VALUES)).of(np.array(sizes))[0]
    effects = [effects_of(one) for one in versions]
    found = []
    for pick in (np.min, np.max):
        for numbers in allocations(sizes, lies):
            shares = np.array(numbers) / np.array(sizes)
            sent = np.array([pick(each, axis=0) for each in effects])
            mixed = (1 - shares)[:, np.newaxis] * TRUTH + shares[:, np.newaxis] * sent
            found.append((weights * mixed).sum(axis=0))
    return weights, np.array(found)


SIZES = {
    "small and noisy": (400, 12_000),
    "small and sharp": (400, 12_000),
    "some sensitive": (6_000, 4_000),
    "other order": (5_000, 5_000),
    "three": (500, 4_000, 5_000),
}


def attacked(
    versions: Sequence[Collection], lied: Sequence[int], sizes: Sequence[int], place: int, up: bool, rng: Any
) -> dict[bytes, CohortCounts]:
    """Counts with honest people, and ``lied`` liars in each version who raise a value, or lower it."""
    found = {}
    for model, lies, size in zip(versions, lied, sizes):
        honest = draw_counts(model, tuple(VALUES), rng.multinomial(size - lies, TRUTH), rng)
        codes, adding = codes_of(model), effects_of(model)[:, place]
        code = codes[int(adding.argmax() if up else adding.argmin())]
        sent = model.mechanism.count(np.repeat(code[np.newaxis], lies, axis=0), np.zeros(lies, dtype=np.int64), 1)
        found[model.fingerprint] = honest + CohortCounts(np.array([lies]), sent)
    return found


def first_to_last(sizes: Sequence[int], order: Sequence[int], lies: int) -> list[int]:
    """Lies that fill the versions in this order."""
    found = [0] * len(sizes)
    for at in order:
        found[at] = min(sizes[at], lies)
        lies -= found[at]
    return found
