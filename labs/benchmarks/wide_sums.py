"""Adding sums of few reports to one window of 4,194,304 counters, as a worker with a hot window does."""

from __future__ import annotations

import numpy as np

from labs.benchmarks.measure import cpu_seconds
from uldp_transforms.beam.transforms.count_reports import SumCountsFn
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.counts.sparse_table import counts_at

_SHAPE = (1024, 4096)
_REPORTS = 1_000


def main() -> None:
    rng = np.random.default_rng(1)
    parts = [_of_reports(rng) for _ in range(2_000)]
    print(f"one hot window, k-RR, K = 4,096, C = 1,024, sums of {_REPORTS:,} reports (library)")
    limit = cpu_seconds(lambda: _numpy(parts))
    combine = SumCountsFn()
    accumulator = combine.create_accumulator()
    for part in parts:
        accumulator = combine.add_input(accumulator, part)

    def grow() -> None:
        for part in parts:
            combine.add_input(accumulator, part)

    copied = cpu_seconds(lambda: _copied(parts[:50])) / 50 * len(parts)
    for name, seconds in (("a new table each", copied), ("in place", cpu_seconds(grow)), ("numpy alone", limit)):
        print(f"  {name:<20} {len(parts) / seconds:9,.0f} sums/s/core   {seconds / limit:6.1f} x the numpy limit")


def _of_reports(rng: np.random.Generator) -> CohortCounts:
    cohorts, cells = rng.integers(0, _SHAPE[0], _REPORTS), rng.integers(0, _SHAPE[1], _REPORTS)
    places = np.concatenate([cohorts, _SHAPE[0] + cohorts * _SHAPE[1] + cells])
    return counts_at(_SHAPE, places, np.ones(len(places), np.int64), np.zeros(0, np.int64))


def _copied(parts: list[CohortCounts]) -> None:
    total = CohortCounts.empty(*_SHAPE)
    for part in parts:
        total = total + part


def _numpy(parts: list[CohortCounts]) -> None:
    table = np.zeros(_SHAPE[0] * (1 + _SHAPE[1]), np.int64)
    for part in parts:
        table[part.places] += part.numbers  # type: ignore[attr-defined]
