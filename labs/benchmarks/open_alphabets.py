"""Estimates of long lists over hashed alphabets: message passing beside exact least squares, on the same counts."""

from __future__ import annotations

import contextlib
import resource
import time
from collections.abc import Iterator

import numpy as np

from labs.benchmarks.measure import collection
from uldp_transforms.ldp import CohortCounts, Collection, Estimate
from uldp_transforms.ldp.solvers import linear
from uldp_transforms.ldp.solvers.packed import packed_buckets

SETTINGS = [  # S, C, k, epsilon, n, exactly too; that takes most memory, so it comes last
    (20_000, 1024, 8, 2.0, 10**6, False),
    (1_000_000, 1024, 8, 2.0, 10**6, False),
    (1_000_000, 1024, 8, 2.0, 10**7, False),
    (2_000, 1024, 8, 2.0, 10**6, True),
    (8_000, 1024, 56, 4.0, 10**7, True),
]


def main() -> None:
    print("long lists over hashed alphabets (library; CPU seconds; Zipf frequencies, nothing unlisted)")
    for size, cohorts, buckets, epsilon, n, exact in SETTINGS:
        spec = collection("krr", buckets, cohorts, epsilon)
        values = tuple(f"value {i}" for i in range(size))
        print(f"  S={size} C={cohorts} k={buckets} epsilon={epsilon:g} n={n:.0e}", flush=True)
        begin = time.process_time()
        table = packed_buckets(spec.alphabet, values, cohorts, buckets)
        print(f"    table of the list {time.process_time() - begin:7.2f} s, {table.codes.nbytes / 2**20:.0f} MiB")
        truth = 1 / np.arange(1, size + 1)
        truth /= truth.sum()
        counts = _counts(spec, table.forward(truth), n)
        _line("message passing", spec, counts, values, truth)
        if exact:
            with _exactly():
                _line("least squares", spec, counts, values, truth)


def _counts(spec: Collection, shares: np.ndarray, n: int) -> CohortCounts:
    """k-RR of n people, whose bucket frequencies are shares (C, k)."""
    rng = np.random.default_rng(1)
    sizes = rng.multinomial(n, np.full(len(shares), 1 / len(shares)))
    law = spec.mechanism.response(shares)
    return CohortCounts(sizes, rng.multinomial(sizes, law / law.sum(axis=1, keepdims=True)))


def _line(name: str, spec: Collection, counts: CohortCounts, values: tuple[str, ...], truth: np.ndarray) -> None:
    begin = time.process_time()
    estimate: Estimate = spec.estimate(counts, "empirical", values)
    seconds = time.process_time() - begin
    length = np.linalg.norm(estimate.raw_frequencies - truth)
    covered = np.mean((estimate.ci_low <= truth) & (truth <= estimate.ci_high))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"    {name:<16} a window {seconds:7.2f} s, l2 {length:.5f}, covered {covered:.4f}, "
        f"peak memory so far {peak:.2f} GiB",
        flush=True,
    )


@contextlib.contextmanager
def _exactly() -> Iterator[None]:
    few, linear.FEW_UNKNOWNS = linear.FEW_UNKNOWNS, 1 << 20
    try:
        yield
    finally:
        linear.FEW_UNKNOWNS = few
