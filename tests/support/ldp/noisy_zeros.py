"""A value that nobody has, whose count noise has made smaller than it would be on average."""

from __future__ import annotations

import functools

import numpy as np

from uldp_transforms.ldp import CohortCounts, Collection


def krr(values: int, epsilon: float, version: int = 1) -> Collection:
    alphabet = {"id": "closed", "values": [str(value) for value in range(values)]}
    mechanism = {"id": "krr", "epsilon": epsilon}
    return Collection.from_json({"id": "a", "version": version, "alphabet": alphabet, "mechanism": mechanism})


def of_counts(item: Collection, *cells: int) -> CohortCounts:
    return CohortCounts(np.array([sum(cells)]), np.array([cells]))


@functools.cache
def rare() -> tuple[Collection, CohortCounts, CohortCounts]:
    """A noisy zero: a value whose count is 40 below that of noise alone; and a count of noise alone."""
    item, n = krr(16, 2.0), 6423
    noise = round(n * float(item.mechanism.response(np.eye(16)[1])[0]))
    found = []
    for count in (noise - 40, noise):
        rest = np.full(15, (n - count) // 15)
        rest[0] += n - count - rest.sum()
        found.append(of_counts(item, count, *rest.tolist()))
    return item, found[0], found[1]
