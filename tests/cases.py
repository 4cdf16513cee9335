"""Small instances of every mechanism, alphabet and estimator, and the collections that they make.

A new mechanism, alphabet or estimator is one line here; a test asserts that each registered id has one.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.alphabets import Closed, Hashed, Permuted
from uldp_transforms.ldp.estimators import Empirical, Normalized, Projected
from uldp_transforms.ldp.mechanisms import (
    KaryRR,
    Rappor,
    SetReportMechanism,
    SubsetSelection,
    UtilityOptimizedRappor,
    UtilityOptimizedRR,
    UtilityOptimizedSubsetSelection,
)

GOLDEN = Path(__file__).parent / "golden"

DECOMPOSED = "e\N{COMBINING ACUTE ACCENT}"
"""Two code points whose canonical form is one, é."""

VALUES = ("ant", "bee", "cat", "dog", "émeu", "fox")
SENSITIVE = ("fox", "bee", "ant")

EPSILONS = (1.0, 2.0**-10, 16.0)
THETAS = (None, 0.5, 0.9)
ALL_SENSITIVE = ((2, 2), (3, 3), (5, 5))
PART_SENSITIVE = ((2, 1), (3, 2), (3, 3), (6, 4))


def instances(
    cls: type[SetReportMechanism], sizes: Sequence[tuple[int, int]], **fields: Sequence[Any]
) -> list[SetReportMechanism]:
    """Every combination of sizes (K, v) and values of the fields."""
    return [
        cls(num_symbols=num_symbols, num_sensitive=num_sensitive, **dict(zip(fields, chosen)))
        for num_symbols, num_sensitive in sizes
        for chosen in itertools.product(*fields.values())
    ]


# the last part of each line is an instance that needs every bit of its one or two payload bytes, or more
MECHANISM_CASES: dict[str, list[SetReportMechanism]] = {
    "krr": instances(KaryRR, ALL_SENSITIVE, epsilon=EPSILONS) + instances(KaryRR, [(257, 257)], epsilon=[1]),
    "urr": instances(UtilityOptimizedRR, PART_SENSITIVE, epsilon=EPSILONS)
    + instances(UtilityOptimizedRR, [(256, 7)], epsilon=[1]),
    "rappor": instances(Rappor, ALL_SENSITIVE, epsilon=EPSILONS, theta=THETAS)
    + instances(Rappor, [(9, 9)], epsilon=[1]),
    "urap": instances(UtilityOptimizedRappor, PART_SENSITIVE, epsilon=EPSILONS, theta=THETAS)
    + instances(UtilityOptimizedRappor, [(10, 8), (259, 4)], epsilon=[1]),
    "ss": instances(SubsetSelection, ALL_SENSITIVE, epsilon=EPSILONS)
    + instances(SubsetSelection, [(5, 5)], epsilon=[1], subset_size=[1, 2, 4])
    + instances(SubsetSelection, [(9, 9)], epsilon=[1]),
    "uss": instances(UtilityOptimizedSubsetSelection, PART_SENSITIVE, epsilon=EPSILONS)
    + instances(UtilityOptimizedSubsetSelection, [(6, 4)], epsilon=[1], subset_size=[2, 3])
    + instances(UtilityOptimizedSubsetSelection, [(10, 8), (259, 4)], epsilon=[1]),
}

ALPHABET_CASES = {  # id -> instances, each with a number of cohorts
    "closed": [(Closed(values=VALUES), 1), (Closed(values=VALUES, sensitive=SENSITIVE), 3)],
    "permuted": [(Permuted(values=VALUES, num_buckets=3, seed=5), 12)],
    "hashed": [(Hashed(num_buckets=4, seed=7), 16)],
}

ESTIMATOR_CASES = {"empirical": [Empirical()], "normalized": [Normalized()], "projected": [Projected()]}

MECHANISMS_TO_TEST = [case for cases in MECHANISM_CASES.values() for case in cases]
ALPHABETS_TO_TEST = [case for cases in ALPHABET_CASES.values() for case in cases]
ESTIMATORS_TO_TEST = [case for cases in ESTIMATOR_CASES.values() for case in cases]


def label(case: Any) -> str:
    """Short name of a mechanism for test reports: its id, K, v and fields."""
    fields = [value for key, value in case.to_json().items() if key != "id"]
    return "-".join(map(str, (case.id, case.num_symbols, case.num_sensitive, *fields)))


def collection(alphabet: Any, num_cohorts: int, mechanism: str, **fields: Any) -> Collection:
    """The collection of an alphabet and a mechanism with epsilon 1 and these fields."""
    spec = {"id": "animals", "version": 1, "alphabet": alphabet.to_json(), "num_cohorts": num_cohorts}
    return Collection.from_json(spec | {"mechanism": {"id": mechanism, "epsilon": 1.0} | fields})


COLLECTIONS = {
    f"{name}{'-sensitive' * index}-{mechanism}": collection(alphabet, num_cohorts, mechanism)
    for name, cases in ALPHABET_CASES.items()
    for index, (alphabet, num_cohorts) in enumerate(cases)
    for mechanism in MECHANISM_CASES
}

mechanisms = pytest.mark.parametrize("mechanism", MECHANISMS_TO_TEST, ids=label)
alphabets = pytest.mark.parametrize(("alphabet", "num_cohorts"), ALPHABETS_TO_TEST)
estimators = pytest.mark.parametrize("estimator", ESTIMATORS_TO_TEST, ids=lambda case: case.id)
collections = pytest.mark.parametrize("name", COLLECTIONS)


@functools.cache
def exact_channel(mechanism: SetReportMechanism) -> tuple[list[bytes], list[list[Fraction]]]:
    """``mechanism.channel()``, computed once."""
    return mechanism.channel()


def as_array(payloads: list[bytes]) -> np.ndarray:
    """(Y, W) uint8."""
    return np.frombuffer(b"".join(payloads), dtype=np.uint8).reshape(len(payloads), -1)


@functools.cache
def enumerated(mechanism: SetReportMechanism) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """All payloads (Y, W), their probabilities (Y, K) under each symbol, and the cells (Y, K) and the inverse (Y, K)
    of each payload as the only report of its cohort."""
    payloads, rows = exact_channel(mechanism)
    codes = as_array(payloads)
    cells = mechanism.count(codes, np.arange(len(codes)), len(codes))
    inverse = mechanism.invert(CohortCounts(np.ones(len(codes), dtype=np.int64), cells))
    return codes, np.array([[float(q) for q in row] for row in rows]), cells, inverse


def golden(name: str, propose: Callable[[], list[dict]]) -> list[dict]:
    """The records of a golden file. A missing one is written as proposed, and fails until someone reviews it."""
    path = GOLDEN / name
    if not path.exists():
        records = ",\n".join(json.dumps(record) for record in propose())
        path.write_text(f"[\n{records}\n]\n", encoding="utf-8")
        pytest.fail(f"{path.name} was missing and has been written: review and commit it")
    return json.loads(path.read_text(encoding="utf-8"))
