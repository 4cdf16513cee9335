"""Timing, and the sample data that the benchmarks share."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from uldp_transforms.ldp import Collection, ReportBatch

DAY = 86_400_000


def cpu_seconds(work: Callable[[], Any], repeats: int = 3) -> float:
    """Least CPU time of several runs, all threads of this process together."""
    best = float("inf")
    for _ in range(repeats):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return best


def line(name: str, num_reports: int, seconds: float, limit: float | None = None) -> None:
    """Print one figure; ``limit`` is the CPU time of the numpy work that cannot be avoided."""
    rate = num_reports / seconds / 1e6
    ratio = "" if limit is None else f"   {seconds / limit:6.1f} x the numpy limit"
    print(f"{name:<62} {rate:9.2f} M reports/s/core{ratio}", flush=True)


def collection(mechanism: str, num_symbols: int, num_cohorts: int, epsilon: float = 1.0) -> Collection:
    """A hashed collection whose mechanism has ``num_symbols`` symbols."""
    return Collection.from_json(
        {
            "id": "benchmark",
            "version": 1,
            "alphabet": {"id": "hashed", "num_buckets": num_symbols, "seed": 1},
            "mechanism": {"id": mechanism, "epsilon": epsilon},
            "num_cohorts": num_cohorts,
        }
    )


def reports(spec: Collection, num_reports: int, days: int = 1) -> ReportBatch:
    """Reports with event times spread evenly over some days."""
    rng = np.random.default_rng(1)
    values = [f"value {i % 100}" for i in range(num_reports)]
    return spec.perturb(
        values, rng, 1_000_000_000_000 // DAY * DAY + np.arange(num_reports) * DAY * days // num_reports
    )
