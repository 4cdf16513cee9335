"""Refusals of comparisons: calls and their sentences."""

from __future__ import annotations

import numpy as np

from tests.support.refusals.tables import Refusal
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.errors import NoReportsError
from uldp_transforms.ldp.estimators import Estimate
from uldp_transforms.ldp.estimators.number_sums import NumberReports, NumberSums
from uldp_transforms_compare.comparisons import compare, homogeneity
from uldp_transforms_compare.comparisons.compare_numbers import compare_numbers


def collection(values: int, epsilon: float, mechanism: str = "krr") -> Collection:
    names = [f"v{number}" for number in range(values)]
    spec = {"id": "arms", "version": 1, "alphabet": {"id": "closed", "values": names}}
    return Collection.from_json(spec | {"mechanism": {"id": mechanism, "epsilon": epsilon}})


def estimated(model: Collection, cells: list[int], estimator: str = "empirical") -> Estimate:
    counts = CohortCounts(np.array([sum(cells)], np.int64), np.array([cells], np.int64))
    return model.estimate(counts, estimator)


NUMBERS = Collection.from_json(
    {"id": "c", "version": 1, "mechanism": {"id": "krr", "epsilon": 1}}
    | {"alphabet": {"id": "ordered", "edges": [0, 1, 2], "others": ["none"]}}
)
LARGER = Collection.from_json(NUMBERS.to_json() | {"alphabet": {"id": "ordered", "edges": [0, 1, 9]}})


def sums_of(item: Collection) -> NumberSums:
    cells = np.full((1, item.num_cells), 9)
    return NumberSums([NumberReports(item, CohortCounts(cells.sum(axis=1), cells))])


REFUSED: list[Refusal] = [
    (
        lambda: compare_numbers(sums_of(NUMBERS), sums_of(NUMBERS), confidence=1.0),
        "compare_numbers.confidence must be between 0 and 1, got 1.0",
    ),
    (
        lambda: compare_numbers(sums_of(NUMBERS), sums_of(LARGER)),
        "compare_numbers needs the same bins in both groups, got [[0.0, 2.0], [0.0, 9.0]] as their ends",
    ),
    (
        lambda: compare(estimated(collection(3, 1.0), [9, 9, 9]), estimated(collection(5, 1.0), [9] * 5)),
        "compare needs estimates of the same values, got 2 value(s) that only one has",
    ),
    (
        lambda: compare(*[estimated(collection(3, 1.0), [9, 9, 9])] * 2, confidence=95),
        "compare.confidence must be between 0 and 1, got 95",
    ),
    (
        lambda: compare(*[estimated(collection(3, 1.0), [9, 9, 9])] * 2, confidence=0),
        "compare.confidence must be between 0 and 1, got 0",
    ),
    (
        lambda: compare(*[estimated(collection(3, 1.0), [9, 9, 9])] * 2, confidence=1),
        "compare.confidence must be between 0 and 1, got 1",
    ),
    (
        lambda: compare(*[estimated(collection(3, 1.0), [9, 9, 9])] * 2, anytime_scale=0),
        "compare.anytime_scale must be above 0 or None, got 0",
    ),
    (
        lambda: compare(*[estimated(collection(3, 1.0), [9, 9, 9]).anytime(100)] * 2, anytime_scale=100),
        "compare.anytime_scale must be None for estimates of Estimate.anytime, got 100",
    ),
    (
        lambda: compare(
            estimated(collection(3, 1.0), [9, 9, 9]),
            estimated(collection(3, 1.0), [9, 9, 9]).anytime(100),
            anytime_scale=50,
        ),
        "compare.anytime_scale must be None for estimates of Estimate.anytime, got 50",
    ),
    (
        lambda: compare(
            estimated(collection(3, 1.0), [9, 9, 9]).with_liars(collection(3, 1.0), 0.02),
            estimated(collection(3, 1.0), [9, 9, 9]),
        ),
        "compare needs estimates with the same share of liars, got 0.02 and None",
    ),
    (
        lambda: homogeneity(collection(3, 1.0), [CohortCounts.empty(1, 3)]),
        "homogeneity needs two groups or more, got 1",
    ),
    (
        lambda: homogeneity(collection(3, 1.0), [CohortCounts.empty(1, 3), CohortCounts.empty(1, 4)]),
        "counts must have the shape (1, 3), got [(1, 3), (1, 4)]",
    ),
    (
        NoReportsError,
        lambda: homogeneity(collection(3, 1.0), [CohortCounts.empty(1, 3)] * 2),
        "the versions of this question have no reports",
    ),
]
