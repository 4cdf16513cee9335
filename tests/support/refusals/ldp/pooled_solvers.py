"""Refusals of solvers of versions: calls and their sentences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.refusals.tables import Refusal
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.errors import NoReportsError
from uldp_transforms.ldp.solvers.pooled_versions import PooledVersions


def version(mechanism: dict[str, object], values: list[str], number: int = 1) -> Collection:
    alphabet = {"id": "closed", "values": values}
    return Collection.from_json({"id": "q", "version": number, "alphabet": alphabet, "mechanism": mechanism})


def texts(size: int) -> list[str]:
    return [f"v{position:02d}" for position in range(size)]


def krr(size: int, *epsilons: float) -> PooledVersions:
    return PooledVersions([version({"id": "krr", "epsilon": e}, texts(size)) for e in epsilons])


def counted(cells: np.ndarray) -> CohortCounts:
    return CohortCounts(np.array([cells.sum()], np.int64), np.array([cells], np.int64))


MIXED = [{"id": "krr", "epsilon": 1.0}, {"id": "rappor", "epsilon": 2.0}, {"id": "ss", "epsilon": 0.5}]
HASHED = {"id": "q", "version": 1, "alphabet": {"id": "hashed", "num_buckets": 4}, "num_cohorts": 8}


def pooling(*versions: Collection) -> Callable[[], object]:
    return lambda: PooledVersions(versions)


def counting(*cells: list[int]) -> Callable[[], object]:
    return lambda: krr(3, 1.0, 2.0).estimate([counted(np.array(each)) for each in cells])


REFUSED: list[Refusal] = [
    (lambda: krr(3, 1.0), "PooledVersions.versions must be at least 2 versions, got 1"),
    (
        lambda: PooledVersions([Collection.from_json(HASHED | {"mechanism": MIXED[0]})] * 2),
        "PooledVersions.versions must give every value a symbol of its own, got Hashed with 0 known values and 4 "
        "symbols",
    ),
    (
        pooling(version(MIXED[0], texts(3)), version(MIXED[0], texts(4))),
        "PooledVersions.versions must have the same values, because people cannot answer with a value that their "
        "version does not have; got 1 value(s) that only one of two versions has",
    ),
    (
        pooling(*(version(MIXED[0], texts(1025)) for _ in range(2))),
        "PooledVersions.versions must have at most 1024 values, got 1025",
    ),
    (counting([1, 1, 1]), "counts must have the shapes [(1, 3), (1, 3)], one per version, got [(1, 3)]"),
    (
        lambda: krr(3, 1.0, 1.0).estimate_copies([CohortCounts.empty(1, 3), CohortCounts.empty(1, 4)]),
        "counts must have the shape (1, 3), got [(1, 3), (1, 4)]",
    ),
    (NoReportsError, counting([0, 0, 0], [0, 0, 0]), "the versions of this question have no reports"),
]
