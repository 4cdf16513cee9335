"""Estimation time by number of candidates (hashed: exact for 256, message passing for more)."""

from __future__ import annotations

import resource

import numpy as np

from labs.benchmarks.measure import collection, cpu_seconds
from uldp_transforms.ldp import CohortCounts


def main() -> None:
    print("estimating over a hashed alphabet (library; CPU seconds)")
    rng = np.random.default_rng(1)
    for candidates, cohorts, buckets in ((256, 64, 8), (1024, 256, 16), (1024, 1024, 256), (4096, 1024, 16),
                                         (4096, 1024, 256)):  # fmt: skip
        spec = collection("krr", buckets, cohorts)
        cells = rng.multinomial(1000, np.full(buckets, 1 / buckets), size=cohorts).astype(np.int64)
        counts = CohortCounts(np.full(cohorts, 1000, dtype=np.int64), cells)
        values = tuple(f"value {i}" for i in range(candidates))
        first = cpu_seconds(lambda s=spec, c=counts, v=values: s.estimate(c, "projected", v), repeats=1)
        again = cpu_seconds(lambda s=spec, c=counts, v=values: s.estimate(c, "projected", v), repeats=1)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"  S={candidates:<5} C={cohorts:<5} k={buckets:<4} first window {first:7.2f} s, "
            f"next {again:7.2f} s, peak memory so far {peak:6.0f} MiB",
            flush=True,
        )
